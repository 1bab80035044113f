package vllmprocessor

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/archive"
)

// wired gives metrics the names that the receiver gives them with naming: wire.
func wired(t *testing.T, metrics pmetric.Metrics) pmetric.Metrics {
	t.Helper()
	for _, m := range metrics.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
		described, known := catalog.ByName(m.Name())
		require.True(t, known, m.Name())
		if len(described.Sources) > 0 {
			m.SetName(described.Sources[len(described.Sources)-1].Family)
		}
	}
	return metrics
}

// With the names of the wire the diagnosis says the same, scrape by scrape: of an
// incident, of dropped requests, of a stall and of a server that cannot be read.
func TestTheDiagnosisIsTheSameUnderWireNames(t *testing.T) {
	incident := func(naming func(pmetric.Metrics) pmetric.Metrics) (reported []map[string]float64, changes []string) {
		p := newInstance(t, createDefaultConfig().(*Config), &archive.Shared{})
		p.begin(componenttest.NewNopHost())
		defer p.end()
		server := steady("one:8000", noon)
		server.levels = map[string]float64{"vllm.num_dropped": 0}
		server.own = map[string]float64{"vllm.up": 1}
		take := func(metrics pmetric.Metrics) {
			p.at = server.at
			metrics, err := p.process(t.Context(), naming(metrics))
			require.NoError(t, err)
			reported = append(reported, diagnosisOf(metrics))
		}
		watch := func(d time.Duration) {
			for range d / (15 * time.Second) {
				take(server.scrape())
			}
		}
		watch(8 * time.Minute)
		server.firstToken = 3
		watch(4 * time.Minute)
		server.firstToken = 0.1
		watch(4 * time.Minute)
		for range 16 {
			server.levels["vllm.num_dropped"] += 2
			take(server.scrape())
		}
		watch(4 * time.Minute)
		server.stalled = true
		watch(2 * time.Minute)
		for range 8 {
			take(server.failed("refused", nil))
		}
		for _, line := range p.changes() {
			changes = append(changes, line.Message)
		}
		return reported, changes
	}
	want, wantChanges := incident(func(m pmetric.Metrics) pmetric.Metrics { return m })
	got, gotChanges := incident(func(m pmetric.Metrics) pmetric.Metrics { return wired(t, m) })
	assert.Equal(t, want, got)
	assert.Equal(t, wantChanges, gotChanges)
	for _, seen := range []string{"condition=degraded", "condition=stalled", "condition=unreachable", "cause=requests_dropped"} {
		assert.True(t, slices.ContainsFunc(got, func(reported map[string]float64) bool { return reported[seen] == 1 }), seen)
	}
}
