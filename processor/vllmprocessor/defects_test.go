package vllmprocessor

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/metadata"
)

// foreign has the metrics of a server from some receiver. All names are gauges and
// counters of the wire.
type foreign struct {
	t     *testing.T
	p     *vllmProcessor
	logs  *observer.ObservedLogs
	now   time.Time
	scope string
}

func newForeign(t *testing.T) *foreign {
	t.Helper()
	f := &foreign{t: t, now: storyBegin, scope: "github.com/open-telemetry/opentelemetry-collector-contrib/receiver/prometheusreceiver"}
	core, logs := observer.New(zap.DebugLevel)
	settings := processortest.NewNopSettings(metadata.Type)
	settings.Logger = zap.New(core)
	f.logs = logs
	f.p = create(t, configured(t, ""), settings)
	f.p.now = func() time.Time { return f.now }
	require.NoError(t, f.p.start(t.Context(), componenttest.NewNopHost()))
	return f
}

// scrape sends one scrape of a server and turns the clock by 15 s.
func (f *foreign) scrape(name, version string, families ...string) {
	f.t.Helper()
	metrics := pmetric.NewMetrics()
	rm := metrics.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.instance.id", name)
	if version != "" {
		rm.Resource().Attributes().PutStr("service.version", version)
	}
	sm := rm.ScopeMetrics().AppendEmpty()
	sm.Scope().SetName(f.scope)
	for _, family := range append(families, "vllm:num_requests_running") {
		family, label, labeled := strings.Cut(family, " ")
		m := sm.Metrics().AppendEmpty()
		m.SetName(family)
		var point pmetric.NumberDataPoint
		if strings.HasSuffix(family, "_total") {
			m.SetEmptySum().SetIsMonotonic(true)
			m.Sum().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			point = m.Sum().DataPoints().AppendEmpty()
		} else {
			point = m.SetEmptyGauge().DataPoints().AppendEmpty()
		}
		point.Attributes().PutStr("model_name", "m")
		point.Attributes().PutStr("engine", "0")
		if labeled {
			point.Attributes().PutStr(label, "1")
		}
		point.SetDoubleValue(1)
		point.SetTimestamp(pcommon.NewTimestampFromTime(f.now))
	}
	_, err := f.p.process(f.t.Context(), metrics)
	require.NoError(f.t, err)
	f.now = f.now.Add(15 * time.Second)
}

// lines are the lines about known defects, once no line waits any more.
func (f *foreign) lines() []observer.LoggedEntry {
	f.p.defects.Flush(f.now.Add(time.Hour))
	return f.logs.Filter(func(e observer.LoggedEntry) bool { return strings.Contains(e.Message, catalog.DefectsPage) }).All()
}

func TestTheDefectsOfServersOfOtherReceiversAreLogged(t *testing.T) {
	f := newForeign(t)
	defer func() { require.NoError(t, f.p.shutdown(t.Context())) }()
	for range 40 {
		for i := range 3 {
			f.scrape(fmt.Sprintf("vllm-%d:8000", i), "0.10.1")
		}
		f.scrape("unknown:8000", "")
		f.scrape("newer:8000", "", "vllm:prompt_tokens_by_source_total")
	}
	lines := f.lines()
	require.Len(t, lines, 3, "one line for each set of defects")
	fields := lines[0].ContextMap()
	assert.Equal(t, []any{"vllm-0:8000", "vllm-1:8000", "vllm-2:8000"}, fields["targets"])
	assert.Contains(t, lines[0].Message, "vLLM 0.10.1 has ")
	assert.Contains(t, lines[0].Message, "these 3 servers send")
	assert.Contains(t, fields["defects"], "gauges-freeze-on-abort")
	assert.NotContains(t, fields["defects"], "ray-last-label", "the server is not behind Ray")
	assert.Contains(t, lines[1].Message, "vLLM of an unknown version can have ")
	assert.Contains(t, lines[1].ContextMap()["defects"], "gauges-freeze-on-abort")
	assert.NotContains(t, lines[2].ContextMap()["defects"], "gauges-freeze-on-abort", "a family proves that the server is newer")

	for range 3 {
		f.scrape("vllm-0:8000", "0.10.2")
	}
	lines = f.lines()
	require.Len(t, lines, 4)
	assert.NotContains(t, lines[3].ContextMap()["defects"], "gauges-freeze-on-abort")
}

// A server that is forgotten and comes back is not logged again.
func TestTheDefectsOfAForgottenServerAreNotLoggedAgain(t *testing.T) {
	f := newForeign(t)
	defer func() { require.NoError(t, f.p.shutdown(t.Context())) }()
	for range 3 {
		for range 3 {
			f.scrape("vllm-0:8000", "0.10.1")
		}
		f.now = f.now.Add(time.Hour)
	}
	assert.Len(t, f.lines(), 1)
}

func TestTheDefectsAreLoggedByOneComponentOnly(t *testing.T) {
	f := newForeign(t)
	f.scope = "github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver"
	for range 3 {
		f.scrape("vllm-0:8000", "0.10.1")
	}
	assert.Empty(t, f.lines(), "the receiver logs them")
	f.scope = ""
	for range 3 {
		f.scrape("simulator:8000", "0.10.1", "vllm:max_num_generation_tokens")
		f.scrape("imitator:8000", "0.10.1", "vllm:request_success_total finish_reason")
	}
	assert.Empty(t, f.lines(), "other programs have no defects of vLLM")
	require.NoError(t, f.p.shutdown(t.Context()))

	// The scope above is that of the receiver.
	for _, batch := range scraped(t, "two engines") {
		assert.Equal(t, "github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver", batch.ResourceMetrics().At(0).ScopeMetrics().At(0).Scope().Name())
	}
}

// The end of the collector is not the end of what waits.
func TestWhatWaitsIsLoggedAtTheEnd(t *testing.T) {
	f := newForeign(t)
	f.scrape("vllm-0:8000", "0.10.1")
	f.scrape("vllm-0:8000", "0.10.1")
	assert.Empty(t, f.logs.FilterMessageSnippet(catalog.DefectsPage).All())
	require.NoError(t, f.p.shutdown(t.Context()))
	assert.Len(t, f.lines(), 1)
}
