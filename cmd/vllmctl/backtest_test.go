package main

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/status"
)

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
		"rules without names": {f.args("--rules", write("one.yaml", "groups: [{name: g, rules: [{alert: A, expr: 'vector(1)'}]}]")), "has a metric"},
		"no incidents":        {f.args("--incidents", filepath.Join(folder, "none.yaml")), "the incidents cannot be read"},
		"empty incidents":     {f.args("--incidents", write("empty.yaml", "")), "has no incident; write for example"},
		"no configuration":    {f.args("--config", filepath.Join(folder, "none.yaml")), "does not exist"},
		"page is a folder":    {f.args("--html", folder), "is not a file; write the name of a file"},
		"page is a device":    {f.args("--html", os.DevNull), "is not a file; write the name of a file"},
		"no version":          {f.args("--vllm-version", "banana"), "--vllm-version banana: write a version such as"},
		"no matchers":         {f.args("--match", "cluster"), `--match: "cluster" is not a list of matchers`},
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
	left, err := filepath.Glob(filepath.Join(folder, "*.part"))
	require.NoError(t, err)
	assert.Empty(t, left)
}

// Each fault of the server that stays gives one sentence that says what to do, without a
// control character of what the server sent.
func TestBacktestOfAServerThatRefuses(t *testing.T) {
	const asJSON = "application/json"
	for name, c := range map[string]struct {
		with func(http.ResponseWriter, *http.Request, int) bool
		want string
	}{
		"401":    {answerWith(401, "text/plain", "Unauthorized\x1b[31m"), "wants credentials (401)"},
		"403":    {answerWith(403, asJSON, `{"status":"error","errorType":"forbidden","error":"no tenant\u001b[2J"}`), "rejects these credentials (403): no tenant"},
		"404":    {answerWith(404, "text/html", "<html>not here"), "no query API at this address (404)"},
		"400":    {answerWith(400, asJSON, `{"status":"error","errorType":"bad_data","error":"invalid parameter"}`), "rejects the query (400): invalid parameter"},
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
	plain := content(t, whole)
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
			assert.Equal(t, plain, content(t, stdout))
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

// A closed output ends the run; it does not hang.
func TestBacktestWithAClosedOutput(t *testing.T) {
	f := newFakeAPI(t)
	code := run(t.Context(), f.args("--json"), strings.NewReader(""), closedPipe{}, io.Discard)
	assert.Equal(t, status.Failed, code)
}

// Where a rule cannot be evaluated, nobody is told that no alert would have fired.
func TestBacktestWithARuleThatCannotBeEvaluated(t *testing.T) {
	f := newFakeAPI(t)
	rules := filepath.Join(t.TempDir(), "rules.yaml")
	for expr, broken := range map[string]bool{
		// Two series of the right side match one of the left.
		`vllm:num_requests_running * on (job) {__name__=~"vllm:(num_requests_waiting|prompt_tokens_total)"} > 1e9`: true,
		`vllm:num_requests_running > 1e9`: false,
	} {
		require.NoError(t, os.WriteFile(rules, []byte("groups: [{name: g, rules: [{alert: A, expr: '"+expr+"'}]}]"), 0o600))
		code, stdout, stderr := vllmctl(t, f.args("--rules", rules)...)
		_, fired, _ := strings.Cut(stdout, "Alerts that would have fired\n")
		fired, _, _ = strings.Cut(fired, "\n\n")
		asJSON, document, _ := vllmctl(t, f.args("--rules", rules, "--json")...)
		assert.Equal(t, code, asJSON)
		if !broken {
			assert.Equal(t, status.OK, code, stderr)
			assert.Equal(t, "  none", fired)
			continue
		}
		assert.Equal(t, status.Failed, code)
		assert.Contains(t, stderr, "1 of the rules failed, so alerts may be missing from the report; the first: A: ")
		assert.NotContains(t, fired, "none")
		assert.Contains(t, fired, "unknown")
		assert.Contains(t, document, `"rule": "A"`)
	}
}

// An address with a password and a token is asked with both, and neither is in any output.
func TestBacktestPrintsNoSecretOfItsAddress(t *testing.T) {
	f := newFakeAPI(t)
	f.fail(func(_ http.ResponseWriter, r *http.Request, _ int) bool {
		user, password, _ := r.BasicAuth()
		assert.Equal(t, "joe:hunter2 sesame", user+":"+password+" "+r.FormValue("token"))
		return false
	})
	page := filepath.Join(t.TempDir(), "page.html")
	secret := strings.Replace(f.url, "://", "://joe:hunter2@", 1) + "/?token=sesame#sesame"
	for _, c := range []struct {
		address string
		want    status.Status
	}{{secret, status.OK}, {"http://joe:hunter2@127.0.0.1:1/?token=sesame", status.Failed}, {"http://joe:hunter2@no host/?token=sesame", status.Failed}, {"joe:hunter2@host/?token=sesame", status.Failed}, {"http://joe:hunter2@127.0.0.1:99999?token=sesame", status.Failed}} {
		for _, form := range []string{"--json", "--all"} {
			args := append(f.args(form, "--html", page), "--prometheus", c.address)
			code, stdout, stderr := vllmctl(t, args...)
			assert.Equal(t, c.want, code, stderr)
			written, _ := os.ReadFile(page)
			for _, word := range []string{"hunter2", "sesame", "joe"} {
				assert.NotContains(t, stdout+stderr+string(written), word, c.address)
			}
		}
	}
}
