package window

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// requestBounds are like those of vLLM, with fewer buckets.
var requestBounds = []float64{0.3, 1, 5, 20, 60, 240, 960, 7680}

// observed is a histogram as a server has it.
type observed struct {
	bounds, counts []float64
	sum            float64
}

func (o *observed) observe(value float64) {
	if o.bounds == nil {
		o.bounds = requestBounds
	}
	if o.counts == nil {
		o.counts = make([]float64, len(o.bounds)+1)
	}
	i := 0
	for i < len(o.bounds) && value > o.bounds[i] {
		i++
	}
	o.counts[i]++
	o.sum += value
}

func (o *observed) sample(in input.Metric) input.Sample {
	if o.bounds == nil {
		o.bounds = requestBounds
	}
	if o.counts == nil {
		o.counts = make([]float64, len(o.bounds)+1)
	}
	count := 0.0
	for _, n := range o.counts {
		count += n
	}
	return input.Sample{Input: in, Bounds: o.bounds, Counts: slices.Clone(o.counts), Count: count, Sum: o.sum, HasSum: true}
}

// times are the distributions of one engine, with what vLLM observes at the end of a
// request.
type times struct{ e2e, queue, prefill, inference, decode observed }

func (e *times) finish(queue, prefill, decode, overhead float64) {
	e.e2e.observe(queue + prefill + decode + overhead)
	e.queue.observe(queue)
	e.prefill.observe(prefill)
	e.inference.observe(prefill + decode)
	e.decode.observe(decode)
}

// unscheduled is a request that ends in the queue, on a machine that runs for uptime.
func (e *times) unscheduled(waited, uptime float64) {
	e.e2e.observe(waited)
	e.queue.observe(0 - uptime)
	e.prefill.observe(uptime + waited)
	e.inference.observe(uptime + waited)
	e.decode.observe(0)
}

func (e *times) samples() []input.Sample {
	return []input.Sample{
		e.e2e.sample(input.E2ERequestLatency), e.queue.sample(input.QueueTime), e.prefill.sample(input.PrefillTime),
		e.inference.sample(input.InferenceTime), e.decode.sample(input.DecodeTime),
	}
}

// without leaves out a distribution.
func without(samples []input.Sample, in input.Metric) []input.Sample {
	return slices.DeleteFunc(samples, func(s input.Sample) bool { return s.Input == in })
}

func statusOf(t *testing.T, r *Resource, in input.Metric) Status {
	t.Helper()
	_, _, _, status := only(t, r).Moments(in)
	return status
}

func TestARequestThatIsNeverScheduledWithholdsThreeTimesForAWindow(t *testing.T) {
	settings := fresh().settings
	settings.Steps[input.QueueTime], settings.Steps[input.DecodeTime] = true, true
	r := NewResource(settings)
	var e times
	for i := range 20 {
		e.finish(0.1, 0.2, 1, 0.01)
		if i == 5 {
			e.unscheduled(3, 86_400)
		}
		report := scrape(r, float64(15*i), e.samples()...)
		assert.Equal(t, 0, report.Resets)
		if i == 0 {
			continue
		}
		// The window has four steps: the one that ends at 75 s leaves it at 135 s.
		want := Present
		if i >= 5 && i < 9 {
			want = Defective
		}
		view := only(t, r)
		for _, in := range []input.Metric{input.QueueTime, input.PrefillTime, input.InferenceTime} {
			assert.Equal(t, want, statusOf(t, r, in), "%d %v", i, in)
			var h Histogram
			assert.Equal(t, want, view.AddTo(&h, in))
			_, status := view.AtMost(in, 1)
			assert.Equal(t, want, status)
		}
		for _, in := range []input.Metric{input.E2ERequestLatency, input.DecodeTime} {
			assert.Equal(t, Present, statusOf(t, r, in), "%d %v", i, in)
		}
		_, _, status := view.Step(input.QueueTime)
		assert.Equal(t, i == 5, status == Defective, "only the step with it")
		_, _, status = view.Step(input.DecodeTime)
		assert.Equal(t, Present, status)
	}
}

// A server with several processes is read while one of them counts: what a point lacks, the
// next one has.
func TestAPointThatIsReadWhileTheServerCountsIsNotBad(t *testing.T) {
	r := fresh()
	var e times
	e.queue.observe(50)
	scrape(r, 0, e.queue.sample(input.QueueTime))
	e.queue.sum += 55 // its bucket follows
	scrape(r, 15, e.queue.sample(input.QueueTime))
	assert.Equal(t, Present, statusOf(t, r, input.QueueTime))
	e.queue.counts[4]++
	e.queue.observe(3)
	scrape(r, 30, e.queue.sample(input.QueueTime))
	assert.Equal(t, Present, statusOf(t, r, input.QueueTime))

	// The same number of requests, and not the same requests.
	r, e = fresh(), times{}
	e.finish(1, 1, 1, 0)
	scrape(r, 0, e.samples()...)
	e.e2e.observe(3000)
	scrape(r, 15, e.samples()...)
	e.queue.observe(0)
	e.prefill.observe(1)
	e.inference.observe(3000)
	e.decode.observe(2999)
	e.e2e.observe(1)
	scrape(r, 30, e.samples()...)
	assert.Equal(t, Present, statusOf(t, r, input.InferenceTime))
}

// history is a true history of one engine.
type history struct {
	*rand.Rand
	*Resource
	now   float64
	times times
	old   times
	made  float64
	// lossy is true where some series are missing in some batches, or end.
	lossy bool
}

// requests finishes some true requests: none, few or many, short or long, of one token too.
func (h *history) requests() {
	for range []int{0, 1, 1, 3, 40, 400}[h.IntN(6)] {
		of := func() float64 { return math.Pow(10, 7*h.Float64()-3) }
		decode := of()
		if h.IntN(4) == 0 {
			decode = 0
		}
		queue := of()
		if h.IntN(2) == 0 {
			queue = 1e-6 * h.Float64()
		}
		h.times.finish(queue, of(), decode, of()/1000)
		h.made++
	}
}

// observe sends what was counted, as totals or as deltas.
func (h *history) observe(delta bool) Report {
	samples := append(h.times.samples(), tokens(h.made))
	if delta {
		before := append(h.old.samples(), tokens(0))
		for i := range samples {
			s := &samples[i]
			s.Delta = true
			if s.Input != input.PromptTokens {
				for k := range s.Counts {
					s.Counts[k] -= before[i].Counts[k]
				}
				s.Count -= before[i].Count
				s.Sum -= before[i].Sum
			}
		}
		h.old = times{}
		for _, pair := range [][2]*observed{
			{&h.old.e2e, &h.times.e2e},
			{&h.old.queue, &h.times.queue},
			{&h.old.prefill, &h.times.prefill},
			{&h.old.inference, &h.times.inference},
			{&h.old.decode, &h.times.decode},
		} {
			*pair[0] = observed{pair[1].bounds, slices.Clone(pair[1].counts), pair[1].sum}
		}
	}
	h.Shuffle(len(samples), func(i, j int) { samples[i], samples[j] = samples[j], samples[i] })
	if h.lossy && !delta && h.IntN(6) == 0 {
		samples = samples[h.IntN(len(samples)):] // some are lost on the way, or ended
		for i := range samples {
			samples[i].Gone = h.IntN(20) == 0
		}
	}
	if h.IntN(4) == 0 {
		cut := h.IntN(len(samples))
		scrape(h.Resource, h.now, samples[:cut]...)
		samples = samples[cut:]
	}
	return scrape(h.Resource, h.now, samples...)
}

// No true history is taken for a bad one: with restarts, other buckets, gaps, deltas, large
// sums, batches that are close together, parts of batches, and series that are lost or end.
func TestNoTrueHistoryIsBad(t *testing.T) {
	defer func(was []float64) { requestBounds = was }(requestBounds)
	steps := 0
	for seed := range uint64(300) {
		h := &history{Rand: rand.New(rand.NewPCG(seed, 7)), Resource: fresh(), made: 1e6, lossy: true}
		delta := seed%3 == 0
		large := 0.0
		if seed%5 == 0 {
			large = 1e12 * h.Float64()
		}
		begin := func() {
			h.times, h.old = times{}, times{}
			for _, o := range []*observed{&h.times.e2e, &h.times.queue, &h.times.prefill, &h.times.inference, &h.times.decode} {
				o.observe(large)
			}
		}
		begin()
		for range 60 {
			h.now += []float64{0.1, 5, 15, 15, 15, 400}[h.IntN(6)]
			if !delta && h.IntN(15) == 0 {
				if h.IntN(2) == 0 {
					requestBounds = append([]float64{0.1 + h.Float64()/10}, requestBounds[1:]...)
				}
				begin()
				h.made = 0
			}
			h.requests()
			h.made++
			h.observe(delta)
			for _, v := range h.Views(nil, false) {
				for in := range input.NumMetrics {
					_, _, hasSum, status := v.Moments(in)
					require.NotEqual(t, Defective, status, "seed %d at %g s: %v", seed, h.now, in)
					if status == Present {
						require.True(t, hasSum, "seed %d at %g s: %v", seed, h.now, in)
						steps++
					}
				}
			}
		}
	}
	require.Greater(t, steps, 10_000)
}

// A planted observation is found wherever the uptime is greater than what the other
// requests of the step leave open: for the sum of the queue, the widths of their buckets and
// the greatest lower bound; or, for the other times, where the uptime is beyond a bound and
// no whole is.
func TestEachPlantedObservationIsFound(t *testing.T) {
	found := map[bool]int{}
	for seed := range uint64(400) {
		h := &history{Rand: rand.New(rand.NewPCG(seed, 11)), Resource: fresh(), made: 1}
		delta := seed%3 == 0
		// The baseline.
		h.requests()
		h.observe(delta)
		h.now += 15
		h.requests()
		h.observe(delta)
		before := h.times
		before.queue.counts, before.e2e.counts = slices.Clone(h.times.queue.counts), slices.Clone(h.times.e2e.counts)
		h.now += 15
		h.requests()
		slack, greatest, longest := 0.0, 0.0, 0.0
		grown := h.times
		grown.samples() // sets counts where there was no request
		before.samples()
		for i := range grown.queue.counts {
			n := grown.queue.counts[i] - before.queue.counts[i]
			lower := 0.0
			if i > 0 {
				lower = requestBounds[i-1]
			}
			if n > 0 {
				slack -= n * lower
				greatest = lower
			}
			if grown.e2e.counts[i] > before.e2e.counts[i] {
				longest = math.Inf(1)
				if i < len(requestBounds) {
					longest = requestBounds[i]
				}
			}
		}
		slack += grown.queue.sum - before.queue.sum + greatest + 1e-3*(grown.queue.sum-before.queue.sum)
		uptime := math.Pow(10, 7*h.Float64())
		next := slices.IndexFunc(requestBounds, func(b float64) bool { return b >= longest+clock })
		certain := uptime > slack*(1+1e-9) || next >= 0 && uptime > requestBounds[next]
		h.times.unscheduled(0.1, uptime)
		h.made++
		h.observe(delta)
		got := statusOf(t, h.Resource, input.PrefillTime) == Defective
		if certain {
			require.True(t, got, "seed %d: uptime %g, slack %g, longest %g", seed, uptime, slack, longest)
		}
		found[got]++
	}
	assert.Greater(t, found[true], 100)
	assert.Greater(t, found[false], 20, "short uptimes among long requests are not found")
}

// The engines of a model are judged one by one.
func TestABadObservationIsThatOfItsEngine(t *testing.T) {
	r := fresh()
	var a, b times
	for i := range 3 {
		a.finish(0.1, 0.2, 1, 0)
		b.finish(0.1, 0.2, 1, 0)
		if i == 2 {
			b.unscheduled(1, 1e5)
		}
		scrapeEngines(r, float64(15*i), maps.Clone(map[string][]input.Sample{"0": a.samples(), "1": b.samples()}))
	}
	for _, v := range r.Views(nil, false) {
		_, _, _, status := v.Moments(input.QueueTime)
		assert.Equal(t, v.Group().Engine() == "1", status == Defective)
	}
}

// The wall clock of the server is set back by an hour while two requests are served. Their
// number is right, and the sum of their times is not.
func TestASumThatTheBucketsRefuteIsNoSum(t *testing.T) {
	read := func(t *testing.T, r *Resource, in input.Metric) (float64, bool) {
		t.Helper()
		count, _, hasSum, status := only(t, r).Moments(in)
		require.Equal(t, Present, status)
		return count, hasSum
	}
	for _, in := range []input.Metric{input.E2ERequestLatency, input.TimeToFirstToken} {
		r := fresh()
		r.settings.Steps[in] = true
		var o observed
		for range 100 {
			o.observe(30)
		}
		scrape(r, 0, o.sample(in))
		o.observe(10 - 3600)
		o.observe(10)
		scrape(r, 15, o.sample(in))
		count, hasSum := read(t, r, in)
		assert.Equal(t, 2.0, count)
		assert.False(t, hasSum)
		_, step, _ := only(t, r).Step(in)
		assert.False(t, step.HasSum)

		// The sum of the window rises again, but by less than the buckets say.
		for range 130 {
			o.observe(30)
		}
		scrape(r, 30, o.sample(in))
		count, hasSum = read(t, r, in)
		assert.Equal(t, 132.0, count)
		assert.False(t, hasSum)
		_, step, _ = only(t, r).Step(in)
		assert.True(t, step.HasSum, "nothing is wrong in the last step")

		for at := 45.0; at <= 90; at += 15 {
			o.observe(10)
			scrape(r, at, o.sample(in))
		}
		_, hasSum = read(t, r, in)
		assert.True(t, hasSum, "the window has only true observations again")
	}
}
