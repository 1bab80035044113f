package sim

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/run"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/story"
)

const book = `
steady: {for: 20s, rate: 2}
prompt: {mean: 128, sigma: 0.5, most: 3500}
output: {mean: 64, sigma: 0.5, most: 1500}
servers:
  - {name: plain}
  - {name: ranks, simulated: {engines: 2}}
  - {name: small, flags: [--max-model-len=2560], simulated: {kv_tokens: 8192, block_size: 32}}
  - {name: other, simulated: {not: it is another program}}
stories:
`

// quiet lets all requests end before the last look.
const quiet = "{name: quiet, for: 40s}"

// played plays a story of a server with a list of phases.
func played(t *testing.T, server, phases string) *run.Run {
	t.Helper()
	r, err := play(t, "  - {name: one, server: "+server+", phases: ["+phases+"]}")
	require.NoError(t, err)
	return r
}

func play(t *testing.T, stories string) (*run.Run, error) {
	t.Helper()
	b, err := story.Read([]byte(book + stories))
	require.NoError(t, err)
	p, err := b.Play("one")
	require.NoError(t, err)
	return Play(t.Context(), p, Options{Book: b, Version: "0.32.0", Seed: 3})
}

// value adds up the samples of a scrape whose names begin like this.
func value(t *testing.T, s run.Scrape, begins string) (sum float64) {
	t.Helper()
	require.Equal(t, 200, s.Status)
	found := false
	for line := range bytes.Lines(s.Body) {
		text := strings.TrimSpace(string(line))
		if strings.HasPrefix(text, begins) {
			v, err := strconv.ParseFloat(text[strings.LastIndexByte(text, ' ')+1:], 64)
			require.NoError(t, err)
			sum += v
			found = true
		}
	}
	require.True(t, found, begins)
	return sum
}

func TestWhatClientsSeeAndWhatTheServerCountsAgree(t *testing.T) {
	t.Parallel()
	r := played(t, "plain", "{name: mixed, for: 60s, rate: 12, timeout: 3s, retries: 1, abort: 0.2, bad: 0.1}, "+quiet)
	last := r.Scrapes[len(r.Scrapes)-1]
	count := map[judge.Ending]float64{}
	prompts, tokens, began := 0.0, 0.0, 0.0
	for i := range r.Sent {
		s := &r.Sent[i]
		count[s.How]++
		tokens += float64(len(s.Tokens))
		if len(s.Tokens) > 0 {
			prompts += float64(s.Prompt)
			began++
		}
		if s.How == judge.Answered {
			assert.Len(t, s.Tokens, s.Output)
			assert.GreaterOrEqual(t, s.End, s.Tokens[s.Output-1])
		}
	}
	for _, how := range []judge.Ending{judge.Answered, judge.Left, judge.TimedOut, judge.Refused} {
		assert.Greater(t, count[how], 20.0, how)
	}
	assert.Zero(t, count[judge.Failed])
	equal := func(want float64, begins string) { assert.InDelta(t, want, value(t, last, begins), 0, begins) }
	// An answer can be complete, and on its way, when its client leaves.
	finished := value(t, last, `vllm:request_success_total{engine="0",finished_reason="length"`)
	assert.InDelta(t, count[judge.Answered]+2, finished, 2)
	equal(finished, `vllm:request_success_total`)
	equal(count[judge.Refused], `http_requests_total{handler="/v1/completions",method="POST",status="4xx"}`)
	equal(count[judge.Answered]+count[judge.Left]+count[judge.TimedOut], `http_requests_total{handler="/v1/completions",method="POST",status="2xx"}`)
	equal(prompts, "vllm:prompt_tokens_total")
	equal(began, "vllm:time_to_first_token_seconds_count")
	equal(0, "vllm:num_requests_running")
	equal(0, "vllm:num_requests_waiting{")
	// A client that leaves does not see the tokens of the step that is under way.
	assert.InDelta(t, tokens, value(t, last, "vllm:generation_tokens_total"), count[judge.Left]+count[judge.TimedOut])
	// Those who try again ask for the same.
	assert.Positive(t, value(t, last, "vllm:prefix_cache_hits_total"))
}

func TestEqualOptionsGiveEqualRuns(t *testing.T) {
	t.Parallel()
	phases := "{name: few, for: 20s, clients: 20, keep_alive: true}, {name: load, for: 20s, load: 0.5}"
	first, second := played(t, "plain", phases), played(t, "plain", phases)
	assert.Equal(t, first, second)
	assert.InDelta(t, 7.0, first.Capacity, 0.7, "a real server answered 7.04")
	require.Len(t, first.Scrapes, 13)
	assert.Equal(t, []run.Span{{From: 0, To: 20}, {From: 20, To: 40}, {From: 40, To: 60}}, first.Spans)
	for i, s := range first.Scrapes {
		assert.InDelta(t, 5*i, s.At, 0)
	}
	// The requests by which the capacity was measured are in the counters, as on a real server.
	assert.Greater(t, value(t, first.Scrapes[0], "vllm:request_success_total"), 25*first.Capacity)
	var whole bytes.Buffer
	for _, s := range first.Scrapes {
		whole.Write(s.Body)
	}
	assert.NotContains(t, whole.String(), "NaN")
}

// passed are the tokens that came in a time.
func passed(r *run.Run, from, to float64) (n int) {
	for i := range r.Sent {
		for _, at := range r.Sent[i].Tokens {
			if at += r.Sent[i].At; at > from && at < to {
				n++
			}
		}
	}
	return n
}

func TestAWorkerThatStopsGivesNothingAndAllAfterwards(t *testing.T) {
	t.Parallel()
	r := played(t, "plain", "{name: hang, for: 40s, rate: 2, fault: {do: stop, of: worker}}, "+quiet)
	assert.NotZero(t, passed(r, 0, 20))
	assert.Zero(t, passed(r, 20.1, 60))
	assert.NotZero(t, passed(r, 60, 100))
	for i := range r.Sent {
		assert.Equal(t, judge.Answered, r.Sent[i].How)
	}
	for _, name := range []string{"vllm:num_requests_running", "vllm:iteration_tokens_total_count", "vllm:generation_tokens_total"} {
		assert.InDelta(t, value(t, r.Scrapes[5], name), value(t, r.Scrapes[11], name), 0, name)
	}
	assert.Greater(t, value(t, r.Scrapes[11], "process_open_fds"), value(t, r.Scrapes[5], "process_open_fds")+30)
}

func TestAnAPIServerThatStopsAnswersNothingAndPassesNothingOn(t *testing.T) {
	t.Parallel()
	r := played(t, "plain", "{name: hang, for: 42s, rate: 2, fault: {do: stop, of: api}}, "+quiet)
	assert.Zero(t, passed(r, 20.001, 62))
	failed := 0
	for _, s := range r.Scrapes {
		if s.Status == 0 {
			assert.Equal(t, "timeout", s.Failure)
			assert.True(t, s.At > 20 && s.At <= 62, "%v", s.At)
			failed++
		}
	}
	assert.Equal(t, 4, failed, "a look that waits for 5 s delays the next")
	for i := range r.Sent {
		assert.Equal(t, judge.Answered, r.Sent[i].How)
	}
}

func TestAServerThatRestartsIsAwayAndBeginsAgain(t *testing.T) {
	t.Parallel()
	r := played(t, "plain", "{name: restart, for: 60s, rate: 2, fault: {do: restart}}, {name: after, for: 20s, rate: 2}")
	started := map[float64]bool{}
	for _, s := range r.Scrapes {
		if s.At >= 20 && s.At < 20+starting {
			assert.Zero(t, s.Status, "%v", s.At)
			continue
		}
		started[value(t, s, "process_start_time_seconds")] = true
	}
	assert.Len(t, started, 2)
	failed := 0
	for i := range r.Sent {
		if r.Sent[i].How == judge.Failed {
			failed++
		}
	}
	assert.InDelta(t, 2*starting, failed, 30)
}

func TestSlowIsASmallerShareOfTheTime(t *testing.T) {
	t.Parallel()
	r := played(t, "plain", "{name: slow, for: 40s, rate: 1, fault: {do: slow, of: worker, share: 0.25}}, "+quiet)
	usual, slow := judge.UsualOf(r.Sent, 0), judge.UsualOf(r.Sent, 1)
	assert.InDelta(t, 4, slow.Token/usual.Token, 0.7)
}

func TestThePaceIsOfEverything(t *testing.T) {
	t.Parallel()
	b, err := story.Read([]byte(book + "  - {name: one, server: plain, phases: [{name: a, for: 1s, load: 1}]}"))
	require.NoError(t, err)
	p, err := b.Play("one")
	require.NoError(t, err)
	r, err := Play(t.Context(), p, Options{Book: b, Version: "0.32.0", Seed: 3, Pace: 2})
	require.NoError(t, err)
	assert.InDelta(t, 3.5, r.Capacity, 0.35)
}

func TestSeveralChoicesAndSharedBeginnings(t *testing.T) {
	t.Parallel()
	r := played(t, "small", "{name: a, for: 20s, rate: 2, choices: 4, abort: 0.3, bad: 0.3}, {name: b, for: 20s, rate: 1, prefix: {tokens: 512, of: 2}}, "+quiet)
	ends := map[judge.Ending]int{}
	for i := range r.Sent {
		switch s := &r.Sent[i]; s.Phase {
		case 1:
			if s.How != judge.Answered {
				assert.Less(t, s.End, 3.0, "%+v", s)
				ends[s.How]++
				continue
			}
			assert.Zero(t, s.Output%4)
			assert.Len(t, s.Tokens, s.Output)
		case 2:
			assert.Greater(t, s.Prompt, 512)
		}
	}
	assert.Positive(t, ends[judge.Left])
	assert.Positive(t, ends[judge.Refused])
	last := r.Scrapes[len(r.Scrapes)-1]
	assert.Zero(t, value(t, last, "vllm:num_requests_running"))
	assert.Greater(t, value(t, last, "vllm:prefix_cache_hits_total"), 512*10.0)
	assert.Contains(t, string(last.Body), `num_gpu_blocks="256"`)
}

func TestARankCanStopAlone(t *testing.T) {
	t.Parallel()
	r := played(t, "ranks", "{name: hang, for: 30s, rate: 2, fault: {do: stop, of: worker1}}, "+quiet)
	steps := func(i int, engine string) float64 {
		return value(t, r.Scrapes[i], `vllm:iteration_tokens_total_count{engine="`+engine)
	}
	assert.Greater(t, steps(9, "0"), steps(5, "0"))
	assert.InDelta(t, steps(5, "1"), steps(9, "1"), 0)
}

func TestWhatIsNotSimulatedIsSaid(t *testing.T) {
	t.Parallel()
	for stories, want := range map[string]string{
		"  - {name: one, server: plain, not_simulated: nobody wrote it, phases: [" + quiet + "]}":                        "story one is not simulated: nobody wrote it",
		"  - {name: one, server: other, phases: [" + quiet + "]}":                                                        "story one is not simulated: it is another program",
		"  - {name: one, server: plain, phases: [{name: a, for: 9s, rate: 1, grammar: 0.5}]}":                            "story one/a is not simulated: the simulator has no structured output",
		"  - {name: one, server: plain, phases: [{name: a, for: 9s, rate: 1, fault: {do: one-core}}]}":                   `story one/a is not simulated: the simulator has no fault "one-core"`,
		"  - {name: one, server: plain, phases: [{name: a, for: 9s, rate: 1, fault: {do: slow, of: api0, share: 0.5}}]}": "",
	} {
		_, err := play(t, stories)
		if want == "" {
			assert.NoError(t, err)
			continue
		}
		assert.ErrorContains(t, err, want)
	}
}

func TestAllShippedStoriesArePlayedOrSayWhyNot(t *testing.T) {
	t.Parallel()
	b, err := story.Shipped()
	require.NoError(t, err)
	for i := range b.Stories {
		p, err := b.Play(b.Stories[i].Name)
		require.NoError(t, err)
		// The beginnings of the phases, so that this does not take long.
		for j := range p.Phases {
			p.Phases[j].For = min(p.Phases[j].For, max(p.Phases[j].Quiet+1e9, 3e9))
		}
		r, err := Play(t.Context(), p, Options{Book: b, Version: "0.32.0", Capacity: 7, Seed: 7})
		if b.Stories[i].NotSimulated != "" {
			assert.ErrorContains(t, err, b.Stories[i].NotSimulated)
			continue
		}
		require.NoError(t, err, b.Stories[i].Name)
		assert.Len(t, r.Spans, len(p.Phases))
		for k := range r.Sent {
			s := &r.Sent[k]
			assert.False(t, s.End < 0 || math.IsNaN(s.End), "%s: %+v", b.Stories[i].Name, s)
		}
	}
}
