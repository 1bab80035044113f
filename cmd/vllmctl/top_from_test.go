package main

import (
	"bufio"
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/extension"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/live"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/status"
	"github.com/otelcol-vllm/otelcol-vllm/extension/vllmfleetextension"
	"github.com/otelcol-vllm/otelcol-vllm/internal/fleet"
	"github.com/otelcol-vllm/otelcol-vllm/internal/wording"
)

// knows is a processor that knows some engines, and pools.
type knows struct {
	engines []fleet.Engine
	pools   []fleet.Pool
}

func (k knows) Snapshot() *fleet.Snapshot {
	return &fleet.Snapshot{Window: time.Minute, Engines: k.engines, Pools: k.pools}
}

func (knows) Detail(key string) *fleet.Detail {
	return &fleet.Detail{
		Words:    wording.Words{Sentence: "Said of " + key + ": `it` stands still" + hostile + ".", Next: []string{"Restart `it`."}, Runbook: "https://example.com/stalled.md"},
		Board:    "https://example.com/board",
		Evidence: []wording.Signal{{Name: "waiting", Value: 3, Usual: 1}},
	}
}

// engineOf is the nth engine, on a server of its own, that has just been read.
func engineOf(n int, condition string, severity int) fleet.Engine {
	now := time.Now()
	e := fleet.Engine{
		Key: fmt.Sprintf("%016x", n), Resource: fmt.Sprint(n), Server: fmt.Sprintf("10.0.0.%d:8000", n), Address: fmt.Sprintf("10.0.0.%d:8000", n),
		Model: "llama", Engine: "0", Version: "0.20.0", Read: true, At: now, Arrived: now, Interval: time.Hour,
		Diagnosis: fleet.Diagnosis{Condition: condition, Severity: severity, Since: now.Add(-5 * time.Hour)},
	}
	for i := range e.Numbers {
		e.Numbers[i] = math.NaN()
	}
	return e
}

// collector starts the extension, with a processor, until the test ends.
func collector(t *testing.T, source fleet.Source) (address string, tell func([]fleet.Event)) {
	t.Helper()
	factory := vllmfleetextension.NewFactory()
	config := factory.CreateDefaultConfig().(*vllmfleetextension.Config)
	config.NetAddr.Endpoint = "127.0.0.1:0"
	core, logs := observer.New(zap.InfoLevel)
	settings := extension.Settings{ID: component.NewID(factory.Type()), TelemetrySettings: componenttest.NewNopTelemetrySettings()}
	settings.Logger = zap.New(core)
	created, err := factory.Create(t.Context(), settings, config)
	require.NoError(t, err)
	require.NoError(t, created.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { assert.NoError(t, created.Shutdown(context.Background())) })
	tell, _ = created.(fleet.Registry).Join("vllm", source)
	return logs.All()[0].ContextMap()["address"].(string), tell
}

func TestTopFromACollectorHasWhatItsProcessorKnows(t *testing.T) {
	slow, down, well := engineOf(1, "degraded", 2), engineOf(2, "unreachable", 3), engineOf(3, "healthy", 0)
	slow.Cause, slow.Pod, slow.Namespace = "slow_steps", "pod-1"+hostile, "prod"
	slow.Numbers = [fleet.NumNumbers]float64{fleet.Running: 7, fleet.Waiting: 2, fleet.KV: 0.5, fleet.FirstToken: 0.75, fleet.FirstTokenUsual: 0.25, fleet.TokenGap: 0.03, fleet.TokenGapUsual: 0.01}
	down.Failure = "timeout"
	second := well
	second.Key, second.Engine = "00000000000000aa", "1"
	address, _ := collector(t, knows{[]fleet.Engine{slow, down, well, second}, []fleet.Pool{{Key: "00000000000000ff", Name: "llama", Diagnosis: well.Diagnosis, Engines: 4}}})

	code, out, errs := ctl(t, "top", "--once", "--json", "--from", address)
	assert.Equal(t, status.Problem, code)
	assert.Empty(t, errs)
	var document any
	require.NoError(t, json.Unmarshal([]byte(out), &document))
	p := promised(t)
	p.holds(t, "top", "the document", p["top"], document)
	var d live.Document
	require.NoError(t, json.Unmarshal([]byte(out), &d))
	require.Len(t, d.Engines, 4)
	require.Len(t, d.Servers, 3)
	assert.Equal(t, "unreachable", d.Engines[0].Condition)
	e := d.Engines[1]
	assert.Equal(t, []any{"10.0.0.1:8000", "llama", "0", "degraded", 2, "slow_steps"}, []any{e.Server, e.Model, e.Engine, e.Condition, e.Severity, e.Cause})
	assert.Equal(t, []float64{7, 2, 0.5, 0.75, 0.03}, []float64{*e.Running, *e.Waiting, *e.KVCache, *e.TTFT, *e.ITL})
	assert.InDelta(t, 0.25, *e.Signals["time_to_first_token_mean"].Usual, 0)
	assert.Nil(t, e.Tokens, "the extension does not say it")
	assert.True(t, slow.Since.Equal(*e.Since))
	assert.Equal(t, "Said of 0000000000000001: it stands still?2J ?.", e.Sentence)
	assert.Equal(t, []string{"waiting 3 requests (usual 1)"}, e.Evidence)
	assert.Equal(t, []string{"Restart it."}, e.Next)
	assert.Equal(t, "timeout", d.Servers[1].Failure.Kind)
	assert.True(t, d.Servers[0].Readable)
	assert.NotContains(t, d.Engines[2].Sentence, "Said of", "a row that needs no action is not asked about")
	assert.Equal(t, "llama", d.Pools[0].Pool)
	assert.Equal(t, "Pool llama: its users are served as they should be.", d.Pools[0].Sentence)

	code, out, errs = ctl(t, "top", "--once", "--from", "http://"+address+"/")
	assert.Equal(t, status.Problem, code)
	assert.Empty(t, errs)
	assert.Contains(t, out, "3 servers, 4 engines, 1 pool: 1 unreachable, 1 degraded, 2 healthy\n1 server cannot be read.")
	assert.Regexp(t, `pod-1\?2J \? +llama +degraded +slow_steps +5h +7 +2 +50 +750 +30.0 +- +- +-\n`, out)
	assert.Contains(t, out, "10.0.0.3:8000 #1", "a server with several engines")
	assert.Contains(t, out, "The collector at http://"+address+"/ says this")
}

func TestTheStatusOfTopFromACollector(t *testing.T) {
	old := engineOf(1, "healthy", 0)
	old.Arrived = old.Arrived.Add(-3 * time.Hour)
	down := engineOf(2, "unreachable", 3)
	down.Failure = "refused"
	for name, c := range map[string]struct {
		engines []fleet.Engine
		want    status.Status
		says    string
	}{
		"well":             {[]fleet.Engine{engineOf(1, "healthy", 0), engineOf(2, "idle", 0)}, status.OK, "1 idle, 1 healthy"},
		"stalled":          {[]fleet.Engine{engineOf(1, "healthy", 0), engineOf(2, "stalled", 3)}, status.Problem, "1 stalled, 1 healthy"},
		"no server":        {nil, status.Failed, "The collector knows no server yet."},
		"none can be read": {[]fleet.Engine{down}, status.Failed, "perhaps the collector has lost its network"},
		"none is heard of": {[]fleet.Engine{old}, status.Failed, "1 unknown"},
		"one is heard of":  {[]fleet.Engine{old, engineOf(2, "healthy", 0)}, status.OK, "1 unknown, 1 healthy"},
	} {
		address, _ := collector(t, knows{engines: c.engines})
		code, out, errs := ctl(t, "top", "--once", "--from", address)
		assert.Equal(t, c.want, code, name)
		assert.Contains(t, out, c.says, name)
		assert.Empty(t, errs, name)
	}
}

func TestTopFromSomethingElseSaysWhatToDo(t *testing.T) {
	answers := func(code int, body string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			_, _ = io.WriteString(w, body)
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	secure.StartTLS()
	t.Cleanup(secure.Close)
	for address, want := range map[string]string{
		"http://u:secret@" + closedPort(t):                      "connection refused; the collector has to run with the extension vllm_fleet",
		answers(401, "no"):                                      "wants credentials (401); use --token-file or --header",
		answers(403, "no"):                                      "rejects these credentials (403)",
		answers(404, "404 page not found"):                      "but not as the extension vllm_fleet; give its address",
		answers(200, "<html>"+hostile):                          "but not as the extension vllm_fleet",
		answers(200, `{"status": "up"}`):                        "but not as the extension vllm_fleet",
		answers(200, `{"version": 2, "engines": "now a text"}`): "has documents of version 2 and this vllmctl reads version 1; use the vllmctl of the collector's release",
		answers(200, `{"version": 1, "engines": 5}`):            "has a document that cannot be read",
		secure.URL: "x509: certificate signed by unknown authority; see --ca-file",
	} {
		for _, how := range []string{"--once", "--json"} {
			code, out, errs := ctl(t, "top", how, "--from", address)
			assert.Equal(t, status.Failed, code, want)
			assert.Empty(t, out, want)
			assert.Contains(t, errs, want)
			assert.NotContains(t, errs, "secret")
			assert.Equal(t, 1, strings.Count(errs, "\n"), errs)
		}
	}
}

func TestTopFromSendsATokenOverTLS(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer sesame" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(w, `{"version": 1, "at": "2026-03-01T12:00:00Z", "engines": [{"id": "1", "condition": "healthy", "server": "a:1", "engine": "0"}]}`)
	}))
	t.Cleanup(s.Close)
	token, ca := filepath.Join(t.TempDir(), "token"), filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(token, []byte("sesame"), 0o600))
	require.NoError(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600))
	code, out, errs := ctl(t, "top", "--once", "--from", s.URL, "--ca-file", ca, "--token-file", token)
	assert.Equal(t, status.OK, code, errs)
	assert.Contains(t, out, "a:1")
	code, _, errs = ctl(t, "top", "--once", "--from", s.URL, "--ca-file", ca)
	assert.Equal(t, status.Failed, code)
	assert.Contains(t, errs, "wants credentials (401)")
}

// A stream has a document per interval, and ends with a sentence when the collector does not answer any more.
func TestTopFromAsAStream(t *testing.T) {
	asked := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		if asked > 2 {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Fprintf(w, `{"version": 1, "at": "2026-03-01T12:00:0%dZ"}`, asked)
	}))
	t.Cleanup(s.Close)
	code, out, errs := ctl(t, "top", "--json", "--interval", "1s", "--from", s.URL)
	assert.Equal(t, status.Failed, code)
	assert.Contains(t, errs, "wants credentials (401)")
	lines := bufio.NewScanner(strings.NewReader(out))
	for _, at := range []string{"12:00:01", "12:00:02"} {
		require.True(t, lines.Scan())
		assert.Contains(t, lines.Text(), at)
	}
	assert.False(t, lines.Scan())
}
