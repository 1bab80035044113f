package format_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/lint/document"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/lint/format"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/querylint"
)

func read(t *testing.T, text string) *format.File {
	t.Helper()
	d, err := document.Parse([]byte(text))
	require.NoError(t, err)
	return format.Read(d)
}

// described is an expression in one line.
func described(e *format.Expression) string {
	parts := []string{string(e.Context.Kind), e.Path, e.Text()}
	if e.Context.Unit != "" {
		parts = append(parts, "unit "+e.Context.Unit)
	}
	if text := strings.Trim(strings.Join(e.Context.Templates, "; "), "; "); text != "" {
		parts = append(parts, "texts "+text)
	}
	if len(e.Context.Thresholds) > 0 {
		parts = append(parts, fmt.Sprint("thresholds ", e.Context.Thresholds))
	}
	return strings.Join(parts, " | ")
}

func TestEachFormatIsRead(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		kinds []string
		want  []string
	}{
		"rules": {
			"namespace: x\ngroups:\n- name: g\n  labels: {team: a}\n  rules:\n  - record: a:b\n    expr: x\n  - alert: A\n    expr: y > 1\n    for: 2m\n    labels: {severity: page}\n    annotations: {summary: '{{ $labels.job }}'}\n- name: empty\n  rules: []\n",
			[]string{"Prometheus rules"},
			[]string{"record | g/a:b | x", "alert | g/A | y > 1 | texts {{ $labels.job }}; page"},
		},
		"rules in JSON": {`{"groups": [{"name": "g", "rules": [{"record": "a:b", "expr": "x"}]}]}`, []string{"Prometheus rules"}, []string{"record | g/a:b | x"}},
		"several documents, a list, and an object that is nothing": {
			"apiVersion: v1\nkind: Service\nmetadata: {name: s}\n---\napiVersion: v1\nkind: List\nitems:\n- apiVersion: monitoring.googleapis.com/v1\n  kind: ClusterRules\n  spec: {groups: [{name: g, rules: [{record: 'a:b', expr: x}]}]}\n---\n---\napiVersion: operator.victoriametrics.com/v1beta1\nkind: VMRule\nspec: {groups: [{name: h, rules: [{record: 'a:c', expr: y}]}]}\n",
			[]string{"Prometheus rules", "ClusterRules", "VMRule"},
			[]string{"record | g/a:b | x", "record | h/a:c | y"},
		},
		"a ConfigMap": {
			"apiVersion: v1\nkind: ConfigMap\ndata:\n  note: hello\n  r: |\n    groups:\n    - name: g\n      rules: [{record: 'a:b', expr: x}]\n  d.json: |\n    {\"title\": \"D\", \"panels\": [{\"title\": \"P\", \"targets\": [{\"refId\": \"A\", \"expr\": \"z\"}]}]}\n",
			[]string{"Prometheus rules", "Grafana dashboard"},
			[]string{"record | r: g/a:b | x", "panel | d.json: D/P/A | z"},
		},
		"a dashboard": {
			`{"dashboard": {"title": "D", "annotations": {"list": [{"name": "N", "expr": "n", "titleFormat": "{{a}}"}, {"datasource": {"type": "loki"}, "expr": "l"}]},
			"templating": {"list": [
				{"name": "v", "type": "query", "query": "label_values(m{a=\"b\"}, c)", "definition": "label_values(m{a=\"b\"}, c)"},
				{"name": "w", "type": "query", "query": {"query": "query_result(topk(1, m))"}},
				{"name": "x", "type": "query", "query": "label_values(c)"}, {"name": "y", "type": "custom", "query": "a,b"}]},
			"panels": [
				{"title": "S", "type": "stat", "fieldConfig": {"defaults": {"unit": "percentunit", "thresholds": {"steps": [{"value": null}, {"value": 0.5}]}},
					"overrides": [{"matcher": {"id": "byFrameRefID", "options": "B"}, "properties": [{"id": "unit", "value": "ms"}]}]},
					"targets": [{"refId": "A", "expr": "p", "legendFormat": "__auto"}, {"refId": "B", "expr": "q", "legendFormat": "{{b}}"}, {"refId": "C", "datasource": {"type": "__expr__"}, "expr": "no"}]},
				{"type": "row", "collapsed": true, "panels": [{"id": 3, "type": "graph", "yaxes": [{"format": "s"}, {"format": "short"}], "thresholds": [{"value": 3}], "targets": [{"expr": "g"}]}]},
				{"title": "L", "datasource": {"type": "loki"}, "targets": [{"expr": "l"}]},
				{"title": "E", "datasource": "-- Mixed --", "targets": [{"datasource": {"type": "prometheus"}, "expr": "e"}, {"datasource": {"type": "elasticsearch"}, "expr": "no"}]},
				{"title": "T", "type": "timeseries", "fieldConfig": {"defaults": {"unit": "s"}, "overrides": [{"matcher": {"id": "byName"}, "properties": [{"id": "unit", "value": "ms"}]}]}, "targets": [{"refId": "A", "expr": "t"}]}
			], "rows": [{"panels": [{"title": "Old", "type": "singlestat", "format": "ms", "thresholds": "1,2", "targets": [{"refId": "A", "expr": "o"}]}]}],
			"__elements": {"u": {"name": "Lib", "model": {"title": "M", "targets": [{"refId": "A", "expr": "m"}]}}}}}`,
			[]string{"Grafana dashboard"},
			[]string{
				`series | D/variable v | m{a="b"} | texts {{c}}`, `series | D/variable v | m{a="b"} | texts {{c}}`, "series | D/variable w | topk(1, m)",
				"panel | D/annotation N | n | texts {{a}}",
				"panel | D/S/A | p | unit 1 | thresholds [0.5]", "panel | D/S/B | q | unit ms | texts {{b}} | thresholds [0.5]",
				"panel | D/panel 1/query 1 | g | unit s | thresholds [3]", "panel | D/E/query 1 | e", "panel | D/T/A | t",
				"panel | D/Old/A | o | unit ms | thresholds [1 2]", "panel | D/M/A | m",
			},
		},
		"a library panel":      {`{"name": "Lib", "kind": 1, "model": {"title": "M", "targets": [{"refId": "A", "expr": "m"}]}}`, []string{"Grafana library panel"}, []string{"panel | Lib/M/A | m"}},
		"a single panel":       {`{"title": "M", "type": "stat", "targets": [{"refId": "A", "expr": "m"}]}`, []string{"Grafana panel"}, []string{"panel | panel/M/A | m"}},
		"dashboards in a list": {`[{"title": "D", "panels": [{"targets": [{"expr": "m"}]}]}, {"title": "E", "panels": []}]`, []string{"Grafana dashboard"}, []string{"panel | D/panel 1/query 1 | m"}},
		"the second schema": {
			`{"apiVersion": "dashboard.grafana.app/v2alpha1", "kind": "Dashboard", "spec": {"title": "D", "layout": {"kind": "RowsLayout", "spec": {"rows": [{"spec": {"title": "R --enable-lora", "layout": {"spec": {"items": [{"spec": {"element": {"name": "p"}}}]}}}}]}},
			"variables": [{"kind": "QueryVariable", "spec": {"name": "v", "query": {"kind": "prometheus", "spec": {"query": "label_values(m, c)"}}}}, {"kind": "QueryVariable", "spec": {"name": "w", "query": {"kind": "loki", "spec": {"query": "label_values(m, c)"}}}}],
			"annotations": [{"spec": {"name": "N", "query": {"kind": "prometheus", "spec": {"expr": "n"}}}}],
			"elements": {"p": {"kind": "Panel", "spec": {"title": "P", "data": {"spec": {"queries": [{"spec": {"refId": "A", "query": {"kind": "prometheus", "spec": {"expr": "e", "legendFormat": "{{x}}"}}}}, {"spec": {"query": {"kind": "loki", "spec": {"expr": "no"}}}}]}},
			"vizConfig": {"kind": "stat", "spec": {"fieldConfig": {"defaults": {"unit": "s", "thresholds": {"steps": [{"value": 2}]}}}}}}}}}}`,
			[]string{"Grafana dashboard, schema 2"},
			[]string{"series | D/variable v | m | texts {{c}}", "panel | D/annotation N | n", "panel | D/P/A | e | unit s | texts {{x}} | thresholds [2]"},
		},
		"the classic schema as an object": {`{"apiVersion": "dashboard.grafana.app/v1beta1", "kind": "Dashboard", "spec": {"title": "D", "panels": [{"title": "P", "targets": [{"refId": "A", "expr": "m"}]}]}}`, []string{"Grafana dashboard"}, []string{"panel | D/P/A | m"}},
		"an alert of Grafana": {
			`{"apiVersion": 1, "groups": [{"name": "g", "rules": [{"title": "T", "for": "5m", "annotations": {"summary": "{{ $labels.a }}"}, "data": [
			{"refId": "A", "datasourceUid": "p", "model": {"expr": "x"}}, {"refId": "B", "datasourceUid": "__expr__", "model": {"type": "threshold", "conditions": [{"evaluator": {"params": [0.5]}}]}}]}]}]}`,
			[]string{"Grafana-managed alert rules"},
			[]string{"condition | g/T/A | x | texts {{ $labels.a }} | thresholds [0.5]"},
		},
		"Perses": {
			`{"kind": "Dashboard", "metadata": {"name": "d"}, "spec": {"variables": [
				{"kind": "ListVariable", "spec": {"name": "v", "plugin": {"kind": "PrometheusLabelValuesVariable", "spec": {"labelName": "c", "matchers": ["m{a=\"b\"}", "n"]}}}},
				{"kind": "ListVariable", "spec": {"name": "w", "plugin": {"kind": "PrometheusPromQLVariable", "spec": {"expr": "m", "labelName": "c"}}}}, {"kind": "TextVariable", "spec": {"name": "x"}}],
			"panels": {"p": {"kind": "Panel", "spec": {"display": {"name": "P"}, "plugin": {"kind": "GaugeChart", "spec": {"format": {"unit": "percent-decimal"}, "thresholds": {"steps": [{"value": 0.9}]}}},
				"queries": [{"kind": "TimeSeriesQuery", "spec": {"plugin": {"kind": "PrometheusTimeSeriesQuery", "spec": {"query": "q", "seriesNameFormat": "{{x}}"}}}}, {"spec": {"plugin": {"kind": "LokiTimeSeriesQuery", "spec": {"query": "no"}}}}]}}}}}`,
			[]string{"Perses dashboard"},
			[]string{`series | d/variable v | m{a="b"} | texts {{c}}`, "series | d/variable v | n | texts {{c}}", "series | d/variable w | m | texts {{c}}", "panel | d/P/query 1 | q | unit 1 | texts {{x}} | thresholds [0.9]"},
		},
		"a PersesDashboard": {
			"apiVersion: perses.dev/v1alpha2\nkind: PersesDashboard\nmetadata: {name: d}\nspec: {config: {panels: {p: {spec: {queries: [{spec: {plugin: {kind: PrometheusTimeSeriesQuery, spec: {query: q}}}}]}}}}}\n",
			[]string{"Perses dashboard"},
			[]string{"panel | d/p/query 1 | q"},
		},
		"a PersesDashboard without a version": {
			"kind: PersesDashboard\nmetadata: {name: d}\nspec: {panels: {p: {spec: {queries: [{spec: {plugin: {kind: PrometheusTimeSeriesQuery, spec: {query: q}}}}]}}}}\n",
			[]string{"Perses dashboard"},
			[]string{"panel | d/p/query 1 | q"},
		},
		"variables without a query": {
			`{"title": "D", "templating": {"list": [{"name": "a", "type": "query", "query": ""}, {"name": "b", "type": "query", "query": "", "definition": ""},
			{"name": "c", "type": "query"}, {"name": "d", "type": "query", "query": null, "definition": null}, {"name": "e", "type": "query", "query": {"query": ""}}]},
			"panels": [{"title": "P", "targets": [{"refId": "A", "expr": "m"}]}]}`,
			[]string{"Grafana dashboard"},
			[]string{"panel | D/P/A | m"},
		},
		"the triggers of KEDA": {
			"apiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {name: s}\nspec:\n  triggers:\n  - {type: cpu, metadata: {value: '5'}}\n  - {type: prometheus, metadata: {query: sum(x), threshold: '5', activationThreshold: 2.5}}\n" +
				"---\napiVersion: keda.sh/v1alpha1\nkind: ScaledJob\nspec: {triggers: [{type: prometheus, name: t, metadata: {query: y, threshold: many}}]}\n",
			[]string{"KEDA ScaledObject", "KEDA ScaledJob"},
			[]string{"condition | s/trigger 2 | sum(x) | thresholds [5 2.5]", "condition | ScaledJob/t | y"},
		},
		"the rules of prometheus-adapter": {
			"rules:\n- seriesQuery: 'x{namespace!=\"\"}'\n  resources: {overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}\n  name: {as: n}\n  metricsQuery: 'sum(rate(<<.Series>>{<<.LabelMatchers>>}[2m])) by (<<.GroupBy>>)'\n" +
				"externalRules:\n- {seriesQuery: '{__name__=~\"^y$\"}', metricsQuery: 'max(<< .Series >>{a=\"b\",<<.LabelMatchers>>})'}\n- {seriesQuery: '{__name__=~\"^z_.*\"}', metricsQuery: 'sum(<<.Series>>)'}\n",
			[]string{"prometheus-adapter rules"},
			[]string{
				`series | n/seriesQuery | x{namespace!=""}`, `condition | n/metricsQuery | sum(rate(x{pod=~".+"}[2m])) by (pod)`,
				`series | rule 1/seriesQuery | {__name__=~"^y$"}`, `condition | rule 1/metricsQuery | max(y{a="b",namespace=~".+"})`, `series | rule 2/seriesQuery | {__name__=~"^z_.*"}`,
			},
		},
		"the values of its chart, and its ConfigMap": {
			"prometheus-adapter: {rules: {default: false, custom: [{seriesQuery: x, metricsQuery: sum(x)}]}}\n---\napiVersion: v1\nkind: ConfigMap\ndata: {config.yaml: \"rules: [{seriesQuery: y, metricsQuery: sum(y)}]\"}\n",
			[]string{"prometheus-adapter rules"},
			[]string{"series | rule 1/seriesQuery | x", "condition | rule 1/metricsQuery | sum(x)", "series | config.yaml: rule 1/seriesQuery | y", "condition | config.yaml: rule 1/metricsQuery | sum(y)"},
		},
		"a GrafanaDashboard": {
			"apiVersion: grafana.integreatly.org/v1beta1\nkind: GrafanaDashboard\nspec: {json: '{\"title\": \"D\", \"panels\": [{\"title\": \"P\", \"targets\": [{\"refId\": \"A\", \"expr\": \"m\"}]}]}'}\n",
			[]string{"GrafanaDashboard", "Grafana dashboard"},
			[]string{"panel | D/P/A | m"},
		},
		"merge keys": {
			"base: &b {for: 3m, labels: {severity: page}}\ngroups:\n- name: g\n  rules:\n  - <<: *b\n    alert: A\n    expr: &e x > 1\n  - {<<: *b, alert: B, expr: *e}\n",
			[]string{"Prometheus rules"},
			[]string{"alert | g/A | x > 1 | texts page"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := read(t, c.text)
			assert.Equal(t, c.kinds, f.Kinds)
			var got []string
			for _, e := range f.Expressions {
				got = append(got, described(e))
			}
			assert.Equal(t, c.want, got)
			assert.Empty(t, f.Problems)
		})
	}
}

func TestWhatIsNoRuleAndNoDashboardIsNamed(t *testing.T) {
	for text, reason := range map[string]string{
		"replicas: 1\nimage: x\n": `an object with the keys "replicas", "image"`,
		"- 1\n- 2\n":              "a document that is not an object",
		"hello":                   "a document that is not an object",
		"apiVersion: apps/v1\nkind: Deployment\n":                             "an object of the kind Deployment",
		"apiVersion: x/v1\nkind: GrafanaDashboard\nspec: {url: y}\n":          "without the field json",
		"rules: [{host: a, http: {}}]\n":                                      `an object with the keys "rules"`,
		"apiVersion: perses.dev/v1alpha2\nkind: PersesDatasource\nspec: {}\n": "an object of the kind PersesDatasource",
		`{"kind": "Dashboard", "spec": {}}`:                                   "an object with the keys",
	} {
		f := read(t, text)
		assert.Empty(t, f.Kinds, text)
		if assert.NotEmpty(t, f.Ignored, text) {
			assert.Contains(t, f.Ignored[0], reason)
		}
	}
	assert.Empty(t, read(t, "").Kinds)
}

func TestWhatPrometheusRefusesIsAProblem(t *testing.T) {
	const head = "groups:\n- name: g\n  rules:\n"
	for text, message := range map[string]string{
		head + "  - {alert: A, record: 'a:b', expr: x}\n":                     "only one of 'record' and 'alert'",
		head + "  - {expr: x}\n":                                              "one of 'record' or 'alert'",
		head + "  - {alert: A}\n":                                             "field 'expr' must be set",
		head + "  - {record: 'a:b', expr: x, for: 5m}\n":                      "invalid field 'for'",
		head + "  - {alert: A, expr: x, annotations: {a: '{{ $labels.x '}}\n": "annotation",
		head + "  - {alert: A, expr: x, for: five}\n":                         "not a valid duration",
		head + "  - {record: 'a:b', expr: x}\n- name: g\n  rules: []\n":       "repeated",
		"groups:\n- rules: []\n":                                              "Groupname must not be empty",
	} {
		f := read(t, text)
		if assert.NotEmpty(t, f.Problems, text) {
			assert.Contains(t, f.Problems[0].Message, message)
			assert.NotContains(t, f.Problems[0].Message, "yaml:")
		}
	}
	assert.Empty(t, read(t, head+"  - {alert: A, expr: 'sum('}\n").Problems, "the linter says what is wrong with an expression")
	f := read(t, head+"  - {alert: A, expr: x}\n  - {alert: B, record: c, expr: x}\n")
	assert.Equal(t, 5, f.Problems[0].Node.Line())
}

func TestHostileFilesAreBounded(t *testing.T) {
	begin := time.Now()
	deep := `{"title": "D", "panels": [` + strings.Repeat(`{"panels": [`, 60) + `{"targets": [{"expr": "m"}]}` + strings.Repeat(`]}`, 60) + `]}`
	assert.Empty(t, read(t, deep).Expressions)
	var many strings.Builder
	many.WriteString(`{"title": "D", "panels": [{"targets": [`)
	for range format.MaxExpressions + 5 {
		many.WriteString(`{"expr": "m"},`)
	}
	many.WriteString(`{"expr": "m"}]}]}`)
	f := read(t, many.String())
	assert.Len(t, f.Expressions, format.MaxExpressions)
	assert.True(t, f.Truncated)

	bomb := "x0: &x0 {title: t, targets: [{expr: m}]}\n"
	for i := range 30 {
		bomb += fmt.Sprintf("x%d: &x%d {panels: [*x%d, *x%d, *x%d]}\n", i+1, i+1, i, i, i)
	}
	assert.LessOrEqual(t, len(read(t, bomb+"panels: [*x30]\n").Expressions), 1)
	groups := "r: &r {record: 'a:b', expr: x}\nl: &l [" + strings.TrimSuffix(strings.Repeat("*r, ", 3000), ", ") + "]\ng: &g {name: g, rules: *l}\ngroups: [" + strings.TrimSuffix(strings.Repeat("*g, ", 3000), ", ") + "]\n"
	assert.Len(t, read(t, groups).Expressions, 1)
	nested := "x"
	for range 6 {
		nested = fmt.Sprintf("{\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"data\": {\"a.json\": %q}}", nested)
	}
	read(t, nested)
	assert.Less(t, time.Since(begin), 30*time.Second)
}

func FuzzRead(f *testing.F) {
	for _, text := range []string{
		"groups: [{name: g, rules: [{alert: A, expr: x, for: 1m}]}]", `{"panels": [{"targets": [{"expr": "x"}], "fieldConfig": {"defaults": {"unit": "s"}}}], "templating": {"list": [{"query": "label_values(a, b)"}]}}`,
		"apiVersion: v1\nkind: ConfigMap\ndata: {a.yaml: 'groups: []'}", "kind: ScaledObject\napiVersion: k\nspec: {triggers: [{type: prometheus, metadata: {query: x}}]}", "rules: [{seriesQuery: x, metricsQuery: 'sum(<<.Series>>)'}]", "kind: Dashboard\nspec: {panels: {p: {spec: {queries: []}}}}", "apiVersion: dashboard.grafana.app/v2\nkind: Dashboard\nspec: {elements: {a: 1}}",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		d, err := document.Parse(content)
		if err != nil {
			return
		}
		for _, e := range format.Read(d).Expressions {
			if e.From < 0 || e.From >= e.To || e.To > len(e.Node.Text) || e.Path == "" {
				t.Fatalf("%d %d %q", e.From, e.To, e.Path)
			}
			querylint.Concerns(e.Text())
		}
	})
}

func TestOtherGroupsAndOtherTextsAreLeftAlone(t *testing.T) {
	for _, text := range []string{
		"groups: [web, db]\n",
		"groups:\n- name: admins\n  members: [a, b]\n",
	} {
		f := read(t, text)
		assert.Empty(t, f.Kinds, text)
		assert.Empty(t, f.Problems, text)
	}
	f := read(t, "apiVersion: v1\nkind: ConfigMap\ndata:\n  config.json: |\n    {\"a\": ${A}}\n  t.yaml: |\n    {{- if .x }}\n    a: b\n    {{- end }}\n")
	assert.Empty(t, f.Problems)
	assert.NotEmpty(t, f.Ignored)
	f = read(t, "apiVersion: v1\nkind: ConfigMap\ndata:\n  d.json: |\n    {\"panels\": [{\"targets\": [{\"expr\": \"a\"}]}\n")
	assert.NotEmpty(t, f.Problems, "a dashboard that cannot be read")
	f = read(t, "apiVersion: operator.victoriametrics.com/v1beta1\nkind: VMRule\nspec: {groups: [{name: h, rules: [{record: 'a:c', expr: y}]}]}\n")
	assert.True(t, f.Expressions[0].Context.Extended)
	f = read(t, "groups: []\n")
	assert.NotEmpty(t, f.Kinds)
}
