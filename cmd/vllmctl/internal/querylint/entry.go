package querylint

import (
	"slices"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// exists reports whether servers have series of this name although the catalogue has no metric for
// it: an info family all of whose labels become attributes of the resource, and the time at which
// the client library of Python made a counter or a histogram.
func exists(name string) bool {
	base, created := strings.CutSuffix(name, "_created")
	_, counter := namesOf(Wire).byName[base+"_total"]
	_, histogram := namesOf(Wire).bare[base]
	return created && (counter || histogram) ||
		slices.ContainsFunc(catalog.InfoFamilies, func(f catalog.InfoFamily) bool { return f.Family == name })
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
		if e.metric.Kind == catalog.KindSummary {
			s.class = classQuantile
			s.labels, s.ident["quantile"] = s.labels.with("quantile"), true
		}
		if e.source != nil && e.source.Label != "" {
			s.unit, s.class = one, classState
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
	case partSum:
		// The sum of tokens is a throughput; that of times, of limits and of parameters is nothing.
		s.each = s.unit.known && s.unit.seconds == 1 || strings.Contains(e.metric.Name, ".max_") || strings.Contains(e.metric.Name, ".params_")
	case partTotal:
	}
	return s
}
