package vllmprocessor

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/race"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver"
)

// A label that divides the requests of an engine, with random shares of which one begins later,
// changes nothing that is derived.
func TestALabelOfRequestsChangesNothing(t *testing.T) {
	race.SkipSequential(t)
	for _, server := range everyServer {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			read := answersOf(t, server)
			for _, name := range []vllmreceiver.Naming{"canonical", "wire"} {
				input := received(t, read, name)
				want, parts := derivedBy(t, input), divided(input)
				require.Greater(t, len(want), 100)
				t.Run(string(name), func(t *testing.T) {
					sameValues(t, want, derivedBy(t, parts))
				})
				t.Run(string(name)+" deltas", func(t *testing.T) {
					sameValues(t, derivedBy(t, deltas(input, true)), derivedBy(t, deltas(parts, true)))
				})
			}
		})
	}
}

// divided gives each point of a counter or histogram the label operation with three values, among
// which it shares at random what was counted since the point before. The third value begins with the
// third scrape.
func divided(input []pmetric.Metrics) []pmetric.Metrics {
	d := divider{rng: rand.New(rand.NewPCG(1, 2)), parts: map[string]*[3][]float64{}}
	var out []pmetric.Metrics
	for i, metrics := range input {
		d.parted = min(2+i/2, 3)
		out = append(out, everyMetric([]pmetric.Metrics{metrics}, d.metric)...)
	}
	return out
}

type divider struct {
	rng    *rand.Rand
	parted int
	parts  map[string]*[3][]float64
}

func (d *divider) metric(m pmetric.Metric) {
	switch m.Type() {
	case pmetric.MetricTypeSum:
		if !m.Sum().IsMonotonic() {
			return
		}
		whole := pmetric.NewNumberDataPointSlice()
		m.Sum().DataPoints().MoveAndAppendTo(whole)
		for _, p := range whole.All() {
			for i, numbers := range d.share(seriesKey(m.Name(), p.Attributes()), p.Flags(), []float64{p.DoubleValue()}) {
				part := m.Sum().DataPoints().AppendEmpty()
				p.CopyTo(part)
				part.SetDoubleValue(numbers[0])
				d.name(part, i)
			}
		}
	case pmetric.MetricTypeHistogram:
		whole := pmetric.NewHistogramDataPointSlice()
		m.Histogram().DataPoints().MoveAndAppendTo(whole)
		for _, p := range whole.All() {
			numbers := []float64{p.Sum()}
			for _, n := range p.BucketCounts().All() {
				numbers = append(numbers, float64(n))
			}
			for i, numbers := range d.share(seriesKey(m.Name(), p.Attributes()), p.Flags(), numbers) {
				part := m.Histogram().DataPoints().AppendEmpty()
				p.CopyTo(part)
				count := uint64(0)
				for i, n := range numbers[1:] {
					part.BucketCounts().SetAt(i, uint64(n))
					count += uint64(n)
				}
				part.SetCount(count)
				if p.HasSum() {
					part.SetSum(numbers[0])
				}
				d.name(part, i)
			}
		}
	}
}

func (d *divider) name(part timed, i int) {
	part.Attributes().PutStr("operation", [3]string{"chat", "text_completion", "embeddings"}[i])
	if i == 2 {
		part.SetStartTimestamp(part.Timestamp() - pcommon.Timestamp(betweenAnswers)) // It began after the others.
	}
}

// share returns the numbers of each part, whose sums are the numbers of the whole.
func (d *divider) share(series string, flags pmetric.DataPointFlags, whole []float64) [][]float64 {
	parts := d.parts[series]
	if parts == nil {
		parts = &[3][]float64{}
		for i := range parts {
			parts[i] = make([]float64, len(whole))
		}
		d.parts[series] = parts
	}
	if !flags.NoRecordedValue() {
		for i, n := range whole {
			before := parts[0][i] + parts[1][i] + parts[2][i]
			if n < before-1e-9 {
				before = 0
				for k := range parts {
					parts[k][i] = 0
				}
			}
			for left := n - before; left > 0; {
				some := left
				if n == float64(int64(n)) {
					some = float64(1 + d.rng.IntN(int(left)))
				}
				parts[d.rng.IntN(d.parted)][i] += some
				left -= some
			}
		}
	}
	return parts[:d.parted]
}
