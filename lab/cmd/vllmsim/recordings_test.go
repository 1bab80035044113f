package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// shareOf returns a folder of shared data with a run "busy", in which 20 requests wait for a
// sequence for ten minutes, and a run "free", in which none does.
func shareOf(t *testing.T) string {
	t.Helper()
	shared := t.TempDir()
	series := filepath.Join(shared, "profiles", "series")
	require.NoError(t, os.MkdirAll(series, 0o755))
	index := "name,model,vllm,label,note\n"
	for name, waiting := range map[string]int{"busy": 20, "free": 0} {
		var b strings.Builder
		b.WriteString("t_s,kv_usage_pct,running,waiting,prompt_tokens_total,generation_tokens_total," +
			"prefix_cache_queries_total,prefix_cache_hits_total,preemptions_total,requests_finished_total\n")
		for i := range 601 {
			fmt.Fprintf(&b, "%d,10,4,%d,%d,%d,0,0,0,%d\n", i, waiting, 50*i, 100*i, i/2)
		}
		require.NoError(t, os.WriteFile(filepath.Join(series, name+".csv"), []byte(b.String()), 0o644))
		index += name + ",m,0.15.0,what happened,\n"
	}
	require.NoError(t, os.WriteFile(filepath.Join(series, "index.csv"), []byte(index), 0o644))
	return shared
}

func replayed(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), append([]string{"replay-recording"}, args...), &out, &errs)
	return code, out.String(), errs.String()
}

func TestRecordingsAreReplayed(t *testing.T) {
	shared := shareOf(t)
	code, stdout, stderr := replayed(t, "--shared", shared)
	require.Zero(t, code, stderr)
	assert.Contains(t, stdout, "free: what happened\n")
	assert.Contains(t, stdout, "busy: what happened\n")
	assert.Contains(t, stdout, "degraded, demand_exceeds_capacity/seqs")
	assert.Contains(t, stderr, "skipped, "+filepath.Join(shared, "profiles", "runs"), "the other folder is not there")

	code, stdout, _ = replayed(t, "--json", "--interval", "20s", "--window", "2m", "--run", "busy", filepath.Join(shared, "profiles", "series"))
	require.Zero(t, code)
	var result struct {
		Run        string `json:"run"`
		Scrapes    int    `json:"scrapes"`
		FirstAlarm struct {
			At     float64 `json:"at_s"`
			Report string  `json:"report"`
		} `json:"first_alarm"`
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &result), "one line for one run")
	assert.Equal(t, "busy", result.Run)
	assert.Equal(t, 31, result.Scrapes)
	assert.Equal(t, "degraded, demand_exceeds_capacity/seqs", result.FirstAlarm.Report)
	assert.GreaterOrEqual(t, result.FirstAlarm.At, 120.0, "a window")
}

func TestWithoutRecordingsNothingIsReplayed(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	text := "<!-- recordings: begin -->\nas it was\n<!-- recordings: end -->\n"
	require.NoError(t, os.WriteFile(page, []byte(text), 0o644))
	code, stdout, stderr := replayed(t, "--shared", filepath.Join(t.TempDir(), "nothing"), "--page", page)
	assert.Zero(t, code)
	assert.Empty(t, stdout)
	assert.Equal(t, 2, strings.Count(stderr, "skipped, "), stderr)
	after, err := os.ReadFile(page)
	require.NoError(t, err)
	assert.Equal(t, text, string(after))
}

func TestThePartOfThePageIsWritten(t *testing.T) {
	shared := shareOf(t)
	page := filepath.Join(t.TempDir(), "page.md")
	require.NoError(t, os.WriteFile(page, []byte("# Title\n<!-- recordings: begin -->\nold\n<!-- recordings: end -->\nthe end\n"), 0o644))
	code, stdout, stderr := replayed(t, "--shared", shared, "--page", page)
	require.Zero(t, code, stderr)
	assert.Empty(t, stdout)
	raw, err := os.ReadFile(page)
	require.NoError(t, err)
	assert.Contains(t, string(raw), "| busy | what happened | ")
	assert.NotContains(t, string(raw), "old\n")
	assert.NotContains(t, string(raw), "{{")
	assert.True(t, strings.HasPrefix(string(raw), "# Title\n") && strings.HasSuffix(string(raw), "\nthe end\n"))

	require.NoError(t, os.WriteFile(page, []byte("no marks\n"), 0o644))
	code, _, stderr = replayed(t, "--shared", shared, "--page", page)
	assert.Equal(t, 1, code)
	assert.Contains(t, stderr, `the marks around the part "recordings" are missing`)
}

func TestMistakesOfAReplay(t *testing.T) {
	shared := shareOf(t)
	series := filepath.Join(shared, "profiles", "series")
	for want, args := range map[string][]string{
		"no recordings":                       {filepath.Join(shared, "elsewhere")},
		`no recording is named "x"`:           {"--run", "x", series},
		`no recording is named "y"`:           {"--run", "y", "--shared", shared},
		"2: -page writes the table of all":    {"--run", "busy", "--page", "page.md", series},
		"processor: ":                         {"--window", "1ms", series},
		"is not a file":                       {shareWith(t, "index.csv")},
		"2: the interval 1ms is not between":  {"--interval", "1ms", series},
		`2: the source of latencies "x"`:      {"--latencies", "x", series},
		"2: flag provided but not defined: -": {"--no-such-flag"},
	} {
		code, stdout, stderr := replayed(t, args...)
		of := 1
		if rest, usage := strings.CutPrefix(want, "2: "); usage {
			of, want = 2, rest
		}
		assert.Equal(t, of, code, want)
		assert.Empty(t, stdout, want)
		assert.Contains(t, stderr, want)
	}
}

// shareWith returns a folder in which a file is a folder.
func shareWith(t *testing.T, name string) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o755))
	return dir
}
