package format

import (
	"strconv"

	"github.com/otelcol-vllm/otelcol-vllm/internal/promlint"
	"github.com/otelcol-vllm/otelcol-vllm/internal/vllmctl/lint/document"
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
			Node: query.At("spec", "expr"), Context: promlint.Context{Kind: promlint.Panel}, Board: b,
			Path: b.Name + "/annotation " + named(a.At("spec", "name").String(), strconv.Itoa(i+1)),
		})
	}
	for _, element := range spec.Get("elements").Pairs {
		r.elementV2(b, element.Key, element.Value.Get("spec"))
	}
}

func (r *reader) elementV2(b *Board, name string, spec *document.Node) {
	title := named(spec.Get("title").String(), name)
	viz := spec.At("vizConfig", "spec")
	kind := spec.At("vizConfig", "kind").String()
	if kind == "VizConfig" {
		kind = spec.At("vizConfig", "group").String()
	}
	c := promlint.Context{Kind: promlint.Panel, Name: spec.Get("title").String(), Unit: fieldUnit(viz.Get("fieldConfig"))}
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

// isPrometheusV2 reports whether a query is one of Prometheus: early versions of the schema
// have its kind there, later ones its group.
func isPrometheusV2(query *document.Node) bool {
	kind := query.Get("group").String()
	if kind == "" {
		kind = query.Get("kind").String()
	}
	return kind == "" || kind == "prometheus" || kind == "DataQuery"
}
