package vllmprocessor

import (
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/archive"
)

// An engine of which only a part has arrived looks like one that does nothing. It is
// judged by the whole, whatever a batch processor before this one makes of a scrape.
func TestABatchInPartsIsDiagnosedAsAWhole(t *testing.T) {
	reportedBy := func(split int) (all []map[string]float64) {
		p := newInstance(t, createDefaultConfig().(*Config), &archive.Shared{})
		p.begin(componenttest.NewNopHost())
		defer p.end()
		server := steady("one:8000", noon)
		for n := range 60 {
			if n == 30 {
				server.firstToken = 3
			}
			metrics := server.scrape()
			p.at = server.at
			// The health check of the server comes in the first part, its engine later.
			up := metrics.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics()
			health := pmetric.NewMetric()
			up.At(0).CopyTo(health)
			health.SetName("vllm.healthy")
			health.Gauge().DataPoints().At(0).Attributes().Clear()
			health.Gauge().DataPoints().At(0).SetDoubleValue(1)
			health.CopyTo(up.AppendEmpty())
			at := map[string]float64{}
			for _, part := range parts(metrics, split) {
				out, err := p.process(t.Context(), part)
				require.NoError(t, err)
				emitted := diagnosisOf(out)
				for key := range emitted {
					assert.NotContains(t, at, key, "reported twice")
				}
				maps.Copy(at, emitted)
			}
			all = append(all, at)
		}
		return all
	}
	whole := reportedBy(1)
	require.Equal(t, 1.0, whole[len(whole)-1]["condition=degraded"])
	for _, split := range []int{2, 3, 8} {
		assert.Equal(t, whole, reportedBy(split), split)
	}
}

func TestWithoutADiagnosisNothingIsReportedOfIt(t *testing.T) {
	config := configured(t, "diagnosis: {enabled: false}")
	p := newInstance(t, config, &archive.Shared{})
	p.begin(componenttest.NewNopHost())
	defer p.end()
	assert.Empty(t, p.watch(steady("one:8000", noon), 3*time.Minute))
	assert.Nil(t, p.diagnosis())
}
