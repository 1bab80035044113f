package collect

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// The bounds of a memory. What does not fit is read as if there were no memory.
const (
	// maxSharedBounds is the most bounds of a distribution that are shared.
	maxSharedBounds = 64
	// maxSpareSamples and maxSpareNumbers bound what is kept for the next batches. A sample
	// has 112 bytes.
	maxSpareSamples, maxSpareNumbers = 2048, 8192
	// maxSpareBatches bounds the lists of batches. A batch has 224 bytes with what is needed
	// to read it.
	maxSpareBatches = 2048
)

// memory is what a reader keeps for the next calls, for all servers.
type memory struct {
	// bounds are those of the last distributions of each input. Without them a batch of one server
	// allocates 1.09 times the bytes with one engine, and 1.15 times with eight, which then
	// keep 3% more.
	bounds [input.NumMetrics]knownBounds
	// spare are lists of samples of the previous call. Without them a batch of one server
	// allocates 1.4 times the bytes.
	spare [][]input.Sample
	// chunk has the counts of the buckets of a call, and numbers is what is left of it. Without
	// it a batch of one server allocates 1.1 times the bytes with one engine, and 1.15 times with
	// eight.
	chunk   []float64
	numbers []float64
}

// knownBounds are the bounds of the last distributions of an input; older is the place of the
// older ones.
type knownBounds struct {
	last  [2][]float64
	older int
}

// begin prepares for a call. The samples of the previous one are used again.
func (m *memory) begin(before []input.Batch) {
	m.spare = m.spare[:0]
	total := 0
	for i := range before {
		samples := before[i].Samples
		if total += cap(samples); total > maxSpareSamples || i >= maxSpareBatches {
			break
		}
		clear(samples)
		m.spare = append(m.spare, samples[:0])
	}
	m.numbers = m.chunk
}

// noBounds are those of a distribution with one bucket.
var noBounds = []float64{}

// boundsOf returns the first n bounds of a distribution of an input, divided by a number; nil where
// they are not in order. Distributions with the same bounds share them.
func (m *memory) boundsOf(in input.Metric, bounds pcommon.Float64Slice, n int, per float64) []float64 {
	if n == 0 {
		return noBounds
	}
	before := &m.bounds[in]
	for _, known := range before.last {
		if len(known) == n && equal(bounds, known, per) {
			return known
		}
	}
	own := make([]float64, n)
	for i := range own {
		own[i] = bounds.At(i) / per
		if !finite(own[i]) || (i > 0 && own[i] <= own[i-1]) {
			return nil
		}
	}
	if n <= maxSharedBounds {
		before.last[before.older] = own
		before.older = 1 - before.older
	}
	return own
}

// equal reports whether bounds begin with some others.
func equal(bounds pcommon.Float64Slice, known []float64, per float64) bool {
	for i := range known {
		if math.Float64bits(bounds.At(i)/per) != math.Float64bits(known[i]) {
			return false
		}
	}
	return true
}

// samples returns an empty list with room for n samples, or for as many as a batch before
// had.
func (m *memory) samples(n int) []input.Sample {
	last := len(m.spare) - 1
	if last < 0 {
		return make([]input.Sample, 0, n)
	}
	samples := m.spare[last]
	m.spare = m.spare[:last]
	return samples
}

func (m *memory) counts(n int) []float64 {
	if len(m.numbers) < n {
		m.numbers = make([]float64, max(n, 512, min(2*len(m.chunk), maxSpareNumbers)))
		if len(m.numbers) <= maxSpareNumbers {
			m.chunk = m.numbers
		}
	}
	counts := m.numbers[:n:n]
	m.numbers = m.numbers[n:]
	clear(counts)
	return counts
}
