package agree

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/run"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/story"
)

// made is a run of 120 s. Each second a request is sent and gets 40 tokens in the next second.
// Nobody gets anything from the 40th second up to the 85th; then those who wait are served.
func made() *run.Run {
	r := &run.Run{
		Version: "0.32.0", Began: time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC),
		Play: story.Play{Phases: []story.Phase{
			{Name: "steady", For: 40 * time.Second},
			{Name: "x/hang", For: 45 * time.Second, Fault: &story.Fault{Do: "stop", Of: "worker"}},
			{Name: "x/after", For: 35 * time.Second},
		}},
		Spans: []run.Span{{From: 0, To: 40}, {From: 40, To: 85}, {From: 85, To: 120}},
	}
	for at := 0.0; at < 118; at++ {
		s := judge.Sent{At: at, How: judge.Answered, Output: 40, Phase: 0}
		begin := 0.0
		if at >= 39 && at < 85 {
			begin, s.Phase = 85-at, 1
		}
		// Two tokens in each part of the answer.
		for i := range 20 {
			s.Tokens = append(s.Tokens, begin+0.05*float64(i+1))
		}
		s.End = begin + 1
		r.Sent = append(r.Sent, s)
	}
	for at := 0.0; at <= 115; at += 5 {
		inside, tokens := 0, 0
		for i := range r.Sent {
			s := &r.Sent[i]
			if s.At < at && s.At+s.End > at {
				inside++
			}
			for _, t := range s.Tokens {
				if s.At+t <= at {
					tokens += 2
				}
			}
		}
		r.Scrapes = append(r.Scrapes, run.Scrape{At: at, Status: http.StatusOK, Body: fmt.Appendf(nil, `# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} %d
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="m"} 0
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{engine="0",model_name="m"} %d
`, inside, 1000+tokens)})
	}
	return r
}

func TestClientsAndCollectorSeeTheSameTokens(t *testing.T) {
	t.Parallel()
	r := made()
	accounts, err := derive(t.Context(), r)
	require.NoError(t, err)
	require.Len(t, accounts, 20, "each scrape from 20 s on")
	assert.InDelta(t, 800, accounts[0].Least, 1, "40 in each of 20 seconds")
	assert.InDelta(t, 800, accounts[0].Most, 1)
	assert.InDelta(t, 800, accounts[0].Derived, 1)
	assert.Equal(t, Account{From: 60, To: 80, Inside: 41}, accounts[12], "nothing moves")

	wrong, err := Check(t.Context(), r)
	require.NoError(t, err)
	assert.Empty(t, wrong)
}

func TestWhatDoesNotAgreeIsSaid(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(r *run.Run)
		want   string
	}{
		"a fifth of the requests lack their tokens": {func(r *run.Run) {
			for i := range r.Sent {
				if i%5 == 0 {
					r.Sent[i].Tokens = r.Sent[i].Tokens[:1]
					r.Sent[i].Output = 1
				}
			}
		}, "from 0 s to 20 s clients got 644 to 644 tokens, and the collector derives 800"},
		"clients were served while the server is said to hang": {func(r *run.Run) {
			for i := range r.Sent {
				s := &r.Sent[i]
				for j := range s.Tokens {
					s.Tokens[j] -= s.End - 1
				}
				s.End = 1
			}
		}, "x/hang lasted 45 s, and no client felt an outage"},
		"the server has nothing to do while it hangs": {func(r *run.Run) {
			for i := range r.Scrapes {
				r.Scrapes[i].Body = []byte(`# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 0
`)
			}
		}, "only 0 windows of 17.5s could be compared"},
		"the counter goes on while it hangs": {func(r *run.Run) {
			for i := range r.Scrapes {
				r.Scrapes[i].Body = fmt.Appendf(nil, `# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{engine="0",model_name="m"} %d
`, 1000+200*i)
			}
		}, "x/hang lasted 45 s, and in no window of it the server had requests and made no tokens"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := made()
			tc.change(r)
			wrong, err := Check(t.Context(), r)
			require.NoError(t, err)
			assert.Contains(t, wrong, tc.want)
		})
	}
}

func TestAWindowNeedsAllItsPages(t *testing.T) {
	t.Parallel()
	r := made()
	r.Scrapes[6].Status = 0
	accounts, err := derive(t.Context(), r)
	require.NoError(t, err)
	for _, a := range accounts {
		assert.False(t, a.From <= 30 && a.To >= 30, "%v", a)
	}
	assert.Len(t, accounts, 15)
}

// Three of five tokens came one by one before, and two in one part within the window, or the
// other way round.
func TestPartsOfAnAnswerHoldSeveralTokens(t *testing.T) {
	t.Parallel()
	least, most := came([]judge.Sent{
		{At: 10, Output: 5, Tokens: []float64{1, 2, 3, 5}},
		{At: 10, Output: 7, Tokens: []float64{5, 6}},
		{At: 10, Output: 7, Tokens: []float64{1}},
		{At: 14, Tokens: []float64{1, 1}},
	}, 14, 20)
	assert.InDelta(t, 1+7+2, least, 0)
	assert.InDelta(t, 2+7+2, most, 0)
}
