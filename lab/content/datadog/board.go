package datadog

import "github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/content"

type dashboardFile struct {
	Title             string         `json:"title"`
	Description       string         `json:"description"`
	LayoutType        string         `json:"layout_type"`
	ReflowType        string         `json:"reflow_type"`
	TemplateVariables []variable     `json:"template_variables"`
	Widgets           []placedWidget `json:"widgets"`
}

type variable struct {
	Name     string   `json:"name"`
	Prefix   string   `json:"prefix"`
	Defaults []string `json:"defaults"`
}

type placedWidget struct {
	Definition definition `json:"definition"`
	Layout     *layout    `json:"layout,omitempty"`
}

// definition is that of a widget or of a group of them.
type definition struct {
	Type       string         `json:"type"`
	Title      string         `json:"title"`
	Describe   string         `json:"description,omitempty"`
	LayoutType string         `json:"layout_type,omitempty"`
	Requests   []chartRequest `json:"requests,omitempty"`
	Widgets    []placedWidget `json:"widgets,omitempty"`
	ShowLegend bool           `json:"show_legend,omitempty"`
	Autoscale  bool           `json:"autoscale,omitempty"`
}

type chartRequest struct {
	ResponseFormat     string        `json:"response_format"`
	DisplayType        string        `json:"display_type,omitempty"`
	Formulas           []formula     `json:"formulas"`
	Queries            []metricQuery `json:"queries"`
	ConditionalFormats []colour      `json:"conditional_formats,omitempty"`
}

type formula struct {
	Formula      string        `json:"formula"`
	Alias        string        `json:"alias,omitempty"`
	NumberFormat *numberFormat `json:"number_format,omitempty"`
}

type numberFormat struct {
	Unit unit `json:"unit"`
}

type unit struct {
	Type string `json:"type"`
	Name string `json:"unit_name"`
}

type metricQuery struct {
	DataSource string `json:"data_source"`
	Name       string `json:"name"`
	Query      string `json:"query"`
	Aggregator string `json:"aggregator,omitempty"`
}

type colour struct {
	Comparator string  `json:"comparator"`
	Value      float64 `json:"value"`
	Palette    string  `json:"palette"`
}

type layout struct {
	X      int `json:"x"`
	Y      int `json:"y"`
	Width  int `json:"width"`
	Height int `json:"height"`
}

// The grid of an ordered dashboard has twelve columns. Within a group, widgets stand three
// in a row, below its title.
const (
	columns, width, height = 12, 4, 3
	inRow                  = columns / width
)

func dashboard() dashboardFile {
	file := dashboardFile{
		Title: "vLLM", Description: "Health of the servers: for whom, since when and why. Runbooks: " + content.Repository + "docs/runbooks/README.md",
		LayoutType: "ordered", ReflowType: "fixed",
	}
	for _, c := range choices {
		file.TemplateVariables = append(file.TemplateVariables, variable{c.name, c.tag, []string{"*"}})
	}
	y := 0
	for _, g := range groups() {
		whole := definition{Type: "group", LayoutType: "ordered", Title: g.title}
		for i := range g.widgets {
			whole.Widgets = append(whole.Widgets, placedWidget{
				g.widgets[i].definition(), &layout{i % inRow * width, i / inRow * height, width, height},
			})
		}
		rows := (len(g.widgets) + inRow - 1) / inRow
		file.Widgets = append(file.Widgets, placedWidget{whole, &layout{0, y, columns, rows*height + 1}})
		y += rows*height + 1
	}
	return file
}

func (w *widget) definition() definition {
	d := definition{Type: w.kind, Title: w.title, Describe: w.about, ShowLegend: w.kind == "timeseries", Autoscale: w.kind == "query_value"}
	for _, l := range w.lines {
		r := chartRequest{ResponseFormat: "timeseries", Formulas: []formula{{Formula: l.formula, Alias: l.alias}}}
		if w.unit != "" {
			r.Formulas[0].NumberFormat = &numberFormat{unit{"canonical_unit", w.unit}}
		}
		aggregator := ""
		if w.kind == "timeseries" {
			r.DisplayType = "line"
		} else {
			r.ResponseFormat, aggregator = "scalar", "last"
		}
		for i, query := range l.queries {
			r.Queries = append(r.Queries, metricQuery{"metrics", string(rune('a' + i)), query, aggregator})
		}
		for _, limit := range w.limits {
			r.ConditionalFormats = append(r.ConditionalFormats, colour{">=", limit.from, limit.palette})
		}
		d.Requests = append(d.Requests, r)
	}
	return d
}
