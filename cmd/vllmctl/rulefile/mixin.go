package rulefile

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/content"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/spelling"
	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// A mixin has places that a user fills in. While the rules are built, each parameter is a number that
// nothing else in the rules is, and the selector is a matcher that no rule has.
const (
	firstPlace    = 9_000_000_001
	selectorLabel = "zzz_selector" // sorted behind all others, so that an empty selector leaves valid PromQL.
	selectorPlace = selectorLabel + `="x"`
)

// mixin writes the rules as a mixin of Jsonnet.
func mixin(to spelling.Spelling) ([]byte, error) {
	places, replacements := map[string]float64{}, []string{
		selectorPlace, "%(selector)s", catalog.RunbookBase, "%(runbookBase)s", content.NoGrafana, strings.Replace(content.NoGrafana, `""`, `"%(grafanaURL)s"`, 1),
	}
	for i, p := range content.Parameters() {
		places[p.Name] = float64(firstPlace + i)
		replacements = append(replacements, strconv.Itoa(firstPlace+i), "%("+p.Name+")g")
	}
	fill := strings.NewReplacer(replacements...)
	groups := content.GroupsWith(places)
	if err := withSelector(groups); err != nil {
		return nil, err
	}
	written, err := Groups(groups, to)
	if err != nil {
		return nil, err
	}
	return []byte(jsonnet(written, fill)), nil
}

// withSelector adds the place of the selector to each series that is not recorded by the rules, and is
// not of the collector's own telemetry, which has no labels of what it observes.
func withSelector(groups []content.Group) error {
	mark := func(parsed parser.Expr) {
		parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
			if s, is := node.(*parser.VectorSelector); is && s.Name != "" && !recorded(s.Name) && !strings.HasPrefix(s.Name, "otelcol_") {
				s.LabelMatchers = append(s.LabelMatchers, labels.MustNewMatcher(labels.MatchEqual, selectorLabel, "x"))
			}
			return nil
		})
	}
	add := func(expr *string) error {
		parsed, err := spelling.Parse(*expr)
		if err == nil {
			mark(parsed)
			*expr = spelling.Print(parsed)
		}
		return err
	}
	for i := range groups {
		for j := range groups[i].Records {
			if err := add(&groups[i].Records[j].Expr); err != nil {
				return err
			}
		}
		for j := range groups[i].Alerts {
			a := &groups[i].Alerts[j]
			err := add(&a.Expr)
			if err == nil {
				a.Description, err = spelling.Queries(a.Description, func(expr parser.Expr) error { mark(expr); return nil })
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// recorded reports whether a series comes from our rules: vllm_slo:burn_lower:rate1h. The names of vLLM
// itself begin with "vllm:".
func recorded(name string) bool {
	return strings.HasPrefix(name, "vllm_") && strings.Contains(name, ":") || strings.HasPrefix(name, "ALERTS")
}

// recordsSuffix ends the names of a mixin's groups of recording rules.
const recordsSuffix = ".rules"

func jsonnet(groups []Group, fill *strings.Replacer) string {
	var b strings.Builder
	b.WriteString(strings.Replace(generatedBy, "#", "//", 1))
	b.WriteString("{\n  _config+:: {\n    // Matchers for each series except the collector's own, for example 'k8s_cluster_name=\"prod\"'. Servers, pools\n    // and the gateway must all have these labels: they have different jobs.\n    selector: '',\n")
	fmt.Fprintf(&b, "    // The address of the runbooks' folder, and that of Grafana; without the latter no alert has the address of a board.\n"+
		"    runbookBase: %s,\n    grafanaURL: '',\n", literal(catalog.RunbookBase))
	for _, p := range content.Parameters() {
		fmt.Fprintf(&b, "    // %s\n    %s: %s,\n", p.Meaning, p.Name, strconv.FormatFloat(p.Value, 'f', -1, 64))
	}
	b.WriteString("  },\n")
	// Both may be written into one file, in which no group may be twice.
	for _, kind := range []struct {
		name, suffix string
		has          func(Rule) bool
	}{
		{"prometheusRules", recordsSuffix, func(r Rule) bool { return r.Record != "" }},
		{"prometheusAlerts", "", func(r Rule) bool { return r.Alert != "" }},
	} {
		fmt.Fprintf(&b, "  %s+:: {\n    groups+: [\n", kind.name)
		for _, g := range groups {
			g.Name += kind.suffix
			writeGroup(&b, g, kind.has, fill)
		}
		b.WriteString("    ],\n  },\n")
	}
	b.WriteString("}\n")
	return b.String()
}

func writeGroup(b *strings.Builder, g Group, has func(Rule) bool, fill *strings.Replacer) {
	var rules []Rule
	for _, r := range g.Rules {
		if has(r) {
			rules = append(rules, r)
		}
	}
	if len(rules) == 0 {
		return
	}
	fmt.Fprintf(b, "      {\n        name: %s,\n", literal(g.Name))
	if g.Interval != "" {
		fmt.Fprintf(b, "        interval: %s,\n", literal(g.Interval))
	}
	b.WriteString("        rules: [\n")
	for _, r := range rules {
		b.WriteString("          {\n")
		field := func(name, value string) {
			if value != "" {
				fmt.Fprintf(b, "            %s: %s,\n", name, value)
			}
		}
		field("record", literal(r.Record))
		field("alert", literal(r.Alert))
		// Text blocks of Jsonnet take the indentation of their first line away, which is not the least
		// here: an expression is one line.
		field("expr", format(strings.Join(strings.Fields(r.Expr), " "), fill))
		field("'for'", literal(r.For))
		field("keep_firing_for", literal(r.KeepFiringFor))
		field("labels", object(r.Labels, fill))
		field("annotations", object(r.Annotations, fill))
		b.WriteString("          },\n")
	}
	b.WriteString("        ],\n      },\n")
}

// literal is a string of Jsonnet; an empty one is nothing.
func literal(text string) string {
	if text == "" {
		return ""
	}
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`).Replace(text) + "'"
}

// format is a string of Jsonnet with the places that the user fills in.
func format(text string, fill *strings.Replacer) string {
	filled := fill.Replace(strings.ReplaceAll(text, "%", "%%"))
	if filled == text {
		return literal(text)
	}
	return literal(filled) + " % $._config"
}

func object(values map[string]string, fill *strings.Replacer) string {
	if len(values) == 0 {
		return ""
	}
	var fields []string
	for _, name := range sortedKeys(values) {
		fields = append(fields, "              "+name+": "+format(values[name], fill)+",\n")
	}
	return "{\n" + strings.Join(fields, "") + "            }"
}
