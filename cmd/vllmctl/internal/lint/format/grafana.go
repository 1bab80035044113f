package format

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/lint/document"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/querylint"
)

// dashboard reads a dashboard of Grafana in the classic schema, alone or as its API returns
// it, a library panel, or a single panel.
func (r *reader) dashboard(n *document.Node) bool {
	for _, key := range []string{"dashboard", "result"} {
		if inner := n.Get(key); inner.Is(document.Map) {
			if inner.Get("elements").Is(document.Map) {
				r.dashboardV2(inner)
				return true
			}
			if inner.Get("panels") != nil || inner.Get("rows") != nil || inner.Get("model") != nil {
				return r.dashboard(inner)
			}
		}
	}
	switch {
	case n.Get("panels").Is(document.List), n.Get("rows").Is(document.List):
	case n.At("model", "targets").Is(document.List):
		r.kind("Grafana library panel")
		r.panel(&Board{Name: named(n.Get("name").String(), "library panel")}, n.Get("model"), "", 0)
		return true
	case n.Get("targets").Is(document.List) && n.Get("type").String() != "":
		r.kind("Grafana panel")
		r.panel(&Board{Name: "panel"}, n, "", 0)
		return true
	case n.Get("elements").Is(document.Map) && n.Get("layout") != nil:
		r.dashboardV2(n)
		return true
	default:
		return false
	}
	r.kind("Grafana dashboard")
	b := &Board{Name: named(n.Get("title").String(), n.Get("uid").String(), "dashboard"), Variables: map[string]Variable{}}
	for _, v := range n.At("templating", "list").List() {
		r.templateVariable(b, v)
	}
	for i, a := range n.At("annotations", "list").List() {
		if isPrometheus(a.Get("datasource"), nil) {
			c := querylint.Context{Kind: querylint.Panel, Templates: []string{a.Get("titleFormat").String(), a.Get("textFormat").String()}}
			r.add(Expression{
				Node: a.Get("expr"), Context: c, Board: b,
				Path: b.Name + "/annotation " + named(a.Get("name").String(), strconv.Itoa(i+1)),
			})
		}
	}
	r.panels(b, n.Get("panels").List(), "", 0)
	for _, row := range n.Get("rows").List() {
		r.panels(b, row.Get("panels").List(), words(row), 0)
	}
	if elements := n.Get("__elements"); elements.Is(document.Map) {
		for _, p := range elements.Pairs {
			r.panel(b, p.Value.Get("model"), "", 0)
		}
	}
	return true
}

// panels reads the panels of a dashboard or a row. An open row stands before its panels.
func (r *reader) panels(b *Board, all []*document.Node, row string, depth int) {
	if depth > 8 {
		return
	}
	for i, p := range all {
		if !p.Is(document.Map) || r.seen[p] {
			continue
		}
		r.seen[p] = true
		if p.Get("type").String() == "row" {
			row = words(p)
		}
		r.panel(b, p, row, i)
		r.panels(b, p.Get("panels").List(), row, depth+1)
	}
}

// words are what a panel or a row says about itself.
func words(p *document.Node) string {
	return strings.Join([]string{p.Get("title").String(), p.Get("description").String(), p.At("fieldConfig", "defaults", "noValue").String()}, "\n")
}

// panel reads the queries of a panel.
func (r *reader) panel(b *Board, p *document.Node, row string, index int) {
	if !p.Is(document.Map) {
		return
	}
	title := named(p.Get("title").String(), fmt.Sprintf("panel %d", index+1))
	c := querylint.Context{Kind: querylint.Panel, Name: p.Get("title").String(), Unit: panelUnit(p), Thresholds: panelThresholds(p), Described: row + "\n" + words(p)}
	if alert := p.Get("alert"); alert.Is(document.Map) {
		c.Thresholds = append(c.Thresholds, evaluators(alert)...)
	}
	for i, t := range p.Get("targets").List() {
		if !isPrometheus(t.Get("datasource"), p.Get("datasource")) {
			continue
		}
		own := c
		own.Unit = overriddenUnit(p, t.Get("refId").String(), c.Unit)
		if legend := t.Get("legendFormat").String(); legend != "__auto" {
			own.Templates = []string{legend}
		}
		r.add(Expression{
			Node: t.Get("expr"), Context: own, Board: b,
			Path: b.Name + "/" + title + "/" + named(t.Get("refId").String(), fmt.Sprintf("query %d", i+1)),
		})
	}
}

// isPrometheus reports whether the data source of a query, or else of its panel, can be a
// Prometheus. A name or a variable can be anything.
func isPrometheus(query, panel *document.Node) bool {
	for _, source := range []*document.Node{query, panel} {
		kind := source.Get("type").String()
		if kind == "" {
			kind = source.Get("group").String()
		}
		if kind == "" && source.Is(document.Scalar) && !strings.HasPrefix(source.Text, "$") {
			kind = source.Text
		}
		if kind == "" || kind == "-- Mixed --" || kind == "mixed" || kind == "datasource" {
			continue
		}
		kind = strings.ToLower(kind)
		for _, other := range []string{
			"loki", "tempo", "elastic", "influx", "graphite", "cloudwatch", "mysql", "postgres", "testdata", "pyroscope", "jaeger", "zipkin",
			"opentsdb", "mssql", "azure-monitor", "stackdriver", "clickhouse", "infinity", "__expr__", "-- grafana --", "-- dashboard --",
		} {
			if strings.Contains(kind, other) && !strings.Contains(kind, "prometheus") {
				return false
			}
		}
		return kind != "grafana"
	}
	return true
}

// panelThresholds returns the values from which a panel has another colour, if it shows
// them: a panel that was never touched has a threshold of 80.
func panelThresholds(p *document.Node) []float64 {
	defaults := p.At("fieldConfig", "defaults")
	var all []float64
	switch p.Get("type").String() {
	case "timeseries", "barchart", "trend", "candlestick", "histogram", "heatmap", "piechart":
		drawn := defaults.At("custom", "thresholdsStyle", "mode").String()
		if (drawn == "" || drawn == "off") && defaults.At("color", "mode").String() != "thresholds" {
			return oldThresholds(p)
		}
	case "stat", "gauge", "bargauge", "table", "state-timeline", "status-history":
		if mode := defaults.At("color", "mode").String(); mode != "" && mode != "thresholds" {
			return nil
		}
	default:
		return oldThresholds(p)
	}
	if defaults.At("thresholds", "mode").String() == "percentage" {
		return nil
	}
	for _, step := range defaults.At("thresholds", "steps").List() {
		if v, is := number(step.Get("value")); is {
			all = append(all, v)
		}
	}
	return all
}

// oldThresholds are those of the panels graph and singlestat.
func oldThresholds(p *document.Node) []float64 {
	var all []float64
	switch p.Get("type").String() {
	case "graph":
		for _, step := range p.Get("thresholds").List() {
			if v, is := number(step.Get("value")); is {
				all = append(all, v)
			}
		}
	case "singlestat":
		for text := range strings.SplitSeq(p.Get("thresholds").String(), ",") {
			if v, err := strconv.ParseFloat(strings.TrimSpace(text), 64); err == nil {
				all = append(all, v)
			}
		}
	}
	return all
}
