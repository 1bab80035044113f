// Package grafana writes dashboards as Grafana's JSON.
package grafana

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/content"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/spelling"
	"github.com/otelcol-vllm/otelcol-vllm/lab/content/board"
)

// schemaVersion is that of Grafana 12 and 13. Grafana migrates older ones when it reads them.
const schemaVersion = 42

type object = map[string]any

// Files returns the dashboards of a spelling, and what installs them, by their paths.
func Files(to spelling.Spelling) (map[string][]byte, error) {
	boards, err := board.All(to)
	if err != nil {
		return nil, err
	}
	folder := "content/grafana/" + string(to) + "/"
	files := map[string][]byte{folder + "kustomization.yaml": configMaps(boards)}
	for _, b := range boards {
		if files[folder+b.UID+".json"], err = Dashboard(b, boards); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// ProviderFile returns what lets Grafana read the dashboards from a folder.
func ProviderFile() (map[string][]byte, error) {
	return map[string][]byte{"content/grafana/provider.yaml": []byte(provider)}, nil
}

// Dashboard returns a board as JSON, with links to the others.
func Dashboard(b content.Board, all []content.Board) ([]byte, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(object{
		"uid": b.UID, "title": b.Title, "description": b.Question, "tags": []string{"otelcol-vllm", "vllm"},
		"schemaVersion": schemaVersion, "version": 1, "editable": true, "graphTooltip": 1,
		"timezone": "browser", "refresh": "30s", "fiscalYearStartMonth": 0,
		"time":       object{"from": "now-3h", "to": "now"},
		"timepicker": object{},
		"templating": object{"list": variables(b)}, "annotations": object{"list": annotations(b)},
		"links": links(b, all), "panels": panels(b),
	})
	if err != nil {
		return nil, fmt.Errorf("board %s: %w", b.UID, err)
	}
	return buffer.Bytes(), nil
}

func datasource() object { return object{"type": "prometheus", "uid": "${datasource}"} }

func variables(b content.Board) []any {
	list := []any{object{
		"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus",
		"hide": 0, "includeAll": false, "multi": false, "refresh": 1, "regex": "", "skipUrlSync": false,
		"options": []any{},
	}}
	for _, v := range b.Variables {
		query := "label_values(" + oneLine(v.Metric) + ", " + v.LabelName + ")"
		list = append(list, object{
			"name": v.Name, "label": v.Label, "type": "query", "datasource": datasource(),
			"query": object{"qryType": 1, "query": query, "refId": "Variable-" + v.Name},
			// On a change of the time range, so that servers that are gone can be chosen.
			"refresh": 2, "sort": 1, "hide": 0, "skipUrlSync": false, "regex": "", "options": []any{},
			"multi": true, "includeAll": true,
			// It matches series without the label, too.
			"allValue": ".*",
			"current":  object{"selected": true, "text": []string{"All"}, "value": []string{"$__all"}},
		})
	}
	return list
}

func oneLine(expr string) string { return strings.Join(strings.Fields(expr), " ") }

func annotations(b content.Board) []any {
	list := []any{object{
		"builtIn": 1, "datasource": object{"type": "grafana", "uid": "-- Grafana --"}, "enable": true,
		"hide": true, "iconColor": "rgba(0, 211, 255, 1)", "name": "Annotations & Alerts", "type": "dashboard",
	}}
	for _, a := range b.Annotations {
		list = append(list, object{
			"name": a.Name, "datasource": datasource(), "enable": true, "hide": false, "iconColor": board.Hex(a.Color),
			"target":      object{"refId": "Anno", "expr": a.Expr, "interval": "60s"},
			"titleFormat": a.Name, "textFormat": a.Text,
		})
	}
	return list
}

// links keep the time and the choices.
func links(b content.Board, all []content.Board) []any {
	list := []any{}
	for _, other := range board.Links(b, all) {
		list = append(list, object{
			"title": other.Title, "type": "link", "url": "/d/" + other.UID, "tooltip": other.Question, "icon": "dashboard",
			"keepTime": true, "includeVars": true, "asDropdown": false, "targetBlank": false, "tags": []string{},
		})
	}
	return append(list, object{
		"title": "Documentation", "type": "link", "url": content.Repository + "docs/diagnosis.md", "tooltip": "", "icon": "doc",
		"keepTime": false, "includeVars": false, "asDropdown": false, "targetBlank": true, "tags": []string{},
	})
}

func panels(b content.Board) []any {
	list := []any{}
	id, y := 0, 0
	for _, row := range b.Rows {
		id++
		header := object{
			"id": id, "type": "row", "title": board.Title(row), "collapsed": row.Collapsed,
			"gridPos": grid(board.Place{X: 0, Y: y, Width: board.Columns, Height: 1}),
		}
		y++
		places, height := board.Places(row.Panels)
		inside := []any{}
		for i, p := range row.Panels {
			id++
			place := places[i]
			place.Y += y
			drawn := panel(p, b)
			drawn["id"], drawn["gridPos"] = id, grid(place)
			inside = append(inside, drawn)
		}
		if row.Collapsed {
			// The panels of a collapsed row are inside of it and take no room.
			header["panels"] = inside
			list = append(list, header)
			continue
		}
		header["panels"] = []any{}
		list = append(append(list, header), inside...)
		y += height
	}
	return list
}

func grid(p board.Place) object { return object{"x": p.X, "y": p.Y, "w": p.Width, "h": p.Height} }
