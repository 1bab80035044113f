package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/lint"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/status"
)

// runLint carries out a command line.
func runLint(t *testing.T, stdin string, args ...string) (code status.Status, stdout, stderr string) {
	t.Helper()
	var out, diagnostics bytes.Buffer
	code = run(t.Context(), append([]string{"lint"}, args...), strings.NewReader(stdin), &out, &diagnostics)
	return code, out.String(), diagnostics.String()
}

const (
	wrongRules   = "groups:\n- name: a\n  rules:\n  - alert: Full\n    expr: rate(vllm:num_preemptions[5m]) > 1\n    for: 5m\n"
	warningRules = "groups:\n- name: a\n  rules:\n  - alert: Full\n    expr: vllm:gpu_cache_usage_perc > 0.9\n    for: 5m\n"
	rightRules   = "groups:\n- name: a\n  rules:\n  - alert: Queue\n    expr: vllm:num_requests_waiting > 9\n    for: 5m\n"
)

func file(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func TestTheExitStatusOfLintSaysWhatWasFound(t *testing.T) {
	wrong, warning, right := file(t, "wrong.yaml", wrongRules), file(t, "warning.yaml", warningRules), file(t, "right.yaml", rightRules)
	other := file(t, "values.yaml", "replicas: 1\n")
	for name, c := range map[string]struct {
		args []string
		want status.Status
	}{
		"right":                          {[]string{right}, status.OK},
		"wrong":                          {[]string{right, wrong}, status.Problem},
		"a warning":                      {[]string{warning}, status.OK},
		"a warning, strict":              {[]string{"--strict", warning}, status.Warning},
		"wrong, strict":                  {[]string{"--strict", warning, wrong}, status.Problem},
		"disabled":                       {[]string{"--strict", "--disable", "removed-metric", warning}, status.OK},
		"another format":                 {[]string{right, other}, status.Failed},
		"another format and wrong":       {[]string{other, wrong}, status.Problem},
		"no such file":                   {[]string{filepath.Join(t.TempDir(), "x.yaml")}, status.Failed},
		"a folder with other files":      {[]string{filepath.Dir(right)}, status.OK},
		"a folder without rules":         {[]string{filepath.Dir(other)}, status.Failed},
		"an empty folder":                {[]string{t.TempDir()}, status.Failed},
		"no argument":                    {nil, status.Failed},
		"an unknown flag":                {[]string{"--no-such-flag", right}, status.Failed},
		"an unknown code":                {[]string{"--disable", "no-such-code", right}, status.Failed},
		"an unknown spelling":            {[]string{"--spelling", "camel", right}, status.Failed},
		"an unknown stable spelling":     {[]string{"--stable-names", "wire", right}, status.Failed},
		"no version":                     {[]string{"--vllm-version", "latest", right}, status.Failed},
		"two sources":                    {[]string{"--server", "http://a", "--prometheus", "http://b", right}, status.Failed},
		"a server that is not there":     {[]string{"--server", "http://127.0.0.1:1", right}, status.Failed},
		"a Prometheus that is not there": {[]string{"--prometheus", "http://127.0.0.1:1", right}, status.Failed},
		"an empty Prometheus":            {[]string{"--prometheus", "", right}, status.Failed},
		"two forms of output":            {[]string{"--json", "--sarif", right}, status.Failed},
		"an empty server":                {[]string{"--server", "", right}, status.Failed},
		"an empty version":               {[]string{"--vllm-version", "", right}, status.Failed},
		"a dry run of nothing":           {[]string{"--dry-run", right}, status.Failed},
		"a dry run":                      {[]string{"--dry-run", "--fix", right}, status.OK},
		"a removed name":                 {[]string{"--vllm-version", "0.20.0", warning}, status.Problem},
		"a name that is still there":     {[]string{"--strict", "--vllm-version", "0.10.0", warning}, status.OK},
	} {
		code, stdout, stderr := runLint(t, "", c.args...)
		assert.Equal(t, c.want, code, "%s: %s%s", name, stdout, stderr)
		for _, text := range []string{stdout, stderr} {
			assert.NotContains(t, text, "\x1b", name)
			assert.NotContains(t, text, "panic", name)
		}
	}
}

func TestTheOutputOfLintIsThatOfACompiler(t *testing.T) {
	path := file(t, "wrong.yaml", wrongRules)
	code, stdout, stderr := runLint(t, "", path)
	assert.Equal(t, status.Problem, code)
	assert.Empty(t, stderr)
	assert.Regexp(t, `^`+path+`:5:16: error: a/Full: Current servers expose .* \[missing-total\]\n1 expression in 1 file: 1 error, 0 warnings, 0 remarks\. --fix replaces 1; --diff shows them\.\n$`, stdout)

	_, stdout, _ = runLint(t, "", "--verbose", path)
	assert.Contains(t, stdout, "\n      expr: rate(vllm:num_preemptions[5m]) > 1\n                 ^~~~~~~~~~~~~~~~~~~~\n")

	code, stdout, _ = runLint(t, wrongRules, "-")
	assert.Equal(t, status.Problem, code)
	assert.Contains(t, stdout, "-:5:16: error")
}

// The texts of files do not reach a terminal as they are.
func TestControlCharactersOfAFileAreNotPrinted(t *testing.T) {
	text := "groups:\n- name: \"a\\e[31m\\r\"\n  rules:\n  - record: \"x\\a:y\"\n    expr: \"sum(vllm:prompt_tokens_total{a=\\\"\\e[2J\\u202e\\\"})\"\n"
	_, stdout, stderr := runLint(t, text, "--verbose", "-")
	for _, forbidden := range []string{"\x1b", "\r", "\a", "\u202e"} {
		assert.NotContains(t, stdout+stderr, forbidden)
	}
	assert.Contains(t, stdout, "counter-without-rate")
}

func TestTheJSONOfLintIsOneDocument(t *testing.T) {
	path := file(t, "wrong.yaml", wrongRules)
	code, stdout, _ := runLint(t, "", "--json", path, filepath.Dir(path)+"/nothing.yaml")
	assert.Equal(t, status.Problem, code)
	var report lint.Report
	decoder := json.NewDecoder(strings.NewReader(stdout))
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(&report))
	_, err := decoder.Token()
	require.ErrorIs(t, err, io.EOF)
	assert.Equal(t, 1, report.Version)
	require.Len(t, report.Files, 2)
	require.Len(t, report.Files[0].Findings, 1)
	f := report.Files[0].Findings[0]
	assert.Equal(t, [4]int{5, 16, 5, 36}, [4]int{f.Line, f.Column, f.EndLine, f.EndColumn})
	assert.True(t, f.Fixable)
	assert.NotEmpty(t, report.Files[1].Error)

	_, stdout, _ = runLint(t, "", "--json", file(t, "a\u202e\u009b.yaml", strings.Replace(wrongRules, "num_preemptions[", "num_preemptions{a=\"\u0085\"}[", 1)))
	for _, forbidden := range []string{"\u0085", "\u009b", "\u202e"} {
		assert.NotContains(t, stdout, forbidden, "%q", forbidden)
	}
	assert.Contains(t, stdout, `a\u202e\u009b.yaml`, "the name is the same for a program")

	_, stdout, _ = runLint(t, "", "--codes", "--json")
	assert.True(t, json.Valid([]byte(stdout)))
	_, stdout, _ = runLint(t, "", "--codes")
	assert.Contains(t, stdout, "missing-total ")
	assert.Equal(t, len(lint.Rules()), strings.Count(stdout, "\n"))
}

// The values are those that the specification of SARIF asks for (3.13, 3.20, 3.27, 3.30).
func TestSARIFHasEachFindingAtItsPlace(t *testing.T) {
	path := file(t, "a b.yaml", wrongRules)
	code, stdout, _ := runLint(t, "", "--sarif", path, file(t, "warning.yaml", warningRules), path+"x")
	assert.Equal(t, status.Problem, code)
	type message struct{ Text string }
	var document struct {
		Schema  string `json:"$schema"`
		Version string
		Runs    []struct {
			ColumnKind string
			Tool       struct {
				Driver struct {
					Name, Version, InformationURI string
					Rules                         []struct {
						ID                     string
						ShortDescription, Help message
					}
				}
			}
			Invocations []struct {
				ExecutionSuccessful        *bool
				ToolExecutionNotifications []struct{ Message message }
			}
			Results []struct {
				RuleID, Level string
				Message       message
				Locations     []struct {
					PhysicalLocation struct {
						ArtifactLocation struct{ URI string }
						Region           struct{ StartLine, StartColumn, EndLine, EndColumn int }
					}
				}
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &document))
	assert.Equal(t, "2.1.0", document.Version)
	require.Len(t, document.Runs, 1)
	one := document.Runs[0]
	assert.Equal(t, "unicodeCodePoints", one.ColumnKind)
	assert.Len(t, one.Tool.Driver.Rules, len(lint.Rules()))
	require.Len(t, one.Results, 2)
	first := one.Results[0]
	assert.Equal(t, []string{"missing-total", "error"}, []string{first.RuleID, first.Level})
	assert.Contains(t, first.Message.Text, "a/Full: Current servers")
	place := first.Locations[0].PhysicalLocation
	assert.Equal(t, strings.ReplaceAll(path, " ", "%20"), place.ArtifactLocation.URI)
	assert.Equal(t, [4]int{5, 16, 5, 36}, [4]int{place.Region.StartLine, place.Region.StartColumn, place.Region.EndLine, place.Region.EndColumn})
	assert.Equal(t, "warning", one.Results[1].Level)
	require.NotNil(t, one.Invocations[0].ExecutionSuccessful)
	assert.False(t, *one.Invocations[0].ExecutionSuccessful, "a file could not be read")
	require.Len(t, one.Invocations[0].ToolExecutionNotifications, 1)

	code, stdout, _ = runLint(t, "", "--sarif", file(t, "right.yaml", rightRules))
	assert.Equal(t, status.OK, code)
	assert.Contains(t, stdout, `"results": []`, "an empty list is what tells that there is nothing")
	assert.Contains(t, stdout, `"executionSuccessful": true`)
}

func TestFixAndDiff(t *testing.T) {
	path := file(t, "wrong.yaml", wrongRules)
	fixed := strings.Replace(wrongRules, "num_preemptions[", "num_preemptions_total[", 1)
	for _, args := range [][]string{{"--diff"}, {"--fix", "--dry-run"}, {"--fix", "--diff"}} {
		code, stdout, stderr := runLint(t, "", append(args, path)...)
		assert.Equal(t, status.Problem, code)
		assert.Contains(t, stdout, "\n-    expr: rate(vllm:num_preemptions[5m]) > 1\n+    expr: rate(vllm:num_preemptions_total[5m]) > 1\n")
		assert.True(t, strings.HasPrefix(stdout, "--- "+path))
		assert.Contains(t, stderr, "[missing-total]", "the findings are diagnostics beside a diff")
		now, _ := os.ReadFile(path)
		assert.Equal(t, wrongRules, string(now), "nothing is written")
	}
	code, stdout, _ := runLint(t, "", "--fix", path)
	assert.Equal(t, status.OK, code, "what was written is no problem any more")
	assert.Contains(t, stdout, "fixed: ")
	assert.Contains(t, stdout, "1 finding replaced.")
	now, _ := os.ReadFile(path)
	assert.Equal(t, fixed, string(now))
	code, stdout, _ = runLint(t, "", "--fix", path)
	assert.Equal(t, status.OK, code)
	assert.NotContains(t, stdout, "fixed")
	code, _, _ = runLint(t, wrongRules, "--fix", "-")
	assert.Equal(t, status.Problem, code, "standard input stays")
}

func TestLintComparesWithAServer(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer x" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if r.URL.Path == "/version" {
			_, _ = w.Write([]byte(`{"version":"0.10.0"}`))
			return
		}
		_, _ = w.Write([]byte("# TYPE vllm:gpu_cache_usage_perc gauge\nvllm:gpu_cache_usage_perc{engine=\"0\"} 0\n"))
	}))
	t.Cleanup(server.Close)
	rules := file(t, "a.yaml", warningRules)
	code, stdout, stderr := runLint(t, "", "--strict", "--server", server.URL, "--header", "Authorization: Bearer x", rules)
	assert.Equal(t, status.OK, code, stdout+stderr)
	code, stdout, _ = runLint(t, "", "--server", server.URL, "--header", "Authorization: Bearer x", file(t, "b.yaml", rightRules))
	assert.Equal(t, status.Problem, code)
	assert.Contains(t, stdout, "[not-exposed]")
	code, _, stderr = runLint(t, "", "--server", server.URL, rules)
	assert.Equal(t, status.Failed, code)
	assert.Contains(t, stderr, "401")
	assert.NotContains(t, stderr, "Bearer")
}

func TestAClosedOutputEndsLint(t *testing.T) {
	path := file(t, "wrong.yaml", wrongRules)
	for _, args := range [][]string{{path}, {"--json", path}, {"--diff", path}, {"--codes"}} {
		assert.Equal(t, status.Failed, run(t.Context(), append([]string{"lint"}, args...), strings.NewReader(""), closedPipe{}, io.Discard), args)
	}
}

// endless is an input that never ends.
type endless struct{ done <-chan struct{} }

func (e endless) Read([]byte) (int, error) {
	<-e.done
	return 0, io.EOF
}

func TestAnInterruptEndsLint(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	var out, diagnostics bytes.Buffer
	begin := time.Now()
	code := run(ctx, []string{"lint", "-"}, endless{t.Context().Done()}, &out, &diagnostics)
	assert.Equal(t, status.Failed, code)
	assert.Contains(t, out.String(), "interrupted")
	assert.Less(t, time.Since(begin), 10*time.Second)
}

// What a server says, and a password in an address, must not reach a terminal as they are.
func TestLintShowsNoPasswordAndNoControlCharactersOfAServer(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = w.Write([]byte(`{"status":"error","error":"no \u001b[2J tenant"}`))
	}))
	t.Cleanup(server.Close)
	address := strings.Replace(server.URL, "://", "://me:hunter2@", 1) + "/?token=hunter2"
	for _, flag := range []string{"--server", "--prometheus"} {
		code, stdout, stderr := runLint(t, rightRules, flag, address, "-")
		assert.Equal(t, status.Failed, code)
		assert.Contains(t, stderr, "tenant", flag)
		assert.NotContains(t, stdout+stderr, "hunter2", flag)
		assert.NotContains(t, stderr, "\x1b", flag)
		_, _, stderr = runLint(t, rightRules, flag, strings.TrimPrefix(server.URL, "http://"), "-")
		assert.Contains(t, stderr, "422", "an address without a scheme is http, as for check and top")
	}
}
