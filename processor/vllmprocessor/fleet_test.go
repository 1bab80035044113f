package vllmprocessor

import (
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"

	known "github.com/otelcol-vllm/otelcol-vllm/internal/fleet"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/archive"
)

// asker is an extension that asks. It is its own host.
type asker struct {
	component.StartFunc
	component.ShutdownFunc
	component.Host
	extensions map[component.ID]component.Component

	source known.Source
	names  []string
	left   int

	mu     sync.Mutex
	events []known.Event
}

// asking returns an extension beside those of another host.
func asking(host component.Host) *asker {
	a := &asker{Host: host, extensions: maps.Clone(host.GetExtensions())}
	if a.extensions == nil {
		a.extensions = map[component.ID]component.Component{}
	}
	a.extensions[component.MustNewID("vllm_fleet")] = a
	return a
}

func (a *asker) GetExtensions() map[component.ID]component.Component { return a.extensions }

func (a *asker) Join(processor string, source known.Source) (func([]known.Event), func()) {
	a.source, a.names = source, append(a.names, processor)
	return func(events []known.Event) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.events = append(a.events, events...)
	}, func() { a.left++ }
}

// only is the only engine that is known.
func (a *asker) only(t *testing.T) *known.Engine {
	t.Helper()
	all := a.source.Snapshot()
	require.Len(t, all.Engines, 1)
	return &all.Engines[0]
}

// asked starts an instance that an extension asks.
func asked(t *testing.T, config *Config) (*instance, *asker) {
	t.Helper()
	i, a := newInstance(t, config, &archive.Shared{}), asking(componenttest.NewNopHost())
	i.begin(a)
	return i, a
}

// A server that stalls is told to who asks as the log says it.
func TestAStallIsToldAsTheLogSaysIt(t *testing.T) {
	i, a := asked(t, createDefaultConfig().(*Config))
	assert.Equal(t, []string{"vllm/one"}, a.names)
	assert.Empty(t, a.source.Snapshot().Engines)

	server := steady("one:8000", noon)
	server.own = map[string]float64{"vllm.up": 1}
	i.watch(server, 15*time.Second)
	e := a.only(t)
	assert.Equal(t, "unknown", e.Condition)
	assert.True(t, e.New)
	i.watch(server, 12*time.Minute)
	e = a.only(t)
	assert.False(t, e.New)
	assert.Equal(t, "healthy", e.Condition)
	assert.Zero(t, e.Severity)
	stopped := server.at
	server.stalled = true
	i.watch(server, 5*time.Minute)

	e = a.only(t)
	assert.Equal(t, "stalled", e.Condition)
	assert.Equal(t, 3, e.Severity)
	assert.Equal(t, "one:8000", e.Server)
	assert.Equal(t, "m", e.Model)
	assert.Equal(t, "0", e.Engine)
	assert.True(t, e.Read)
	assert.False(t, e.Resumed)
	assert.Equal(t, 15*time.Second, e.Interval)
	assert.True(t, e.At.Equal(server.at), "%s", e.At)
	assert.True(t, e.Arrived.Equal(server.at), "%s", e.Arrived)
	assert.WithinDuration(t, stopped, e.Since, 15*time.Second)
	// Its gauges show what was; a request a second has arrived since.
	assert.InDelta(t, server.waiting, e.Numbers[known.Waiting], 60)
	assert.Positive(t, e.Numbers[known.Waiting])
	assert.InDelta(t, server.rate*(server.firstToken+99*server.gap), e.Numbers[known.Running], 1e-6)
	assert.InDelta(t, server.firstToken, e.Numbers[known.FirstTokenUsual], 0.01)
	assert.InDelta(t, server.gap, e.Numbers[known.TokenGapUsual], 0.002)

	lines := i.changes()
	require.NotEmpty(t, lines)
	line := lines[len(lines)-1].ContextMap()
	require.Equal(t, "stalled", line["condition"])
	require.Len(t, a.events, len(lines))
	event := a.events[len(a.events)-1]
	sentence := strings.TrimPrefix(lines[len(lines)-1].Message, "diagnosis: ")
	assert.Equal(t, sentence, event.Sentence)
	assert.Equal(t, line["previous_condition"], event.From)
	assert.Equal(t, "stalled", event.Condition)
	assert.EqualValues(t, line["severity"], event.Severity)
	assert.True(t, event.At.Equal(line["at"].(time.Time)))
	assert.True(t, event.Since.Equal(line["since"].(time.Time)))
	assert.Equal(t, e.Key, event.Key)
	assert.Equal(t, "one:8000, engine 0", event.Subject)

	// What the numbers of the sentence say has grown since the line.
	detail := a.source.Detail(e.Key)
	require.NotNil(t, detail)
	condition, _, _ := strings.Cut(sentence, ".")
	assert.True(t, strings.HasPrefix(detail.Sentence, condition), "%s: %s", detail.Sentence, sentence)
	assert.Equal(t, line["next"], anyOf(detail.Next))
	assert.Equal(t, line["runbook"], detail.Runbook)
	var names []string
	for _, s := range detail.Evidence {
		names = append(names, s.Name)
	}
	for n, said := range line["evidence"].([]any) {
		assert.True(t, strings.HasPrefix(said.(string), names[n]), "%s: %s", said, names[n])
	}
	assert.Nil(t, a.source.Detail("unknown"))

	server.stalled, server.waiting = false, 0
	i.watch(server, 10*time.Minute)
	assert.Equal(t, "healthy", a.only(t).Condition)
	require.Len(t, a.events, len(i.changes()))
	assert.Equal(t, "stalled", a.events[len(lines)].From)

	assert.Zero(t, a.left)
	i.end()
	assert.Equal(t, 1, a.left, "a processor that stops leaves")
}

func anyOf(texts []string) (all []any) {
	for _, text := range texts {
		all = append(all, text)
	}
	return all
}

// The detail at the moment of a change is what its line says.
func TestTheDetailIsThatOfTheLine(t *testing.T) {
	i, a := asked(t, createDefaultConfig().(*Config))
	defer i.end()
	server := steady("one:8000", noon)
	i.watch(server, 12*time.Minute)
	server.slower()
	server.levels = map[string]float64{"vllm.kv_cache.utilization": 1}
	for a.only(t).Cause == "" {
		i.diagnoses(server)
		require.Less(t, server.at.Sub(noon), time.Hour)
	}
	e, lines := a.only(t), i.changes()
	line := lines[len(lines)-1]
	detail := a.source.Detail(e.Key)
	fields := line.ContextMap()
	assert.Equal(t, line.Message, "diagnosis: "+detail.Sentence)
	assert.Equal(t, fields["runbook"], detail.Runbook)
	assert.Equal(t, fields["next"], anyOf(detail.Next))
	assert.Equal(t, fields["cause"], e.Cause)
	assert.Equal(t, e.Cause, a.events[len(a.events)-1].Cause)
	assert.Equal(t, fields["condition"], e.Condition)
	assert.True(t, e.Since.Equal(fields["since"].(time.Time)))
	require.NotEmpty(t, detail.Evidence)
	for n, s := range detail.Evidence {
		assert.Contains(t, fields["evidence"].([]any)[n], s.Name)
	}
	assert.Len(t, fields["evidence"], len(detail.Evidence))
}

// A server that was never read, one that cannot be read any more, and one whose sender has no vllm.up.
func TestWhetherAServerWasRead(t *testing.T) {
	i, a := asked(t, createDefaultConfig().(*Config))
	defer i.end()
	silent := steady("never:8000", noon)
	for range 4 {
		i.fails(silent, "timeout", nil)
	}
	e := a.only(t)
	assert.False(t, e.Read)
	assert.Equal(t, "starting", e.Condition)
	assert.Equal(t, "timeout", e.Failure)
	assert.Empty(t, e.Model)

	lost := steady("lost:8000", noon)
	lost.own = map[string]float64{"vllm.up": 1}
	i.watch(lost, 12*time.Minute)
	first := lost.at.Add(15 * time.Second)
	i.watch(steady("without:8000", lost.at), time.Minute)
	for range 4 {
		i.fails(lost, "refused", nil)
	}
	all := a.source.Snapshot().Engines
	read := map[string]known.Engine{}
	for _, e := range all {
		read[e.Server] = e
	}
	assert.True(t, read["without:8000"].Read, "its engines are known")
	assert.Empty(t, read["without:8000"].Failure)
	assert.True(t, read["lost:8000"].Read)
	assert.Equal(t, "unreachable", read["lost:8000"].Condition)
	assert.Equal(t, "refused", read["lost:8000"].Failure)
	assert.Equal(t, "m", read["lost:8000"].Model, "its engines are not forgotten")
	assert.True(t, read["lost:8000"].Since.Equal(first), "since the first scrape that failed, as the log says: %s", read["lost:8000"].Since)
	assert.NotEqual(t, read["lost:8000"].Resource, read["without:8000"].Resource)
}

// A scrape that fails is told at once, also where its sender says no reason: it is not unreachable yet.
func TestAScrapeThatFails(t *testing.T) {
	i, a := asked(t, createDefaultConfig().(*Config))
	defer i.end()
	server := steady("one:8000", noon)
	server.own = map[string]float64{"vllm.up": 1}
	i.watch(server, 2*time.Minute)
	assert.Empty(t, a.only(t).Failure)
	i.fails(server, "", nil)
	assert.Equal(t, "failed", a.only(t).Failure)
	assert.NotEqual(t, "unreachable", a.only(t).Condition)
	i.diagnoses(server)
	assert.Empty(t, a.only(t).Failure)
}

// An engine that had stalled or failed before the collector restarted, and recovers in between, is not reported as that
// without a word that it is from before.
func TestWhatIsFromBeforeARestartIsMarked(t *testing.T) {
	for _, condition := range []string{"stalled", "failing"} {
		for _, recovers := range []bool{true, false} {
			t.Run(condition, func(t *testing.T) {
				folder := t.TempDir()
				server := steady("one:8000", noon)
				p, a := newInstance(t, remembering(), &archive.Shared{}), asking(files(t, folder))
				p.begin(a)
				p.watch(server, 12*time.Minute)
				troubles[condition](server)
				p.watch(server, 12*time.Minute)
				require.Equal(t, condition, a.only(t).Condition)
				p.end()

				p, a = newInstance(t, remembering(), &archive.Shared{}), asking(files(t, folder))
				p.begin(a)
				defer p.end()
				if recovers {
					server.stalled, server.waiting, server.own = false, 0, map[string]float64{"vllm.healthy": 1}
				}
				server.scrape() // While the collector is away.
				bad := 0
				for range 40 {
					p.diagnoses(server)
					if e := a.only(t); e.Condition == condition && !e.Resumed {
						bad++
					}
				}
				switch {
				case recovers && condition == "stalled":
					assert.Zero(t, bad)
				case recovers:
					assert.Less(t, bad, 8, "errors have the hold of two windows, less the one in which it is marked")
				default:
					assert.GreaterOrEqual(t, bad, 35)
				}
			})
		}
	}
}

// What a server is called is text of another machine: it is cut and printable. An address of IPv6 has brackets.
func TestTheNamesThatAreTold(t *testing.T) {
	i, a := asked(t, createDefaultConfig().(*Config))
	defer i.end()
	for n, address := range []string{"10.0.0.7", "fd00::7", "vllm.example.com", "without.port"} {
		server := steady(address, noon)
		server.version = "0.11.0\x1b[2J"
		metrics := server.scrape()
		attributes := metrics.ResourceMetrics().At(0).Resource().Attributes()
		attributes.PutStr("service.instance.id", address+"\u202e\x00<b>")
		attributes.PutStr("server.address", address)
		if n < 3 {
			attributes.PutInt("server.port", 8000)
		}
		attributes.PutStr("k8s.pod.name", strings.Repeat("p", 10_000))
		attributes.PutStr("k8s.namespace.name", "n\n")
		attributes.PutStr("k8s.node.name", "node-1")
		attributes.PutStr("k8s.cluster.name", "eu-1")
		_, err := i.process(t.Context(), metrics)
		require.NoError(t, err)
	}
	addresses := map[string]string{}
	for _, e := range a.source.Snapshot().Engines {
		addresses[e.Server] = e.Address
		assert.Equal(t, "n?", e.Namespace)
		assert.Equal(t, "eu-1 node-1", e.Cluster+" "+e.Node)
		assert.Less(t, len(e.Pod), 1000)
		assert.NotContains(t, e.Version, "\x1b")
		assert.Regexp(t, "^[0-9a-f]{16}$", e.Key)
	}
	assert.Equal(t, map[string]string{
		"10.0.0.7??<b>": "10.0.0.7:8000", "fd00::7??<b>": "[fd00::7]:8000", "vllm.example.com??<b>": "vllm.example.com:8000", "without.port??<b>": "without.port",
	}, addresses)
}
