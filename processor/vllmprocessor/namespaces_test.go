package vllmprocessor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// placed puts a server into a namespace.
func placed(namespace string, metrics pmetric.Metrics) pmetric.Metrics {
	for _, rm := range metrics.ResourceMetrics().All() {
		rm.Resource().Attributes().PutStr("service.namespace", namespace)
		rm.Resource().Attributes().PutStr("k8s.namespace.name", "inference")
	}
	return metrics
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
		p.take(placed("prod", body("one:8000", "m", p.at, []string{firstToken}, engines)))
		emitted := p.take(placed("test", body("one:8000", "m", p.at, []string{firstToken}, map[string]*engineLog{"0": {born: noon}})))
		assert.Zero(t, emitted.values[valid], "no request reached the idle server")
	}
	assert.Len(t, p.resources, 2)
}
