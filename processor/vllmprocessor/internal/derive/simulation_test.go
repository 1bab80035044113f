package derive_test

import (
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// frontEnd is the engine of the series without one: those of HTTP.
const frontEnd = ""

const (
	second = int64(1_000_000_000)
	origin = 1_700_000_000 * second
	model  = "llama"
)

// occurrence is something that happened to a series: an amount for a counter, a
// change for a gauge, an observation for a distribution.
type occurrence struct {
	at    int64
	value float64
}

// stream is the truth about one series: all that ever happened to it, whoever
// looked.
type stream struct {
	engine string
	input  input.Metric
	label  string
	// lazy is true where the server makes the series at its first event.
	lazy   bool
	events []occurrence
	// bounds are those of a distribution, for each life of its engine.
	bounds [][]float64
	// cache has the body at the scrapes that were asked for.
	cache map[int64]body
}

type body struct {
	value  float64
	counts []float64
	sum    float64
}

// world is one server that lives through a random history.
type world struct {
	random  *rand.Rand
	streams []*stream
	index   map[[2]string]map[input.Metric]*stream
	engines []string
	// lives are the times at which an engine began again; the first is before all
	// scrapes.
	lives map[string][]int64
	// startsKnown has for each life whether the start times are in the points.
	startsKnown map[string][]bool
	scrapes     []int64
	// up says at which scrapes an engine is in the body.
	up map[string][]bool
	// markers is true where what vanishes is marked as ended.
	markers bool
	// credited is true where all drafts count for the first engine.
	credited bool
	lazy     [input.NumMetrics]bool
	end      int64

	window, staleness int64
}

func newWorld(seed uint64) *world {
	r := rand.New(rand.NewPCG(seed, 7))
	w := &world{
		random: r, index: map[[2]string]map[input.Metric]*stream{},
		lives: map[string][]int64{}, startsKnown: map[string][]bool{}, up: map[string][]bool{},
		markers: r.IntN(2) == 0, credited: r.IntN(5) == 0, staleness: 300 * second,
		window: []int64{30, 60, 120}[r.IntN(3)] * second,
	}
	for i := range 1 + r.IntN(3) {
		w.engines = append(w.engines, string(rune('0'+i)))
	}
	if len(w.engines) == 1 {
		w.credited = false
	}
	for in := range input.NumMetrics {
		if !apart(in) {
			w.lazy[in] = !w.credited && r.IntN(4) == 0
		}
	}
	w.schedule()
	w.restarts()
	w.presence()
	w.history()
	w.evidence()
	return w
}

// apart reports whether an input has tests of its own: canaries.
func apart(in input.Metric) bool {
	return in == input.CanaryDuration || in == input.CanaryUnanswered
}

// schedule sets the times of the scrapes that succeed.
func (w *world) schedule() {
	r := w.random
	interval := []int64{5, 10, 15}[r.IntN(3)] * second
	t := origin
	for range 22 + r.IntN(14) {
		w.scrapes = append(w.scrapes, t)
		step := interval + r.Int64N(second) - second/2
		switch p := r.IntN(100); {
		case p < 8: // a scrape or two fail
			step += interval * int64(1+r.IntN(2))
		case p < 11: // longer than two windows
			step += 2*w.window + r.Int64N(10*second)
		case p < 12: // longer than anything is remembered
			step += w.staleness + r.Int64N(60*second)
		}
		t += step
	}
	w.end = t
}

func (w *world) restarts() {
	r := w.random
	all := append([]string{frontEnd}, w.engines...)
	begin := origin - r.Int64N(200*second)
	for _, e := range all {
		w.lives[e] = []int64{begin}
	}
	for range r.IntN(4) {
		at := origin + r.Int64N(w.end-origin)
		for _, e := range all {
			w.lives[e] = append(w.lives[e], at)
		}
	}
	for _, e := range all {
		slices.Sort(w.lives[e])
		w.startsKnown[e] = make([]bool, len(w.lives[e]))
	}
	known := r.IntN(2) == 0
	for _, e := range all {
		for i := range w.startsKnown[e] {
			w.startsKnown[e][i] = known
		}
	}
}

// presence lets engines come and go.
func (w *world) presence() {
	r := w.random
	n := len(w.scrapes)
	fill := func(engine string) []bool {
		up := make([]bool, n)
		for i := range up {
			up[i] = true
		}
		w.up[engine] = up
		return up
	}
	fill(frontEnd)
	for _, e := range w.engines {
		up := fill(e)
		if w.credited || r.IntN(2) == 0 {
			continue
		}
		for range 1 + r.IntN(3) {
			from := r.IntN(n)
			for i := from; i < min(n, from+1+r.IntN(n/3)); i++ {
				up[i] = false
			}
		}
	}
	// An empty scrape is skipped.
	for i := range n {
		if !slices.ContainsFunc(w.engines, func(e string) bool { return w.up[e][i] }) {
			w.up[w.engines[0]][i] = true
		}
	}
}

// stream returns the series of an engine, made at first use.
func (w *world) stream(engine string, in input.Metric, label string) *stream {
	key := [2]string{engine, label}
	if w.index[key] == nil {
		w.index[key] = map[input.Metric]*stream{}
	}
	s := w.index[key][in]
	if s == nil {
		s = &stream{engine: engine, input: in, label: label, lazy: w.lazy[in] || engine == frontEnd}
		if in.Define().Kind == input.Gauge {
			s.lazy = false
		}
		if in.Define().Kind == input.Distribution {
			for range w.lives[engine] {
				s.bounds = append(s.bounds, boundsOf(in, w.random))
			}
			if w.random.IntN(2) == 0 {
				for i := range s.bounds {
					s.bounds[i] = s.bounds[0]
				}
			}
		}
		w.index[key][in] = s
		w.streams = append(w.streams, s)
	}
	return s
}

// boundsOf are one of the sets of bounds that a distribution can have. All of
// generation tokens have the bound 1.
func boundsOf(in input.Metric, r *rand.Rand) []float64 {
	sets := [][]float64{
		{0.25, 0.5, 1, 2, 4, 8, 16},
		{0.5, 1, 1.5, 3, 4, 10},
		{0.125, 0.25, 1, 4, 20},
	}
	switch in {
	case input.RequestGenerationTokens, input.RequestPromptTokens, input.IterationTokens:
		sets = [][]float64{{1, 2, 5, 10, 20, 50, 100, 200, 500}, {1, 4, 10, 50, 100, 1000}, {1, 5, 20, 200}}
	}
	return sets[r.IntN(len(sets))]
}

func (w *world) life(engine string, t int64) int {
	n, found := slices.BinarySearch(w.lives[engine], t)
	if found {
		return n
	}
	return n - 1
}

// history makes requests and what they leave behind.
func (w *world) history() {
	// What a server makes when it starts stands there at 0 from then on.
	for _, e := range w.engines {
		for in := range input.NumMetrics {
			if in.Define().Name == "" || in.ByModel() || in == input.HTTPRequests || in == input.KVCacheCapacity ||
				in == input.KVCacheBlocks || in == input.KVCacheBlockSize || apart(in) {
				continue
			}
			switch labels := labelsOf(in); {
			case labels == nil:
				w.stream(e, in, "")
			default:
				for _, label := range labels {
					w.stream(e, in, label)
				}
			}
		}
		for life, begin := range w.lives[e] {
			capacity := w.stream(e, input.CacheConfigTokens, "")
			capacity.events = append(capacity.events, occurrence{begin, 4096})
			end := w.end
			if life+1 < len(w.lives[e]) {
				end = w.lives[e][life+1]
			}
			w.requests(e, begin, end)
		}
	}
	for _, s := range w.streams {
		slices.SortStableFunc(s.events, func(a, b occurrence) int { return int(min(1, max(-1, a.at-b.at))) })
	}
}

func labelsOf(in input.Metric) []string {
	switch in {
	case input.RequestSuccess:
		return []string{"stop", "length", "abort"}
	case input.PromptTokensBySource:
		return []string{"local_compute", "local_cache_hit", "external_kv_transfer"}
	case input.PromptTokensCachedBySource:
		return []string{"device", "host"}
	case input.AcceptedTokensPerPosition:
		return []string{"0", "1", "2"}
	case input.WaitingByReason:
		return []string{"capacity", "deferred"}
	}
	return nil
}

// requests runs an engine from its start to its end, with pauses.
func (w *world) requests(engine string, begin, end int64) {
	r := w.random
	for t := begin; t < end; {
		if r.IntN(25) == 0 {
			t += 30*second + r.Int64N(200*second)
		}
		t += r.Int64N(6 * second)
		w.request(engine, t, end)
	}
}

// part is a time that a double holds exactly, so that sums have no rounding.
func part(r *rand.Rand, most int) int64 { return (1 + r.Int64N(int64(most)*1024)) * second / 1024 }

func seconds(d int64) float64 { return float64(d) / 1e9 }

// request is the life of one request. What would come after the end of the
// engine does not happen.
func (w *world) request(engine string, arrived, end int64) {
	r := w.random
	happen := func(at int64, in input.Metric, label string, value float64) {
		if at < end {
			s := w.stream(engine, in, label)
			s.events = append(s.events, occurrence{at, value})
		}
	}
	state := func(from, to int64, in input.Metric, label string, value float64) {
		happen(from, in, label, value)
		happen(to, in, label, -value)
	}
	prompt, cached, external := float64(1+r.IntN(300)), 0.0, 0.0
	if r.IntN(2) == 0 {
		cached = float64(r.IntN(int(prompt)))
		external = float64(r.IntN(int(prompt-cached) + 1))
	}
	queued := part(r, 3)
	admitted := arrived + queued
	prefill := part(r, 2)
	first := admitted + prefill
	why := []string{"capacity", "capacity", "deferred"}[r.IntN(3)]
	fate := r.IntN(20)
	if fate == 0 { // the client goes away while it waits
		state(arrived, arrived+queued/2, input.Waiting, "", 1)
		state(arrived, arrived+queued/2, input.WaitingByReason, why, 1)
		w.respond(arrived+queued/2, end, "4xx", "/v1/completions")
		return
	}
	state(arrived, admitted, input.Waiting, "", 1)
	state(arrived, admitted, input.WaitingByReason, why, 1)
	happen(admitted, input.PrefixCacheQueries, "", prompt)
	happen(admitted, input.PrefixCacheHits, "", cached)
	happen(admitted, input.ExternalPrefixCacheQueries, "", prompt-cached)
	happen(admitted, input.ExternalPrefixCacheHits, "", external)
	happen(admitted, input.PromptTokensCachedBySource, "device", cached)
	happen(admitted, input.PromptTokensCachedBySource, "host", external)
	if r.IntN(3) == 0 {
		happen(admitted, input.MMCacheQueries, "", 3)
		happen(admitted, input.MMCacheHits, "", float64(r.IntN(4)))
	}
	happen(first, input.PromptTokens, "", prompt)
	happen(first, input.PromptTokensCached, "", cached+external)
	happen(first, input.PromptTokensBySource, "local_compute", prompt-cached-external)
	happen(first, input.PromptTokensBySource, "local_cache_hit", cached)
	happen(first, input.PromptTokensBySource, "external_kv_transfer", external)
	happen(first, input.TimeToFirstToken, "", seconds(first-arrived))
	happen(first, input.GenerationTokens, "", 1)
	happen(first, input.IterationTokens, "", prompt)

	now, generated := first, 1.0
	for range r.IntN(12) {
		gap := part(r, 1) / 2
		if r.IntN(10) == 0 {
			happen(now, input.Preemptions, "", 1)
			happen(now, input.Dropped, "", 2)
			gap += part(r, 3)
		}
		now += gap
		accepted := r.IntN(4)
		drafter := engine
		if w.credited {
			drafter = w.engines[0]
		}
		if now < end && w.life(drafter, now) == w.life(engine, now) {
			draft := func(in input.Metric, label string, value float64) {
				s := w.stream(drafter, in, label)
				s.events = append(s.events, occurrence{now, value})
			}
			draft(input.Drafts, "", 1)
			draft(input.DraftTokens, "", 3)
			draft(input.AcceptedTokens, "", float64(accepted))
			for position := range accepted {
				draft(input.AcceptedTokensPerPosition, string(rune('0'+position)), 1)
			}
		}
		happen(now, input.GenerationTokens, "", float64(1+accepted))
		happen(now, input.InterTokenLatency, "", seconds(gap))
		happen(now, input.IterationTokens, "", float64(1+accepted))
		happen(now, input.EstimatedFLOPs, "", 3e9)
		happen(now, input.EstimatedReadBytes, "", 2e6)
		happen(now, input.EstimatedWriteBytes, "", 1e5)
		generated += float64(1 + accepted)
	}
	state(admitted, now, input.Running, "", 1)
	state(admitted, now, input.KVCacheUtilization, "", 1.0/64)
	if fate == 1 { // the client goes away
		return
	}
	happen(now, input.RequestSuccess, []string{"stop", "stop", "length", "abort"}[r.IntN(4)], 1)
	happen(now, input.E2ERequestLatency, "", seconds(now-arrived)+0.125)
	happen(now, input.QueueTime, "", seconds(queued))
	happen(now, input.InferenceTime, "", seconds(now-admitted))
	happen(now, input.PrefillTime, "", seconds(prefill))
	happen(now, input.DecodeTime, "", seconds(now-first))
	perToken := 0.0
	if generated > 1 {
		perToken = float64(int(seconds(now-first)/(generated-1)*1024)+1) / 1024
	}
	happen(now, input.TimePerOutputToken, "", perToken)
	happen(now, input.RequestPromptTokens, "", prompt)
	happen(now, input.RequestGenerationTokens, "", generated)
	w.respond(now, end, []string{"2xx", "2xx", "2xx", "5xx"}[r.IntN(4)], "/v1/completions")
	w.respond(now, end, "2xx", []string{"/metrics", "/health", "/v1/models", "/tokenize"}[r.IntN(4)])
}

func (w *world) respond(at, end int64, status, handler string) {
	if at < end && w.life(frontEnd, at) >= 0 {
		s := w.stream(frontEnd, input.HTTPRequests, strings.Join([]string{status, handler, "POST"}, "\x00"))
		s.events = append(s.events, occurrence{at, 1})
	}
}
