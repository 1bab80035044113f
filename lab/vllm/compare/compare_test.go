package compare

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/run"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/story"
)

// example is a server that steps with four sequences, and stops at 60 s.
func example(perStep, running float64, more string) *run.Run {
	r := &run.Run{
		Play: story.Play{Phases: []story.Phase{
			{Name: "steady", For: time.Minute}, {Name: "one/hang", For: time.Minute, Fault: &story.Fault{Do: "stop", Of: "worker"}},
		}},
		Capacity: 5,
		Spans:    []run.Span{{From: 0, To: 60}, {From: 60, To: 120}},
		Sent: []judge.Sent{
			{At: 1, Tokens: judge.Times{0.1, 0.1 + perStep, 0.1 + 2*perStep}, End: 0.1 + 2*perStep, How: judge.Answered, Output: 3},
			{At: 70, End: 20, How: judge.TimedOut, Phase: 1},
		},
	}
	for i := range 24 {
		at := float64(5 * i)
		steps := min(at, 60) / perStep
		body := fmt.Sprintf("# HELP x y\nvllm:iteration_tokens_total_count{engine=\"0\"} %v\nvllm:generation_tokens_total{engine=\"0\"} %v\n"+
			"vllm:num_requests_running{engine=\"0\"} %v\nprocess_open_fds %v\n", steps, 4*steps, running, 30+i)
		r.Scrapes = append(r.Scrapes, run.Scrape{At: at, Status: 200, Body: []byte(body + strings.ReplaceAll(more, "N", fmt.Sprint(i)))})
	}
	return r
}

func TestTheTableHasWhatDiffers(t *testing.T) {
	t.Parallel()
	heard := [2][]judge.Heard{{{
		Felt:   judge.Felt{Level: judge.Outage, What: "any token", From: 100, To: 119, Worst: 45},
		Report: judge.Said{Condition: "stalled"}, After: -5, Cleared: 30,
	}}}
	text := Table(example(0.02, 4, "a_total{k=\"1\"} N\n"), example(0.04, 4, "a_total{k=\"2\"} 7\nb 1\n"), heard)
	for _, want := range []string{
		"| steady | per token, mean, s | 0.02 | 0.04 | 2.00 |",
		"| steady | step, ms, of 3 to 6 tokens | 20 | 40 | 2.00 |",
		"| one/hang | timed_out | 1 | 1 | 1.00 |",
		"| steady | running, mean of scrapes | 4 | 4 | 1.00 |",
		"Only the simulated one has: `b`.",
		"Only the real server has these series, beside those of such families: `a_total{k=\"1\"}`.",
		"| one/hang | `a` | none |",
		"| `vllm:iteration_tokens_total_count{engine=\"0\"}` | 3000 | 1500 |",
		"| one/hang | outage: any token | 100 to 119 s, worst 45: stalled after -5 s, cleared after 30 s | not felt |",
	} {
		assert.Contains(t, text, want)
	}
	assert.NotContains(t, text, "| one/hang | step")

	text = Summary([]Both{{Runs: [2]*run.Run{example(0.02, 4, "a 1\n"), example(0.04, 2, "")}, Heard: heard}})
	assert.Contains(t, text, "| per token, mean, s | 1 | 2.00 | 2.00 | 2.00 |\n")
	assert.Contains(t, text, "Users felt 0 harms on both, 1 on the real server only, and 0 on the simulated one only.")
}

func TestEqualRunsDoNotDiffer(t *testing.T) {
	t.Parallel()
	r := example(0.02, 4, "a_total N\n")
	text := Table(r, r, [2][]judge.Heard{})
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "| steady") || strings.HasPrefix(line, "| one") {
			assert.Contains(t, line, "| 1.00 |")
		}
	}
	assert.Contains(t, text, "none")
	assert.NotContains(t, text, "Only the simulated one has: `")
}
