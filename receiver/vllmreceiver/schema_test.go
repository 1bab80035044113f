package vllmreceiver

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/featuregate"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// The resource names the conventions that it follows, the scope does not: the
// URL of a scope becomes a label of every series in Prometheus. The gate gives
// the old form back.
func TestSchemaURLIsOnTheResource(t *testing.T) {
	const gate = "receiver.vllm.schemaURL"
	body := "# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{engine=\"0\"} 1\n"
	for _, on := range []bool{true, false} {
		require.NoError(t, featuregate.GlobalRegistry().Set(gate, on))
		t.Cleanup(func() { require.NoError(t, featuregate.GlobalRegistry().Set(gate, true)) })
		r := newRig(t)
		want := ""
		if on {
			want = "https://opentelemetry.io/schemas/1.41.0"
		}
		for _, out := range []pmetric.Metrics{r.scrape(body), r.fail(500)} {
			require.Equal(t, 1, out.ResourceMetrics().Len())
			resource := out.ResourceMetrics().At(0)
			assert.Equal(t, want, resource.SchemaUrl())
			require.Equal(t, 1, resource.ScopeMetrics().Len())
			assert.Empty(t, resource.ScopeMetrics().At(0).SchemaUrl())
		}
	}
}
