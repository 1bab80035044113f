package format

import "github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/lint/document"

// grafanaUnits are the units of Grafana in UCUM. "short" and "none" are none.
var grafanaUnits = map[string]string{
	"ns": "ns", "µs": "us", "us": "us", "ms": "ms", "s": "s", "m": "min", "h": "h", "d": "d", "dtdurations": "s", "dthms": "s", "dtdurationms": "ms",
	"clocks": "s", "clockms": "ms",
	"percentunit": "1", "percent": "%",
	"bytes": "By", "decbytes": "By", "kbytes": "KiBy", "deckbytes": "kBy", "mbytes": "MiBy", "decmbytes": "MBy", "gbytes": "GiBy", "decgbytes": "GBy",
	"Bps": "By/s", "binBps": "By/s",
	"cps": "{count}/s", "ops": "{operation}/s", "reqps": "{request}/s", "rps": "{read}/s", "wps": "{write}/s", "iops": "{operation}/s", "eps": "{event}/s",
	"mps": "{message}/s", "recps": "{record}/s", "rowsps": "{row}/s",
}

// panelUnit returns the unit of a panel in UCUM; empty if it is not certain.
func panelUnit(p *document.Node) string {
	for _, t := range p.Get("transformations").List() {
		if t.Get("id").String() == "calculateField" {
			return ""
		}
	}
	switch p.Get("type").String() {
	case "graph":
		if len(p.Get("seriesOverrides").List()) > 0 {
			return ""
		}
		for _, axis := range p.Get("yaxes").List() {
			return grafanaUnits[axis.Get("format").String()]
		}
		for _, format := range p.Get("y_formats").List() {
			return grafanaUnits[format.String()]
		}
		return ""
	case "singlestat":
		return grafanaUnits[p.Get("format").String()]
	case "heatmap":
		// The unit is that of the bounds.
		return ""
	}
	return fieldUnit(p.Get("fieldConfig"))
}

// fieldUnit returns the unit of a panel's fields, unless it differs by field in a way that
// cannot be told from here.
func fieldUnit(config *document.Node) string {
	for _, o := range config.Get("overrides").List() {
		if o.At("matcher", "id").String() == "byFrameRefID" {
			continue
		}
		for _, p := range o.Get("properties").List() {
			if p.Get("id").String() == "unit" {
				return ""
			}
		}
	}
	return grafanaUnits[config.At("defaults", "unit").String()]
}

// overriddenUnit returns the unit of one query.
func overriddenUnit(p *document.Node, refID, unit string) string {
	for _, o := range p.At("fieldConfig", "overrides").List() {
		if o.At("matcher", "id").String() != "byFrameRefID" || o.At("matcher", "options").String() != refID {
			continue
		}
		for _, property := range o.Get("properties").List() {
			if property.Get("id").String() == "unit" {
				return grafanaUnits[property.Get("value").String()]
			}
		}
	}
	return unit
}
