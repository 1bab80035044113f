package vllmfleetextension

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/fleet"
)

// A server is found by its name, by its address, and by its pod with or without the namespace.
func TestTheNamesOfAServer(t *testing.T) {
	a := ask(
		t,
		says("vllm-0.vllm:8000", "stalled", func(e *fleet.Engine) {
			e.Address, e.Namespace, e.Pod = "10.0.0.7:8000", "prod", "vllm-0"
		}),
		says("six", "stalled", func(e *fleet.Engine) { e.Model, e.Address = "6", "[fd00::7]:8000" }),
		says("a/b c%d?e", "stalled", func(e *fleet.Engine) { e.Model = "odd" }),
		says("other", "healthy", func(e *fleet.Engine) { e.Namespace, e.Pod = "test", "vllm-1" }),
		says("nowhere", "stalled", func(e *fleet.Engine) { e.Model, e.Pod = "nowhere", "vllm-9" }),
		says("another", "healthy", func(e *fleet.Engine) { e.Namespace, e.Pod = "test2", "vllm-1" }),
	)
	for path, want := range map[string]string{
		"/vllm-0.vllm:8000": "503 stalled", "/VLLM-0.vllm:8000": "503 stalled", "/10.0.0.7:8000": "503 stalled",
		"/vllm-0": "503 stalled", "/prod/vllm-0": "503 stalled", "/prod%2Fvllm-0": "503 stalled",
		"/[fd00::7]:8000": "503 stalled", "/%5Bfd00::7%5D:8000": "503 stalled",
		"/a%2Fb%20c%25d%3Fe": "503 stalled", "/a/b%20c%25d%3Fe": "503 stalled",
		"/test/vllm-0": "200 unknown", "/vllm-1": "200 ambiguous", "/test/vllm-1": "200 serving",
		"/10.0.0.7": "200 unknown", "/": "200 unknown", "": "200 unknown", "/nobody": "200 unknown", "/prod/": "200 unknown",
		"/%00%ff": "200 unknown", "/vllm-9": "503 stalled", "//vllm-9": "200 unknown", "/prod//vllm-0": "200 unknown", "/../vllm-0": "200 unknown", "/%2e%2e/x": "200 unknown",
	} {
		assert.Equal(t, want, a.probe(path), path)
	}
	for host, want := range map[string]string{
		"10.0.0.7:8000": "503 stalled", "[fd00::7]:8000": "503 stalled", "vllm-0": "503 stalled", "localhost:55690": "200 unknown",
	} {
		assert.Equal(t, want, a.probe("", host), host)
		assert.Equal(t, want, a.probe("/", host), host)
		assert.Equal(t, "200 serving", a.probe("/another", host), "the name in the path counts")
	}
}

func TestAnAnswerOfAProbe(t *testing.T) {
	a := ask(t, says("a", "stalled", func(e *fleet.Engine) {
		e.Cause, e.Since, e.At = "some_cause", e.Since.In(time.FixedZone("", 3600)), e.At.In(time.FixedZone("", 3600))
	}), says("b", "healthy"))
	w := a.get("/probe/a")
	assert.Equal(t, http.StatusServiceUnavailable, w.Code)
	assert.Equal(t, "application/json", w.Header().Get("Content-Type"))
	assert.Equal(t, "no-store", w.Header().Get("Cache-Control"))
	var got map[string]any
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &got))
	assert.Equal(t, map[string]any{
		"serve": false, "fitness": "stalled", "reason": "The engine makes no progress.", "server": "a", "condition": "stalled", "cause": "some_cause",
		"since": noon.Add(-5 * time.Minute).Format(time.RFC3339), "data_at": noon.Format(time.RFC3339),
	}, got)
}

// A mistake in the address of a probe takes no server down.
func TestAMistakeInAProbe(t *testing.T) {
	a := ask(t, says("a", "stalled"))
	for _, query := range []string{"", "livenes", "Liveness", "%zz", "&for=liveness", "liveness;", "liveness&for=routing", "liveness&x=1"} {
		assert.Equal(t, "200 unknown", a.probe("/a?for="+query), query)
	}
	for _, query := range []string{"other=1", "For=liveness", "liveness", ";for=liveness"} {
		assert.Equal(t, "200 unknown", a.probe("/a?"+query), query)
	}
	assert.Equal(t, "503 stalled", a.probe("/a?"))
	assert.Contains(t, a.get("/probe/a?for=livenes").Body.String(), "neither ?for=routing nor ?for=liveness")
}

// It only reads.
func TestOnlyGETIsAnswered(t *testing.T) {
	a := ask(t, says("a", "stalled"))
	for _, path := range []string{"/", "/probe/a", "/api/v1/fleet", "/api/v1/events", "/engines/x", "/page.js"} {
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch, http.MethodOptions} {
			w := httptest.NewRecorder()
			a.handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, nil))
			assert.Equal(t, http.StatusMethodNotAllowed, w.Code, "%s %s", method, path)
		}
	}
	for path, want := range map[string]int{"/probe/a": http.StatusServiceUnavailable, "/probe//a": http.StatusOK} {
		w := httptest.NewRecorder()
		a.handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodHead, path, nil))
		assert.Equal(t, want, w.Code, "HEAD is a GET without a body: %s", path)
	}
}

// A proxy that asks as often as it likes costs the processors one question a second.
func TestProcessorsAreAskedOnceASecond(t *testing.T) {
	a := ask(t, says("a", "healthy"))
	assert.Zero(t, a.asked)
	for range 1000 {
		a.probe("/a")
		a.get("/api/v1/fleet")
	}
	assert.Equal(t, 1, a.asked)
	a.set(says("a", "stalled"))
	a.clock = a.clock.Add(fresh - time.Millisecond)
	assert.Equal(t, "200 serving", a.probe("/a"))
	a.clock = a.clock.Add(time.Millisecond)
	assert.Equal(t, "503 stalled", a.probe("/a"))
	assert.Equal(t, 2, a.asked)
	a.clock = a.clock.Add(-time.Hour)
	a.probe("/a")
	assert.Equal(t, 3, a.asked, "the clock was set back")
}
