package format

import (
	"fmt"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/lint/document"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/querylint"
)

// persesKind is the object of the Perses operator that holds a dashboard.
const persesKind = "PersesDashboard"

// perses reads an object of Perses, which has kind, metadata and spec.
func (r *reader) perses(n *document.Node) bool {
	spec := n.Get("spec")
	switch n.Get("kind").String() {
	case "Dashboard":
		if !spec.Get("panels").Is(document.Map) {
			return false
		}
		r.persesDashboard(n, spec)
		return true
	case "Variable", "GlobalVariable":
		r.kind("Perses variable")
		b := &Board{Name: "variable", Variables: map[string]Variable{}}
		r.persesVariable(b, n.At("metadata", "name").String(), spec)
		return true
	}
	return false
}

func (r *reader) persesDashboard(n, spec *document.Node) {
	r.kind("Perses dashboard")
	b := &Board{Name: named(spec.At("display", "name").String(), n.At("metadata", "name").String(), "dashboard"), Variables: map[string]Variable{}}
	for _, v := range spec.Get("variables").List() {
		r.persesVariable(b, v.At("spec", "name").String(), v.Get("spec"))
	}
	rows := map[string]string{}
	for _, layout := range spec.Get("layouts").List() {
		for _, item := range layout.At("spec", "items").List() {
			rows[strings.TrimPrefix(item.At("content", "$ref").String(), "#/spec/panels/")] = layout.At("spec", "display", "title").String()
		}
	}
	if panels := spec.Get("panels"); panels.Is(document.Map) {
		for _, p := range panels.Pairs {
			r.persesPanel(b, p.Key, p.Value.Get("spec"), rows[p.Key])
		}
	}
}

// persesVariable reads a variable that lists values of labels.
func (r *reader) persesVariable(b *Board, name string, spec *document.Node) {
	plugin := spec.Get("plugin")
	e := Expression{Path: b.Name + "/variable " + name, Board: b, Context: querylint.Context{Kind: querylint.Series, Name: name}}
	if label := plugin.At("spec", "labelName").String(); label != "" {
		e.Context.Templates = []string{"{{" + label + "}}"}
	}
	all := spec.Get("customAllValue").String()
	switch plugin.Get("kind").String() {
	case "PrometheusPromQLVariable":
		e.Node = plugin.At("spec", "expr")
		b.Variables[name] = Variable{Metric: e.Node.String(), All: all}
		r.add(e)
	case "PrometheusLabelValuesVariable", "PrometheusLabelNamesVariable":
		for _, matcher := range plugin.At("spec", "matchers").List() {
			one := e
			one.Node = matcher
			b.Variables[name] = Variable{Metric: matcher.String(), All: all}
			r.add(one)
		}
	}
}

func (r *reader) persesPanel(b *Board, key string, spec *document.Node, row string) {
	title := named(spec.At("display", "name").String(), key)
	plugin := spec.At("plugin", "spec")
	c := querylint.Context{
		Kind: querylint.Panel, Name: spec.At("display", "name").String(),
		Described: strings.Join([]string{row, spec.At("display", "name").String(), spec.At("display", "description").String()}, "\n"),
	}
	for _, unit := range []*document.Node{plugin.At("yAxis", "format", "unit"), plugin.At("format", "unit")} {
		if known := persesUnits[unit.String()]; known != "" {
			c.Unit = known
		}
	}
	if plugin.At("thresholds", "mode").String() != "percent" {
		for _, step := range plugin.At("thresholds", "steps").List() {
			if v, is := number(step.Get("value")); is {
				c.Thresholds = append(c.Thresholds, v)
			}
		}
	}
	for i, q := range spec.Get("queries").List() {
		query := q.At("spec", "plugin")
		if kind := query.Get("kind").String(); kind != "PrometheusTimeSeriesQuery" {
			continue
		}
		own := c
		own.Templates = []string{query.At("spec", "seriesNameFormat").String()}
		r.add(Expression{Node: query.At("spec", "query"), Context: own, Board: b, Path: fmt.Sprintf("%s/%s/query %d", b.Name, title, i+1)})
	}
}

// persesUnits are the units of Perses in UCUM.
var persesUnits = map[string]string{
	"nanoseconds": "ns", "microseconds": "us", "milliseconds": "ms", "seconds": "s", "minutes": "min", "hours": "h", "days": "d",
	"percent": "%", "percent-decimal": "1", "%": "%", "bytes": "By", "decbytes": "By", "bytes/sec": "By/s", "decbytes/sec": "By/s",
	"counts/sec": "{count}/s", "events/sec": "{event}/s", "messages/sec": "{message}/s", "ops/sec": "{operation}/s", "packets/sec": "{packet}/s",
	"reads/sec": "{read}/s", "records/sec": "{record}/s", "requests/sec": "{request}/s", "rows/sec": "{row}/s", "writes/sec": "{write}/s",
}
