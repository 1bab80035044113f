package page

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/run"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/said"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/story"
)

// example is a run of 400 s, and what was said at two intervals.
func example() (*run.Run, []*said.All) {
	r := &run.Run{
		Play: story.Play{Stories: []string{"<b>"}, Server: story.Server{Name: "plain"}, Phases: []story.Phase{
			{Name: "steady"}, {Name: "<b>/hang", Fault: &story.Fault{Do: "stop"}}, {Name: "<b>/after"},
		}},
		Version: "0.32.0", Capacity: 2.5, Seed: 7, Began: time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC),
		Spans: []run.Span{{From: 0, To: 100}, {From: 100.1, To: 200}, {From: 200.1, To: 400}},
		Sent: []judge.Sent{
			{At: 5, Tokens: judge.Times{0.12, 0.14, 0.16}, End: 0.2, How: judge.Answered},
			{At: 125, End: 8, How: judge.TimedOut, Phase: 1},
			{At: 126, End: 0.01, How: judge.Failed, Phase: 1},
			{At: 127, End: 0.01, How: judge.Refused},
		},
	}
	felt := []judge.Felt{
		{Level: judge.Great, What: "first token", From: 110, To: 205.4, Worst: 42.2},
		{Level: judge.Great, What: "answer", From: 150, To: 160, Worst: 0.625},
		{Level: judge.Clear, What: "token", From: 161, To: 170, Worst: 0.0512},
	}
	stalled := judge.Said{At: 130, Condition: "stalled", Severity: 3}
	slow := judge.Said{At: 100, Condition: "degraded", Severity: 2, Cause: "slow_steps", Detail: "<i>"}
	return r, []*said.All{
		{
			Interval: 5 * time.Second, Felt: felt, Said: []judge.Said{{At: 0, Condition: "healthy"}, stalled},
			Heard: []judge.Heard{
				{Felt: felt[0], Report: stalled, After: 20, Greatest: 3, Paged: 45, Cleared: 30},
				{Felt: felt[1], Report: stalled, After: -20, Greatest: 3, Paged: 0, Cleared: -1},
				{Felt: felt[2], Paged: -1, Cleared: -1, Denied: 12},
			},
			Records: []run.Record{{At: 131, Level: "ERROR", Condition: "stalled", Text: "it <u>stalls</u>"}},
			Alerts:  []said.Alert{{Name: "Stalled<", From: 155, To: 240, Page: true}, {Name: "Slow", From: 160, To: 165}},
		},
		{
			Interval: 15 * time.Second, Felt: felt,
			Heard: []judge.Heard{
				{Felt: felt[0], Paged: -1, Cleared: -1}, {Felt: felt[1], Paged: -1, Cleared: -1}, {Felt: felt[2], Paged: -1, Cleared: -1},
			},
			Unfelt: []judge.Said{slow},
		},
	}
}

func TestLinesSayWhatWasFeltAndWhatWasSaidOfIt(t *testing.T) {
	r, all := example()
	assert.Equal(t, strings.TrimPrefix(`
usual: first token 120 ms, then 20 ms a token
great: first token, felt from 1:50 to 3:25 (<b>/hang), worst 42 s
  every 5s:  reported after 20 s: stalled, severity 3; paged after 45 s; cleared 30 s after its end
  every 15s: not reported; no page
great: answer, felt from 2:30 to 2:40 (<b>/hang), worst 62 % of the answers
  every 5s:  was reported before: stalled, severity 3; paged after 0 s; not cleared by the end
  every 15s: not reported; no page
five times: token, felt from 2:41 to 2:50 (<b>/hang), worst 51 ms
  every 5s:  not reported; said to be well for 12 s
  every 15s: not reported
every 15s: degraded, slow_steps (<i>), severity 2 at 1:40 (<b>/hang), while users felt no such harm
`, "\n"), Lines(r, all))
	all[0].Felt, all[1].Unfelt = nil, nil
	assert.Equal(t, "usual: first token 120 ms, then 20 ms a token\nusers felt no harm of five times the usual or more\n", Lines(r, all))
	assert.Equal(t, "usual: first token 0 ms, then 0 ms a token\n", Lines(&run.Run{}, nil), "nothing was replayed")
}

func TestNumbersHaveTheDigitsThatCount(t *testing.T) {
	for seconds, want := range map[float64]string{
		0: "0 ms", 0.0512: "51 ms", 0.9994: "999 ms", 0.9996: "1.0 s", 1: "1.0 s", 9.94: "9.9 s", 9.96: "10 s", 42.2: "42 s", 600: "600 s",
	} {
		assert.Equal(t, want, duration(seconds))
	}
	for seconds, want := range map[float64]string{0: "0:00", 59.4: "0:59", 59.6: "1:00", 61: "1:01", 3601: "60:01"} {
		assert.Equal(t, want, clock(seconds))
	}
	r, _ := example()
	for at, want := range map[float64]string{0: "steady", 99: "steady", 100.05: "<b>/hang", 399: "<b>/after", 400: "the end"} {
		assert.Equal(t, want, r.PhaseAt(at))
	}
}

func TestThePageEscapesWhatItShows(t *testing.T) {
	r, all := example()
	var b strings.Builder
	require.NoError(t, HTML(&b, r, all))
	page := b.String()
	for _, raw := range []string{"<b>", "<u>", "<i>", "Stalled<<"} {
		assert.NotContains(t, page, raw)
	}
	for _, shown := range []string{
		"<title>&lt;b&gt;</title>", "<h1>&lt;b&gt;</h1>", "it &lt;u&gt;stalls&lt;/u&gt;", "Stalled&lt;", "severity3",
		"Played by vLLM 0.32.0 (plain) from 2026-11-28 12:00:00; seed 7. It serves 2.50 requests/s of the usual lengths.",
		"<td>2:11</td><td>&lt;b&gt;/hang</td><td>ERROR</td>", "<td>2:35</td><td>4:00</td><td>page</td>", "<td>2:40</td><td>2:45</td><td>ticket</td>",
		"sent at 2:05: waited 8.0 s, timed_out", "great: first token from 1:50 to 3:25, worst 42 s",
	} {
		assert.Contains(t, page, shown)
	}
	assert.NotContains(t, page, "2:07", "a wrong request is not a point")
	assert.Equal(t, 3+1, strings.Count(page, "<circle"), "three first waits, and one time per token")
	r.Simulated = true
	b.Reset()
	require.NoError(t, HTML(&b, r, nil))
	assert.Contains(t, b.String(), "Played by the simulator as vLLM 0.32.0")
	b.Reset()
	require.NoError(t, HTML(&b, &run.Run{}, nil), "nothing was played")
}
