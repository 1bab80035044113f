package format

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/lint/document"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/querylint"
)

// This file reads what scales servers by metrics: the triggers of KEDA and the rules of prometheus-adapter.

// scaled reads the triggers of a ScaledObject or a ScaledJob of KEDA, which compare one value with a threshold.
func (r *reader) scaled(n *document.Node) {
	kind := n.Get("kind").String()
	r.kind("KEDA " + kind)
	name := named(n.At("metadata", "name").String(), kind)
	for i, trigger := range n.At("spec", "triggers").List() {
		if trigger.Get("type").String() != "prometheus" {
			continue
		}
		of := trigger.Get("metadata")
		c := querylint.Context{Kind: querylint.Condition, Name: of.Get("metricName").String(), Single: true}
		for _, key := range []string{"threshold", "activationThreshold"} {
			// They are texts, in YAML mostly with quotes.
			if v, err := strconv.ParseFloat(of.Get(key).String(), 64); err == nil {
				c.Thresholds = append(c.Thresholds, v)
			}
		}
		path := name + "/" + named(trigger.Get("name").String(), "trigger "+strconv.Itoa(i+1))
		r.add(Expression{Node: of.Get("query"), Path: path, Context: c, Scope: Lines{trigger.Line(), trigger.LastLine()}})
	}
}

// adapter reads the rules of prometheus-adapter: its own file, or the values of its chart, alone or as a part.
func (r *reader) adapter(n *document.Node) bool {
	found := false
	for _, list := range []*document.Node{
		n.Get("rules"), n.Get("externalRules"), n.At("rules", "custom"), n.At("rules", "external"),
		n.At("prometheus-adapter", "rules", "custom"), n.At("prometheus-adapter", "rules", "external"),
	} {
		for i, rule := range list.List() {
			if rule.Get("seriesQuery").String() != "" {
				found = true
				r.adapterRule(rule, i)
			}
		}
	}
	if found {
		r.kind("prometheus-adapter rules")
	}
	return found
}

// adapterRule reads the series that a rule finds and the template of the query that it makes of them.
func (r *reader) adapterRule(rule *document.Node, index int) {
	series, query := rule.Get("seriesQuery"), rule.Get("metricsQuery")
	path := named(rule.At("name", "as").String(), "rule "+strconv.Itoa(index+1))
	scope := Lines{rule.Line(), rule.LastLine()}
	r.add(Expression{Node: series, Path: path + "/seriesQuery", Context: querylint.Context{Kind: querylint.Series}, Scope: scope})
	e := Expression{Node: query, Path: path + "/metricsQuery", Context: querylint.Context{Kind: querylint.Condition, Name: rule.At("name", "as").String()}, Scope: scope}
	if strings.Contains(query.String(), "<<") {
		e.Expanded = expanded(query.Text, seriesName(series.Text), adapterLabel(rule))
		if strings.Contains(e.Expanded, "<<") {
			r.ignore("the query of " + path + ": the result of its template is unknown")
			return
		}
	}
	r.add(e)
}

var (
	// A name, or a pattern of exactly one.
	wholeName   = regexp.MustCompile(`^\s*([A-Za-z_:][\w:]*)\s*(?:\{|$)`)
	matchedName = regexp.MustCompile(`__name__\s*=~?\s*["']\^?([A-Za-z_:][\w:]*)\$?["']`)
	placeholder = regexp.MustCompile(`<<\s*\.(\w+)\s*>>`)
)

// seriesName returns the only name that a query of series finds, and "" if there can be several.
func seriesName(query string) string {
	for _, form := range []*regexp.Regexp{wholeName, matchedName} {
		if found := form.FindStringSubmatch(query); found != nil {
			return found[1]
		}
	}
	return ""
}

// adapterLabel returns the label of the objects that a rule is about, as far as the rule names one.
func adapterLabel(rule *document.Node) string {
	label := "namespace"
	if overrides := rule.At("resources", "overrides"); overrides.Is(document.Map) {
		for _, p := range overrides.Pairs {
			if p.Value.Get("resource").String() != "namespace" {
				label = p.Key
			}
		}
	}
	return label
}

// expanded is a template of the adapter with what stands for the placeholders; those without a value stay.
func expanded(template, series, label string) string {
	values := map[string]string{"Series": series, "LabelMatchers": label + `=~".+"`, "GroupBy": label}
	return placeholder.ReplaceAllStringFunc(template, func(text string) string {
		if value := values[placeholder.FindStringSubmatch(text)[1]]; value != "" {
			return value
		}
		return text
	})
}
