package story

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// all returns the requests of a phase. A number of them that no test needs is an error.
func all(t *testing.T, p Phase, capacity float64, seed uint64) []Request {
	t.Helper()
	if p.Prompt.Most == 0 {
		p.Prompt, p.Output = Lengths{100, 0.5, 3000}, Lengths{50, 0.5, 1000}
	}
	var out []Request
	for s := (&Play{Phases: []Phase{p}}).Source(0, capacity, seed); ; {
		r, more := s.Next()
		if !more {
			return out
		}
		require.GreaterOrEqual(t, r.After, time.Duration(0))
		require.Less(t, r.After, p.For)
		out = append(out, r)
		require.Less(t, len(out), 1_000_000)
	}
}

func TestASeedMakesTheRequests(t *testing.T) {
	p := Phase{For: time.Minute, Rate: 5, Abort: 0.3, Bad: 0.2, Grammar: 0.5, Prefix: Prefix{10, 7}, Adapters: 3}
	first := all(t, p, 0, 7)
	require.Greater(t, len(first), 100)
	assert.Equal(t, first, all(t, p, 0, 7))
	assert.NotEqual(t, first, all(t, p, 0, 8))
	// Another phase draws other requests, and the capacity changes only how often they come.
	play := &Play{Phases: []Phase{p, p}}
	one, _ := play.Source(0, 0, 7).Next()
	two, _ := play.Source(1, 0, 7).Next()
	assert.NotEqual(t, one.Seed, two.Seed)
	assert.Equal(t, 1, two.Phase)
	p.Rate, p.Load = 0, 1
	half := all(t, p, 2.5, 7)
	require.Greater(t, len(half), 50)
	for i, r := range half {
		assert.InDelta(t, 2*first[i].After.Seconds(), r.After.Seconds(), 1e-6)
		r.After = first[i].After
		assert.Equal(t, first[i], r)
	}
}

func TestArrivalsAreAPoissonProcess(t *testing.T) {
	const seconds = 2000
	counts := make([]float64, seconds)
	requests := all(t, Phase{For: seconds * time.Second, Rate: 20}, 0, 3)
	for _, r := range requests {
		counts[int(r.After.Seconds())]++
	}
	// The standard deviation of the sum is 200.
	assert.InDelta(t, 20*seconds, len(requests), 800)
	variance := 0.0
	for _, n := range counts {
		variance += (n - 20) * (n - 20) / seconds
	}
	assert.InDelta(t, 20, variance, 2.5)
	assert.InDelta(t, 0.5*8*seconds, len(all(t, Phase{For: seconds * time.Second, Load: 0.5}, 8, 3)), 360)
}

// A load that grows from 0.2 to 2 of a capacity of 10 requests a second adds up to 3,250 in the
// first 500 s and to 7,750 in the second.
func TestALoadCanChange(t *testing.T) {
	for _, c := range []struct{ load, to, first, second float64 }{{0.2, 2, 3250, 7750}, {2, 0.2, 7750, 3250}, {1, 1, 5000, 5000}} {
		first, second := 0.0, 0.0
		for _, r := range all(t, Phase{For: 1000 * time.Second, Load: c.load, To: c.to}, 10, 5) {
			if r.After < 500*time.Second {
				first++
			} else {
				second++
			}
		}
		assert.InEpsilon(t, c.first, first, 0.07)
		assert.InEpsilon(t, c.second, second, 0.07)
	}
	// Also from next to nothing: the mean of 10 requests a second over 60 s.
	n := 0
	for seed := range uint64(50) {
		n += len(all(t, Phase{For: time.Minute, Load: 0.001, To: 2}, 10, seed))
	}
	assert.InEpsilon(t, 50*600.3, n, 0.03)
}

func TestOtherWaysOfArrival(t *testing.T) {
	times := func(p Phase) (out []time.Duration) {
		for _, r := range all(t, p, 10, 1) {
			out = append(out, r.After)
		}
		return out
	}
	s := time.Second
	assert.Equal(t, []time.Duration{0, 0, 0}, times(Phase{For: s, AtOnce: 3}))
	assert.Equal(t, []time.Duration{2 * s, 2 * s}, times(Phase{For: 3 * s, AtOnce: 2, Quiet: 2 * s}))
	assert.Equal(t, []time.Duration{0, 20 * s, 40 * s}, times(Phase{For: 60 * s, Every: 20 * s}))
	assert.Equal(t, []time.Duration{5 * s, 25 * s, 45 * s}, times(Phase{For: 61 * s, Every: 20 * s, Quiet: 5 * s}))
	assert.Empty(t, times(Phase{For: 60 * s}))
	assert.Empty(t, times(Phase{For: 60 * s, Clients: 5}), "a closed loop draws its requests itself")
	assert.Empty(t, times(Phase{For: 60 * s, Quiet: 70 * s, Load: 1}))
	quiet := times(Phase{For: 1000 * s, Quiet: 900 * s, Load: 1})
	assert.GreaterOrEqual(t, quiet[0], 900*s)
	assert.InDelta(t, 1000, len(quiet), 130)
}

// A gap that is longer than a time.Duration can say is not a request, and not one long ago.
func TestARateOfNextToNothingSendsNothing(t *testing.T) {
	assert.Empty(t, all(t, Phase{For: time.Hour, Load: 1}, 0, 1))
	assert.Empty(t, all(t, Phase{For: time.Hour, Rate: 1e-12}, 0, 1))
	assert.Empty(t, all(t, Phase{For: time.Hour, Load: 1e-300, To: 1e-300}, 1e-10, 1))
}

func TestLengthsHaveTheirMeanAndTheirMost(t *testing.T) {
	mean := func(of func(Request) int, l Lengths) (mean float64, least, most int) {
		requests := all(t, Phase{For: 20_000 * time.Second, Every: time.Second, Prompt: l, Output: l}, 0, 11)
		least = 1 << 30
		for _, r := range requests {
			n := of(r)
			mean += float64(n) / float64(len(requests))
			least, most = min(least, n), max(most, n)
		}
		return mean, least, most
	}
	prompt, output := func(r Request) int { return r.Prompt }, func(r Request) int { return r.Output }
	for _, of := range []func(Request) int{prompt, output} {
		for _, sigma := range []float64{0.3, 0.5, 1} {
			got, least, most := mean(of, Lengths{128, sigma, 100_000})
			assert.InEpsilon(t, 128, got, 0.03)
			assert.Less(t, least, 64)
			assert.Greater(t, most, 256)
		}
		got, least, most := mean(of, Lengths{128, 0, 3500})
		assert.InDelta(t, 128, got, 1e-6)
		assert.Equal(t, []int{128, 128}, []int{least, most})
		_, least, most = mean(of, Lengths{20, 2, 150})
		assert.Equal(t, []int{1, 150}, []int{least, most})
	}
}

func TestWhatIsSpecialAboutRequestsHasItsShare(t *testing.T) {
	p := Phase{For: 10_000 * time.Second, Every: time.Second, Abort: 0.5, Bad: 0.33, Grammar: 0.25, Prefix: Prefix{512, 4}, Adapters: 3}
	leaves, bad, grammar := 0, 0, 0
	prefixes, seeds := map[int]int{}, map[uint64]bool{}
	for i, r := range all(t, p, 0, 2) {
		if r.Leaves > 0 {
			leaves++
			assert.True(t, r.Leaves >= 200*time.Millisecond && r.Leaves <= 2*time.Second, r.Leaves)
		}
		if r.Bad {
			bad++
		}
		if r.Grammar {
			grammar++
		}
		prefixes[r.Prefix]++
		seeds[r.Seed] = true
		assert.Equal(t, 1+i%3, r.Adapter)
	}
	assert.InDeltaSlice(t, []float64{5000, 3300, 2500}, []float64{float64(leaves), float64(bad), float64(grammar)}, 200)
	for i := range 4 {
		assert.InDelta(t, 2500, prefixes[i], 200)
	}
	assert.Len(t, prefixes, 4)
	assert.Len(t, seeds, 10_000)
	r := all(t, Phase{For: time.Second, AtOnce: 1}, 0, 2)[0]
	r.Seed, r.Prompt, r.Output = 0, 0, 0
	assert.Equal(t, Request{Prefix: -1}, r)
}
