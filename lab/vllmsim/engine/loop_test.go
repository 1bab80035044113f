package engine

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// talks is a closed loop of conversations of four turns; each turn adds a block of 64 tokens
// to the prompt, of which the first two blocks are common to all.
func talks(conversations int) *Traffic {
	t := &Traffic{Name: "talks", BlockTokens: 64}
	for i := range conversations {
		c := Conversation{Shared: 128}
		for turn := range int32(4) {
			c.Turns = append(c.Turns, Turn{
				Think: float64(5 * turn), Prompt: 64 * (turn + 8), Output: int32(20 + i), Prefix: []BlockRun{{1, turn + 8}},
			})
		}
		t.Conversations = append(t.Conversations, c)
	}
	return t
}

// ofClients returns the outcomes by client, in the order of their arrival.
func ofClients(outcomes []Outcome) map[int][]Outcome {
	out := map[int][]Outcome{}
	for _, o := range outcomes {
		client := o.ID >> clientShift & (maxClients - 1)
		out[client] = append(out[client], o)
	}
	for _, list := range out {
		slices.SortFunc(list, func(a, b Outcome) int { return cmp.Compare(a.Arrived, b.Arrived) })
	}
	return out
}

func turnOf(o Outcome) (conversation, turn int) {
	return o.ID >> conversationShift & (maxConversations - 1), o.ID & (maxTurns - 1)
}

func TestAClientSendsItsNextTurnAfterTheAnswerAndItsPause(t *testing.T) {
	for _, c := range []struct {
		name   string
		most   float64
		pauses [4]float64
	}{{"as recorded", 0, [4]float64{leastPause, 5, 10, 15}}, {"bounded", 7, [4]float64{leastPause, 5, 7, 7}}} {
		tr := talks(9)
		s := start(t, bare(Workload{Traffic: tr, Clients: 5, ThinkMost: c.most}, func(cfg *Config) { cfg.FrontEnd = DefaultFrontEnd() }))
		s.AdvanceTo(600)
		check(t, s)
		clients := ofClients(s.Outcomes())
		require.Len(t, clients, 5)
		starts := map[int]bool{}
		for number, list := range clients {
			require.Greater(t, len(list), 40, c.name)
			k, turn := turnOf(list[0])
			require.Zero(t, k)
			starts[turn] = true
			for i, o := range list {
				if gotK, gotTurn := turnOf(o); gotK != k || gotTurn != turn {
					t.Fatalf("client %d: conversation %d, turn %d instead of %d, %d", number, gotK, gotTurn, k, turn)
				}
				require.Equal(t, 64*(turn+8), o.Prompt)
				if i > 0 {
					require.InDelta(t, list[i-1].Ended+c.pauses[turn], o.Arrived, 1e-9, c.name)
				}
				turn++
				if turn == 4 {
					k, turn = k+1, 0
				}
			}
		}
		assert.Greater(t, len(starts), 1, "clients begin somewhere in their first conversation")
	}
}

func TestItDoesNotMatterHowOftenAClosedLoopIsLookedAt(t *testing.T) {
	run := func(step float64) []Outcome {
		w := Workload{Traffic: talks(9), Clients: 3, Retries: 2, RetryAfter: 3, Timeout: 0.2}
		s := start(t, bare(w, func(cfg *Config) { cfg.FrontEnd = DefaultFrontEnd() }))
		for at := step; at <= 300; at += step {
			s.AdvanceTo(at)
		}
		return s.Outcomes()
	}
	once := run(300)
	require.NotEmpty(t, once)
	assert.Equal(t, once, run(0.5))
}

func TestAClosedLoopReactsToASlowServerWithTheSameRequests(t *testing.T) {
	run := func(w Workload, changes ...Change) map[int]Outcome {
		s := start(t, bare(w, func(c *Config) { c.Changes = changes }))
		s.AdvanceTo(400)
		out := map[int]Outcome{}
		for _, o := range s.Outcomes() {
			out[o.ID] = o
		}
		return out
	}
	drawn := Chat(0)
	drawn.Clients, drawn.Think, drawn.LeaveEarly = 20, 2, 0
	for name, w := range map[string]Workload{"conversations": {Traffic: talks(30), Clients: 20, ThinkMost: 1}, "drawn": drawn} {
		fast, slow := run(w), run(w, Change{At: 0, Parameter: ParamBandwidth, Value: 0.1})
		require.Less(t, float64(len(slow)), 0.7*float64(len(fast)), name)
		for id, o := range slow {
			other, both := fast[id]
			require.True(t, both, "%s: the slower run is behind the faster one", name)
			require.Equal(t, [3]int{other.Prompt, other.Output, int(other.End)}, [3]int{o.Prompt, o.Output, int(o.End)}, name)
		}
	}
}

func TestPausesBetweenDrawnRequestsHaveTheirMean(t *testing.T) {
	w := fixed(0, 20, 2)
	w.Clients, w.Think = 10, 4
	s := start(t, bare(w))
	s.AdvanceTo(2000)
	sum, n := 0.0, 0.0
	for _, list := range ofClients(s.Outcomes()) {
		for i := range list[1:] {
			sum += list[i+1].Arrived - list[i].Ended
			n++
		}
	}
	assert.InEpsilon(t, 4, sum/n, 0.06)
	assert.InEpsilon(t, 5000, n, 0.06)
}

func TestTheFactorOfTheRateIsOneOfClients(t *testing.T) {
	w := fixed(0, 20, 2)
	w.Clients, w.Think = 20, 1
	s := start(t, bare(w, func(c *Config) {
		for i, factor := range []float64{2, 0.5, 0, 1.52, 1} {
			c.Changes = append(c.Changes, Change{At: 100 * float64(i+1), Parameter: ParamArrivalRate, Value: factor})
		}
	}))
	var seen [6]map[int]bool
	s.AdvanceTo(600)
	for client, list := range ofClients(s.Outcomes()) {
		for _, o := range list {
			part := int(o.Arrived / 100)
			if seen[part] == nil {
				seen[part] = map[int]bool{}
			}
			seen[part][client] = true
		}
	}
	for part, want := range []int{20, 40, 10, 0, 30, 20} {
		assert.InDelta(t, want, len(seen[part]), 1, "part %d", part)
	}
	assert.Len(t, seen[0], 20)
	for client := range seen[2] {
		assert.True(t, seen[0][client], "some of the nominal ones")
	}
}

func TestBlocksOfAConversationAreItsOwnButForTheCommonBeginning(t *testing.T) {
	s := start(t, bare(Workload{Traffic: talks(9), Clients: 4}))
	s.AdvanceTo(300)
	first := true
	last := map[[2]int]Outcome{}
	outcomes := s.Outcomes()
	slices.SortFunc(outcomes, func(a, b Outcome) int { return cmp.Compare(a.Arrived, b.Arrived) })
	for _, o := range outcomes {
		k, turn := turnOf(o)
		conversation := [2]int{o.ID >> clientShift, k}
		before, continued := last[conversation]
		switch {
		case continued:
			require.Equal(t, (before.Prompt+before.Output-1)/16*16, o.Cached, "turn %d finds the prompt and the answer of the one before", turn)
		case first:
			require.Zero(t, o.Cached)
		default:
			require.Equal(t, 128, o.Cached, "turn %d", turn)
		}
		first = false
		last[conversation] = o
	}
	require.Greater(t, len(last), 20)
}

func TestServersThatShareAClosedLoopHaveClientsOfTheirOwn(t *testing.T) {
	clients := map[int]int{}
	for i, part := range []Part{{5, 0, 0.25}, {5, 0.25, 1}} {
		s := start(t, bare(Workload{Traffic: talks(9), Clients: 200, ThinkMost: 1, Part: part}, func(c *Config) { c.Seed = uint64(i) }))
		s.AdvanceTo(60)
		for client := range ofClients(s.Outcomes()) {
			clients[client] += i + 1
		}
	}
	one, other := 0, 0
	for _, servers := range clients {
		require.Less(t, servers, 3, "one server each")
		one += servers % 2
		other += servers / 2
	}
	assert.Equal(t, 200, one+other)
	assert.InDelta(t, 50, one, 25)
}

func TestAClosedLoopNeedsNoOutcomes(t *testing.T) {
	s := start(t, bare(Workload{Traffic: talks(9), Clients: 4, ThinkMost: 1}, func(c *Config) { c.KeepOutcomes = false }))
	s.AdvanceTo(100)
	assert.Greater(t, s.Stats()[0].EndToEnd.Count, uint64(100))
}

func TestClientsWithoutPausesAndAnswersThatTakeNoTime(t *testing.T) {
	w := fixed(0, 20, 2)
	w.Clients, w.Refused = 1, 1
	s := start(t, bare(w))
	s.AdvanceTo(1)
	assert.InDelta(t, 1/leastPause, len(s.Outcomes()), 2)
}

func TestAFailedRequestIsSentAgainAfterGrowingPauses(t *testing.T) {
	w := fixed(5, 100, 20)
	w.Prompt.Sigma, w.Retries, w.RetryAfter = 1, 3, 2
	s := start(t, bare(w, func(c *Config) {
		c.Changes = []Change{
			{At: 0, Parameter: ParamErrorRate, Value: 1},
			{At: 60, Parameter: ParamPromptLength, Value: 2},
			{At: 100, Parameter: ParamArrivalRate, Value: 0},
		}
	}))
	s.AdvanceTo(200)
	attempts := map[int][]Outcome{}
	for _, o := range s.Outcomes() {
		attempts[o.First] = append(attempts[o.First], o)
	}
	require.Greater(t, len(attempts), 400)
	for first, list := range attempts {
		require.Len(t, list, 4)
		for i, o := range list {
			require.Equal(t, EndError, o.End)
			require.Equal(t, list[0].Prompt, o.Prompt, "the same prompt, whatever others ask for meanwhile")
			if i == 0 {
				require.Equal(t, first, o.ID)
				continue
			}
			require.NotEqual(t, first, o.ID)
			require.InDelta(t, list[i-1].Ended+2*math.Pow(2, float64(i-1)), o.Arrived, 1e-9)
		}
	}
}

func TestARetryHasAnotherFate(t *testing.T) {
	w := fixed(20, 100, 20)
	w.Retries = 1
	s := start(t, bare(w, func(c *Config) { c.Changes = []Change{{At: 0, Parameter: ParamErrorRate, Value: 0.3}} }))
	s.AdvanceTo(200)
	failed, again := 0.0, 0.0
	for _, o := range s.Outcomes() {
		if o.ID != o.First {
			again++
			if o.End == EndError {
				failed++
			}
		}
	}
	assert.InEpsilon(t, 0.3*4000, again, 0.1)
	assert.InDelta(t, 0.3, failed/again, 0.05)
}

func TestOnlyFailuresAndTimeoutsAreSentAgain(t *testing.T) {
	w := Chat(10)
	w.LeaveEarly, w.LeaveLate, w.Patience, w.Refused, w.Retries = 0.3, 0.3, 0.01, 0.2, 5
	run := func(retries int, changes ...Change) (int, map[End]int) {
		w.Retries = retries
		s := start(t, bare(w, func(c *Config) { c.Changes = changes }))
		s.AdvanceTo(120)
		n, ends := 0, map[End]int{}
		for _, o := range s.Outcomes() {
			if o.ID != o.First {
				n++
			}
			ends[o.End]++
		}
		return n, ends
	}
	n, ends := run(5, Change{At: 60, Parameter: ParamClientsLeave, Value: 1})
	assert.Zero(t, n)
	assert.Greater(t, ends[EndLeft], 100)
	assert.Greater(t, ends[EndRefused], 100)
	n, ends = run(5, Change{At: 60, Parameter: ParamSleep, Value: 1}, Change{At: 70, Parameter: ParamSleep, Value: 0})
	assert.Equal(t, ends[EndAborted], n, "the server gave them up")
	assert.Positive(t, n)
	n, _ = run(0, Change{At: 60, Parameter: ParamErrorRate, Value: 1})
	assert.Zero(t, n, "not configured")
	w.Timeout = 0.5
	w.LeaveEarly, w.LeaveLate, w.Refused = 0, 0, 0
	n, ends = run(2, Change{At: 0, Parameter: ParamBandwidth, Value: 0.2})
	assert.Positive(t, n)
	assert.Greater(t, ends[EndLeft], n, "the last attempts")
	// Choices of one request time out together.
	w.ChoicesShare, w.Choices = 1, 2
	n, _ = run(1, Change{At: 0, Parameter: ParamBandwidth, Value: 0.2})
	assert.Positive(t, n)
}

// A server that has lost half of its rate gets more requests than before: those that clients
// send again when they have given up.
func TestRetriesMultiplyTheArrivalsOfASlowServer(t *testing.T) {
	w := Chat(10)
	w.Timeout, w.Retries, w.RetryAfter = 20, 3, 1
	s := start(t, bare(w, func(c *Config) {
		c.Changes = []Change{
			{At: 300, Parameter: ParamClock, Value: 0.2},
			{At: 300, Parameter: ParamBandwidth, Value: 0.2},
			{At: 900, Parameter: ParamClock, Value: 1},
			{At: 900, Parameter: ParamBandwidth, Value: 1},
		}
	}))
	s.AdvanceTo(1800)
	arrivals := func(from, to float64) (n float64) {
		for _, o := range append(s.outcomes, s.Unfinished()...) {
			if o.Arrived >= from && o.Arrived < to {
				n++
			}
		}
		return n / (to - from)
	}
	assert.InEpsilon(t, 10, arrivals(0, 300), 0.08)
	assert.Greater(t, arrivals(600, 900), 2.5*10)
	assert.LessOrEqual(t, arrivals(600, 900), 4*10*1.1)
	t.Logf("arrivals per second: %.1f, %.1f, then %.1f", arrivals(0, 300), arrivals(600, 900), arrivals(1500, 1800))
}

// A timeout of a week keeps no more requests than those that are under way, twice.
func TestALongTimeoutKeepsNoRequestsThatHaveEnded(t *testing.T) {
	for name, w := range map[string]Workload{"open loop": fixed(100, 20, 2), "closed loop": fixed(0, 20, 2)} {
		w.Timeout, w.Retries = 7*86400, 2
		if w.Rate == 0 {
			w.Clients, w.Think = 50, 0.3
		}
		s := start(t, bare(w, func(c *Config) { c.KeepOutcomes = false }))
		most := 0
		for at := 1.0; at < 200; at++ {
			s.AdvanceTo(at)
			most = max(most, len(s.leavers))
		}
		assert.Greater(t, s.Stats()[0].EndToEnd.Count, uint64(15_000), name)
		assert.LessOrEqual(t, most, leaversAtLeast, name)
		assert.LessOrEqual(t, cap(s.sends), 256, name)
	}
}
