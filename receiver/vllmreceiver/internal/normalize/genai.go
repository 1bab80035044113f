package normalize

import (
	"slices"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/exposition"
)

// mirrored are the three server histograms of the OpenTelemetry GenAI
// conventions (semantic-conventions v1.41, docs/gen-ai/gen-ai-metrics.md), each with
// the vLLM metric of the same meaning and the bounds that the conventions advise.
//
// The source of the time per output token is the mean per request, and not the
// inter-token latency, which counts each gap.
var mirrored = []struct {
	name, source string
	bounds       []float64
}{
	{
		"gen_ai.server.time_to_first_token", "vllm.time_to_first_token",
		[]float64{.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10},
	},
	{
		"gen_ai.server.time_per_output_token", "vllm.request.time_per_output_token",
		[]float64{.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5},
	},
	{
		"gen_ai.server.request.duration", "vllm.e2e_request_latency",
		[]float64{.01, .02, .04, .08, .16, .32, .64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92},
	},
}

// addGenAI plans the mirror. The conventions have no attribute for an engine. But a sum
// over engines would decrease when one of them leaves, so each engine has its own
// series, with vLLM's attributes in addition to the conventional ones.
func (b *builder) addGenAI(winners map[*catalog.Metric]candidate) {
	for _, mirror := range mirrored {
		source, ok := catalog.ByName(mirror.source)
		if !ok {
			continue
		}
		c, ok := winners[source]
		metric, known := catalog.ByName(mirror.name)
		if _, taken := winners[metric]; taken {
			continue
		}
		if on, set := b.options.Enabled[mirror.name]; !ok || !known || set && !on {
			continue
		}
		m := metricOf(metric)
		m.Family = c.family.Name
		for _, u := range b.unify(c.family) {
			if structuralFault(catalog.KindHistogram, &u.series[0]) != ReasonNone {
				continue
			}
			attributes := b.genAIAttributes(u.labels)
			m.Points = append(m.Points, Point{
				Key: pointKey(m.Name, m.Kind, attributes), Attributes: attributes,
				Parts: u.series, Process: u.process,
				Bounds: foldedBounds(&u.series[0], mirror.bounds),
			})
		}
		b.emit(m)
	}
}

// genAIAttributes returns the conventional attributes and all others of the series.
func (b *builder) genAIAttributes(labels []exposition.Label) []exposition.Label {
	// Without the label of #52249 the metrics do not distinguish chat from completions.
	operation := "chat"
	attributes := []exposition.Label{{Name: "gen_ai.provider.name", Value: "vllm"}}
	for _, l := range labels {
		switch l.Name {
		case "model_name":
			l.Name = "gen_ai.request.model"
		case "operation":
			operation = l.Value // The conventions allow values of one's own, as unknown.
			continue
		}
		attributes = append(attributes, l)
	}
	attributes = append(attributes, exposition.Label{Name: "gen_ai.operation.name", Value: operation})
	slices.SortFunc(attributes, func(a, b exposition.Label) int { return strings.Compare(a.Name, b.Name) })
	return attributes
}

// foldedBounds returns the advised bounds if the series has all of them, so that only
// resolution is lost. Otherwise it returns nil: the series keeps its own bounds.
func foldedBounds(series *exposition.Series, advised []float64) []float64 {
	own := finiteBounds(series)
	if slices.ContainsFunc(advised, func(bound float64) bool { return !slices.Contains(own, bound) }) {
		return nil
	}
	return advised
}
