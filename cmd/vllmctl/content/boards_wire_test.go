package content_test

import (
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/content"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/spelling"
)

// docs/reference/dashboards.md names the boards that work with "naming: wire": none of
// their queries has a metric whose name the server or the gateway decides.
func TestTheBoardsForNamingWireHaveNoMetricOfAServer(t *testing.T) {
	checked := map[string]int{"vllm-wall": 0, "vllm-objectives": 0, "vllm-collector": 0}
	exposed := map[string]bool{}
	eachQuery(t, func(b content.Board, p content.Panel, _ content.Query, expr parser.Expr) {
		for _, s := range selectors(expr) {
			m, _, known := spelling.Metric(s.Name)
			ofServer := known && len(m.Sources) > 0
			exposed[b.UID] = exposed[b.UID] || ofServer
			if _, named := checked[b.UID]; named {
				checked[b.UID]++
				assert.False(t, ofServer, "%s / %s has %s", b.UID, p.Title, s.Name)
			}
		}
	})
	for uid, queries := range checked {
		assert.Positive(t, queries, uid)
	}
	for _, other := range []string{"vllm-overview", "vllm-engine", "vllm-features", "vllm-pool"} {
		assert.True(t, exposed[other], "%s works with naming: wire as a whole", other)
	}
}
