package vllmprocessor

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/zap/zapcore"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/archive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/metadata"
)

// The storage in testdata was written at commit a26bd41, when namespaces did not
// belong to the identity of a resource and states had no checksum. It has two
// servers, each with a budget and a baseline: plain:8000, of whose 4 requests 1 was
// too slow, and spaced:8000, of whose 10 requests 1 was, in the namespaces prod and
// inference.
func storageOfForm1(t *testing.T) (folder string) {
	t.Helper()
	folder = t.TempDir()
	for _, name := range []string{"processor_vllm_one", "processor_vllm_one_baselines"} {
		content, err := os.ReadFile(filepath.Join("testdata", "storage-form-1", name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), content, 0o600))
	}
	return folder
}

// in puts a server into a namespace.
func in(namespace string, metrics pmetric.Metrics) pmetric.Metrics {
	for _, rm := range metrics.ResourceMetrics().All() {
		rm.Resource().Attributes().PutStr("service.namespace", namespace)
		rm.Resource().Attributes().PutStr("k8s.namespace.name", "inference")
	}
	return metrics
}

// budget is what is left of the budget of a server that comes back, after one more
// request, which is not slow.
func (i *instance) budget(server string, place func(pmetric.Metrics) pmetric.Metrics) float64 {
	i.t.Helper()
	engines := map[string]*engineLog{"0": {born: noon}}
	began := i.at
	i.take(place(body(server, "m", i.at, []string{firstToken}, engines)))
	i.at = i.at.Add(30 * time.Second)
	engines["0"].firstTokenTook(i.at.Add(-time.Second), 1)
	emitted := i.take(place(body(server, "m", i.at, []string{firstToken}, engines)))
	i.at = began
	require.Contains(i.t, emitted.values, budgetLeft)
	return emitted.values[budgetLeft]
}

func unplaced(m pmetric.Metrics) pmetric.Metrics { return m }

func prod(m pmetric.Metrics) pmetric.Metrics { return in("prod", m) }

func test(m pmetric.Metrics) pmetric.Metrics { return in("test", m) }

func TestAnUpgradeContinuesBudgets(t *testing.T) {
	folder := storageOfForm1(t)
	p := newInstance(t, kept(), &archive.Shared{})
	p.at = noon.Add(time.Hour)
	p.begin(files(t, folder))
	assert.InDelta(t, 1-2.0, p.budget("plain:8000", unplaced), 1e-9, "1 of 5 was slow")
	assert.InDelta(t, 1-10.0/11, p.budget("spaced:8000", prod), 1e-9, "1 of 11 was slow")
	assert.Empty(t, p.sentences(zapcore.WarnLevel))
	assert.InDelta(t, 1.0, p.budget("spaced:8000", test), 1e-9, "another server, which the earlier version mistook for the first")
	assert.InDelta(t, 1.0, p.budget("plain:8000", prod), 1e-9, "plain:8000 without namespaces is there and has its state")
	require.Len(t, p.sentences(zapcore.WarnLevel), 1)
	assert.Contains(t, p.sentences(zapcore.WarnLevel)[0], "took servers of several namespaces for one and kept one error budget of them")
	p.end()

	// What was moved is stored under the key of today, and only there.
	again := newInstance(t, kept(), &archive.Shared{})
	again.at = p.at.Add(time.Minute)
	again.begin(files(t, folder))
	assert.Equal(t, int64(4), again.logs.FilterMessage("objectives continue where they were saved").All()[0].ContextMap()["states"])
	assert.InDelta(t, 1.0, again.budget("spaced:8000", test), 1e-9)
	assert.InDelta(t, 1-10.0/12, again.budget("spaced:8000", prod), 1e-9)
	assert.Empty(t, again.sentences(zapcore.WarnLevel))
	again.end()
}

func TestAnUpgradeContinuesBaselines(t *testing.T) {
	for name, c := range map[string]struct {
		server string
		place  func(pmetric.Metrics) pmetric.Metrics
		want   bool
	}{
		"no namespaces": {"plain:8000", unplaced, true},
		"namespaces":    {"spaced:8000", prod, true},
		"unknown":       {"new:8000", prod, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := newInstance(t, remembering(), &archive.Shared{})
			p.begin(files(t, storageOfForm1(t)))
			server := steady(c.server, noon.Add(time.Hour)).slower()
			var reported map[string]float64
			for range 16 {
				metrics := c.place(server.scrape())
				p.at = server.at
				metrics, err := p.process(t.Context(), metrics)
				require.NoError(t, err)
				reported = diagnosisOf(metrics)
			}
			assert.Equal(t, c.want, reported["condition=degraded"] == 1, "it knows that 0.1 s was usual")
			p.end()
		})
	}
}

// Production and test may have servers of the same name.
func TestServersOfTwoNamespacesAreTwo(t *testing.T) {
	p := run(t, within(promise("ttft", firstToken, 2500*time.Millisecond, 0.9)))
	engines := map[string]*engineLog{"0": {born: noon}}
	for n := range 3 {
		p.at = p.at.Add(30 * time.Second)
		if n > 0 {
			engines["0"].firstTokenTook(p.at.Add(-time.Second), 1, 3)
		}
		p.take(prod(body("one:8000", "m", p.at, []string{firstToken}, engines)))
		emitted := p.take(test(body("one:8000", "m", p.at, []string{firstToken}, map[string]*engineLog{"0": {born: noon}})))
		assert.Zero(t, emitted.values[valid], "no request reached the idle server")
	}
	assert.Len(t, p.resources, 2)
}

// A collector that goes back to an earlier version finds what this one wrote: see
// states.TestAReaderOfFormOneFindsAllStates. The key of a server without namespaces
// has not changed.
func TestTheKeyOfAServerWithoutNamespacesIsThatOfForm1(t *testing.T) {
	keys := func(folder string) (all []string) {
		p := newInstance(t, kept(), &archive.Shared{})
		p.at = noon.Add(time.Hour)
		host := files(t, folder)
		p.begin(host)
		p.budget("plain:8000", unplaced)
		p.end()
		store, err := host.extension.(storage.Extension).GetClient(t.Context(), component.KindProcessor, component.NewIDWithName(metadata.Type, "one"), "")
		require.NoError(t, err)
		defer func() { require.NoError(t, store.Close(context.Background())) }()
		data, err := store.Get(t.Context(), budgetsKey)
		require.NoError(t, err)
		saved, err := archive.Decode(data)
		require.NoError(t, err)
		for key := range saved {
			all = append(all, key)
		}
		return all
	}
	fresh := keys(t.TempDir())
	require.Len(t, fresh, 1)
	assert.Contains(t, keys(storageOfForm1(t)), fresh[0])
	assert.Len(t, keys(storageOfForm1(t)), 2, "and no other was added")
}
