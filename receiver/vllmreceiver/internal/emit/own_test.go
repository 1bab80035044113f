package emit

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

func ownSettings() Settings {
	own := map[string]*catalog.Metric{}
	for _, name := range OwnMetrics() {
		own[name] = &catalog.Metric{Name: name, Unit: "u", Description: "d"}
	}
	return Settings{Own: own}
}

// ownLines are the points of a batch as "name value outcome", or "name end outcome".
func ownLines(metrics pmetric.MetricSlice) (lines []string) {
	for _, m := range metrics.All() {
		for _, p := range m.Gauge().DataPoints().All() {
			line := fmt.Sprint(m.Name(), " ", p.DoubleValue())
			if p.Flags().NoRecordedValue() {
				line = m.Name() + " end"
			}
			if outcome, ok := p.Attributes().Get("outcome"); ok {
				line += " " + outcome.Str()
			}
			lines = append(lines, line)
		}
	}
	return lines
}

func TestTheScrapeHasPointsOfItsOwn(t *testing.T) {
	target := New(ownSettings())
	plan := planOf()
	yes, no := true, false
	emit := func(at float64, own Own) []string {
		out := pmetric.NewMetrics()
		target.Emit(scrapeAt(at, plan), own, out)
		return ownLines(metricsOf(t, out))
	}
	fail := func(at float64, own Own) []string {
		out := pmetric.NewMetrics()
		target.Fail(midnight.Add(time.Duration(at)*time.Second), own, out)
		return ownLines(metricsOf(t, out))
	}
	assert.Equal(t, []string{
		"vllm.up 1", "vllm.scrape.duration 0.25", "vllm.scrape.samples 7", "vllm.healthy 1", "vllm.pod.ready 1", "vllm.pod.terminating 0",
	}, emit(0, Own{Up: true, Duration: 250 * time.Millisecond, Samples: 7, Healthy: &yes, Pod: &Pod{Ready: true}}))
	assert.Equal(t, []string{
		"vllm.up 1", "vllm.scrape.duration 0", "vllm.scrape.samples 0", "vllm.healthy 0", "vllm.pod.ready end", "vllm.pod.terminating end",
	}, emit(15, Own{Up: true, Healthy: &no}))
	// A failure ends what is not known now; its own series ends when the kind changes.
	assert.Equal(t, []string{
		"vllm.up 0", "vllm.scrape.duration 0", "vllm.scrape.samples 0", "vllm.healthy end", "vllm.scrape.failure 1 timeout",
	}, fail(30, Own{Failure: "timeout"}))
	assert.Equal(t, []string{
		"vllm.up 0", "vllm.scrape.duration 0", "vllm.scrape.samples 0", "vllm.scrape.failure 1 timeout",
	}, fail(45, Own{Failure: "timeout"}))
	assert.Equal(t, []string{
		"vllm.up 0", "vllm.scrape.duration 0", "vllm.scrape.samples 0", "vllm.scrape.failure end timeout", "vllm.scrape.failure 1 refused",
	}, fail(60, Own{Failure: "refused"}))
	assert.Equal(t, []string{
		"vllm.up 1", "vllm.scrape.duration 0", "vllm.scrape.samples 0", "vllm.scrape.failure end refused",
	}, emit(75, Own{Up: true}))
	out := pmetric.NewMetrics()
	target.End(midnight.Add(90*time.Second), out)
	assert.Equal(t, []string{"vllm.up end", "vllm.scrape.duration end", "vllm.scrape.samples end"}, ownLines(metricsOf(t, out)))
	target.End(midnight.Add(90*time.Second), pmetric.NewMetrics())
}

func TestPointsOfTheScrapeHaveATimeAndADescription(t *testing.T) {
	target := New(ownSettings())
	out := pmetric.NewMetrics()
	target.Emit(scrapeAt(15, planOf()), Own{Up: true, Failure: "x"}, out)
	for _, m := range metricsOf(t, out).All() {
		assert.Equal(t, "u d", m.Unit()+" "+m.Description())
		assert.Equal(t, seconds(15), m.Gauge().DataPoints().At(0).Timestamp())
	}
	out = pmetric.NewMetrics()
	target.End(midnight.Add(30*time.Second), out)
	for _, m := range metricsOf(t, out).All() {
		assert.Equal(t, "u ", m.Unit()+" "+m.Description())
		assert.Equal(t, seconds(30), m.Gauge().DataPoints().At(0).Timestamp())
	}
}

func TestMetricsThatAreSwitchedOffAreNotEmitted(t *testing.T) {
	target := New(Settings{})
	out := pmetric.NewMetrics()
	yes := true
	target.Emit(scrapeAt(0, planOf()), Own{Up: true, Healthy: &yes, Failure: "x", Pod: &Pod{}}, out)
	assert.Zero(t, metricsOf(t, out).Len())
}

func TestAChangedResourceEndsAllSeriesUnderTheOldOne(t *testing.T) {
	target := New(ownSettings())
	resource := func(name string) pcommon.Resource {
		r := pcommon.NewResource()
		r.Attributes().PutStr("name", name)
		return r
	}
	out := pmetric.NewMetrics()
	target.SetResource(resource("old"), midnight, out)
	assert.Zero(t, out.ResourceMetrics().Len(), "nothing is live")
	plan := planOf(counter("c", 0))
	target.Emit(scrapeAt(0, plan, 5), Own{Up: true}, pmetric.NewMetrics())
	target.SetResource(resource("old"), midnight.Add(time.Second), out)
	assert.Zero(t, out.ResourceMetrics().Len(), "it is the same")
	target.SetResource(resource("new"), midnight.Add(10*time.Second), out)
	require.Equal(t, []string{"c 0", "vllm.up ", "vllm.scrape.duration ", "vllm.scrape.samples "}, ends(metricsOf(t, out)))
	assert.Equal(t, map[string]any{"name": "old"}, out.ResourceMetrics().At(0).Resource().Attributes().AsRaw())
	out = pmetric.NewMetrics()
	target.Emit(scrapeAt(15, plan, 5), Own{Up: true}, out)
	assert.Equal(t, map[string]any{"name": "new"}, out.ResourceMetrics().At(0).Resource().Attributes().AsRaw())
}
