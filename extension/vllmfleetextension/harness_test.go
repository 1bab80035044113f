package vllmfleetextension

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/extension/extensiontest"

	"github.com/otelcol-vllm/otelcol-vllm/extension/vllmfleetextension/internal/metadata"
	"github.com/otelcol-vllm/otelcol-vllm/internal/fleet"
)

var noon = time.Date(2026, 3, 1, 12, 0, 7, 0, time.UTC)

// says is what a processor says of a server with one engine: it was read at noon, and every 15 s before.
func says(name, condition string, change ...func(*fleet.Engine)) fleet.Engine {
	e := fleet.Engine{
		Key: "key of " + name, Resource: "resource of " + name, Server: name, Model: "m", Engine: "0",
		Diagnosis: fleet.Diagnosis{Condition: condition, Severity: severities[condition], Since: noon.Add(-5 * time.Minute)},
		Read:      true, At: noon, Arrived: noon, Interval: 15 * time.Second,
	}
	for n := range e.Numbers {
		e.Numbers[n] = math.NaN()
	}
	if condition == "unreachable" {
		e.Failure = "timeout"
	}
	for _, c := range change {
		c(&e)
	}
	return e
}

var severities = map[string]int{"degraded": 2, "critical": 3, "failing": 3, "stalled": 3, "unreachable": 3}

// source is a processor that says what it is told to.
type source struct {
	mu               sync.Mutex
	engines          []fleet.Engine
	pools            []fleet.Pool
	budgets          []fleet.Budget
	details          map[string]*fleet.Detail
	asked, explained int
}

func (s *source) Snapshot() *fleet.Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	return &fleet.Snapshot{Window: time.Minute, Engines: append([]fleet.Engine{}, s.engines...), Pools: s.pools, Budgets: s.budgets}
}

func (s *source) Detail(key string) *fleet.Detail {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.explained++
	return s.details[key]
}

func (s *source) set(engines ...fleet.Engine) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.engines = engines
}

// asked is the extension without a listener, with one processor and a clock.
type asked struct {
	*fleetServer
	*source
	t       testing.TB
	handler http.Handler
	clock   time.Time
	tell    func([]fleet.Event)
	leave   func()
}

func ask(tb testing.TB, engines ...fleet.Engine) *asked {
	tb.Helper()
	a := &asked{fleetServer: newServer(createDefaultConfig().(*Config), extensiontest.NewNopSettings(metadata.Type)), source: &source{engines: engines}, t: tb, clock: noon}
	a.now = func() time.Time { return a.clock }
	a.tell, a.leave = a.Join("vllm", a.source)
	a.handler = a.fleetServer.handler()
	return a
}

// get returns the answer to a path, asked with a header Host.
func (a *asked) get(path string, host ...string) *httptest.ResponseRecorder {
	a.t.Helper()
	r := httptest.NewRequestWithContext(a.t.Context(), http.MethodGet, path, nil)
	if len(host) > 0 {
		r.Host = host[0]
	}
	w := httptest.NewRecorder()
	a.handler.ServeHTTP(w, r)
	return w
}

// probe returns the status and the header of a probe, as in "503 stalled".
func (a *asked) probe(path string, host ...string) string {
	a.t.Helper()
	w := a.get("/probe"+path, host...)
	require.Contains(a.t, w.Body.String(), `"fitness":"`+w.Header().Get(fitnessHeader)+`"`)
	return fmt.Sprint(w.Code, " ", w.Header().Get(fitnessHeader))
}

// content reads an answer to its end.
func content(tb testing.TB, r *http.Response) string {
	tb.Helper()
	all, err := io.ReadAll(r.Body)
	require.NoError(tb, err)
	require.NoError(tb, r.Body.Close())
	return string(all)
}
