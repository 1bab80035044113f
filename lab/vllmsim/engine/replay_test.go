package engine

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func of(prompt, output int32, blocks ...int32) Arrival {
	a := Arrival{Prompt: prompt, Output: output}
	for _, b := range blocks {
		a.Prefix = append(a.Prefix, BlockRun{b, b})
	}
	return a
}

// traffic has its requests a second after one another.
func traffic(blockTokens int, arrivals ...Arrival) *Traffic {
	for i := range arrivals {
		arrivals[i].At = float64(i)
	}
	return &Traffic{Name: "test", Arrivals: arrivals, Span: float64(max(1, len(arrivals))), BlockTokens: blockTokens}
}

func TestTrafficComesAtItsTimesAndBeginsAgain(t *testing.T) {
	tr := traffic(0, of(10, 1), of(20, 2), of(30, 3))
	tr.Arrivals[2].At, tr.Span = 4, 10
	at := func(w Workload, until float64) (times []float64, ids, prompts []int) {
		w.Traffic = tr
		for _, r := range drawn(w, 1, until) {
			times, ids, prompts = append(times, r.arrived), append(ids, r.id), append(prompts, r.prompt)
		}
		return times, ids, prompts
	}
	times, ids, prompts := at(Workload{}, 12)
	assert.Equal(t, []float64{0, 1, 4, 10, 11}, times)
	assert.Equal(t, []int{0, 1, 2, 3, 4}, ids)
	assert.Equal(t, []int{10, 20, 30, 10, 20}, prompts)
	times, ids, _ = at(Workload{Speed: 2, From: 1}, 6)
	assert.Equal(t, []float64{0, 1.5, 4.5, 5}, times)
	assert.Equal(t, []int{1, 2, 3, 4}, ids, "a moment of the traffic has its numbers")
	times, ids, _ = at(Workload{From: 11.5}, 10)
	assert.Equal(t, []float64{2.5, 8.5, 9.5}, times, "in its second span")
	assert.Equal(t, []int{5, 6, 7}, ids)
	whole, _, _ := at(Workload{Speed: 0.5}, 80)
	later, _, _ := at(Workload{Speed: 0.5}.After(0), 80)
	assert.Equal(t, whole, later)
	w := Workload{Speed: 0.5, Traffic: tr, From: 3}.After(20)
	assert.InDelta(t, 13, w.From, 0, "a server that begins later goes on where the traffic is")
	assert.Equal(t, Chat(5), Chat(5).After(20))
}

func TestTimesOfTrafficHaveNoRoundingErrorOfALostRequest(t *testing.T) {
	tr := someTraffic(997, 3539.862)
	for _, from := range []float64{0, 100.1, 3539.8, 35_398.62 * 7} {
		p := newReplay(&Workload{Traffic: tr, Speed: 3.7, From: from})
		for n := p.first(0); n < p.first(0)+3000; n++ {
			at := p.time(n)
			require.GreaterOrEqual(t, p.time(n+1), at)
			first := p.first(at)
			require.LessOrEqual(t, first, n)
			require.InDelta(t, at, p.time(first), 0, "only one at the same time comes before it")
			require.Equal(t, n+1, p.first(math.Nextafter(p.time(n+1), 0)+0))
		}
	}
}

func TestLengthsOfTrafficFollowTheFactorsAndTheLimit(t *testing.T) {
	w := Workload{Traffic: traffic(0, of(100, 50), of(5000, 3000), of(20_000, 100), of(16_000, 1000), of(0, 0))}
	lengths := func(change func(*values)) (out [][2]int, cut int) {
		a, v := newArrivals(1, w, 16384), nominalValues()
		change(&v)
		a.set(0, 1)
		for _, r := range take(a, &v, 5) {
			out = append(out, [2]int{r.prompt, r.output})
		}
		return out, a.cut
	}
	got, cut := lengths(func(*values) {})
	assert.Equal(t, [][2]int{{100, 50}, {5000, 3000}, {16383, 1}, {16_000, 384}, {1, 1}}, got)
	assert.Equal(t, 2, cut)
	got, cut = lengths(func(v *values) { v[ParamPromptLength], v[ParamOutputLength] = 0.5, 4 })
	assert.Equal(t, [][2]int{{50, 200}, {2500, 12_000}, {10_000, 400}, {8000, 4000}, {1, 1}}, got)
	assert.Zero(t, cut)
	w.MaxTokens = []int{40}
	for _, r := range drawn(w, 1, 5) {
		assert.Equal(t, 40, r.maxTokens)
		assert.LessOrEqual(t, r.output, 40)
	}
}

func TestNothingHappensToTrafficThatIsNotAskedFor(t *testing.T) {
	for _, r := range drawn(Workload{Traffic: someTraffic(2000, 100)}, 1, 100) {
		require.Equal(t, EndStop, r.end)
		require.Equal(t, r.output, r.stopAt)
		require.True(t, math.IsInf(r.leaves, 1))
		require.Zero(t, r.adapter+r.maxTokens+r.media+r.choices+r.beams)
	}
	w := Chat(0)
	w.Traffic, w.Refused, w.LeaveEarly, w.AdapterShare, w.Adapters = someTraffic(2000, 100), 0.1, 0.2, 0.5, 3
	refused, impatient, adapted := 0, 0, 0
	for _, r := range drawn(w, 1, 100) {
		if r.end == EndRefused {
			refused++
		}
		if r.impatient {
			impatient++
		}
		if r.adapter > 0 {
			adapted++
		}
	}
	assert.InDelta(t, 200, refused, 70)
	assert.InDelta(t, 360, impatient, 90)
	assert.InDelta(t, 1000, adapted, 120)
}

// served runs traffic on a server that keeps up and returns how many tokens each request
// found in the cache.
func served(t *testing.T, tr *Traffic, change ...func(*Config)) []int {
	t.Helper()
	once := *tr
	once.Span += 60
	s := start(t, bare(Workload{Traffic: &once}, change...))
	s.AdvanceTo(once.Span - 1)
	found := make([]int, len(tr.Arrivals))
	outcomes := s.Outcomes()
	if len(outcomes) != len(tr.Arrivals) {
		t.Fatalf("%d of %d requests ended", len(outcomes), len(tr.Arrivals))
	}
	for _, o := range outcomes {
		found[o.ID] = o.Cached
	}
	check(t, s)
	return found
}

func TestEqualBlocksAtEqualPlacesAreFound(t *testing.T) {
	for name, c := range map[string]struct {
		blockTokens int
		first, next Arrival
		size, want  int
	}{
		"two blocks of 512 in common":                     {512, of(1200, 2, 1, 2, 3), of(1300, 2, 1, 2, 4), 16, 1024},
		"the last block is partly filled in both":         {512, of(1100, 2, 1, 2, 3), of(1200, 2, 1, 2, 3), 16, 1088},
		"and the other way round":                         {512, of(1200, 2, 1, 2, 3), of(1100, 2, 1, 2, 3), 16, 1088},
		"the last token is computed":                      {512, of(1024, 2, 1, 2), of(1024, 2, 1, 2), 16, 1008},
		"other places are other content":                  {512, of(1024, 2, 1, 2), of(1024, 2, 2, 1), 16, 0},
		"what follows another beginning is other content": {512, of(1536, 2, 1, 2, 3), of(1536, 2, 9, 8, 7), 16, 0},
		"runs are blocks one by one":                      {64, Arrival{Prompt: 640, Output: 2, Prefix: []BlockRun{{0, 9}}}, of(640, 2, 0, 1, 2, 3, 4, 77), 16, 320},
		"cache blocks of 512 tokens":                      {64, Arrival{Prompt: 1200, Output: 2, Prefix: []BlockRun{{0, 18}}}, Arrival{Prompt: 1200, Output: 2, Prefix: []BlockRun{{0, 8}, {50, 55}}}, 512, 512},
		"blocks that do not divide one another":           {100, of(300, 2, 1, 2, 3), of(300, 2, 1, 2, 4), 16, 192},
		"a prompt beyond its blocks":                      {64, of(1000, 2, 1), of(1000, 2, 1), 16, 64},
		"no blocks":                                       {512, of(1024, 2), of(1024, 2), 16, 0},
	} {
		t.Run(name, func(t *testing.T) {
			found := served(t, traffic(c.blockTokens, c.first, c.next), func(cfg *Config) { cfg.BlockSize = c.size })
			assert.Equal(t, []int{0, c.want}, found)
		})
	}
	same := traffic(512, of(1200, 2, 1, 2, 3), of(1200, 2, 1, 2, 3))
	assert.Equal(t, []int{0, 0}, served(t, same, func(c *Config) { c.NoPrefixCaching = true }))
	halved := func(c *Config) {
		c.Changes = []Change{{At: 0.5, Parameter: ParamPromptLength, Value: 0.5}}
	}
	assert.Equal(t, []int{0, 592}, served(t, same, halved), "of the shorter prompt")
}

// A cache that forgets nothing finds what the traffic itself says was there before.
func TestTheReuseOfTrafficIsThatOfItsBlocks(t *testing.T) {
	tr := someTraffic(150, 400)
	for i, found := range served(t, tr, func(c *Config) { c.Blocks = 200_000 }) {
		want := 0
		for _, before := range tr.Arrivals[:i] {
			a, b := numbersOf(tr.Arrivals[i]), numbersOf(before)
			same := 0
			for same < min(len(a), len(b)) && a[same] == b[same] {
				same++
			}
			// Up to the end of the last common block, or of the shorter prompt within it.
			tokens := min(same*64, int(tr.Arrivals[i].Prompt), int(before.Prompt))
			want = max(want, min(tokens/16, (int(tr.Arrivals[i].Prompt)-1)/16)*16)
		}
		require.Equal(t, want, found, "request %d", i)
	}
}

func numbersOf(a Arrival) (out []int32) {
	for _, run := range a.Prefix {
		for n := run.First; n <= run.Last; n++ {
			out = append(out, n)
		}
	}
	return out
}

func TestAGreaterPoolMakesBlocksPrivate(t *testing.T) {
	var same []Arrival
	for range 400 {
		same = append(same, of(1000, 2, 1, 2))
	}
	tr := traffic(512, same...)
	hits := 0
	for _, found := range served(t, tr, func(c *Config) { c.Changes = []Change{{At: 0, Parameter: ParamPrefixPool, Value: 4}} }) {
		if found > 0 {
			hits++
		}
	}
	assert.InDelta(t, 100, hits, 35, "one of four keeps what it shares")
}

func TestCopiesAreRequestsNearby(t *testing.T) {
	tr := someTraffic(6000, 600)
	w := Workload{Traffic: tr}
	seen := tr.leadingSeen()
	copies, later := 0, 0.0
	for _, r := range planned(w, 7, 590, plan{{0, 3}}) {
		if r.id < 1<<layerShift || r.arrived < 61 {
			continue
		}
		copies++
		near := false
		// It comes at most a minute later than an arrival, and is like one of the next 16.
		for i, a := range tr.Arrivals {
			if int(a.Prompt) == r.prompt && int(a.Output) == r.output && a.At > r.arrived-61 && a.At < r.arrived+4 && r.shared == min(r.prompt, int(seen[i])*64) {
				near = true
				later += r.arrived - a.At
				break
			}
		}
		require.True(t, near, "copy at %v s", r.arrived)
	}
	require.Greater(t, copies, 9000)
	assert.InDelta(t, 30, later/float64(copies), 3, "half a minute in the mean")
}

func TestWhatAPromptSharesWithEarlierOnes(t *testing.T) {
	tr := traffic(64, of(200, 1, 1, 2, 3), of(300, 1, 1, 2, 4), of(200, 1, 5, 2, 3), of(200, 1, 1, 2, 4), of(10, 1))
	assert.Equal(t, []int32{0, 2, 0, 3, 0}, tr.leadingSeen())
}

func TestServersThatShareTrafficHaveEachRequestOnce(t *testing.T) {
	tr := someTraffic(3000, 300)
	who := map[int]int{}
	for server, part := range []Part{{9, 0, 0.5}, {9, 0.5, 0.8}, {9, 0.8, 1}} {
		n := 0
		for _, r := range planned(Workload{Traffic: tr, Part: part}, uint64(server), 300, plan{{100, 2}}) {
			who[r.id]++
			n++
		}
		assert.InEpsilon(t, (part.To-part.From)*5000, n, 0.1)
	}
	for id, n := range who {
		require.Equal(t, 1, n, "request %d", id)
	}
	assert.InEpsilon(t, 5000, len(who), 0.04)
}

func TestTheModelLengthIsWhatTrafficNeeds(t *testing.T) {
	for _, c := range []struct {
		longest int32
		cache   int
		want    int
	}{{100, 1 << 20, 16384}, {16_284, 1 << 20, 16384}, {16_384, 1 << 20, 17408}, {99_990, 1 << 20, 100_352}, {99_990, 50_000, 50_000}, {99_990, 8000, 16384}} {
		tr := traffic(0, of(5, 5), of(c.longest, 100))
		assert.Equal(t, c.want, tr.ModelLen(c.cache), "%+v", c)
	}
	assert.Equal(t, 16384, (*Traffic)(nil).ModelLen(1<<20))
	s := start(t, bare(Workload{Traffic: traffic(0, of(90_000, 10))}))
	assert.Equal(t, 90_112, s.cfg.MaxModelLen)
	s = start(t, bare(Workload{Traffic: traffic(0, of(90_000, 10))}, func(c *Config) { c.Blocks, c.Speculation.Acceptance = 2000, []float64{1, 1} }))
	assert.Equal(t, 1999*16-2, s.cfg.MaxModelLen, "what the cache holds")
	longer, all := traffic(0, of(90_000, 10), of(10, 10), of(16_000, 385)).Longer(16384)
	assert.Equal(t, [2]int{2, 3}, [2]int{longer, all})
}

func TestMistakenTrafficIsNamed(t *testing.T) {
	good := func() *Traffic { return traffic(64, of(100, 1, 1), of(100, 1, 1)) }
	talk := func(turns ...Turn) *Traffic { return &Traffic{Conversations: []Conversation{{Turns: turns}}} }
	for want, change := range map[string]func(*Workload){
		"has no requests":                   func(w *Workload) { w.Traffic = &Traffic{} },
		"closed loop; give the number":      func(w *Workload) { w.Traffic = talk(Turn{}) },
		"so it is an open loop":             func(w *Workload) { w.Clients = 1 },
		"before the one before it":          func(w *Workload) { w.Traffic.Arrivals[0].At = 1.5 },
		"comes at NaN":                      func(w *Workload) { w.Traffic.Arrivals[0].At = math.NaN() },
		"span of 0.5 s":                     func(w *Workload) { w.Traffic.Span = 0.5 },
		"span of +Inf s":                    func(w *Workload) { w.Traffic.Span = math.Inf(1) },
		"requests per second, more than":    func(w *Workload) { w.Speed = 1e6 },
		"speed -1":                          func(w *Workload) { w.Speed = -1 },
		"cannot begin at NaN s":             func(w *Workload) { w.From = math.NaN() },
		"-5 prompt and 1 output":            func(w *Workload) { w.Traffic.Arrivals[0].Prompt = -5 },
		"blocks 3 to 2 are no run":          func(w *Workload) { w.Traffic.Arrivals[0].Prefix = []BlockRun{{3, 2}} },
		"more than a prompt of 100":         func(w *Workload) { w.Traffic.Arrivals[0].Prefix = []BlockRun{{0, math.MaxInt32}} },
		"of 0 tokens are more":              func(w *Workload) { w.Traffic.BlockTokens = 0 },
		"conversation 0, turn 0: pause":     func(w *Workload) { w.Traffic, w.Clients = talk(Turn{Think: math.NaN()}), 1 },
		"conversation 0: 0 turns":           func(w *Workload) { w.Traffic, w.Clients = talk(), 1 },
		"16385 clients are not":             func(w *Workload) { w.Clients = 16385 },
		"8 retries are not":                 func(w *Workload) { w.Retries = 8 },
		"before a retry, -1 s":              func(w *Workload) { w.RetryAfter = -1 },
		"pauses of clients must":            func(w *Workload) { w.Think = math.Inf(1) },
		"conversation 0, turn 0: -1 prompt": func(w *Workload) { w.Traffic, w.Clients = talk(Turn{Prompt: -1}), 1 },
		"part from 1 to 0":                  func(w *Workload) { w.Part = Part{From: 1} },
	} {
		w := Workload{Traffic: good()}
		change(&w)
		_, err := New(bare(w))
		if assert.ErrorContains(t, err, want) {
			assert.NotContains(t, err.Error(), "\n")
		}
	}
	require.NoError(t, Workload{Traffic: good()}.check())
}
