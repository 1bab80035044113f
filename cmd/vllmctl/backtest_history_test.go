package main

import (
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/status"
)

func TestBacktestOfAnEmptyHistory(t *testing.T) {
	f := newFakeAPI(t)
	f.fail(answerWith(200, "application/json", `{"status":"success","data":[]}`))
	code, stdout, stderr := vllmctl(t, f.args("--match", `cluster="b"`)...)
	assert.Equal(t, status.Failed, code)
	assert.Empty(t, stdout)
	assert.Contains(t, stderr, `the history has no vLLM server with cluster="b" from 2026-10-20T01:00:00Z`)
}

// Odd samples change nothing but what they are about.
func TestBacktestOfOddSamples(t *testing.T) {
	for name, change := range map[string]func(f *fakeAPI){
		"NaN and infinity": func(f *fakeAPI) {
			plain := f.sample
			f.sample = func(s map[string]string, at int64) (float64, bool) {
				if s["__name__"] == "vllm:num_requests_waiting" {
					return []float64{math.NaN(), math.Inf(1), math.Inf(-1), 0}[at/15%4], true
				}
				return plain(s, at)
			}
		},
		"a counter that falls": func(f *fakeAPI) {
			plain := f.sample
			f.sample = func(s map[string]string, at int64) (float64, bool) {
				v, has := plain(s, at)
				if strings.HasSuffix(s["__name__"], "_total") {
					v = math.Mod(v, 500_000)
				}
				return v, has
			}
		},
		"another interval from the middle on": func(f *fakeAPI) {
			plain := f.sample
			f.sample = func(s map[string]string, at int64) (float64, bool) {
				if at > historyBegin.Add(2*time.Hour).Unix() && at%60 != 0 {
					return 0, false
				}
				return plain(s, at)
			}
		},
		"huge labels": func(f *fakeAPI) {
			f.series = append(f.series, map[string]string{
				"__name__": "vllm:lora_requests_info", "job": "vllm", "instance": "a:8000", "running_lora_adapters": strings.Repeat("x", 1<<20),
			})
		},
		"a series twice": func(f *fakeAPI) { f.series = append(f.series, f.series[0], f.series[1]) },
		"control characters": func(f *fakeAPI) {
			f.series = append(f.series, map[string]string{"__name__": "vllm:new", "job": "vllm", "instance": "a:8000", "model_name": "\x1b[31m\"\\\n</script>"})
		},
		"an invalid metric name": func(f *fakeAPI) {
			f.series = append(f.series, map[string]string{"__name__": "vllm:a b{}\n", "job": "vllm", "instance": "a:8000"})
		},
	} {
		f := newFakeAPI(t)
		change(f)
		page := filepath.Join(t.TempDir(), "page.html")
		code, stdout, stderr := vllmctl(t, f.args("--html", page, "--rules", "builtin-raw")...)
		require.Equal(t, status.OK, code, "%s: %s", name, stderr)
		assert.Contains(t, stdout, "a:8000", name)
		assert.NotContains(t, stdout, "\x1b", name)
		data, err := os.ReadFile(page)
		require.NoError(t, err, name)
		assert.NotContains(t, string(data), "</script>", name)
	}
}

// Failed scrapes are failures; a time without anything is a gap and no failure.
func TestBacktestOfFailuresAndGaps(t *testing.T) {
	f := newFakeAPI(t)
	plain := f.sample
	down, away := historyBegin.Add(90*time.Minute), historyBegin.Add(2*time.Hour)
	f.sample = func(s map[string]string, at int64) (float64, bool) {
		when := time.Unix(at, 0)
		if !when.Before(down) && when.Before(down.Add(10*time.Minute)) {
			return 0, s["__name__"] == "up"
		}
		if !when.Before(away) && when.Before(away.Add(20*time.Minute)) {
			return 0, false
		}
		return plain(s, at)
	}
	code, stdout, stderr := vllmctl(t, f.args("--json")...)
	require.Equal(t, status.OK, code, stderr)
	r := document(t, stdout)
	c := r.Targets[0].Coverage
	assert.Equal(t, 40, c.Failed)
	assert.InDelta(t, 20*60, c.Gaps, 20)
	assert.InDelta(t, 100*60, c.Observed, 30)
	var unreachable []time.Time
	for _, e := range r.Targets[0].Episodes {
		if e.Condition == "unreachable" {
			unreachable = append(unreachable, e.From, e.To)
		}
	}
	require.Len(t, unreachable, 2, "the gap is not unreachable")
	assert.WithinRange(t, unreachable[0], down, down.Add(time.Minute))
	assert.WithinRange(t, unreachable[1], down.Add(10*time.Minute), down.Add(12*time.Minute))
}

// Another scrape interval in the middle of an hour is no gap.
func TestBacktestOfAScrapeIntervalThatChanges(t *testing.T) {
	f := newFakeAPI(t)
	plain, changed := f.sample, historyBegin.Unix()+5400
	f.sample = func(s map[string]string, at int64) (float64, bool) {
		v, has := plain(s, at)
		return v, has && (at >= changed || at%60 == 0)
	}
	code, stdout, stderr := vllmctl(t, f.args("--json")...)
	require.Equal(t, status.OK, code, stderr)
	c := document(t, stdout).Targets[0].Coverage
	assert.Equal(t, 30+360, c.Scrapes)
	assert.LessOrEqual(t, c.Gaps, 60.0)
	assert.InDelta(t, 7200, c.Observed, 90)
}

// A server of the warm-up that is gone has no data in the whole period.
func TestBacktestOfAServerThatEndsInTheWarmup(t *testing.T) {
	f := newFakeAPI(t)
	plain := f.sample
	f.sample = func(s map[string]string, at int64) (float64, bool) {
		v, _ := plain(s, at)
		return v, at < historyBegin.Unix()+1800
	}
	file := filepath.Join(t.TempDir(), "i.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`incidents: [{name: typo, from: 2026-10-20T02:00:00Z, to: 2026-10-20T02:10:00Z, targets: ["a:800"]}, {from: 2026-10-20T02:00:00Z, to: 2026-10-20T02:10:00Z, targets: [a]}]`), 0o600))
	code, stdout, stderr := vllmctl(t, f.args("--json", "--incidents", file)...)
	require.Equal(t, status.Problem, code, stderr)
	r := document(t, stdout)
	assert.Zero(t, r.Targets[0].Coverage.Scrapes)
	assert.InDelta(t, 7200, r.Targets[0].Coverage.Gaps, 1)
	assert.Contains(t, r.Notes, `the history has none of the targets of the incident "typo": a:800`)
	assert.NotContains(t, stdout, "of the incident \\\"incident 2")
}

// A server that gets another address is another server; the first one ends where it ended.
func TestBacktestOfAServerThatChangesItsInstance(t *testing.T) {
	f := newFakeAPI(t)
	moved := historyBegin.Add(2 * time.Hour).Unix()
	plain := f.sample
	for _, s := range slices.Clone(f.series) {
		other := maps.Clone(s)
		other["instance"] = "b:8000"
		f.series = append(f.series, other)
	}
	f.sample = func(s map[string]string, at int64) (float64, bool) {
		v, has := plain(s, at)
		return v, has && (s["instance"] == "b:8000") == (at >= moved)
	}
	f.listed = []map[string]string{f.series[0], f.series[len(f.series)/2]}
	code, stdout, stderr := vllmctl(t, f.args("--json")...)
	require.Equal(t, status.OK, code, stderr)
	r := document(t, stdout)
	require.Len(t, r.Targets, 2)
	for i, name := range []string{"a:8000", "b:8000"} {
		assert.Equal(t, name, r.Targets[i].Name)
		assert.Equal(t, 240, r.Targets[i].Coverage.Scrapes, name)
		assert.InDelta(t, 3600, r.Targets[i].Coverage.Gaps, 30, name)
		assert.Zero(t, r.Targets[i].Coverage.Failed, name)
	}
}

// The settings of a collector count: with a pool its verdicts are there as well.
func TestBacktestWithTheSettingsOfACollector(t *testing.T) {
	f := newFakeAPI(t)
	config := filepath.Join(t.TempDir(), "collector.yaml")
	require.NoError(t, os.WriteFile(config, []byte(`
receivers: {vllm: {endpoint: "http://a:8000"}}
processors: {vllm: {pool: {}, window: 2m, storage: file_storage}}
exporters: {debug: {}}
extensions: {file_storage: {directory: /nowhere}}
service:
  extensions: [file_storage]
  pipelines: {metrics: {receivers: [vllm], processors: [vllm], exporters: [debug]}}
`), 0o600))
	code, stdout, stderr := vllmctl(t, f.args("--json", "--config", config)...)
	require.Equal(t, status.OK, code, stderr)
	r := document(t, stdout)
	assert.NotEmpty(t, r.Pools)
	assert.Len(t, r.Targets, 1)
}
