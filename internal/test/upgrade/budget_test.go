//go:build e2e

package upgrade

import (
	"cmp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// tooSlow is how many requests of the counted server are too slow, in all its life.
const tooSlow = 7

// account is what the budget of the counted server must know.
type account struct {
	// server is the counted server; empty for the first one.
	server string
	// before are the requests of all earlier lives of the collector; slow are those of them,
	// and of this life, that were too slow.
	before float64
	// newest is the last number of requests that the budget stood for.
	newest float64
}

// counts returns the number of requests of a counted server at each scrape.
func counts(all []pmetric.Metrics, server string) (times []pcommon.Timestamp, at map[pcommon.Timestamp]float64) {
	at = map[pcommon.Timestamp]float64{}
	for _, metrics := range all {
		for _, rm := range metrics.ResourceMetrics().All() {
			if instance(rm.Resource().Attributes()) != server {
				continue
			}
			for _, scope := range rm.ScopeMetrics().All() {
				for _, m := range scope.Metrics().All() {
					if m.Name() != "vllm.time_to_first_token" || m.Type() != pmetric.MetricTypeHistogram {
						continue
					}
					for _, p := range m.Histogram().DataPoints().All() {
						if !p.Flags().NoRecordedValue() {
							times = append(times, p.Timestamp())
							at[p.Timestamp()] = float64(p.Count())
						}
					}
				}
			}
		}
	}
	return times, at
}

// check compares each value of the budget that a life emitted with the requests that its scrapes
// counted. All slow requests are of the first life, so that the number of requests that the
// budget stands for follows from what is left of it: 1 - left = slow / requests / (1 - target).
func (a *account) check(t *testing.T, all []pmetric.Metrics) {
	t.Helper()
	server := cmp.Or(a.server, counterName)
	times, at := counts(all, server)
	require.NotEmpty(t, times)
	first, last := at[times[0]], at[times[len(times)-1]]
	checked := 0
	for _, left := range series(all, server, "vllm.slo.error_budget_remaining", map[string]string{"bound": "lower"}) {
		count, known := at[left.at]
		require.True(t, known, "a budget at the time of a scrape")
		if left.number >= 1 {
			assert.Zero(t, a.before, "the slow requests are forgotten")
			continue
		}
		requests := tooSlow / (1 - left.number) / (1 - target)
		assert.InDelta(t, a.before+count-first, requests, 1e-6, "requests in the budget after %g and %g", a.before, count-first)
		assert.GreaterOrEqual(t, requests, a.newest-1e-6, "requests that were in the budget have gone")
		a.newest = requests
		checked++
	}
	require.Greater(t, checked, 3)
	a.before += last - first
	t.Logf("%d values of the budget, which now stands for %.0f requests", checked, a.before)
}
