package format

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/lint/document"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/querylint"
)

// rules reads an object with groups of rules: a rule file of Prometheus, Mimir, Cortex or
// Thanos, or the provisioning of alerts in Grafana.
func (r *reader) rules(n *document.Node) bool {
	groups := n.Get("groups")
	if !groups.Is(document.List) || len(groups.Items) > 0 && !slices.ContainsFunc(groups.Items, func(g *document.Node) bool { return g.Get("rules") != nil }) {
		// Groups of users or of machines are not meant.
		return false
	}
	managed, prometheus := false, len(groups.Items) == 0
	for i, group := range groups.Items {
		rules := group.Get("rules").List()
		head := Lines{group.Line(), group.LastLine()}
		if len(rules) > 0 {
			head.Last = rules[0].Line() - 1
		}
		for j, rule := range rules {
			r.rulesSeen++
			if r.rulesSeen > maxRules {
				r.file.Truncated = true
				break
			}
			path := named(group.Get("name").String(), fmt.Sprintf("group %d", i+1)) + "/"
			scope := Lines{rule.Line(), rule.LastLine()}
			if rule.Get("data").Is(document.List) || rule.At("grafana_alert", "data").Is(document.List) {
				managed = true
				r.managedRule(rule, path, j, scope, head)
				continue
			}
			prometheus = true
			r.rule(group, rule, path, j, scope, head)
		}
		prometheus = prometheus || len(rules) == 0
	}
	if prometheus {
		r.kind("Prometheus rules")
		r.validate(groups)
	}
	if managed {
		r.kind("Grafana-managed alert rules")
	}
	return true
}

func (r *reader) rule(group, rule *document.Node, path string, index int, scope, head Lines) {
	c := querylint.Context{Kind: querylint.Record, Name: rule.Get("record").String(), Labels: map[string]string{}, Extended: r.extended}
	if alert := rule.Get("alert").String(); alert != "" {
		c.Kind, c.Name = querylint.Alert, alert
		c.Templates = append(texts(rule.Get("annotations")), texts(rule.Get("labels"))...)
	}
	for _, labels := range []*document.Node{group.Get("labels"), rule.Get("labels")} {
		if labels.Is(document.Map) {
			for _, p := range labels.Pairs {
				c.Labels[p.Key] = p.Value.String()
			}
		}
	}
	path += named(c.Name, fmt.Sprintf("rule %d", index+1))
	r.add(Expression{Node: rule.Get("expr"), Path: path, Context: c, Scope: scope, Head: head})
}

// validate lets Prometheus's own reader check groups. What it says about expressions is left
// out, since the linter says it, too.
func (r *reader) validate(groups *document.Node) {
	plain := map[string]any{"groups": groups.Plain()}
	// JSON is YAML, and the library writes some texts in a way that it cannot read.
	content, err := json.Marshal(plain)
	if err != nil {
		return
	}
	_, all := rulefmt.Parse(content, true, model.UTF8Validation, expressions, slog.New(slog.DiscardHandler))
	for _, err := range all {
		message := strings.TrimSpace(err.Error())
		var in *rulefmt.Error
		if !errors.As(err, &in) {
			// The lines are those of the copy.
			message = strings.TrimPrefix(message, "yaml: unmarshal errors:\n")
			r.file.Problems = append(r.file.Problems, Problem{Node: groups, Path: r.prefix + "groups", Message: withoutLine(message)})
			continue
		}
		if strings.Contains(message, "could not parse expression") {
			continue
		}
		node := groups
		for _, group := range groups.Items {
			if rules := group.Get("rules").List(); group.Get("name").String() == in.Group && in.Rule <= len(rules) {
				node = rules[in.Rule-1]
			}
		}
		_, message, _ = strings.Cut(message, in.RuleName+`": `)
		r.file.Problems = append(r.file.Problems, Problem{Node: node, Path: r.prefix + in.Group + "/" + named(in.RuleName, fmt.Sprintf("rule %d", in.Rule)), Message: message})
	}
}

// withoutLine removes the number of a line at the beginning of an error.
func withoutLine(message string) string {
	var all []string
	for line := range strings.SplitSeq(message, "\n") {
		line = strings.TrimSpace(line)
		if rest, has := strings.CutPrefix(line, "line "); has {
			if _, after, found := strings.Cut(rest, ": "); found {
				line = after
			}
		}
		line = strings.TrimLeft(line, "0123456789:")
		all = append(all, strings.TrimSpace(line))
	}
	return strings.Join(all, "; ")
}

// expressions is the parser of the newest Prometheus with all that can be switched on.
var expressions = parser.NewParser(parser.Options{
	EnableExperimentalFunctions: true, ExperimentalDurationExpr: true, EnableExtendedRangeSelectors: true, EnableBinopFillModifiers: true,
})

// managedRule reads an alert rule of Grafana. Its queries and its threshold are separate.
func (r *reader) managedRule(rule *document.Node, path string, index int, scope, head Lines) {
	alert := rule
	if inner := rule.Get("grafana_alert"); inner.Is(document.Map) {
		alert = inner
	}
	path += named(alert.Get("title").String(), fmt.Sprintf("rule %d", index+1))
	c := querylint.Context{
		Kind: querylint.Condition, Name: alert.Get("title").String(),
		Templates: append(texts(rule.Get("annotations")), texts(rule.Get("labels"))...),
	}
	data := alert.Get("data").List()
	for _, query := range data {
		if query.At("model", "datasource", "type").String() == "__expr__" || query.Get("datasourceUid").String() == "__expr__" {
			c.Thresholds = append(c.Thresholds, evaluators(query.Get("model"))...)
		}
	}
	for _, query := range data {
		m := query.Get("model")
		if isPrometheus(m.Get("datasource"), nil) {
			r.add(Expression{Node: m.Get("expr"), Path: path + "/" + named(query.Get("refId").String()), Context: c, Scope: scope, Head: head})
		}
	}
}

// evaluators returns the numbers that an alert of Grafana compares with.
func evaluators(n *document.Node) []float64 {
	var all []float64
	for _, condition := range n.Get("conditions").List() {
		for _, param := range condition.At("evaluator", "params").List() {
			if v, is := number(param); is {
				all = append(all, v)
			}
		}
	}
	return all
}
