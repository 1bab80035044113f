package vllmprocessor

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/archive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/emit"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/stages/diagnosis"
)

// markedPoint is a derived point: its series without the mark of the diagnosis, and
// the mark.
type markedPoint struct {
	series string
	mark   emit.Mark
	at     pcommon.Timestamp
	value  float64
	end    bool
}

// withoutMark writes attributes without the mark, which it returns.
func withoutMark(attributes pcommon.Map) (text string, mark emit.Mark) {
	var all []string
	for key, value := range attributes.All() {
		switch key {
		case "vllm.diagnosis.condition":
			mark.Condition = value.AsString()
		case "vllm.diagnosis.cause":
			mark.Cause = value.AsString()
		default:
			all = append(all, key+"="+value.AsString())
		}
	}
	slices.Sort(all)
	return strings.Join(all, ","), mark
}

// markedPoints are the derived points in the order in which they stand.
func markedPoints(t *testing.T, metrics pmetric.Metrics) (all []markedPoint) {
	t.Helper()
	for _, rm := range takeAdded(metrics).ResourceMetrics().All() {
		resource, ofResource := withoutMark(rm.Resource().Attributes())
		for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
			for _, p := range m.Gauge().DataPoints().All() {
				series, mark := withoutMark(p.Attributes())
				if ofResource != (emit.Mark{}) {
					require.Empty(t, mark, "in one place only")
					mark = ofResource
				}
				if strings.HasPrefix(m.Name(), "vllm.diagnosis.") {
					require.Empty(t, mark, "the diagnosis itself has one identity: %s", m.Name())
					continue
				}
				all = append(all, markedPoint{m.Name() + "{" + series + "} " + resource, mark, p.Timestamp(), p.DoubleValue(), p.Flags().NoRecordedValue()})
			}
		}
	}
	return all
}

// parts splits the metrics of a batch in so many calls.
func parts(metrics pmetric.Metrics, n int) (all []pmetric.Metrics) {
	from := metrics.ResourceMetrics().At(0)
	each := from.ScopeMetrics().At(0).Metrics()
	for i := range n {
		part := pmetric.NewMetrics()
		rm := part.ResourceMetrics().AppendEmpty()
		from.Resource().CopyTo(rm.Resource())
		to := rm.ScopeMetrics().AppendEmpty().Metrics()
		for k := i * each.Len() / n; k < (i+1)*each.Len()/n; k++ {
			each.At(k).CopyTo(to.AppendEmpty())
		}
		all = append(all, part)
	}
	return all
}

// incident passes a server through that becomes slow, recovers and is removed, and
// returns all derived points.
func incident(t *testing.T, on diagnosis.AttributesOn, split int) []markedPoint {
	t.Helper()
	config := createDefaultConfig().(*Config)
	config.Diagnosis.Attributes.On = on
	p := newInstance(t, config, &archive.Shared{})
	p.begin(componenttest.NewNopHost())
	defer p.end()
	server := steady("one:8000", noon)
	server.engines = 2
	var all []markedPoint
	for n := range 64 {
		server.firstToken = 0.1
		if n >= 30 && n < 46 {
			server.firstToken = 3
		}
		for _, part := range parts(server.scrape(), split) {
			if n == 63 {
				markAllEnds(part)
			}
			p.at = server.at
			input := pmetric.NewMetrics()
			part.CopyTo(input)
			out, err := p.process(t.Context(), part)
			require.NoError(t, err)
			require.Equal(t, input.ResourceMetrics().At(0).Resource().Attributes().AsRaw(), out.ResourceMetrics().At(0).Resource().Attributes().AsRaw())
			all = append(all, markedPoints(t, out)...)
			// What is left is the input, and what only the mark was on.
			out.ResourceMetrics().RemoveIf(func(rm pmetric.ResourceMetrics) bool { return rm.ScopeMetrics().Len() == 0 })
			require.Equal(t, input, out)
		}
	}
	return all
}

func markAllEnds(metrics pmetric.Metrics) {
	gone := pmetric.DefaultDataPointFlags.WithNoRecordedValue(true)
	for _, m := range metrics.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
		switch m.Type() {
		case pmetric.MetricTypeGauge:
			for _, p := range m.Gauge().DataPoints().All() {
				p.SetFlags(gone)
			}
		case pmetric.MetricTypeSum:
			for _, p := range m.Sum().DataPoints().All() {
				p.SetFlags(gone)
			}
		default:
			for _, p := range m.Histogram().DataPoints().All() {
				p.SetFlags(gone)
			}
		}
	}
}

// Whatever carries the attributes, the values are the same; each series has one
// mark at a time, and ends once when it gets another.
func TestAttributesOnlyChangeTheIdentity(t *testing.T) {
	for _, split := range []int{1, 3} {
		plain := map[string]float64{}
		for _, p := range incident(t, diagnosis.OnNone, split) {
			require.Empty(t, p.mark)
			if !p.end {
				plain[fmt.Sprint(p.series, p.at)] = p.value
			}
		}
		require.NotEmpty(t, plain)
		for _, on := range []diagnosis.AttributesOn{diagnosis.OnDerived, diagnosis.OnResource} {
			t.Run(fmt.Sprintf("%s in %d parts", on, split), func(t *testing.T) {
				live := map[string]map[emit.Mark]bool{}
				emitted := map[string]float64{}
				seen := map[emit.Mark]bool{}
				var at pcommon.Timestamp
				checkMarks := func() {
					for series, marks := range live {
						assert.LessOrEqual(t, len(marks), 1, "%s at %s: %v", series, at.AsTime(), marks)
					}
				}
				for _, p := range incident(t, on, split) {
					if p.at != at {
						checkMarks()
						at = p.at
					}
					if live[p.series] == nil {
						live[p.series] = map[emit.Mark]bool{}
					}
					if p.end {
						assert.True(t, live[p.series][p.mark], "an end of what is not there: %v", p)
						delete(live[p.series], p.mark)
						continue
					}
					live[p.series][p.mark] = true
					key := fmt.Sprint(p.series, p.at)
					assert.NotContains(t, emitted, key, "two points under one identity or another")
					emitted[key] = p.value
					rollup := !strings.Contains(p.series, "engine=")
					if on == diagnosis.OnDerived && rollup {
						assert.Empty(t, p.mark, p.series)
					} else {
						assert.NotEmpty(t, p.mark, p.series)
						seen[p.mark] = true
					}
				}
				checkMarks()
				for series, marks := range live {
					assert.Empty(t, marks, "%s has no end", series)
				}
				assert.Equal(t, plain, emitted)
				conditions := map[string]bool{}
				for mark := range seen {
					conditions[mark.Condition] = true
					assert.True(t, mark.Condition == "degraded" || mark.Cause == "", "%v: without harm there is no cause", mark)
				}
				assert.True(t, conditions["healthy"] && conditions["degraded"], conditions)
			})
		}
	}
}

// Of several engines the one that is off worst names the resource.
func TestTheWorstEngineNamesTheResource(t *testing.T) {
	r := newRig(t, "{quantiles: [], diagnosis: {attributes: {on: resource}}}")
	var text strings.Builder
	for at := 0; at <= 135; at += 15 {
		fmt.Fprintf(&text, "at %d\nattribute service.version=0.26.0\ngauge vllm.num_requests.running{0} 2\ngauge vllm.num_requests.running{1} 2\n"+
			"counter vllm.generation_tokens{0} %d\ncounter vllm.generation_tokens{1} %d\n"+
			"histogram vllm.inter_token_latency{0} 0.05:1 inf:0 sum:0.01\nhistogram vllm.inter_token_latency{1} 0.05:1 inf:0 sum:0.01\n", at, at*10, min(at, 75)*10)
	}
	marks := map[int]emit.Mark{}
	for _, call := range readStory(t, text.String()).calls {
		r.processor.now = func() time.Time { return call.at }
		out, err := r.processor.process(t.Context(), call.input)
		require.NoError(t, err)
		for _, p := range markedPoints(t, out) {
			if !p.end {
				marks[int(call.at.Sub(storyBegin).Seconds())] = p.mark
			}
		}
	}
	assert.Equal(t, emit.Mark{Condition: "healthy"}, marks[120])
	assert.Equal(t, emit.Mark{Condition: "stalled"}, marks[135])
}

// Under a new version of the resource the marked series end where they were.
func TestMarkedSeriesEndUnderTheOldVersionOfTheResource(t *testing.T) {
	for _, on := range []diagnosis.AttributesOn{diagnosis.OnDerived, diagnosis.OnResource} {
		r := newRig(t, "{quantiles: [], diagnosis: {attributes: {on: "+string(on)+"}}}")
		const body = `
			gauge vllm.num_requests.running{0} 0
			counter vllm.generation_tokens{0} `
		story := readStory(t, `
			at 0
			attribute service.version=1`+body+`0
			at 15
			attribute service.version=1`+body+`15
			at 30
			attribute service.version=1
			counter vllm.generation_tokens{0} gone
			gauge vllm.num_requests.running{0} gone
			server vllm-0:8000
			attribute service.version=2`+body+`5
			at 45
			attribute service.version=2`+body+`20`)
		var all []string
		for _, call := range story.calls {
			r.processor.now = func() time.Time { return call.at }
			out, err := r.processor.process(t.Context(), call.input)
			require.NoError(t, err)
			for _, p := range markedPoints(t, out) {
				_, version, _ := strings.Cut(p.series, "service.version=")
				line := fmt.Sprintf("%gs version %s %s", p.at.AsTime().Sub(storyBegin).Seconds(), version, p.mark.Condition)
				if p.end {
					line += " end"
				}
				if strings.HasPrefix(p.series, "vllm.generation_throughput") {
					all = append(all, line)
				}
			}
		}
		assert.Equal(t, []string{"15s version 1 unknown", "30s version 1 unknown end", "30s version 2 unknown", "45s version 2 unknown"}, all, on)
	}
}
