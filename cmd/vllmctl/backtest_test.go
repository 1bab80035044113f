package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/vllmctl/backtest/report"
	"github.com/otelcol-vllm/otelcol-vllm/internal/vllmctl/status"
)

// fakeAPI is a server with the history of one vLLM server, which a test lets fail.
type fakeAPI struct {
	url string

	mu sync.Mutex
	// before answers in its place, where it returns true.
	before func(w http.ResponseWriter, r *http.Request, n int) bool
	// sample is the value at a time in seconds; gone series have none.
	sample func(series map[string]string, at int64) (float64, bool)
	series []map[string]string
	// listed are those that show the targets; nil is the first.
	listed  []map[string]string
	every   int64
	queries int
	spans   []string
}

// historyBegin is when the history begins; there are three hours of it.
var historyBegin = time.Date(2026, time.October, 20, 0, 0, 0, 0, time.UTC)

func newFakeAPI(t *testing.T) *fakeAPI {
	t.Helper()
	f := &fakeAPI{every: 15}
	for _, name := range []string{"vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:generation_tokens_total", "vllm:prompt_tokens_total"} {
		f.series = append(f.series, map[string]string{"__name__": name, "job": "vllm", "instance": "a:8000", "model_name": "m", "engine": "0"})
	}
	f.series = append(f.series,
		map[string]string{"__name__": "up", "job": "vllm", "instance": "a:8000"},
		map[string]string{"__name__": "process_start_time_seconds", "job": "vllm", "instance": "a:8000"})
	f.sample = func(series map[string]string, at int64) (float64, bool) {
		since := float64(at - historyBegin.Unix())
		switch series["__name__"] {
		case "up":
			return 1, true
		case "process_start_time_seconds":
			return float64(historyBegin.Unix() - 1000), true
		case "vllm:num_requests_running":
			return 4, true
		case "vllm:num_requests_waiting":
			return 0, true
		case "vllm:prompt_tokens_total":
			return 1000 * since, true
		}
		return 100 * since, true
	}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	f.url = server.URL
	return f
}

func (f *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// A server notices that its client is gone only after it has read the request.
	_ = r.ParseForm()
	f.mu.Lock()
	f.queries++
	n, before := f.queries, f.before
	f.mu.Unlock()
	if before != nil && before(w, r, n) {
		return
	}
	f.answer(w, r)
}

func (f *fakeAPI) answer(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	f.mu.Lock()
	defer f.mu.Unlock()
	if strings.HasSuffix(r.URL.Path, "/series") {
		listed := f.listed
		if listed == nil {
			listed = f.series[:1]
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"status": "success", "data": listed})
		return
	}
	query := r.FormValue("query")
	open := strings.LastIndexByte(query, '[')
	length, _ := strconv.ParseInt(strings.TrimSuffix(query[open+1:], "ms]"), 10, 64)
	end, _ := strconv.ParseFloat(r.FormValue("time"), 64)
	to := int64(end*1000 + 0.5)
	f.spans = append(f.spans, query[open:])
	var result []any
	for _, s := range f.series {
		if strings.HasPrefix(query, "ALERTS") {
			break
		}
		if strings.Contains(query, "instance=") && !strings.Contains(query, strconv.Quote(s["instance"])) {
			continue
		}
		var values []any
		for at := (to - length) / 1000 / f.every * f.every; at*1000 <= to; at += f.every {
			if at*1000 < to-length || at < historyBegin.Unix() || at > historyBegin.Add(3*time.Hour).Unix() {
				continue
			}
			if v, has := f.sample(s, at); has {
				values = append(values, []any{float64(at), number(v)})
			}
		}
		if len(values) > 0 {
			result = append(result, map[string]any{"metric": s, "values": values})
		}
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"status": "success", "data": map[string]any{"resultType": "matrix", "result": result}})
}

func number(v float64) string {
	switch {
	case math.IsNaN(v):
		return "NaN"
	case math.IsInf(v, 0):
		return fmt.Sprintf("%+v", v)
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

func (f *fakeAPI) fail(with func(w http.ResponseWriter, r *http.Request, n int) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before = with
}

// args are those of two hours after one of warm-up.
func (f *fakeAPI) args(more ...string) []string {
	return append([]string{
		"backtest", "--prometheus", f.url, "--warmup", "1h",
		"--from", historyBegin.Add(time.Hour).Format(time.RFC3339), "--to", historyBegin.Add(3 * time.Hour).Format(time.RFC3339),
	}, more...)
}

func vllmctl(t *testing.T, args ...string) (code status.Status, stdout, stderr string) {
	t.Helper()
	return vllmctlIn(t.Context(), args...)
}

func vllmctlIn(ctx context.Context, args ...string) (code status.Status, stdout, stderr string) {
	var out, problems bytes.Buffer
	code = run(ctx, args, strings.NewReader(""), &out, &problems)
	return code, out.String(), problems.String()
}

func document(t *testing.T, text string) report.Report {
	t.Helper()
	var r report.Report
	require.NoError(t, json.Unmarshal([]byte(text), &r), text)
	return r
}

func TestBacktestOfAQuietHistory(t *testing.T) {
	f := newFakeAPI(t)
	code, stdout, stderr := vllmctl(t, f.args("--json")...)
	require.Equal(t, status.OK, code, stderr)
	r := document(t, stdout)
	assert.Equal(t, 1, r.Version)
	require.Len(t, r.Targets, 1)
	assert.Equal(t, "a:8000", r.Targets[0].Name)
	assert.Equal(t, 480, r.Targets[0].Coverage.Scrapes, "two hours without their last moment")
	assert.InDelta(t, 7200, r.Targets[0].Coverage.Observed, 30)
	assert.Contains(t, stderr, "100 % of the history judged")
	code, stdout, _ = vllmctl(t, f.args()...)
	require.Equal(t, status.OK, code)
	assert.Contains(t, stdout, "a:8000")
	assert.Contains(t, stdout, "nothing to report")
	assert.NotContains(t, stdout, "\x1b")
}

// Each mistake of the command line gives one sentence that names the flag, and nothing is
// asked.
func TestBacktestMistakesOfTheCommandLine(t *testing.T) {
	f := newFakeAPI(t)
	folder := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no server":           {[]string{"backtest"}, "--prometheus is missing"},
		"no URL":              {[]string{"backtest", "--prometheus", "s3cret@host"}, "--prometheus is not a URL"},
		"other scheme":        {[]string{"backtest", "--prometheus", "ftp://host"}, "--prometheus is not a URL"},
		"from after to":       {f.args("--from", "2026-10-21T00:00:00Z", "--to", "2026-10-20T00:00:00Z"), "--from (2026-10-21T00:00:00Z) is not before --to"},
		"future":              {f.args("--from", "2999-10-21T00:00:00Z", "--to", "2999-10-22T00:00:00Z"), "is in the future"},
		"no time":             {f.args("--from", "yesterday"), `--from: "yesterday" is not a time`},
		"no duration":         {f.args("--from", "-24x"), `--from: "-24x" is not a duration`},
		"no zone":             {f.args("--time-zone", "Mars"), `--time-zone: "Mars" is not known`},
		"negative warm-up":    {f.args("--warmup", "-1h"), "--warmup must not be negative"},
		"no readers":          {f.args("--parallel", "0"), "must be at least 1"},
		"small answers":       {f.args("--max-answer", "1B"), "--max-answer: 1B is too small"},
		"no size":             {f.args("--max-answer", "many"), "--max-answer: "},
		"no rules":            {f.args("--rules", filepath.Join(folder, "none.yaml")), "rules: "},
		"bad rules":           {f.args("--rules", write("bad.yaml", "groups: [{name: g, rules: [{alert: A, expr: 'sum('}]}]")), "rules: "},
		"rules without names": {f.args("--rules", write("one.yaml", "groups: [{name: g, rules: [{alert: A, expr: 'vector(1)'}]}]")), "has no rule with a metric"},
		"no incidents":        {f.args("--incidents", filepath.Join(folder, "none.yaml")), "the incidents cannot be read"},
		"empty incidents":     {f.args("--incidents", write("empty.yaml", "")), "has no incident; write for example"},
		"no configuration":    {f.args("--config", filepath.Join(folder, "none.yaml")), "does not exist"},
		"page in no folder":   {f.args("--html", filepath.Join(folder, "none", "page.html")), "--html: "},
		"an argument":         {f.args("x"), "unknown command"},
	} {
		code, stdout, stderr := vllmctl(t, c.args...)
		assert.Equal(t, status.Failed, code, name)
		assert.Contains(t, stderr, c.want, name)
		assert.Empty(t, stdout, name)
		assert.NotContains(t, stderr, "s3cret", name)
	}
	assert.Zero(t, f.queries)
	left, err := filepath.Glob(filepath.Join(folder, ".vllmctl*"))
	require.NoError(t, err)
	assert.Empty(t, left)
}

func answerWith(code int, contentType, body string) func(http.ResponseWriter, *http.Request, int) bool {
	return func(w http.ResponseWriter, _ *http.Request, _ int) bool {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
		return true
	}
}

// Each fault of the server that stays gives one sentence that says what to do, without a
// control character of what the server sent.
func TestBacktestOfAServerThatRefuses(t *testing.T) {
	const asJSON = "application/json"
	for name, c := range map[string]struct {
		with func(http.ResponseWriter, *http.Request, int) bool
		want string
	}{
		"401":    {answerWith(401, "text/plain", "Unauthorized\x1b[31m"), "asks for credentials (401)"},
		"403":    {answerWith(403, asJSON, `{"status":"error","errorType":"forbidden","error":"no tenant\u001b[2J"}`), "refuses these credentials (403): no tenant"},
		"404":    {answerWith(404, "text/html", "<html>not here"), "no query API at this address (404)"},
		"400":    {answerWith(400, asJSON, `{"status":"error","errorType":"bad_data","error":"invalid parameter"}`), "refuses the query (400): invalid parameter"},
		"a page": {answerWith(200, "text/html; charset=utf-8", "<html>Sign in"), "is text/html; charset=utf-8 and not JSON"},
		"elsewhere": {func(w http.ResponseWriter, r *http.Request, _ int) bool {
			http.Redirect(w, r, "http://203.0.113.1/", http.StatusFound)
			return true
		}, "redirects to another host (302)"},
		"a failure in 200": {
			answerWith(200, asJSON, `{"status":"error","errorType":"internal","error":"broken"}`), "broken",
		},
		"a number": {answerWith(200, asJSON, `7`), "not complete JSON"},
	} {
		f := newFakeAPI(t)
		f.fail(c.with)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		if name == "a number" {
			// It is asked again, which takes longer than a test.
			ctx, cancel = context.WithTimeout(t.Context(), 300*time.Millisecond)
			c.want = "interrupted"
		}
		code, stdout, stderr := vllmctlIn(ctx, f.args()...)
		cancel()
		assert.Equal(t, status.Failed, code, name)
		assert.Contains(t, stderr, c.want, name)
		assert.NotContains(t, stderr, "\x1b", name)
		assert.Empty(t, stdout, name)
	}
}

// A server that refuses many samples, is busy for a while or cuts connections is asked again,
// for shorter periods where that helps, and the result is that of a server without faults.
func TestBacktestOfAServerThatIsBusyOrRefusesMuch(t *testing.T) {
	tooMany := `{"status":"error","errorType":"execution","error":"query processing would load too many samples into memory in query execution"}`
	long := func(r *http.Request) bool {
		query := r.FormValue("query")
		open := strings.LastIndexByte(query, '[')
		length, _ := strconv.Atoi(strings.TrimSuffix(query[open+1:], "ms]"))
		return open >= 0 && length > 15*60*1000
	}
	_, whole, _ := vllmctl(t, newFakeAPI(t).args("--json")...)
	plain := told(t, whole)
	for _, c := range []struct {
		name string
		with func(w http.ResponseWriter, r *http.Request, n int) bool
		args []string
	}{
		{"422", func(w http.ResponseWriter, r *http.Request, n int) bool {
			return long(r) && answerWith(422, "application/json", tooMany)(w, r, n)
		}, nil},
		{"504", func(w http.ResponseWriter, r *http.Request, n int) bool {
			return long(r) && answerWith(504, "text/html", "<html>gateway timeout")(w, r, n)
		}, nil},
		{"503 now and then", func(w http.ResponseWriter, r *http.Request, n int) bool {
			return n%4 == 1 && answerWith(503, "text/plain", "come back later")(w, r, n)
		}, nil},
		{"429 now and then", func(w http.ResponseWriter, r *http.Request, n int) bool {
			return n%5 == 2 && answerWith(429, "text/plain", "slow down")(w, r, n)
		}, nil},
		{"cut now and then", func(w http.ResponseWriter, _ *http.Request, n int) bool {
			if n%4 != 3 {
				return false
			}
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "100000")
			_, _ = io.WriteString(w, `{"status":"success","data":{"resultType":"matrix","result":[`)
			return true
		}, nil},
		{"answers that are too large", nil, []string{"--max-answer", "64KiB"}},
		{"slow", func(_ http.ResponseWriter, r *http.Request, _ int) bool {
			if !long(r) {
				return false
			}
			select { // It never finishes.
			case <-r.Context().Done():
			case <-time.After(5 * time.Second):
			}
			return true
		}, []string{"--timeout", "200ms"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newFakeAPI(t)
			f.fail(c.with)
			code, stdout, stderr := vllmctl(t, f.args(append(c.args, "--json", "--parallel", "2")...)...)
			require.Equal(t, status.OK, code, stderr)
			r := document(t, stdout)
			assert.Equal(t, 480, r.Targets[0].Coverage.Scrapes)
			assert.InDelta(t, 7200, r.Targets[0].Coverage.Observed, 30)
			assert.Equal(t, plain, told(t, stdout))
		})
	}
}

// A drip of a byte now and then ends at the deadline.
func TestBacktestOfAServerThatDrips(t *testing.T) {
	f := newFakeAPI(t)
	f.fail(func(w http.ResponseWriter, r *http.Request, _ int) bool {
		w.Header().Set("Content-Type", "application/json")
		for r.Context().Err() == nil {
			_, _ = io.WriteString(w, " ")
			_ = http.NewResponseController(w).Flush()
			time.Sleep(5 * time.Millisecond)
		}
		return true
	})
	began := time.Now()
	code, _, stderr := vllmctl(t, f.args("--timeout", "200ms")...)
	assert.Equal(t, status.Failed, code)
	assert.Contains(t, stderr, "did not answer within the deadline")
	assert.Less(t, time.Since(began), 20*time.Second)
}

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
		"a name that is no metric": func(f *fakeAPI) {
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

// A run that is interrupted in the middle says so and how to go on; the next run reads only
// the rest, and its result is that of a run without a break.
func TestBacktestGoesOnWhereItWasInterrupted(t *testing.T) {
	f := newFakeAPI(t)
	code, whole, stderr := vllmctl(t, f.args("--json")...)
	require.Equal(t, status.OK, code, stderr)
	all := f.queries

	resume := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	f.queries = 0
	f.fail(func(_ http.ResponseWriter, r *http.Request, n int) bool {
		if n < 5 {
			return false
		}
		cancel()
		<-r.Context().Done()
		return true
	})
	code, stdout, stderr := vllmctlIn(ctx, f.args("--json", "--resume", resume, "--parallel", "1")...)
	require.Equal(t, status.Failed, code)
	assert.Empty(t, stdout)
	assert.Contains(t, stderr, "the command was interrupted; 3 parts of the history are kept: the same command goes on from there")

	f.fail(nil)
	f.queries = 0
	code, stdout, stderr = vllmctl(t, f.args("--json", "--resume", resume)...)
	require.Equal(t, status.OK, code, stderr)
	assert.Equal(t, all-3, f.queries)
	assert.Equal(t, told(t, whole), told(t, stdout))

	// Files that are damaged are read again.
	files, err := filepath.Glob(filepath.Join(resume, "*", "*", "*.zst"))
	require.NoError(t, err)
	require.Len(t, files, all-1)
	for i, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		switch i % 4 {
		case 0:
			data = data[:len(data)/2]
		case 1:
			data[len(data)/2] ^= 0x55
		case 2:
			data = nil
		case 3:
			data = []byte("<html>")
		}
		require.NoError(t, os.WriteFile(file, data, 0o600))
	}
	f.queries = 0
	code, stdout, stderr = vllmctl(t, f.args("--json", "--resume", resume)...)
	require.Equal(t, status.OK, code, stderr)
	assert.Equal(t, all, f.queries)
	assert.Equal(t, told(t, whole), told(t, stdout))

	// Without a folder nothing can be kept, and the sentence says what to do.
	ctx, cancel = context.WithCancel(t.Context())
	cancel()
	code, _, stderr = vllmctlIn(ctx, f.args()...)
	assert.Equal(t, status.Failed, code)
	assert.Contains(t, stderr, "nothing was kept: with --resume default another run goes on")
}

// told is a document without how it was read.
func told(t *testing.T, text string) report.Report {
	t.Helper()
	r := document(t, text)
	r.Read, r.Server = report.Read{}, ""
	return r
}

// Two runs at once share a folder.
func TestTwoBacktestsShareAFolder(t *testing.T) {
	f := newFakeAPI(t)
	resume := t.TempDir()
	var wg sync.WaitGroup
	results := make([]string, 3)
	for i := range results {
		wg.Go(func() {
			code, stdout, stderr := vllmctlIn(t.Context(), f.args("--json", "--resume", resume, "--rules", "builtin-raw")...)
			assert.Equal(t, status.OK, code, stderr)
			results[i] = stdout
		})
	}
	wg.Wait()
	for _, r := range results[1:] {
		assert.Equal(t, told(t, results[0]), told(t, r))
	}
	left, err := filepath.Glob(filepath.Join(resume, "vllmctl-rules-*"))
	require.NoError(t, err)
	assert.Empty(t, left)
}

// A folder that cannot be written is refused at once. One that becomes full or unwritable
// changes nothing but what is kept.
func TestBacktestWithAFolderThatCannotBeWritten(t *testing.T) {
	f := newFakeAPI(t)
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	code, _, stderr := vllmctl(t, f.args("--resume", filepath.Join(file, "folder"))...)
	assert.Equal(t, status.Failed, code)
	assert.Contains(t, stderr, "the folder of --resume cannot be used")

	if runtime.GOOS != "linux" {
		t.Skip("needs a file in the place of a folder")
	}
	resume := t.TempDir()
	code, _, stderr = vllmctl(t, f.args("--resume", resume)...)
	require.Equal(t, status.OK, code, stderr)
	folders, err := filepath.Glob(filepath.Join(resume, "*", "*"))
	require.NoError(t, err)
	require.NotEmpty(t, folders)
	for _, folder := range folders {
		// Root may write everywhere, so a file stands where the folder should be.
		require.NoError(t, os.RemoveAll(folder))
		require.NoError(t, os.WriteFile(folder, nil, 0o400))
	}
	code, stdout, stderr := vllmctl(t, f.args("--resume", resume, "--json")...)
	require.Equal(t, status.OK, code, stderr)
	r := document(t, stdout)
	assert.True(t, slices.ContainsFunc(r.Notes, func(n string) bool { return strings.Contains(n, "could not be kept for another run") }), r.Notes)
	assert.Equal(t, 480, r.Targets[0].Coverage.Scrapes)
}

// A server whose output nobody reads any more is no reason to hang.
func TestBacktestWithAClosedOutput(t *testing.T) {
	f := newFakeAPI(t)
	code := run(t.Context(), f.args("--json"), strings.NewReader(""), closedPipe{}, io.Discard)
	assert.Equal(t, status.Failed, code)
}
