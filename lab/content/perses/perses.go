// Package perses writes dashboards as Perses's resources.
//
// Perses has no annotations and no text for missing values: the first are left out, the
// second is at the end of the description.
package perses

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/content"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/spelling"
	"github.com/otelcol-vllm/otelcol-vllm/lab/content/board"
)

// Project is the project of all dashboards.
const Project = "vllm"

type object = map[string]any

// Files returns the dashboards of a spelling by their paths.
func Files(to spelling.Spelling) (map[string][]byte, error) {
	boards, err := board.All(to)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, b := range boards {
		if files["content/perses/"+string(to)+"/"+b.UID+".json"], err = Dashboard(b); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// Dashboard returns a board as JSON.
func Dashboard(b content.Board) ([]byte, error) {
	panels, layouts := object{}, []any{}
	for i, row := range b.Rows {
		places, _ := board.Places(readable(row.Panels))
		items := []any{}
		for j, p := range row.Panels {
			key := fmt.Sprintf("%d_%d_%s", i, j, keyOf(p.Title))
			panels[key] = panel(p, b)
			items = append(items, object{
				"x": places[j].X, "y": places[j].Y, "width": places[j].Width, "height": places[j].Height,
				"content": object{"$ref": "#/spec/panels/" + key},
			})
		}
		layouts = append(layouts, object{"kind": "Grid", "spec": object{
			"display": object{"title": board.Title(row), "collapse": object{"open": !row.Collapsed}},
			"items":   items,
		}})
	}
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(object{
		"kind": "Dashboard", "metadata": object{"name": b.UID, "project": Project},
		"spec": object{
			"display":  object{"name": b.Title, "description": b.Question},
			"duration": "3h", "refreshInterval": "30s",
			"variables": variables(b), "panels": panels, "layouts": layouts,
		},
	})
	if err != nil {
		return nil, fmt.Errorf("board %s: %w", b.UID, err)
	}
	return buffer.Bytes(), nil
}

// readable makes charts higher that are high enough for more than one line of a legend in
// Grafana: Perses cuts the second line off, unless the content has 300 pixels. Panels next to
// them become as high.
func readable(panels []content.Panel) []content.Panel {
	places, _ := board.Places(panels)
	charts := map[int]bool{}
	for i, p := range panels {
		if p.Kind == content.TimeSeries && p.Height >= 7 && p.Height < 10 {
			charts[places[i].Y] = true
		}
	}
	higher := slices.Clone(panels)
	for i := range higher {
		if charts[places[i].Y] {
			higher[i].Height = 10
		}
	}
	return higher
}

// keyOf is a title as a part of a reference.
func keyOf(title string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, title)
}

func variables(b content.Board) []any {
	list := []any{}
	for _, v := range b.Variables {
		spec := object{
			"name": v.Name, "display": object{"name": v.Label, "hidden": false},
			"allowMultiple": true, "allowAllValue": true, "sort": "alphabetical-asc",
			// It matches series without the label, too.
			"customAllValue": ".*", "defaultValue": []string{"$__all"},
			"plugin": object{"kind": "PrometheusLabelValuesVariable", "spec": object{
				"labelName": v.LabelName, "matchers": []string{strings.Join(strings.Fields(v.Metric), " ")},
			}},
		}
		list = append(list, object{"kind": "ListVariable", "spec": spec})
	}
	return list
}

func panel(p content.Panel, b content.Board) object {
	about := p.About
	if p.NoValue != "" {
		about += "\n\nWithout data: " + p.NoValue
	}
	queries := []any{}
	for _, q := range drawn(p) {
		spec := object{"query": q.Expr}
		if q.Legend != "" {
			spec["seriesNameFormat"] = legend(p, q, b)
		}
		if p.Kind == content.StateTimeline {
			// Each point is a cell with a border; narrow cells are nothing but borders.
			spec["minStep"] = "1m"
		}
		queries = append(queries, object{"kind": "TimeSeriesQuery", "spec": object{
			"plugin": object{"kind": "PrometheusTimeSeriesQuery", "spec": spec},
		}})
	}
	spec := object{"display": object{"name": p.Title, "description": about}, "plugin": plugin(p, b)}
	if len(queries) > 0 {
		spec["queries"] = queries
	}
	if links := panelLinks(p, b); len(links) > 0 {
		spec["links"] = links
	}
	return object{"kind": "Panel", "spec": spec}
}

// drawn leaves out the upper end of a band, which Perses cannot fill: the lower one is what is certain.
func drawn(p content.Panel) []content.Query {
	return slices.DeleteFunc(slices.Clone(p.Queries), func(q content.Query) bool { return q.FillTo != "" })
}

// legend has the labels of which Perses cannot make a panel each.
func legend(p content.Panel, q content.Query, b content.Board) string {
	for _, v := range b.Variables {
		if v.Name == p.Repeat {
			return q.Legend + " {{" + v.LabelName + "}}"
		}
	}
	return q.Legend
}

func plugin(p content.Panel, b content.Board) object {
	switch p.Kind {
	case content.Stat:
		spec := object{"calculation": "last-number", "format": format(p.Unit)}
		if len(p.Queries) > 0 && strings.Contains(p.Queries[0].Legend, "{{") && p.Height <= 6 {
			// Several values stand side by side. Perses gives each the size that its text
			// allows, and what is too wide is cut off.
			spec["valueFontSize"] = 24
		}
		spec["thresholds"] = thresholds(p)
		if len(p.Mappings) > 0 {
			spec["mappings"] = mappings(p)
		}
		return object{"kind": "StatChart", "spec": spec}
	case content.StateTimeline:
		return object{"kind": "StatusHistoryChart", "spec": object{
			"legend": object{"position": "bottom", "mode": "list", "size": "small"}, "mappings": mappings(p),
		}}
	case content.Table:
		return object{"kind": "Table", "spec": table(p)}
	default:
		return object{"kind": "TimeSeriesChart", "spec": timeSeries(p, b)}
	}
}

func timeSeries(p content.Panel, b content.Board) object {
	axis := object{"show": true, "format": format(p.Unit)}
	if label := axisLabel(p); label != "" {
		axis["label"] = label
	}
	if p.Min != nil {
		axis["min"] = *p.Min
	}
	if p.Max != nil {
		axis["max"] = *p.Max
	}
	visual := object{"display": "line", "lineWidth": 1.25, "showPoints": "auto", "connectNulls": false, "palette": object{"mode": palette(p)}}
	if p.Stacked {
		visual["stack"], visual["areaOpacity"] = "all", 0.3
	}
	spec := object{"legend": object{"position": "bottom", "mode": "list", "size": "small"}, "yAxis": axis, "visual": visual}
	settings := []any{}
	for i, q := range drawn(p) {
		if q.AsThreshold {
			limit := object{"queryIndex": i, "lineStyle": "dashed", "areaOpacity": 0}
			if !strings.Contains(legend(p, q, b), "{{") { // Several limits have a colour each.
				limit["colorMode"], limit["colorValue"] = "fixed", board.Hex(content.Red)
			}
			settings = append(settings, limit)
		}
	}
	if len(settings) > 0 {
		spec["querySettings"] = settings
	}
	return spec
}

// palette is "auto" for many series: colours by hash, of which some are alike. Few series get the
// seven colours that differ clearly, in their order.
func palette(p content.Panel) string {
	if slices.ContainsFunc(p.Queries, func(q content.Query) bool { return strings.Contains(q.Expr, "k(20, ") }) {
		return "auto"
	}
	return "categorical"
}

// neutral is the colour of a value without a judgement.
const neutral = "#52627A"

func thresholds(p content.Panel) object {
	// Without a default Perses draws values green.
	spec := object{"mode": "absolute", "defaultColor": neutral, "steps": []any{}}
	steps := []any{}
	for i, t := range p.Thresholds {
		if i == 0 {
			spec["defaultColor"] = board.Hex(t.Color)
			continue
		}
		steps = append(steps, object{"value": t.Value, "color": board.Hex(t.Color)})
	}
	spec["steps"] = steps
	return spec
}

func mappings(p content.Panel) []any {
	list := []any{}
	for _, m := range p.Mappings {
		list = append(list, object{"kind": "Value", "spec": object{
			"value":  strconv.FormatFloat(m.Value, 'g', -1, 64),
			"result": object{"value": m.Text, "color": board.Hex(m.Color)},
		}})
	}
	return list
}

// table hides what is not a column of the panel, and joins several queries by their labels.
func table(p content.Panel) object {
	columns, cells, transforms, keys := []any{}, []any{}, []any{}, []string{}
	hidden := []string{"timestamp"}
	for i := range p.Queries {
		hidden = append(hidden, valueOf(p, i))
	}
	for _, c := range p.Columns {
		settings := object{"name": c.Label, "header": c.Title, "enableSorting": true}
		if c.Label == content.ValueColumn {
			settings["name"], settings["format"] = valueOf(p, c.Query), format(cmp.Or(c.Unit, p.Unit))
			hidden = slices.DeleteFunc(hidden, func(name string) bool { return name == settings["name"] })
		} else if len(p.Queries) > 1 {
			transforms = append(transforms, object{"kind": "MergeIndexedColumns", "spec": object{"column": c.Label}})
			if !slices.ContainsFunc(p.Queries, func(q content.Query) bool { return !grouped(q, c.Label) }) {
				keys = append(keys, c.Label)
			}
		}
		if c.Width > 0 {
			settings["width"] = c.Width
		}
		if c.Descending {
			settings["sort"] = "desc"
		}
		columns = append(columns, settings)
		if c.Label == content.ValueColumn {
			continue // A colour of a number would be that of the number in each column.
		}
		for _, m := range c.Mappings {
			cells = append(cells, object{
				"condition": object{"kind": "Value", "spec": object{"value": m.Text}}, "textColor": board.Hex(m.Color),
			})
		}
	}
	for _, name := range hidden {
		columns = append(columns, object{"name": name, "hide": true})
	}
	spec := object{"density": "compact", "defaultColumnWidth": "auto", "columnSettings": columns}
	if len(transforms) > 0 {
		spec["transforms"] = append(transforms, object{"kind": "JoinByColumnValue", "spec": object{"columns": keys}})
	}
	if len(cells) > 0 {
		spec["cellSettings"] = cells
	}
	return spec
}

var grouping = regexp.MustCompile(`by \(([^)]*)\)`)

// grouped reports whether the result of a query has a label.
func grouped(q content.Query, label string) bool {
	return slices.ContainsFunc(grouping.FindAllStringSubmatch(q.Expr, -1), func(by []string) bool {
		return slices.Contains(strings.Split(strings.ReplaceAll(by[1], `"`, ""), ", "), label)
	})
}

// valueOf is Perses's name of the values of a query.
func valueOf(p content.Panel, query int) string {
	if len(p.Queries) == 1 {
		return "value"
	}
	return fmt.Sprintf("value #%d", query+1)
}

func panelLinks(p content.Panel, b content.Board) []any {
	list := []any{}
	for _, l := range p.Links {
		link := object{"name": l.Title, "url": l.URL, "renderVariables": false, "targetBlank": true}
		if l.Board != "" {
			link["url"], link["renderVariables"], link["targetBlank"] = boardURL(l.Board, b), true, false
		}
		list = append(list, link)
	}
	return list
}

// boardURL is the address of a board with the choices of this one.
func boardURL(uid string, from content.Board) string {
	var parts []string
	for _, v := range from.Variables {
		parts = append(parts, "var-"+v.Name+"=$"+v.Name)
	}
	return "/projects/" + Project + "/dashboards/" + uid + "?" + strings.Join(parts, "&")
}
