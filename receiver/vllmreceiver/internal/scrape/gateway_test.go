package scrape

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/captures"
)

// total is the sum over the points of a metric that have these attributes.
type total struct{ value, count, sum float64 }

func totalOf(metrics pmetric.Metrics, name string, wants ...string) total {
	var t total
	for _, m := range metricsNamed(metrics, name) {
		numbers := pmetric.NewNumberDataPointSlice()
		switch m.Type() {
		case pmetric.MetricTypeGauge:
			numbers = m.Gauge().DataPoints()
		case pmetric.MetricTypeSum:
			numbers = m.Sum().DataPoints()
		case pmetric.MetricTypeHistogram:
			for _, p := range m.Histogram().DataPoints().All() {
				if hasAll(p.Attributes(), wants) {
					t.count += float64(p.Count())
					t.sum += p.Sum()
				}
			}
		}
		for _, p := range numbers.All() {
			if hasAll(p.Attributes(), wants) {
				t.value += p.DoubleValue()
			}
		}
	}
	return t
}

func metricsNamed(metrics pmetric.Metrics, name string) []pmetric.Metric {
	var out []pmetric.Metric
	for _, rm := range metrics.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if m.Name() == name {
					out = append(out, m)
				}
			}
		}
	}
	return out
}

// hasAll reports whether a point has the attributes, given as name, value, name,
// value; an empty value means that it is absent.
func hasAll(attributes pcommon.Map, wants []string) bool {
	for i := 0; i < len(wants); i += 2 {
		if textOf(attributes, wants[i]) != wants[i+1] {
			return false
		}
	}
	return true
}

// textOf is an attribute as text; empty where it is absent.
func textOf(attributes pcommon.Map, name string) string {
	if value, ok := attributes.Get(name); ok {
		return value.AsString()
	}
	return ""
}

func ofPair(pair string) []string {
	model, target, _ := strings.Cut(pair, "|")
	return []string{"model_name", model, "target_model_name", target}
}

// gatewayBodies returns short bodies of gateways, which were written by hand, and the
// recorded ones where they are present.
func gatewayBodies(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for name, file := range map[string]string{"hand-gaie": "gaie.txt", "hand-llmd": "llmd.txt", "lora-hand": "lora.txt"} {
		out[name] = read(t, filepath.Join(bodies, "gateway", file))
	}
	for _, b := range captures.Recorded(t, "gateway/*.txt") {
		out[strings.TrimSuffix(filepath.Base(b.Name), ".txt")] = string(b.Text)
	}
	return out
}

func (r *rig) scrapeGateway(name, body string) pmetric.Metrics {
	r.contentType = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"
	if strings.Contains(name, "openmetrics") {
		r.contentType = "application/openmetrics-text; version=1.0.0; charset=utf-8"
	}
	return r.scrape(body)
}

const (
	epp  = "inference_gateway.epp."
	pool = "inference_gateway.pool."
)

// Nothing of a gateway is lost or passes under a name of its own: every family
// is an inference_gateway metric, off by default, or about the scrape.
func TestGatewaysHaveNoStrayNames(t *testing.T) {
	for name, body := range gatewayBodies(t) {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			metrics := r.scrapeGateway(name, body)
			own := []string{"vllm.up", "vllm.scrape.duration", "vllm.scrape.samples"}
			kind, flavor := "gateway", "gaie"
			switch {
			case strings.HasPrefix(name, "lora"):
				kind, flavor = "lora_syncer", ""
			case strings.Contains(name, "llmd"):
				flavor = "llm-d"
			}
			for _, rm := range metrics.ResourceMetrics().All() {
				assert.True(t, hasAll(rm.Resource().Attributes(), []string{"vllm.server.kind", kind, "inference_gateway.epp.flavor", flavor}))
				for _, sm := range rm.ScopeMetrics().All() {
					for _, m := range sm.Metrics().All() {
						assert.True(t, strings.HasPrefix(m.Name(), "inference_gateway.") || slices.Contains(own, m.Name()), m.Name())
						assert.NotContains(t, m.Description(), "[")
					}
				}
			}
			assert.Empty(t, r.logged("warn"))
			assert.NotContains(t, render(metrics), "fairness_id")
			assert.NotContains(t, render(metrics), "exported_")
		})
	}
}

// By default series are added up over the tenant; gateway::fairness_id keeps it.
func TestTheTenantIsKeptIfItIsWanted(t *testing.T) {
	body := gatewayBodies(t)["hand-gaie"]
	together := newRig(t).scrapeGateway("hand-gaie", body)
	assert.Equal(t, 12.0, totalOf(together, epp+"requests").value)
	assert.Len(t, points(together, epp+"requests"), 1)
	by := newRig(t, func(c *Config) { c.Gateway.FairnessID = true }).scrapeGateway("hand-gaie", body)
	assert.Equal(t, 5.0, totalOf(by, epp+"requests", "fairness_id", "a").value)
	assert.Equal(t, 7.0, totalOf(by, epp+"requests", "fairness_id", "b").value)
}

func TestAdaptersOfTheSyncer(t *testing.T) {
	const status = "inference_gateway.lora.adapter.status"
	body := gatewayBodies(t)["lora-hand"]
	metrics := newRig(t).scrapeGateway("lora-hand", body)
	assert.Len(t, points(metrics, status), 2)
	assert.Equal(t, 1.0, totalOf(metrics, status, "adapter_name", "a").value)
	assert.Zero(t, totalOf(metrics, status, "adapter_name", "b").value)
	limited := newRig(t, func(c *Config) { c.Limits.Adapters = 1 }).scrapeGateway("lora-hand", body)
	assert.Len(t, points(limited, status), 1, "the limit")
}

// Of the recorded bodies exactly the simulator's are taken for a simulator's.
func TestSimulatorsAndOnlyTheyAreMarked(t *testing.T) {
	kind := func(body string) string {
		r := newRig(t)
		return textOf(r.scrape(body).ResourceMetrics().At(0).Resource().Attributes(), "vllm.server.kind")
	}
	for _, b := range captures.Recorded(t, "series/*/*/*01.txt") {
		assert.Equal(t, "simulator", kind(string(b.Text)), b.Name)
	}
	for _, b := range captures.Bodies(t) {
		want := ""
		if strings.HasPrefix(path.Base(b.Name), "llm-d-router-epp-") {
			want = "gateway"
		}
		assert.Equal(t, want, kind(string(b.Text)), b.Name)
	}
}
