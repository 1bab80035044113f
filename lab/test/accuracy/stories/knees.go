package stories

import (
	"cmp"
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// Knee is what a model can do with a kind of traffic.
type Knee struct {
	Model, Traffic string
	// Rate is the highest rate without a growing queue, in requests per second; for a closed
	// loop, the number of clients with which nine tenths of the greatest throughput are
	// reached.
	Rate float64
	// Work is the mean work of its requests, see the function work.
	Work float64
	// FirstToken is the 95th percentile of the time to the first token at half of that rate,
	// Gap the upper bound of the bucket with the 90th of the times between tokens; both in
	// seconds.
	FirstToken, Gap float64
}

func kneeOf(model, kind string) Knee {
	for _, k := range knees {
		if k.Model == model && k.Traffic == kind {
			return k
		}
	}
	panic("no knee for " + model + " with " + kind + ": go run ./lab/test/accuracy/measure -knees")
}

// Closed reports whether a kind of traffic is a closed loop.
func Closed(kind string) bool { return trafficOf(kind).Closed }

// FirstSeed is the first seed of a set.
func FirstSeed(set Set) uint64 { return firstSeeds[set] }

// Server is the n-th of the models with its traffic, at a share of the knee, for stories that are played
// elsewhere. Its requests come in any order at any time, so that traffic has no hours that are too much.
func Server(n int, load float64, seed uint64, seconds float64) (model string, closed bool, workload engine.Workload, err error) {
	pair := pairs[n%len(pairs)]
	b := newBackground(pair.model, pair.traffic, load)
	c, err := b.config(seed, seconds)
	if err != nil || b.closed() {
		return pair.model, b.closed(), c.Workload, err
	}
	t, d := *c.Workload.Traffic, newDraw(seed)
	t.Arrivals = slices.Clone(t.Arrivals)
	d.Shuffle(len(t.Arrivals), func(i, j int) { t.Arrivals[i], t.Arrivals[j] = t.Arrivals[j], t.Arrivals[i] })
	for i := range t.Arrivals {
		t.Arrivals[i].At = d.between(0, t.Span)
	}
	slices.SortFunc(t.Arrivals, func(a, b engine.Arrival) int { return cmp.Compare(a.At, b.At) })
	c.Workload.Traffic = &t
	return pair.model, false, c.Workload, nil
}
