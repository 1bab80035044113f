package scenario

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

const (
	openTrace   = "arrival_s,prompt_tokens,output_tokens,prefix_blocks\n0,100,10,1-2\n2,200,20,1 3-5\n5,20000,40,100-412\n"
	closedTrace = "conversation,seq,think_s,prompt_tokens,output_tokens,shared_prefix_tokens,prefix_blocks\n" +
		"0,0,0,128,10,64,1-2\n0,1,3,192,10,64,1-3\n1,0,0,128,10,64,1-2\n"
)

// inFolder writes a scenario and traces into a folder and loads the scenario.
func inFolder(t *testing.T, workload, rest string) (Scenario, error) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"open.csv": openTrace, "closed.csv": closedTrace, "bad.csv": "arrival_s\nx\n",
		"s.yaml": "about: x\nlength: 20m\nworkload: " + workload + "\n" + rest,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return Load(filepath.Join(dir, "s.yaml"))
}

func TestATraceIsReadFromTheFolderOfTheFile(t *testing.T) {
	s, err := inFolder(t, "{trace: open.csv, speed: 0.5, from: 2, retries: 2, retry_after: 3s, timeout: 60s, adapter_share: 0.5, adapters: 2}", "lora_slots: 2")
	require.NoError(t, err)
	w := s.Config.Workload
	require.Len(t, w.Traffic.Arrivals, 3)
	assert.Equal(t, 64, w.Traffic.BlockTokens)
	want := engine.Workload{
		Traffic: w.Traffic, Speed: 0.5, From: 2, Retries: 2, RetryAfter: 3, Timeout: 60, AdapterShare: 0.5, Adapters: 2,
		Prefixes: 24, PrefixTokens: 512, PrefixSkew: 2,
	}
	assert.Equal(t, want, *w, "no client leaves early, since the trace does not have any")
	assert.Empty(t, s.Notes)
	server, err := vllmsim.New(s.Config)
	require.NoError(t, err)
	assert.Equal(t, 20480, server.MaxModelLen(), "the longest request has 20040 tokens")

	s, err = inFolder(t, "{trace: open.csv, from: 1m30s}", "")
	require.NoError(t, err)
	assert.InDelta(t, 90, s.Config.Workload.From, 0)
}

func TestATraceIsReadOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "open.csv")
	load := func() *engine.Traffic {
		s, err := parse("elsewhere/s.yaml", fmt.Appendf(nil, "about: x\nlength: 20m\nworkload: {trace: %s}\n", path))
		require.NoError(t, err)
		return s.Config.Workload.Traffic
	}
	require.NoError(t, os.WriteFile(path, []byte(openTrace), 0o600))
	one := load()
	assert.Same(t, one, load())
	require.NoError(t, os.WriteFile(path, []byte(strings.Replace(openTrace, "5,20000", "6,20000", 1)), 0o600))
	require.NoError(t, os.Chtimes(path, time.Now(), time.Now().Add(time.Hour)))
	assert.InDelta(t, 6, load().Arrivals[2].At, 0, "unless it has changed")
	for i := range 3 * mostTraces {
		other := filepath.Join(t.TempDir(), fmt.Sprint(i, ".csv"))
		require.NoError(t, os.WriteFile(other, []byte(openTrace), 0o600))
		_, err := readTrace(other)
		require.NoError(t, err)
	}
	assert.Len(t, traces.read, mostTraces)
}

func TestAClosedLoopOfAFile(t *testing.T) {
	s, err := inFolder(t, "{trace: closed.csv, clients: 3, think_max: 1m}", "servers: 2\nserver_shares: [0.5, 0.5]")
	require.NoError(t, err)
	w := s.Config.Workload
	require.Len(t, w.Traffic.Conversations, 2)
	assert.Equal(t, []float64{3, 60}, []float64{float64(w.Clients), w.ThinkMost})
	s, err = inFolder(t, "{clients: 3, think: 2s}", "")
	require.NoError(t, err)
	assert.Equal(t, []float64{3, 2}, []float64{float64(s.Config.Workload.Clients), s.Config.Workload.Think})
	assert.InDelta(t, 1020, s.Config.Workload.Prompt.Median, 0)
}

func TestGeneratedTrafficHasTheRateAndTheSeedOfTheFile(t *testing.T) {
	load := func(workload, rest string) *engine.Traffic {
		s, err := inFolder(t, workload, rest)
		require.NoError(t, err)
		assert.Empty(t, s.Notes)
		assert.Zero(t, s.Config.Workload.PrefixShare+s.Config.Workload.LeaveEarly)
		return s.Config.Workload.Traffic
	}
	one := load("{traffic: conversation, rate: 4}", "")
	assert.InDelta(t, 3600, one.Span, 0, "at least an hour")
	assert.InEpsilon(t, 4*3600, len(one.Arrivals), 0.5)
	assert.Equal(t, one, load("{traffic: conversation, rate: 4}", ""))
	assert.NotEqual(t, one, load("{traffic: conversation, rate: 4}", "seed: 2"))
	assert.NotEmpty(t, load("{traffic: assistant, clients: 3}", "").Conversations)
	_, err := inFolder(t, "{traffic: conversation, trace: open.csv}", "")
	require.ErrorContains(t, err, "workload.trace: a trace and traffic are two sources of requests; want one of them")
	s, err := inFolder(t, "{traffic: conversation, like: code, swing: 0.5, period: 1m}", "")
	require.NoError(t, err)
	assert.Equal(t, []string{
		"workload.like has no effect: the traffic determines it", "workload.swing has no effect: the traffic determines it",
		"workload.period has no effect: the traffic determines it",
	}, s.Notes)
}

func TestKeysWithoutAnEffectAreNoted(t *testing.T) {
	for workload, want := range map[string][]string{
		"{trace: open.csv, rate: 5, like: chat, swing: 0.5, period: 1m, prompt_median: 5, prefix_share: 0.5}": {
			"workload.rate has no effect: the trace determines it",
			"workload.like has no effect: the trace determines it",
			"workload.swing has no effect: the trace determines it",
			"workload.period has no effect: the trace determines it",
			"workload.prompt_median has no effect: the trace determines it",
			"workload.prefix_share has no effect: the prefix blocks of the traffic determine it",
		},
		"{trace: closed.csv, clients: 2, speed: 2, from: 5, think: 3s}": {
			"workload.speed has no effect: the closed loop of clients determines it",
			"workload.from has no effect: the closed loop of clients determines it",
			"workload.think has no effect: the recorded pauses determine it",
		},
		"{trace: open.csv, from: 5}": nil,
		// The last request comes at 5 s, and the mean gap is 2.5 s.
		"{trace: open.csv, from: 20}": {
			"workload.from is beyond the end of the traffic, which lasts 7.5 s and then begins again: the story begins at its second 5",
		},
		"{clients: 2, rate: 3}": {"workload.rate has no effect: the closed loop of clients determines it"},
		"{rate: 3}":             nil,
	} {
		s, err := inFolder(t, workload, "")
		if assert.NoError(t, err, workload) {
			assert.Equal(t, want, s.Notes, workload)
		}
	}
	s, err := inFolder(t, "{trace: open.csv}", "max_model_len: 20010")
	require.NoError(t, err)
	assert.Equal(t, []string{"1 of 3 requests of the traffic are longer than max_model_len, 20010 tokens, and are cut to it"}, s.Notes)
}

func TestMistakesWithTracesAreNamed(t *testing.T) {
	for workload, want := range map[string]string{
		"{trace: none.csv}":             "s.yaml:3: workload.trace: there is no file none.csv, neither in the folder of this file nor in the working directory",
		"{trace: bad.csv}":              "s.yaml:3: workload.trace: ",
		"{trace: .}":                    "is not a regular file",
		"{trace: 7}":                    "s.yaml:3: workload.trace: want text",
		"{trace: closed.csv}":           "clients: missing; closed.csv has conversations",
		"{trace: open.csv, clients: 2}": "clients: open.csv has the times of its requests",
		"{trace: open.csv, speed: 0}":   "workload.speed: 0 is not between 0.001 and 1000",
		"{trace: open.csv, from: -1}":   "workload.from: -1 is not between",
		"{trace: open.csv, from: -1s}":  "workload.from: -1s is not between",
		"{trace: open.csv, from: soon}": "workload.from: want seconds, or a duration",
		"{rate: 1, speed: 2}":           "speed: it goes with trace or traffic",
		"{rate: 1, from: 2}":            "from: it goes with trace or traffic",
		"{rate: 1, think: 2s}":          "think: it goes with clients",
		"{rate: 1, think_max: 2s}":      "think_max: it goes with clients",
		"{rate: 1, retry_after: 2s}":    "retry_after: it goes with retries",
		"{speed: 1}":                    "speed: it goes with",
		"{timeout: 5s}":                 "rate: missing or 0; want requests per second, or a trace, traffic or clients",
		"{rate: 1, clients: 5000}":      "5000 is not between 1 and 4096",
		"{traffic: nothing-like-it}":    `workload.traffic: unknown traffic "nothing-like-it": want one of`,
	} {
		_, err := inFolder(t, workload, "")
		if assert.ErrorContains(t, err, want, workload) {
			assert.NotContains(t, err.Error(), "\n", workload)
		}
	}
}

// A restarted server goes on where the trace is, and the numbers of its requests say which
// process had them.
func TestARestartedServerGoesOnInTheTrace(t *testing.T) {
	var rows strings.Builder
	rows.WriteString("arrival_s,prompt_tokens,output_tokens\n")
	for i := range 1000 {
		fmt.Fprintf(&rows, "%d,%d,2\n", i, 100+i)
	}
	path := filepath.Join(t.TempDir(), "long.csv")
	require.NoError(t, os.WriteFile(path, []byte(rows.String()), 0o600))
	s, err := parse("s.yaml", []byte("about: x\nlength: 20m\nworkload: {trace: "+path+", from: 100}\nfaults: [{kind: restart, at: 1m, until: 2m}]\n"))
	require.NoError(t, err)
	prompts := map[int]float64{}
	cfg := s.Config
	cfg.Truth = func(_ int, o engine.Outcome) {
		prompts[o.Prompt] = o.Arrived
		require.Equal(t, o.Arrived >= 119.9, o.ID >= engine.ProcessIDs)
		require.Equal(t, o.ID, o.First)
	}
	server, err := vllmsim.New(cfg)
	require.NoError(t, err)
	for range 180 {
		server.Advance(time.Second)
		_, _, _ = server.Targets()[0].Body() // It is away for a minute.
	}
	assert.Greater(t, len(prompts), 110)
	for prompt, at := range prompts {
		assert.InDelta(t, float64(prompt-200), at, 0.01)
		assert.True(t, at <= 61 || at >= 120, "%v", at)
	}
}
