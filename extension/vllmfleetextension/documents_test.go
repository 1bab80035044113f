package vllmfleetextension

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/fleet"
	"github.com/otelcol-vllm/otelcol-vllm/internal/wording"
)

// document returns the body of an answer of 200.
func (a *asked) document(path string) map[string]any {
	a.t.Helper()
	w := a.get(path)
	require.Equal(a.t, http.StatusOK, w.Code, "%s: %s", path, w.Body)
	var got map[string]any
	require.NoError(a.t, json.Unmarshal(w.Body.Bytes(), &got))
	return got
}

func TestTheFleetDocument(t *testing.T) {
	a := ask(
		t, says("b", "healthy"), says("a", "healthy"),
		says("z", "stalled", func(e *fleet.Engine) {
			e.Numbers[fleet.Running], e.Numbers[fleet.KV], e.Numbers[fleet.FirstTokenUsual], e.Numbers[fleet.TokenGap] = 3, 0.5, 1e-7, math.Inf(1)
			e.Failure, e.New = "timeout", true
		}),
	)
	a.pools = []fleet.Pool{{Key: "key of m", Name: "m", Attributes: map[string]string{"model_name": "m"}, Engines: 3, Diagnosis: fleet.Diagnosis{Condition: "degraded", Severity: 2, Since: noon.In(time.FixedZone("", 3600))}}}
	a.budgets = []fleet.Budget{{Objective: "ttft", Server: "z", Model: "m", Remaining: math.NaN(), Burn: -0.5}}
	got := a.document("/api/v1/fleet")
	assert.EqualValues(t, 1, got["version"])
	assert.Equal(t, "2026-03-01T12:00:07Z", got["at"])
	assert.Equal(t, false, got["collector_suspect"])
	engines := got["engines"].([]any)
	require.Len(t, engines, 3)
	for n, name := range []string{"z", "a", "b"} {
		assert.Equal(t, name, engines[n].(map[string]any)["server"], "the worst first")
	}
	z := engines[0].(map[string]any)
	assert.InDelta(t, 3, z["running"], 0)
	assert.InDelta(t, 1e-7, z["time_to_first_token_usual_seconds"], 0)
	for _, name := range []string{"waiting", "time_to_first_token_mean_seconds", "inter_token_latency_mean_seconds"} {
		value, has := z[name]
		assert.True(t, has && value == nil, "%s is null: %v", name, value)
	}
	assert.Equal(t, "stalled", z["fitness"])
	assert.Equal(t, false, z["serve"])
	assert.Equal(t, "timeout", z["scrape_failure"])
	assert.Equal(t, "vllm", z["processor"])
	pool := got["pools"].([]any)[0].(map[string]any)
	assert.Equal(t, "2026-03-01T12:00:07Z", pool["since"])
	assert.Equal(t, map[string]any{"model_name": "m"}, pool["attributes"])
	assert.Equal(t, []any{true, false}, []any{z["new"], engines[1].(map[string]any)["new"]})
	assert.Equal(t, map[string]any{"objective": "ttft", "server": "z", "model": "m", "remaining_ratio": nil, "burn_rate": -0.5}, got["budgets"].([]any)[0])

	a = ask(t)
	assert.JSONEq(t, `{"version":1,"at":"2026-03-01T12:00:07Z","collector_suspect":false,"engines":[],"pools":[],"budgets":[]}`, a.get("/api/v1/fleet").Body.String())
}

// stalledWords is a detail.
func stalledWords() *fleet.Detail {
	return &fleet.Detail{
		Words:    wording.Words{Sentence: "It stands still.", Next: []string{"Restart it."}, Runbook: "https://example.com/stalled.md"},
		Board:    "https://grafana.example.com/d/vllm-engine?var-pod=a%20b",
		Evidence: []wording.Signal{{Name: "waiting", Value: 12, Usual: math.NaN()}},
	}
}

func TestTheDocumentOfAnEngineAndOfAPool(t *testing.T) {
	a := ask(t, says("a", "stalled"))
	a.pools = []fleet.Pool{{Key: "key of m", Name: "m", Engines: 1}}
	a.source.details = map[string]*fleet.Detail{"key of a": stalledWords(), "key of m": stalledWords()}
	a.tell([]fleet.Event{
		{Key: "key of a", At: noon, Subject: "a, engine 0", From: "healthy", Diagnosis: fleet.Diagnosis{Condition: "stalled", Severity: 3}, Sentence: "It stands still."},
		{Key: "key of m", At: noon.Add(time.Second), Subject: "m", From: "healthy", Diagnosis: fleet.Diagnosis{Condition: "degraded", Severity: 2}},
	})
	for path, has := range map[string]string{"/api/v1/engines/key%20of%20a": "engine", "/api/v1/pools/key%20of%20m": "pool"} {
		got := a.document(path)
		assert.Contains(t, got, has)
		assert.NotContains(t, got, map[string]string{"engine": "pool", "pool": "engine"}[has])
		assert.Equal(t, "It stands still.", got["sentence"])
		assert.Equal(t, []any{"Restart it."}, got["next"])
		assert.Equal(t, "https://example.com/stalled.md", got["runbook"])
		evidence := got["evidence"].([]any)[0].(map[string]any)
		assert.InDelta(t, 12, evidence["value"], 0)
		assert.Nil(t, evidence["usual"])
		assert.Equal(t, wording.Lines(stalledWords().Evidence)[0], evidence["text"])
		require.Len(t, got["events"], 1, "its own")
	}
	events := a.document("/api/v1/events")["events"].([]any)
	require.Len(t, events, 2)
	assert.Equal(t, map[string]any{
		"id": "key of a", "at": "2026-03-01T12:00:07Z", "subject": "a, engine 0", "previous_condition": "healthy", "condition": "stalled", "severity": 3.0,
		"cause": "", "sentence": "It stands still.",
	}, events[1], "the newest is first")
	for _, path := range []string{"/api/v1/engines/nobody", "/api/v1/pools/key%20of%20a", "/api/v1/pools/nobody", "/engines/nobody", "/pools/nobody"} {
		assert.Equal(t, http.StatusNotFound, a.get(path).Code, path)
	}
	assert.Equal(t, http.StatusNotFound, a.get("/nothing").Code)
	assert.JSONEq(t, string(schema), a.get("/api/v1/schema").Body.String())
}

// A detail is asked for once a second, and only so many of different ones.
func TestDetailsAreBounded(t *testing.T) {
	var engines []fleet.Engine
	details := map[string]*fleet.Detail{}
	for n := range mostDetails + 1 {
		engines = append(engines, says(strconv.Itoa(n), "healthy"))
		details["key of "+strconv.Itoa(n)] = stalledWords()
	}
	a := ask(t, engines...)
	a.source.details = details
	path := func(n int) string { return fmt.Sprint("/api/v1/engines/key%20of%20", n) }
	for n := range mostDetails {
		a.document(path(n))
		a.document(path(n))
	}
	assert.Equal(t, mostDetails, a.explained)
	for _, late := range []string{path(mostDetails), strings.TrimPrefix(path(mostDetails), "/api/v1")} {
		w := a.get(late)
		assert.Equal(t, http.StatusServiceUnavailable, w.Code)
		assert.Equal(t, "1", w.Header().Get("Retry-After"))
	}
	a.document(path(0))
	assert.Equal(t, mostDetails, a.explained)
	a.clock = a.clock.Add(fresh)
	a.document(path(mostDetails))
	assert.Equal(t, mostDetails+1, a.explained)
}

// Texts of servers stay texts.
func TestHostileNames(t *testing.T) {
	const hostile = `<script>alert(1)</script>" onmouseover='x' & </th> ?`
	a := ask(t, says(hostile, "stalled", func(e *fleet.Engine) {
		e.Key, e.Model, e.Pod, e.Namespace, e.Version, e.Failure, e.Cause, e.Address = "0123456789abcdef", hostile, hostile, hostile, hostile, hostile, hostile, hostile
	}))
	a.pools = []fleet.Pool{{Key: "fedcba9876543210", Name: hostile, Diagnosis: fleet.Diagnosis{Cause: hostile, Detail: hostile}}}
	a.budgets = []fleet.Budget{{Objective: hostile, Server: hostile, Model: hostile}}
	bad := &fleet.Detail{Words: wording.Words{Sentence: hostile, Next: []string{hostile}, Runbook: "javascript:alert(1)"}, Board: "data:text/html,x", Evidence: []wording.Signal{{Name: hostile}}}
	a.source.details = map[string]*fleet.Detail{"0123456789abcdef": bad, "fedcba9876543210": bad}
	a.tell([]fleet.Event{{Key: "0123456789abcdef", Subject: hostile, Sentence: hostile, From: hostile}})
	for _, path := range []string{"/", "/engines/0123456789abcdef", "/pools/fedcba9876543210"} {
		w := a.get(path)
		require.Equal(t, http.StatusOK, w.Code)
		text := w.Body.String()
		assert.Contains(t, text, "&lt;script&gt;alert(1)", path)
		for _, never := range []string{"<script>", "' onmouseover", `" onmouseover`, "javascript:", "data:text"} {
			assert.NotContains(t, text, never, path)
		}
		assert.Equal(t, "text/html; charset=utf-8", w.Header().Get("Content-Type"))
	}
	for _, path := range []string{"/api/v1/fleet", "/api/v1/events", "/api/v1/engines/0123456789abcdef", "/probe/x"} {
		w := a.get(path)
		assert.NotContains(t, w.Body.String(), "<", path)
		assert.True(t, json.Valid(w.Body.Bytes()))
	}
	assert.Equal(t, hostile, a.document("/api/v1/fleet")["engines"].([]any)[0].(map[string]any)["server"])
	for _, path := range []string{"/", "/engines/nobody", "/api/v1/fleet", "/probe/x", "/nothing", "/page.js"} {
		h := a.get(path).Header()
		assert.Equal(t, "nosniff", h.Get("X-Content-Type-Options"), path)
		policy := h.Get("Content-Security-Policy")
		assert.Contains(t, policy, "default-src 'none'", path)
		assert.Contains(t, policy, "frame-ancestors 'none'", path)
		assert.NotContains(t, policy, "unsafe", path)
	}
	// What the policy would stop is not there.
	text := a.get("/").Body.String()
	assert.NotContains(t, text, " style=")
	assert.NotContains(t, text, "<style")
	assert.Equal(t, 1, strings.Count(text, "<script"))
}
