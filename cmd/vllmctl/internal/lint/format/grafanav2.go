package format

import (
	"strconv"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/lint/document"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/querylint"
)

// dashboardV2 reads a dashboard of Grafana's second schema: panels are elements, and their
// place is elsewhere.
func (r *reader) dashboardV2(spec *document.Node) {
	r.kind("Grafana dashboard, schema 2")
	b := &Board{Name: named(spec.Get("title").String(), "dashboard"), Variables: map[string]Variable{}}
	for _, v := range spec.Get("variables").List() {
		r.templateVariable(b, v.Get("spec"))
	}
	for i, a := range spec.Get("annotations").List() {
		query := a.At("spec", "query")
		if !isPrometheus(query, a.At("spec", "datasource")) {
			continue
		}
		r.add(Expression{
			Node: query.At("spec", "expr"), Context: querylint.Context{Kind: querylint.Panel}, Board: b,
			Path: b.Name + "/annotation " + named(a.At("spec", "name").String(), strconv.Itoa(i+1)),
		})
	}
	rows := map[string]string{}
	rowsV2(spec.Get("layout"), "", rows, 0)
	for _, element := range spec.Get("elements").Pairs {
		r.elementV2(b, element.Key, element.Value.Get("spec"), rows)
	}
}

func (r *reader) elementV2(b *Board, name string, spec *document.Node, rows map[string]string) {
	title := named(spec.Get("title").String(), name)
	viz := spec.At("vizConfig", "spec")
	kind := spec.At("vizConfig", "kind").String()
	if kind == "VizConfig" {
		kind = spec.At("vizConfig", "group").String()
	}
	c := querylint.Context{Kind: querylint.Panel, Name: spec.Get("title").String(), Unit: fieldUnit(viz.Get("fieldConfig")), Described: rows[name] + "\n" + words(spec)}
	if kind == "stat" || kind == "gauge" || kind == "bargauge" || kind == "table" {
		for _, step := range viz.At("fieldConfig", "defaults", "thresholds", "steps").List() {
			if v, is := number(step.Get("value")); is {
				c.Thresholds = append(c.Thresholds, v)
			}
		}
	}
	for i, q := range spec.At("data", "spec", "queries").List() {
		query := q.At("spec", "query")
		if !isPrometheusV2(query) {
			continue
		}
		own := c
		own.Templates = []string{query.At("spec", "legendFormat").String()}
		if own.Templates[0] == "__auto" {
			own.Templates = nil
		}
		r.add(Expression{
			Node: query.At("spec", "expr"), Context: own, Board: b,
			Path: b.Name + "/" + title + "/" + named(q.At("spec", "refId").String(), "query "+strconv.Itoa(i+1)),
		})
	}
}

// rowsV2 finds the title of the row or tab that each element is in.
func rowsV2(layout *document.Node, title string, into map[string]string, depth int) {
	if depth > 8 {
		return
	}
	for _, key := range []string{"items", "rows", "tabs"} {
		for _, item := range layout.At("spec", key).List() {
			if name := item.At("spec", "element", "name").String(); name != "" {
				into[name] = title
			}
			rowsV2(item.At("spec", "layout"), title+"\n"+item.At("spec", "title").String(), into, depth+1)
		}
	}
}

// isPrometheusV2 reports whether a query is one of Prometheus: early versions of the schema
// have its kind there, later ones its group.
func isPrometheusV2(query *document.Node) bool {
	kind := query.Get("group").String()
	if kind == "" {
		kind = query.Get("kind").String()
	}
	return kind == "" || kind == "prometheus" || kind == "DataQuery"
}
