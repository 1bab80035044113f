package window

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// steady is the time to first token of a busy minute.
func steady() *Histogram {
	return expected(scaled(lognormal(0.8), 0.2), bucketSets[0].bounds, 600)
}

func TestNothingAllocatesInTheSteadyState(t *testing.T) {
	h, part := steady(), steady()
	for name, work := range map[string]func(){
		"Quantile":        func() { h.Quantile(0.95) },
		"MeanConstrained": func() { h.MeanConstrained(0.95) },
		"Interval":        func() { h.Interval(0.95) },
		"Within":          func() { h.Within(0.3) },
		"Reset and Add":   func() { h.Reset(); h.Add(part); h.Add(part) },
	} {
		assert.Zero(t, testing.AllocsPerRun(100, work), name)
	}
}

func BenchmarkQuantile(b *testing.B) {
	h := steady()
	b.ReportAllocs()
	for b.Loop() {
		h.Quantile(0.95)
	}
}

func BenchmarkMeanConstrained(b *testing.B) {
	h := steady()
	b.ReportAllocs()
	for b.Loop() {
		h.MeanConstrained(0.95)
	}
}

func BenchmarkAdd(b *testing.B) {
	part := steady()
	var h Histogram
	b.ReportAllocs()
	for b.Loop() {
		h.Reset()
		for range 8 {
			h.Add(part)
		}
	}
}
