package format

import (
	"regexp"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/lint/document"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/querylint"
)

// The queries of Grafana's variables. They are not PromQL, but have some in them.
var (
	labelValues = regexp.MustCompile(`(?s)^\s*label_values\(\s*(?:(.+?)\s*,\s*)?([A-Za-z_][A-Za-z0-9_]*|"[^"]+")\s*\)\s*$`)
	queryResult = regexp.MustCompile(`(?s)^\s*query_result\((.+)\)\s*$`)
)

// templateVariable reads a variable of Grafana.
func (r *reader) templateVariable(b *Board, v *document.Node) {
	name := v.Get("name").String()
	query := v.Get("query")
	switch {
	case query.Is(document.Map) && query.Get("spec").Is(document.Map):
		if !isPrometheusV2(query) {
			return
		}
		query = query.At("spec", "query")
	case query.Is(document.Map):
		query = query.Get("query")
	}
	if kind := v.Get("type").String(); kind != "" && kind != "query" || !query.Is(document.Scalar) || !isPrometheus(v.Get("datasource"), nil) {
		return
	}
	r.variableQuery(b, name, query, v.Get("allValue").String())
	// Grafana repeats the query there; it is shown in the list of variables.
	if definition := v.Get("definition"); definition.Is(document.Scalar) && definition.Text == query.Text {
		r.variableQuery(b, name, definition, v.Get("allValue").String())
	}
}

func (r *reader) variableQuery(b *Board, name string, query *document.Node, all string) {
	e := Expression{Node: query, Path: b.Name + "/variable " + name, Board: b, Context: querylint.Context{Kind: querylint.Series, Name: name}}
	if found := labelValues.FindStringSubmatchIndex(query.Text); found != nil {
		if found[2] < 0 {
			return
		}
		e.From, e.To = found[2], found[3]
		e.Context.Templates = []string{"{{" + strings.Trim(query.Text[found[4]:found[5]], `"`) + "}}"}
		b.Variables[name] = Variable{Metric: query.Text[e.From:e.To], All: all}
		r.add(e)
		return
	}
	if found := queryResult.FindStringSubmatchIndex(query.Text); found != nil {
		e.From, e.To = found[2], found[3]
		b.Variables[name] = Variable{Metric: query.Text[e.From:e.To], All: all}
		r.add(e)
	}
}
