package scrape

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// The resource names the conventions that it follows, the scope does not: the
// URL of a scope becomes a label of every series in Prometheus.
func TestSchemaURLIsOnTheResource(t *testing.T) {
	r := newRig(t)
	for _, out := range []pmetric.Metrics{r.scrape(gauge("1")), r.fail(500)} {
		require.Equal(t, 1, out.ResourceMetrics().Len())
		resource := out.ResourceMetrics().At(0)
		assert.Equal(t, "https://opentelemetry.io/schemas/1.41.0", resource.SchemaUrl())
		require.Equal(t, 1, resource.ScopeMetrics().Len())
		assert.Empty(t, resource.ScopeMetrics().At(0).SchemaUrl())
	}
}
