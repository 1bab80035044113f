package normalize

import (
	"slices"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/exposition"
)

// mirrored are the three server histograms of the OpenTelemetry GenAI
// conventions (semantic-conventions v1.41, docs/gen-ai/gen-ai-metrics.md) with
// the vLLM metric that means the same and the bounds the conventions advise.
//
// Time per output token comes from the per-request mean and not from the
// inter-token latency, which observes each gap.
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

// genAI plans the mirror. The conventions know no engine, but engines come and go
// while a server runs, and a sum over those that are there would fall and rise
// with them. So each engine keeps its own series, with vLLM's attributes beside
// the conventional ones.
func (b *builder) genAI(winners map[*catalog.Metric]candidate) {
	for _, mirror := range mirrored {
		source, ok := catalog.ByName(mirror.source)
		if !ok {
			continue
		}
		c, ok := winners[source]
		metric, known := catalog.ByName(mirror.name)
		if !ok || !known || !b.options.enabled(mirror.name, true) {
			continue
		}
		m := Metric{Name: metric.Name, Description: metric.Description, Unit: metric.Unit, Family: c.family.Name, Kind: catalog.KindHistogram}
		for _, u := range b.unify(c.family) {
			if structuralFault(catalog.KindHistogram, &u.series) != ReasonNone {
				continue
			}
			attributes := b.genAIAttributes(u.labels)
			m.Points = append(m.Points, Point{
				Key: pointKey(m.Name, m.Kind, attributes), Attributes: attributes,
				Parts: []exposition.Series{u.series}, Process: u.process,
				Bounds: foldedBounds(&u.series, mirror.bounds),
			})
		}
		if len(m.Points) > 0 {
			b.plan.Metrics = append(b.plan.Metrics, m)
		}
	}
}

// genAIAttributes are the conventional attributes and what else tells the series
// apart.
func (b *builder) genAIAttributes(labels []exposition.Label) []exposition.Label {
	attributes := []exposition.Label{
		{Name: "gen_ai.operation.name", Value: b.options.OperationName},
		{Name: "gen_ai.provider.name", Value: "vllm"},
	}
	for _, l := range labels {
		if l.Name == "model_name" {
			l.Name = "gen_ai.request.model"
		}
		attributes = append(attributes, l)
	}
	slices.SortFunc(attributes, func(a, b exposition.Label) int { return strings.Compare(a.Name, b.Name) })
	return attributes
}

// foldedBounds returns the advised bounds if the series has them all, so that
// folding loses nothing but resolution above the last; else nil, for its own.
func foldedBounds(series *exposition.Series, advised []float64) []float64 {
	own := make([]float64, 0, len(series.Buckets))
	for _, bucket := range series.Buckets {
		own = append(own, bucket.UpperBound)
	}
	for _, bound := range advised {
		if _, found := slices.BinarySearch(own, bound); !found {
			return nil
		}
	}
	return advised
}
