package querylint

import (
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// foreign is a metric that the catalogue does not have.
type foreign struct {
	typ    typ
	unit   unit
	labels []string
	key    []string
	closed bool
	bucket bool
	// bounds is the unit of a histogram's bounds.
	bounds unit
	class  class
}

// wellKnown are metrics that Prometheus itself makes.
var wellKnown = []Foreign{
	{Name: "up", Type: "gauge", Unit: "{state}", Labels: []string{}},
	{Name: "scrape_duration_seconds", Type: "gauge", Unit: "s", Labels: []string{}},
	{Name: "scrape_samples_scraped", Type: "gauge", Unit: "{sample}", Labels: []string{}},
	{Name: "scrape_samples_post_metric_relabeling", Type: "gauge", Unit: "{sample}", Labels: []string{}},
	{Name: "scrape_series_added", Type: "gauge", Unit: "{series}", Labels: []string{}},
	{Name: "target_info", Type: "gauge", Unit: "1"},
	{Name: "ALERTS", Type: "gauge", Unit: "1"},
	{Name: "ALERTS_FOR_STATE", Type: "gauge", Unit: "s"},
}

func foreignMetrics(declared []Foreign) map[string]foreign {
	all := map[string]foreign{}
	for _, f := range catalog.InfoFamilies {
		// Those that become attributes of the resource only have no metric in the catalogue.
		all[f.Family] = foreign{typ: typGauge, unit: one, class: classState}
	}
	for _, list := range [][]Foreign{wellKnown, telemetry, gpu, declared} {
		for _, f := range list {
			u := parseUnit(f.Unit)
			entry := foreign{unit: u, labels: f.Labels, key: f.Labels, closed: f.Labels != nil, class: classPlain}
			if f.Key != nil {
				entry.key = f.Key
			}
			switch f.Type {
			case "counter":
				entry.typ = typCounter
			case "gauge":
				entry.typ = typGauge
				if f.Unit == "{state}" {
					entry.class = classState
				}
			case "histogram":
				entry.typ = typCounter
				all[f.Name+"_sum"] = entry
				entry.unit = one
				all[f.Name+"_count"] = entry
				entry.bucket, entry.bounds = true, u
				all[f.Name+"_bucket"] = entry
				continue
			}
			all[f.Name] = entry
			if entry.typ == typCounter && strings.HasPrefix(f.Name, "otelcol_") {
				all[f.Name+"_total"] = entry
			}
		}
	}
	return all
}

// foreignOf returns a metric of another program. Its type is guessed from the name where it
// was not declared, since such programs follow the convention.
func (c *checker) foreignOf(name string) (foreign, bool) {
	if f, known := c.linter.foreign[name]; known {
		return f, true
	}
	if base, has := strings.CutSuffix(name, "_created"); has {
		// The client library of Python exposes when a counter or a histogram was made.
		wire := namesOf(Wire)
		_, counter := wire.byName[base+"_total"]
		if _, histogram := wire.bare[base]; counter || histogram {
			return foreign{typ: typGauge, class: classPlain, unit: unitWords["s"]}, true
		}
	}
	if name == "" || c.linter.options.Strict || looksOurs(name) {
		return foreign{}, false
	}
	f := foreign{}
	base, total := strings.CutSuffix(name, "_total")
	switch {
	case total:
		f.typ, f.class = typCounter, classPlain
	case strings.HasSuffix(name, "_bucket"):
		f.typ, f.bucket = typCounter, true
		base = strings.TrimSuffix(name, "_bucket")
	case strings.HasSuffix(name, "_sum"):
		f.typ, f.class = typCounter, classPlain
		base = strings.TrimSuffix(name, "_sum")
	case strings.HasSuffix(name, "_count"):
		f.typ, f.class, f.unit = typCounter, classPlain, one
		return f, true
	}
	switch {
	case strings.HasSuffix(base, "_seconds"):
		f.unit = unitWords["s"]
	case strings.HasSuffix(base, "_milliseconds"):
		f.unit = unitWords["ms"]
	case strings.HasSuffix(base, "_bytes"):
		f.unit = unitWords["By"]
	case total:
		f.unit = one
	}
	if f.bucket {
		f.unit, f.bounds = one, f.unit
	}
	return f, true
}

// shapeOf returns the shape of a metric of the catalogue.
func (c *checker) shapeOf(e entry) shape {
	spelling := e.spelling
	labels := closedSet(attributesOf(e.metric, spelling, e.source)...)
	labels.deployment = true
	s := shape{
		typ: typCounter, class: classPlain, unit: parseUnit(e.metric.Unit), labels: labels, metric: e.metric,
		ident: map[string]bool{}, metrics: map[string]bool{e.metric.Name: true},
	}
	for _, label := range identifying {
		s.ident[label] = true
	}
	for _, attribute := range e.metric.Attributes {
		s.ident[spelling.label(attribute)] = true
	}
	if e.source != nil && e.source.Label != "" {
		// The labels of the family are those in the text of the server, and not of the metric.
		s.ident = map[string]bool{"job": true, "instance": true}
	}
	if e.source != nil && strings.HasSuffix(e.source.Family, "_milliseconds") {
		s.unit = unitWords["ms"]
	}
	switch e.part {
	case partValue:
		s.typ, s.class = typGauge, classOf(e.metric)
		s.constant = configured(e.metric.Name)
		if e.metric.Kind == catalog.KindSummary {
			s.class = classQuantile
			s.labels, s.ident["quantile"] = s.labels.with("quantile"), true
		}
		if e.source != nil && e.source.Label != "" {
			s.unit, s.class, s.constant = one, classState, true
			if e.source.Family == loraFamily {
				s.unit, s.class, s.stamp = unitWords["s"], classPlain, true
			}
		}
	case partBucket:
		s.bucket, s.bounds, s.unit = true, s.unit, one
		s.labels, s.ident["le"] = s.labels.with("le"), true
		if all := catalog.Bounds(e.metric.Name); len(all) > 0 {
			s.limit, s.lowest = all[len(all)-1], all[0]
		}
	case partWhole:
		s.native, s.bounds, s.unit = true, s.unit, one
	case partCount:
		s.unit = one
	case partTotal, partSum:
	}
	return s
}
