package grafana

import (
	"slices"
	"strconv"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/content"
	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/lab/content/board"
)

func panel(p content.Panel, b content.Board) object {
	drawn := object{
		"title": p.Title, "type": string(p.Kind), "description": p.About,
		"links": panelLinks(p, b), "datasource": datasource(),
	}
	targets := []any{}
	for i, q := range p.Queries {
		targets = append(targets, target(p, q, refID(i)))
	}
	drawn["targets"] = targets
	if p.Repeat != "" {
		drawn["title"] = p.Title + ": $" + p.Repeat
		drawn["repeat"], drawn["repeatDirection"], drawn["maxPerRow"] = p.Repeat, "h", 3
	}
	overrides := append(thresholdLines(p), bands(p)...)
	switch p.Kind {
	case content.TimeSeries:
		drawn["options"] = object{
			"legend":  object{"displayMode": "list", "placement": "bottom", "showLegend": true, "calcs": []string{}},
			"tooltip": object{"mode": "multi", "sort": "desc"},
		}
	case content.Stat:
		drawn["options"] = object{
			"reduceOptions": object{"calcs": []string{"lastNotNull"}, "fields": "", "values": false},
			"colorMode":     judged(p, "background", "none"), "graphMode": "none", "textMode": "auto",
			"justifyMode": "auto", "orientation": "auto", "wideLayout": true,
		}
	case content.StateTimeline:
		drawn["options"] = object{
			"mergeValues": true, "showValue": "auto", "alignValue": "left", "rowHeight": 0.85, "perPage": 20,
			"legend":  object{"displayMode": "list", "placement": "bottom", "showLegend": true, "calcs": []string{}},
			"tooltip": object{"mode": "single", "sort": "none"},
		}
	case content.Table:
		drawn["options"] = object{"showHeader": true, "cellHeight": "sm", "sortBy": sorted(p)}
		drawn["transformations"] = organized(p)
		overrides = columnSettings(p, b)
	}
	drawn["fieldConfig"] = object{"defaults": defaults(p), "overrides": overrides}
	return drawn
}

// refID names queries A, B, C.
func refID(i int) string { return string(rune('A' + i)) }

func target(p content.Panel, q content.Query, id string) object {
	t := object{"refId": id, "expr": q.Expr, "legendFormat": q.Legend}
	if q.Instant {
		t["instant"], t["range"] = true, false
	}
	if p.Kind == content.Table {
		t["format"] = "table"
	}
	return t
}

// judged chooses by whether the panel has a judgement to colour.
func judged(p content.Panel, yes, no string) string {
	if len(p.Thresholds) > 0 || len(p.Mappings) > 0 {
		return yes
	}
	return no
}

func defaults(p content.Panel) object {
	d := object{"unit": unit(p.Unit), "noValue": p.NoValue, "color": object{"mode": judged(p, "thresholds", "palette-classic")}}
	if len(p.Mappings) > 0 {
		d["mappings"] = mappings(p.Mappings, false)
	}
	switch p.Kind {
	case content.TimeSeries:
	case content.StateTimeline:
		// With the colours of thresholds Grafana would draw the ranges between these, and not the states.
		d["color"] = object{"mode": "fixed", "fixedColor": "text"}
	default:
		d["thresholds"] = object{"mode": "absolute", "steps": steps(p)}
	}
	if p.Min != nil {
		d["min"] = *p.Min
	}
	if p.Max != nil {
		d["max"] = *p.Max
	}
	switch p.Kind {
	case content.TimeSeries:
		custom := object{"lineWidth": 1, "fillOpacity": 0, "showPoints": "auto", "spanNulls": false}
		if p.Min != nil || p.Max == nil { // A share near 1 is not drawn from 0.
			custom["axisSoftMin"] = 0
		}
		if p.Stacked {
			custom["stacking"], custom["fillOpacity"] = object{"mode": "normal", "group": "A"}, 30
		}
		d["custom"] = custom
	case content.StateTimeline:
		d["custom"] = object{"fillOpacity": 85, "lineWidth": 0}
	case content.Table:
		d["custom"] = object{"align": "auto", "cellOptions": object{"type": "auto"}, "filterable": true}
	}
	return d
}

func steps(p content.Panel) []any {
	if len(p.Thresholds) == 0 {
		return []any{object{"color": "text", "value": nil}}
	}
	var list []any
	for i, t := range p.Thresholds {
		step := object{"color": board.Hex(t.Color), "value": t.Value}
		if i == 0 {
			step["value"] = nil // the lowest step has no lower end.
		}
		list = append(list, step)
	}
	return list
}

// mappings colour values, or the texts themselves.
func mappings(of []content.Mapping, texts bool) []any {
	options := object{}
	for i, m := range of {
		key := strconv.FormatFloat(m.Value, 'g', -1, 64)
		if texts {
			key = m.Text
		}
		options[key] = object{"text": m.Text, "color": board.Hex(m.Color), "index": i}
	}
	return []any{object{"type": "value", "options": options}}
}

// thresholdLines draws limits as dashed lines.
func thresholdLines(p content.Panel) []any {
	list := []any{}
	for i, q := range p.Queries {
		if !q.AsThreshold {
			continue
		}
		properties := []any{
			object{"id": "custom.lineStyle", "value": object{"fill": "dash", "dash": []int{8, 6}}},
			object{"id": "custom.lineWidth", "value": 2},
			object{"id": "custom.fillOpacity", "value": 0},
			object{"id": "custom.stacking", "value": object{"mode": "none", "group": "A"}},
		}
		if !strings.Contains(q.Legend, "{{") { // Several limits have a colour each.
			properties = append(properties, object{"id": "color", "value": object{"mode": "fixed", "fixedColor": board.Hex(content.Red)}})
		}
		list = append(list, object{"matcher": object{"id": "byFrameRefID", "options": refID(i)}, "properties": properties})
	}
	return list
}

// bands fill the area between two series. Grafana finds the lower one by its name, which is
// why a name in it must not depend on labels.
func bands(p content.Panel) []any {
	list := []any{}
	for i, q := range p.Queries {
		if q.FillTo != "" {
			list = append(list, object{
				"matcher": object{"id": "byFrameRefID", "options": refID(i)},
				"properties": []any{
					object{"id": "custom.fillBelowTo", "value": q.FillTo},
					object{"id": "custom.fillOpacity", "value": 35},
				},
			})
		}
	}
	return list
}

// organized orders and names the columns of a table and hides all others. Grafana merges the rows of
// several queries only if all have a column in common. A query without a result, as there is one in
// each healthy fleet, has no labels, but it has the time; rows whose labels differ stay apart all the same.
func organized(p content.Panel) []any {
	order, names, keep, hide := object{}, object{}, []string{}, object{}
	for i, c := range p.Columns {
		field := c.Label
		if field == content.ValueColumn && len(p.Queries) > 1 {
			field += " #" + refID(c.Query)
		}
		order[field], names[field] = i, c.Title
		keep = append(keep, field)
	}
	merge := []any{}
	if len(p.Queries) > 1 {
		keep, hide["Time"] = append(keep, "Time"), true
		merge = []any{object{"id": "merge", "options": object{}}}
	}
	return slices.Concat([]any{object{"id": "filterFieldsByName", "options": object{"include": object{"names": keep}}}}, merge,
		[]any{object{"id": "organize", "options": object{"excludeByName": hide, "indexByName": order, "renameByName": names}}})
}

func sorted(p content.Panel) []any {
	list := []any{}
	for _, c := range p.Columns {
		if c.Descending {
			list = append(list, object{"displayName": c.Title, "desc": true})
		}
	}
	return list
}

// columnSettings makes the values of columns links. Grafana writes the text for missing values
// also into each empty cell, where it would be false.
func columnSettings(p content.Panel, b content.Board) []any {
	list := []any{}
	for _, c := range p.Columns {
		properties := []any{object{"id": "noValue", "value": "-"}}
		if c.Unit != "" {
			properties = append(properties, object{"id": "unit", "value": unit(c.Unit)})
		}
		if len(c.Mappings) > 0 {
			properties = append(properties, object{"id": "mappings", "value": mappings(c.Mappings, c.Label != content.ValueColumn)},
				object{"id": "custom.cellOptions", "value": object{"type": "color-text"}})
		}
		var link object
		switch {
		case c.Runbook:
			link = object{"title": "Runbook", "url": catalog.RunbookURL("${__value.text}"), "targetBlank": true}
		case c.Board != "":
			link = object{"title": "Details", "url": boardURL(c.Board, b, c.Variable), "targetBlank": false}
		}
		if link != nil {
			properties = append(properties, object{"id": "links", "value": []any{link}})
		}
		list = append(list, object{"matcher": object{"id": "byName", "options": c.Title}, "properties": properties})
	}
	return list
}

// boardURL is the address of a board with the time and the choices of this one; one
// variable is set to the value of a cell, if it is named.
func boardURL(uid string, from content.Board, variable string) string {
	parts := []string{"${__url_time_range}", "${datasource:queryparam}"}
	for _, v := range from.Variables {
		if v.Name != variable {
			parts = append(parts, "${"+v.Name+":queryparam}")
		}
	}
	if variable != "" {
		parts = append(parts, "var-"+variable+"=${__value.text}")
	}
	return "/d/" + uid + "?" + strings.Join(parts, "&")
}

func panelLinks(p content.Panel, b content.Board) []any {
	list := []any{}
	for _, l := range p.Links {
		url := l.URL
		if l.Board != "" {
			url = boardURL(l.Board, b, "")
		}
		// Grafana's types require all of these.
		list = append(list, object{
			"title": l.Title, "type": "link", "url": url, "targetBlank": l.Board == "", "tooltip": "", "icon": "external link",
			"keepTime": false, "includeVars": false, "asDropdown": false, "tags": []string{},
		})
	}
	return list
}

// units are the names that Grafana has for units.
var units = map[string]string{
	"s": "s", "1": "percentunit", "By": "bytes", "By/s": "binBps", "W": "watt", "Hz": "hertz", "Cel": "celsius",
	"{request}/s": "reqps", "{state}": "none", "{level}": "none", content.Multiple: "none",
}

func unit(ucum string) string {
	if known, ok := units[ucum]; ok {
		return known
	}
	if noun, rate := strings.CutSuffix(ucum, "}/s"); rate {
		// With a prefix for thousands. The space keeps Grafana from reading a letter as one.
		return "si: " + strings.TrimPrefix(noun, "{") + "s/s"
	}
	return "short"
}
