package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/backtest/report"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/status"
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

func answerWith(code int, contentType, body string) func(http.ResponseWriter, *http.Request, int) bool {
	return func(w http.ResponseWriter, _ *http.Request, _ int) bool {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
		return true
	}
}
