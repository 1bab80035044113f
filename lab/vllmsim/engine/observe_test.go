package engine

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/observed"
)

func TestAClientThatLeavesIsNotObserved(t *testing.T) {
	s := start(t, bare(fixed(0, 1, 1), func(c *Config) { c.MaxSeqs = 1 }))
	send(s, 100, 200)
	send(s, 100, 5, func(r *request) { r.leaves, r.impatient = 0.5, true })         // In the queue.
	send(s, 100, 50, func(r *request) { r.stopAt, r.end = 3, EndLeft })             // After three tokens.
	send(s, 100, 5, func(r *request) { r.leaves, r.impatient = math.Inf(1), true }) // Patient enough.
	send(s, 100, 5000, func(r *request) { r.leaves = 3 })                           // In the middle.
	send(s, 100, 5, func(r *request) { r.leaves, r.impatient = s.now+1e-9, true })  // At once.
	for at := 0.1; at < 10; at += 0.1 {
		s.AdvanceTo(at)
		check(t, s)
	}
	st := s.Stats()[0]
	assert.EqualValues(t, 2, st.EndToEnd.Count)
	assert.EqualValues(t, 4, st.FirstToken.Count)
	assert.InDelta(t, 4*100, st.PromptTokens, 0)
	assert.Zero(t, st.Finished[observed.ReasonAbort])
	ends := map[End]int{}
	for _, o := range s.Outcomes() {
		ends[o.End]++
	}
	assert.Equal(t, map[End]int{EndStop: 2, EndLeft: 4}, ends)
	assert.Empty(t, s.Unfinished())
	assert.InDelta(t, 6, st.HTTP[0].Requests(), 0)
}

func TestErrorsAndCorruptionShowInTheirCounters(t *testing.T) {
	s := start(t, bare(Chat(5), func(c *Config) {
		c.Changes = []Change{{At: 0, Parameter: ParamErrorRate, Value: 0.2}, {At: 0, Parameter: ParamCorruption, Value: 0.1}}
	}))
	s.AdvanceTo(600)
	st := s.Stats()[0]
	assert.InDelta(t, 0.2, st.Finished[observed.ReasonError]/float64(st.EndToEnd.Count), 0.03)
	assert.InDelta(t, 0.1, st.Corrupted/float64(st.EndToEnd.Count), 0.03)
	failed, refused := 0.0, 0.0
	for _, h := range st.HTTP {
		failed += h.ByStatus["5xx"]
		refused += h.ByStatus["4xx"]
	}
	assert.InDelta(t, 0.3, failed/st.Finished[observed.ReasonError], 0.1, "streams had begun with 200")
	assert.Positive(t, refused)
}

func TestTheTimeToTheFirstTokenBeginsWhenTheFrontEndTakesTheRequestUp(t *testing.T) {
	s := start(t, bare(fixed(0, 1, 1), func(c *Config) { c.FrontEnd.RequestSeconds = 0.1 }))
	send(s, 100, 1)
	send(s, 100, 1)
	s.AdvanceTo(5)
	step := Llama8B().StepTime(chunks(1, 100), Nominal())
	outcomes := s.Outcomes()
	assert.InDelta(t, 0.2, outcomes[0].FirstToken, 1e-9, "its token waits while the second is taken up")
	assert.InDelta(t, 0.2+step, outcomes[1].FirstToken, 1e-9)
	assert.InDelta(t, 0.2+(0.2+step)-0.1, s.Stats()[0].FirstToken.Sum, 1e-9, "that the second waited first is unknown to the server")
	assert.InDelta(t, 0.2+(0.2+step)-0.1, s.Stats()[0].EndToEnd.Sum, 1e-9)
}

func TestCachedTokensCountForTheIterationInOldVersions(t *testing.T) {
	tokens := func(old bool) float64 {
		s := start(t, bare(fixed(0, 1, 1), func(c *Config) { c.Semantics.IterationWithCached = old }))
		send(s, 100, 1, beginning(1, 64))
		s.AdvanceTo(1)
		send(s, 100, 1, beginning(1, 64))
		s.AdvanceTo(2)
		return s.Stats()[0].IterationTokens.Sum
	}
	assert.InDelta(t, 101+101, tokens(true), 0)
	assert.InDelta(t, 101+37, tokens(false), 0)
}

func TestTheQueueTimeEndsWithTheFirstAdmission(t *testing.T) {
	s := start(t, bare(fixed(0, 1, 1), func(c *Config) { c.Blocks, c.MaxModelLen = 40, 320 }))
	send(s, 160, 160)
	r := send(s, 160, 160)
	s.AdvanceTo(20)
	require.Equal(t, 1, r.preemptions)
	assert.Zero(t, s.Stats()[0].Queue.Sum, "both were admitted at once; waiting again is not in it")
	assert.Zero(t, s.Outcomes()[1].Queue)
}

func TestAStepThatIsInterruptedTakesUpWhereItStopped(t *testing.T) {
	run := func(changes ...Change) float64 {
		s := start(t, bare(fixed(0, 1, 1), func(c *Config) { c.Changes = changes }))
		send(s, 8000, 3)
		s.AdvanceTo(60)
		return s.Outcomes()[0].FirstToken
	}
	assert.InDelta(t, run()+10, run(Change{At: 0.1, Parameter: ParamStall, Value: 1}, Change{At: 10.1, Parameter: ParamStall}), 1e-9)
	again := []Change{
		{At: 0.1, Parameter: ParamStall, Value: 1},
		{At: 5, Parameter: ParamStall, Value: 1},
		{At: 10.1, Parameter: ParamStall},
		{At: 20, Parameter: ParamStall},
	}
	assert.InDelta(t, run()+10, run(again...), 1e-9, "stopping twice is stopping once")
}

func TestAClientWhoseFirstTokenComesInTimeStays(t *testing.T) {
	s := start(t, bare(fixed(0, 1, 1), func(c *Config) { c.Workload.Timeout = 1.5 }))
	send(s, 100, 100, func(r *request) { r.leaves, r.impatient = 0.2, true })
	send(s, 100, 1000, func(r *request) { r.leaves, r.impatient = 0.2, true })
	s.AdvanceTo(1.4)
	outcomes := s.Outcomes()
	require.Len(t, outcomes, 1)
	assert.Equal(t, EndStop, outcomes[0].End)
	s.AdvanceTo(2)
	outcomes = s.Outcomes()
	require.Len(t, outcomes, 1)
	assert.Equal(t, EndLeft, outcomes[0].End, "but no longer than any client does")
	assert.InDelta(t, 1.5, outcomes[0].Ended, 1e-9)
}

func TestWhatWasReadFromAnotherServerIsFoundHereNextTime(t *testing.T) {
	s := start(t, bare(fixed(0, 1, 1), func(c *Config) { c.Transfer = Transfer{1, 0.01, 10e9} }))
	send(s, 1001, 2, beginning(1, 640), func(r *request) { r.remote = 0 })
	s.AdvanceTo(1)
	send(s, 1001, 2, beginning(1, 640))
	s.AdvanceTo(2)
	assert.InDelta(t, 640, s.Stats()[0].PrefixHits, 0)
	check(t, s)
}

func TestAnEmptyStepReadsAndComputesNothing(t *testing.T) {
	s := start(t, bare(fixed(0, 1, 1), func(c *Config) { c.FlopsCounters = true }))
	id := s.Send(Request{Prompt: 100, Output: 100})
	s.AdvanceTo(0.1)
	s.Cancel(id)
	s.AdvanceTo(1)
	st := s.Stats()[0]
	assert.Zero(t, st.Running)
	steps := float64(s.engines[0].step)
	assert.InEpsilon(t, steps*15e9, st.ReadBytes, 0.01, "the weights once per step")
	assert.InDelta(t, 131072*(100+steps-1), st.WriteBytes, 1)
}

func TestACallerCanSendAndCancel(t *testing.T) {
	s := start(t, bare(fixed(0, 1, 1), func(c *Config) { c.MaxModelLen = 1000 }))
	s.AdvanceTo(5)
	short := s.Send(Request{Prompt: 100, Output: 10})
	cut := s.Send(Request{Prompt: 990, Output: 100})
	left := s.Send(Request{Prompt: 100, Output: 800, MaxTokens: 800})
	_, live := s.Tokens(short)
	assert.True(t, live)
	s.AdvanceTo(6)
	tokens, live := s.Tokens(left)
	assert.True(t, live)
	assert.InDelta(t, 147, tokens, 15, "a step of three sequences takes 6.8 ms")
	s.Cancel(left)
	s.Cancel(left)
	s.Cancel(99)
	_, live = s.Tokens(left)
	assert.False(t, live)
	byID := map[int]Outcome{}
	for _, o := range s.Outcomes() {
		byID[o.ID] = o
	}
	assert.Equal(t, EndStop, byID[short].End)
	assert.InDelta(t, 5, byID[short].Arrived, 0)
	assert.Equal(t, EndLength, byID[cut].End)
	assert.Equal(t, 10, byID[cut].Output)
	assert.Equal(t, EndLeft, byID[left].End)
	s.AdvanceTo(10)
	check(t, s)
	assert.InDelta(t, 0, s.Stats()[0].KVUsage, 1e-9)
}
