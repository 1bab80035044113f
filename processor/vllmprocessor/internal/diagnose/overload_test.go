package diagnose

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
)

// overloadedAfter returns after how many seconds a queue is an overload, and whether it is one at the
// end. queue is its length at a time in seconds.
func overloadedAfter(window, every, lasts time.Duration, queue func(at float64) float64) (first float64, over bool) {
	var b backlog
	first = -1
	for at := every; at <= lasts; at += every {
		b.observe(int64(time.Hour+at), queue(at.Seconds()), int64(window))
		if b.Over && first < 0 {
			first = at.Seconds()
		}
	}
	return first, b.Over
}

// A queue that comes and goes is not an overload. One that stays is, after two windows; and whatever
// it does, after five in which requests always waited.
func TestAQueueThatStaysIsAnOverload(t *testing.T) {
	t.Parallel()
	const second = 1.0
	for name, test := range map[string]struct {
		queue func(at float64) float64
		// first is when it is an overload; -1 for never.
		first float64
		over  bool
	}{
		"nothing waits":      {func(float64) float64 { return 0 }, -1, false},
		"one waits":          {func(float64) float64 { return 1 }, -1, false},
		"not known":          {func(float64) float64 { return math.NaN() }, -1, false},
		"it grows":           {func(at float64) float64 { return 2 + at/10 }, 135, true},
		"it remains":         {func(float64) float64 { return 8 }, 135, true},
		"it remains, nearly": {func(at float64) float64 { return 20 - math.Mod(at/15, 3)/2 }, 135, true},
		// A burst for a minute, which takes three to be worked off.
		"a burst drains": {func(at float64) float64 { return min(at, 80-at/3) }, -1, false},
		// One burst after another, with nothing that waits in between.
		"bursts": {func(at float64) float64 { return max(0, 30-math.Mod(at, 90)) }, -1, false},
		// It becomes shorter, but for longer than a burst can it does not go away.
		"it never ends": {func(at float64) float64 { return 3 + 40*math.Exp(-at/200) }, 315, true},
		// An overload ends when the queue has drained to a half.
		"it ends": {func(at float64) float64 { return min(at/6, 40, max(0, 40-(at-300)/3)) }, 135, false},
	} {
		first, over := overloadedAfter(time.Minute, 15*time.Second, 10*time.Minute, test.queue)
		assert.InDelta(t, test.first, first, 15*second, name)
		assert.Equal(t, test.over, over, name)
	}
	// However often a server is scraped, and however long a window is, the samples are bounded and
	// the answer is the same.
	for _, every := range []time.Duration{time.Second, 10 * time.Second, time.Minute} {
		first, _ := overloadedAfter(10*time.Minute, every, time.Hour, func(at float64) float64 { return 2 + at/10 })
		assert.InDelta(t, 1200, first, every.Seconds()+1, every)
	}
	var b backlog
	for n := range 10_000 {
		b.observe(int64(n)*int64(time.Second), 5, int64(time.Hour))
		require.LessOrEqual(t, len(b.recent), mostSamples)
	}
}

// simulate is a simulated server: in each second so many requests arrive, and so many are served
// where they are there. It returns, every 15 s, how many wait and the rates of the last minute.
func simulate(seconds int, arrive, serve func(at int) float64) (waiting, arrived, served []float64) {
	var queue float64
	var in, out []float64
	for at := range seconds {
		queue += arrive(at)
		done := min(queue, serve(at))
		queue -= done
		in, out = append(in, arrive(at)), append(out, done)
		if at%15 == 14 {
			mean := func(all []float64) (sum float64) {
				last := all[len(all)-min(60, len(all)):]
				for _, x := range last {
					sum += x / float64(len(last))
				}
				return sum
			}
			waiting, arrived, served = append(waiting, queue), append(arrived, mean(in)), append(served, mean(out))
		}
	}
	return waiting, arrived, served
}

// The queues with one factor as usual follow a simulation of the same server with the same
// requests, in which that factor is as usual: one that serves more, or gets fewer requests.
func TestTheQueueWithoutAFactorIsThatOfASimulation(t *testing.T) {
	t.Parallel()
	for seed := range uint64(10) {
		random := rand.New(rand.NewPCG(seed, 31))
		base := make([]float64, 3600)
		for at := range base {
			base[at] = max(0, 8+2*random.NormFloat64())
		}
		// From 10 to 40 minutes on steps take 1.5 times as long, and from 15 to 35 minutes on a third
		// more requests arrive.
		const slower, more = 0.405, 0.288
		slow := func(at int) bool { return at >= 600 && at < 2400 }
		many := func(at int) bool { return at >= 900 && at < 2100 }
		arrive := func(at int) float64 {
			if many(at) {
				return base[at] * math.Exp(more)
			}
			return base[at]
		}
		const capacity = 10.5
		serve := func(at int) float64 {
			if slow(at) {
				return capacity * math.Exp(-slower)
			}
			return capacity
		}
		waiting, arrived, served := simulate(3600, arrive, serve)
		withoutSlow, _, _ := simulate(3600, arrive, func(int) float64 { return capacity })
		withoutMore, _, _ := simulate(3600, func(at int) float64 { return base[at] }, serve)
		longest := 0.0
		for _, w := range waiting {
			longest = max(longest, w)
		}
		require.Greater(t, longest, 1000.0)
		var q backlogs
		for n := range waiting {
			at := 15*n + 14
			var by growths
			if slow(at) {
				by[slowerSteps] = slower
			}
			if many(at) {
				by[moreArrivals] = more
			}
			r := reading{}
			r.Signals[signal.ArrivalRate], r.Signals[signal.FirstTokenRate] = arrived[n], served[n]
			q.observe(&r, waiting[n], by, 15)
			require.InDelta(t, withoutSlow[n], q.Without[slowerSteps], 0.05*longest, "seed %d, %d s", seed, at)
			require.InDelta(t, withoutMore[n], q.Without[moreArrivals], 0.05*longest, "seed %d, %d s", seed, at)
			require.InDelta(t, waiting[n], q.Without[longerOutputs], 1e-6, "what has not changed explains nothing")
			shares := q.shares(by)
			total := 0.0
			for _, share := range shares {
				require.GreaterOrEqual(t, share, 0.0)
				total += share
			}
			require.LessOrEqual(t, total, 1+1e-9)
		}
	}
}

// What a queue is due to: a fault where the engine would serve everything without it, the demand
// where it would not be there with fewer requests and no fault explains it.
func TestTheSharesOfAQueue(t *testing.T) {
	t.Parallel()
	var faster, fewer growths
	faster[slowerSteps] = 0.5
	fewer[moreArrivals] = 0.5
	both := faster
	both[moreArrivals] = 0.5
	for name, test := range map[string]struct {
		by                  growths
		withoutSlow, noMore float64
		slow, more          float64
	}{
		"only steps":            {faster, 0, 100, 1, 0},
		"a half by steps":       {faster, 50, 100, 0.5, 0},
		"only arrivals":         {fewer, 100, 0, 0, 1},
		"a fault before demand": {both, 0, 0, 1, 0},
		"a fault for a part":    {both, 75, 0, 0.25, 0.75},
		"neither":               {both, 100, 100, 0, 0},
	} {
		q := backlogs{Waiting: 100}
		for f := range numFactors {
			q.Without[f] = 100
		}
		q.Without[slowerSteps], q.Without[moreArrivals] = test.withoutSlow, test.noMore
		got := q.shares(test.by)
		assert.InDelta(t, test.slow, got[slowerSteps], 1e-9, name)
		assert.InDelta(t, test.more, got[moreArrivals], 1e-9, name)
	}
	// A queue that is there between scrapes only is divided by what each factor takes.
	q := backlogs{}
	both[moreArrivals] = 1.5
	got := q.shares(both)
	assert.InDelta(t, 0.25, got[slowerSteps], 1e-9)
	assert.InDelta(t, 0.75, got[moreArrivals], 1e-9)
	assert.Equal(t, growths{}, q.shares(growths{}), "nothing has changed")
}

// A queue of which the length is not known changes nothing.
func TestAQueueThatIsNotKnown(t *testing.T) {
	t.Parallel()
	q := backlogs{Waiting: 5}
	q.observe(&reading{}, math.NaN(), growths{}, 15)
	assert.InDelta(t, 5, q.Waiting, 0)
}

// An overload ends when the queue is shorter than a half of what it was in the last two windows,
// although requests wait on.
func TestAnOverloadEndsWhileRequestsStillWait(t *testing.T) {
	t.Parallel()
	for shorter, over := range map[float64]bool{15: false, 30: true} {
		_, at := overloadedAfter(time.Minute, 15*time.Second, 240*time.Second, func(at float64) float64 {
			if at > 200 {
				return shorter
			}
			return 40
		})
		assert.Equal(t, over, at, "%g of 40 wait", shorter)
	}
}

// More requests explain nothing of a queue before they are more than the engine serves.
func TestMoreRequestsAreNoHarmBeforeTheyAreTooMany(t *testing.T) {
	t.Parallel()
	for _, over := range []bool{false, true} {
		r := healthyReading(int64(time.Hour))
		r.waitingNow = 5
		e := &engine{baseline: signal.NewBaseline()}
		e.Backlog = backlog{Over: over, Since: r.At, recent: []waited{{r.At - 1, 5}}}
		var more growths
		more[moreArrivals] = 0.5
		c := suspects{more, more, more}
		queues, likelyQueues := e.observeQueue(&r, &c, 0.25, time.Minute)
		for _, one := range []growths{c.certain, c.perhaps, c.likely, queues, likelyQueues} {
			assert.Equal(t, over, one[moreArrivals] > 0)
		}
	}
}
