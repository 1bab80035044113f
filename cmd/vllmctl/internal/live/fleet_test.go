package live

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/status"
)

// asked is a collector that says something of one engine and one pool, and counts what it is asked.
type asked struct {
	*Fleet
	t    *testing.T
	down atomic.Bool
	mu   sync.Mutex
	// paths are what was asked for.
	paths []string
	// fleet are the keys of the document besides the version.
	fleet string
}

func askFrom(t *testing.T, fleet string) *asked {
	t.Helper()
	a := &asked{t: t, fleet: fleet}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		a.paths = append(a.paths, r.URL.Path)
		a.mu.Unlock()
		switch {
		case a.down.Load():
			w.WriteHeader(http.StatusBadGateway)
		case r.URL.Path == "/behind/api/v1/fleet":
			fmt.Fprintf(w, `{"version": 1, "at": "2026-03-01T12:00:00Z", %s}`, a.fleet)
		case r.URL.Path == "/behind/api/v1/engines/e1", r.URL.Path == "/behind/api/v1/pools/p1":
			fmt.Fprintf(w, `{"version": 1, "sentence": "Said of %s.", "next": ["Do it."], "runbook": "https://example.com/run", "board": "https://example.com/board",
				"evidence": [{"name": "x", "value": 1, "usual": null, "text": "x 1"}],
				"events": [{"at": "2026-03-01T11:59:00Z", "condition": "stalled", "cause": "b"}, {"at": "2026-03-01T11:58:00Z", "condition": "degraded", "cause": "a"}]}`, r.URL.Path)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	var err error
	a.Fleet, err = NewFleet(server.URL+"/behind", server.Client(), 0, NewLog())
	require.NoError(t, err)
	return a
}

func (a *asked) asked() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := strings.Join(a.paths, " ")
	a.paths = nil
	return strings.ReplaceAll(all, "/behind/api/v1/", "")
}

// page is the text about the row with a key.
func (a *asked) page(key string) (text string) {
	t := a.Table(true)
	for i := range t.Rows {
		if t.Rows[i].Key == key {
			for _, p := range t.Rows[i].Page(t.At) {
				text += p.Head + ": " + strings.Join(p.Texts, "|") + "\n"
			}
		}
	}
	return text
}

const oneEngine = `"engines": [{"id": "e1", "condition": "stalled", "severity": 3, "since": "2026-03-01T11:59:00Z", "server": "a:1", "engine": "0", "fitness": "stalled", "serve": false,
	"data_at": "2026-03-01T12:00:00Z", "running": 3, "time_to_first_token_mean_seconds": 0.5, "time_to_first_token_usual_seconds": 0.125}],
	"pools": [{"id": "p1", "name": "m", "condition": "healthy", "engines": 2}]`

func TestTheOpenedRowHasWhatTheCollectorSaysOfIt(t *testing.T) {
	a := askFrom(t, oneEngine)
	require.NoError(t, a.Ask(t.Context(), 0))
	assert.Equal(t, "fleet", a.asked())
	assert.NotContains(t, a.page("engines/e1"), "Said of")
	assert.Contains(t, a.page("engines/e1"), "now: requests: 3 running, - waiting; KV cache: - % in use|mean time to the first token: 500 ms, usual 125 ms|mean time between tokens: -, usual -|probes: stalled, it should get no requests; newest data at")

	ctx, stop := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { a.Follow(ctx) })
	defer done.Wait()
	defer stop()
	news := func() {
		select {
		case <-a.News():
		case <-time.After(30 * time.Second):
			require.Fail(t, "no news")
		}
	}
	a.Open("engines/e1")
	news()
	page := a.page("engines/e1")
	for _, want := range []string{
		"found: Said of /behind/api/v1/engines/e1.\n", "evidence: x 1\n", "next: Do it.\n", "runbook: https://example.com/run\n", "dashboard: https://example.com/board\n",
		"condition: stalled (severity 3) since " + time.Date(2026, 3, 1, 11, 59, 0, 0, time.UTC).Local().Format(time.TimeOnly) + ", for 60s\n",
	} {
		assert.Contains(t, page, want)
	}
	assert.Regexp(t, `changes: \S+ stalled: b\|\S+ degraded: a\n`, page, "the newest first")
	assert.NotContains(t, page, "in this session")
	a.asked()
	a.Open("pools/p1")
	news()
	assert.Equal(t, "fleet pools/p1", a.asked())
	assert.Contains(t, a.page("pools/p1"), "found: Said of /behind/api/v1/pools/p1.\n")
	assert.Contains(t, a.page("pools/p1"), "server: pool m, 2 engines\n")
	a.Table(false) // The screen is back at the table.
	require.NoError(t, a.Ask(t.Context(), 0))
	assert.Equal(t, "fleet", a.asked())

	// What was known stays while the collector does not answer, and the remark says that it is old.
	a.down.Store(true)
	require.Error(t, a.Ask(t.Context(), 0))
	table := a.Table(false)
	assert.Len(t, table.Rows, 2)
	assert.Equal(t, "This is old: the collector does not answer. Key l shows why.", table.Remark())
	require.Error(t, a.Ask(t.Context(), 0))
	require.Len(t, a.Log(), 1, "once")
	assert.Contains(t, a.Log()[0].Message, "answers 502 Bad Gateway")
	a.down.Store(false)
	require.NoError(t, a.Ask(t.Context(), 0))
	assert.Empty(t, a.Table(false).Remark())
}

func TestDetailsAreAskedOfTheWorstOnly(t *testing.T) {
	var engines []string
	for i := range 50 {
		engines = append(engines, fmt.Sprintf(`{"id": "e%d", "condition": "failing", "severity": 3, "server": "s%02d"}`, i, i))
	}
	a := askFrom(t, `"engines": [`+strings.Join(engines, ",")+`]`)
	require.NoError(t, a.Ask(t.Context(), MostExplained))
	assert.Equal(t, "fleet engines/e0 engines/e1 engines/e2", strings.Join(strings.Fields(a.asked())[:4], " "))
	require.NoError(t, a.Ask(t.Context(), MostExplained))
	assert.Len(t, strings.Fields(a.asked()), 1+MostExplained)
}

func TestACollectorThatMayHaveLostItsNetworkSaysSo(t *testing.T) {
	a := askFrom(t, `"collector_suspect": true, `+oneEngine)
	require.NoError(t, a.Ask(t.Context(), 0))
	assert.Contains(t, a.Table(false).Remark(), "perhaps the collector has lost its network")
}

func TestACollectorThatKnowsTooManyEnginesShowsTheFirst(t *testing.T) {
	a := askFrom(t, `"engines": [{"id": "1", "server": "worst", "condition": "idle"}`+strings.Repeat(",{}", mostFleet+6)+`]`)
	require.NoError(t, a.Ask(t.Context(), 0))
	table := a.Table(false)
	assert.Len(t, table.Rows, mostFleet)
	assert.Equal(t, 7, table.LeftOut)
	assert.Equal(t, status.Failed, table.Status())
	assert.True(t, slices.ContainsFunc(table.Rows, func(r Row) bool { return r.Address == "worst" }))
	assert.Equal(t, "7 more engines or pools are not shown: the limit is 20000.", table.Remark())
}

// A collector that has just started misses nothing: its engines need a second scrape.
func TestEnginesThatHaveJustBeenSeenAreNotJudgedYet(t *testing.T) {
	engine := func(id string, isNew bool, fitness string) string {
		return fmt.Sprintf(`{"id": %[1]q, "condition": "unknown", "severity": 1, "server": "%[1]s:1", "model": "agent-large", "engine": "0", "fitness": %[3]q, "new": %[2]t}`, id, isNew, fitness)
	}
	shown := func(engines ...string) (*Table, string) {
		a := askFrom(t, `"engines": [`+strings.Join(engines, ",")+`],
			"pools": [{"id": "p", "name": "model_name=agent-large, k8s.namespace.name=poolside-models", "condition": "unknown", "severity": 1, "engines": 2,
				"attributes": {"model_name": "agent-large", "k8s.namespace.name": "poolside-models"}}]`)
		require.NoError(t, a.Ask(t.Context(), 0))
		var b strings.Builder
		table := a.Table(true)
		require.NoError(t, table.WritePlain(&b, 160))
		return table, b.String()
	}
	table, text := shown(engine("a", true, "undecided"), engine("b", true, "undecided"))
	assert.Contains(t, text, "2 servers, 2 engines, 1 pool: 2 not judged\n2 of 3 rows cannot be judged yet: that takes two scrapes with traffic.\n")
	assert.Regexp(t, `\npool poolside-models +agent-large +not judged +rates need two scrapes `, text)
	assert.Regexp(t, `\na:1 +agent-large +not judged +rates need two scrapes `, text)
	assert.NotContains(t, text, "missing")
	assert.Equal(t, status.Failed, table.Status(), "nothing is known")
	assert.True(t, table.Document().Engines[0].Early)

	table, text = shown(engine("a", true, "undecided"), engine("b", false, "undecided"), engine("c", true, "old"))
	assert.Contains(t, text, ": 2 unknown, 1 not judged\n2 of 4 rows cannot be judged: engine or metrics are missing.")
	assert.Regexp(t, `\npool poolside-models +agent-large +unknown +cannot be judged `, text)
	assert.False(t, table.Document().Pools[0].Early)
}
