package scenario

import (
	"bufio"
	"bytes"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

const folder = "../../../examples/scenarios"

// page is the result of one scrape, by series; nil without an answer.
type page map[string]float64

// sum adds up the series of a family that have all of the labels.
func (p page) sum(family string, labels ...string) float64 {
	total := 0.0
	for series, v := range p {
		name, rest, _ := strings.Cut(series, "{")
		if name == family && !slices.ContainsFunc(labels, func(l string) bool { return !strings.Contains(rest, l) }) {
			total += v
		}
	}
	return total
}

// run is a scenario in virtual time, scraped as an operator would.
type run struct {
	t        *testing.T
	begin    time.Time
	every    int // Seconds between scrapes.
	pages    []page
	outcomes []engine.Outcome
}

func carryOut(t *testing.T, s Scenario) *run {
	t.Helper()
	return carryOutOn(t, s, 0)
}

// carryOutOn scrapes one of several servers.
func carryOutOn(t *testing.T, s Scenario, target int) *run {
	t.Helper()
	r := &run{t: t, begin: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC), every: 20}
	if s.Length > time.Hour {
		r.every = 600
	}
	s.Config.Start = r.begin
	s.Config.Truth = func(_ int, o engine.Outcome) { r.outcomes = append(r.outcomes, o) }
	server, err := vllmsim.New(s.Config)
	require.NoError(t, err)
	for at := 0; at <= int(s.Length.Seconds()); at += r.every {
		body, _, err := server.Targets()[target].Body()
		if err != nil {
			require.ErrorContains(t, err, "does not answer")
			r.pages = append(r.pages, nil)
		} else {
			r.pages = append(r.pages, read(t, body))
		}
		server.Advance(time.Duration(r.every) * time.Second)
	}
	return r
}

// read shares nothing with what writes pages.
func read(t *testing.T, body []byte) page {
	t.Helper()
	p := page{}
	for lines := bufio.NewScanner(bytes.NewReader(body)); lines.Scan(); {
		line := lines.Text()
		if line == "" || line[0] == '#' || strings.Contains(line, "_bucket{") || strings.Contains(line, "_created") {
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		v, err := strconv.ParseFloat(line[at+1:], 64)
		require.NoError(t, err)
		p[line[:at]] = v
	}
	return p
}

func (r *run) at(seconds int) page {
	r.t.Helper()
	require.Zero(r.t, seconds%r.every, "no scrape at %d s", seconds)
	return r.pages[seconds/r.every]
}

// span is a part of a story, in seconds.
type part struct{ from, to int }

// The parts of most stories.
var (
	before = part{60, 600}
	during = part{660, 1200}
	after  = part{1380, 1500}
)

func (r *run) increase(p part, family string, labels ...string) float64 {
	r.t.Helper()
	return r.at(p.to).sum(family, labels...) - r.at(p.from).sum(family, labels...)
}

// mean is that of a histogram's observations.
func (r *run) mean(p part, histogram string, labels ...string) float64 {
	r.t.Helper()
	n := r.increase(p, histogram+"_count", labels...)
	require.Positive(r.t, n, "%s has no observations", histogram)
	return r.increase(p, histogram+"_sum", labels...) / n
}

func (r *run) gauge(p part, family string, labels ...string) (mean, most float64) {
	r.t.Helper()
	n := 0.0
	for at := p.from; at <= p.to; at += r.every {
		v := r.at(at).sum(family, labels...)
		mean += v
		most = max(most, v)
		n++
	}
	return mean / n, most
}

// The families that most expectations are about.
const (
	running     = "vllm:num_requests_running"
	waiting     = "vllm:num_requests_waiting"
	kvUsage     = "vllm:kv_cache_usage_perc"
	preemptions = "vllm:num_preemptions_total"
	generated   = "vllm:generation_tokens_total"
	prompted    = "vllm:prompt_tokens_total"
	finished    = "vllm:request_success_total"
	gap         = "vllm:inter_token_latency_seconds"
	firstToken  = "vllm:time_to_first_token_seconds"
	queue       = "vllm:request_queue_time_seconds"
	prefill     = "vllm:request_prefill_time_seconds"
	inference   = "vllm:request_inference_time_seconds"
	decode      = "vllm:request_decode_time_seconds"
	whole       = "vllm:e2e_request_latency_seconds"
	promptSize  = "vllm:request_prompt_tokens"
	outputSize  = "vllm:request_generation_tokens"
	queried     = "vllm:prefix_cache_queries_total"
	hit         = "vllm:prefix_cache_hits_total"
	blockLife   = "vllm:kv_block_lifetime_seconds"
	blockGap    = "vllm:kv_block_reuse_gap_seconds"
)

func (r *run) hitShare(p part) float64 {
	r.t.Helper()
	return r.increase(p, hit) / r.increase(p, queried)
}

// outside is the mean time that a request spends outside the engine.
func (r *run) outside(p part) float64 {
	r.t.Helper()
	return r.mean(p, whole) - r.mean(p, queue) - r.mean(p, inference)
}

// story is a run of a scenario, and one of the same requests without its changes.
type story struct {
	scenario Scenario
	*run
	undisturbed func() *run
}

func play(t *testing.T, name string) *story {
	t.Helper()
	s, err := Load(filepath.Join(folder, name+".yaml"))
	require.NoError(t, err)
	return &story{scenario: s, run: carryOut(t, s), undisturbed: sync.OnceValue(func() *run { return carryOut(t, quiet(s)) })}
}

// quiet is the scenario without its changes and faults.
func quiet(s Scenario) Scenario {
	s.Config.Changes, s.Config.Faults = nil, nil
	return s
}

// lone carries out the scenario with equal requests, one at a time, so
// that a formula gives their times.
func (s *story) lone(prompt, output int) *run {
	s.t.Helper()
	one := s.scenario
	one.Config.Workload = &engine.Workload{
		Rate: 0.1, CV: 0.1, Prompt: engine.Lengths{Median: float64(prompt)}, Output: engine.Lengths{Median: float64(output)},
	}
	return carryOut(s.t, one)
}

// same holds that two pages show the same engine.
func same(t *testing.T, want, got page, except ...string) {
	t.Helper()
	left := func(p page) page {
		p = maps.Clone(p)
		maps.DeleteFunc(p, func(series string, _ float64) bool {
			return strings.HasPrefix(series, "process_") || strings.HasPrefix(series, "python_") ||
				slices.ContainsFunc(except, func(e string) bool { return strings.HasPrefix(series, e) })
		})
		return p
	}
	require.NotEmpty(t, left(want))
	require.Equal(t, left(want), left(got))
}

// cut is the mean of a lognormal length where all above most is cut to it.
func cut(l engine.Lengths, most float64) float64 {
	below := func(z float64) float64 { return math.Erfc(-z/math.Sqrt2) / 2 }
	z := math.Log(most/l.Median) / l.Sigma
	return l.Median*math.Exp(l.Sigma*l.Sigma/2)*below(z-l.Sigma) + most*(1-below(z))
}

// The engine's tests compare the length of a step with measurements; here it is that of a lone
// request to the 8B model on an H100, whose batches are worked out apart from the scheduler.
// decodeStep is a step of one sequence over so many tokens in the cache.
func decodeStep(tokens int, bandwidth float64) float64 {
	var b engine.Batch
	b.AddDecode(1, tokens)
	return engine.Llama8B().StepTime(b, engine.Shape{Clock: 1, Bandwidth: bandwidth})
}

// promptStep is a step of one prompt.
func promptStep(tokens int, clock float64) float64 {
	var b engine.Batch
	b.AddChunk(tokens, 0)
	return engine.Llama8B().StepTime(b, engine.Shape{Clock: clock, Bandwidth: 1})
}

// outside is what the front end adds to a lone request, with its work so many times as long.
// The engine has the default front end, whose delay between processes is no work.
func outside(prompt, factor float64) float64 {
	f := engine.DefaultFrontEnd()
	return f.DelaySeconds + factor*(f.RequestSeconds+prompt*f.PromptTokenSeconds+f.BatchSeconds+f.TokenSeconds)
}
