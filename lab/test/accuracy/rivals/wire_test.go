package rivals

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/content"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/spelling"
	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
)

// tenEach is a server to which ten requests come in the 10 s between two scrapes.
type tenEach struct {
	written
	n, errors, tokens, late, queued float64
}

// ten says how many of the ten get their first token late, wait long in the queue, and fail.
type ten struct {
	late, queued, errors float64
	stands, down         bool
}

// next is the next scrape. While it stands nothing moves, and of one that is down the series end.
func (s *tenEach) next(of ten) pmetric.Metrics {
	s.gauges = map[string]float64{"vllm.up": 1, "vllm.num_requests.running": 5}
	if !of.stands {
		s.tokens, s.n, s.errors, s.late, s.queued = s.tokens+100, s.n+10, s.errors+of.errors, s.late+of.late, s.queued+of.queued
	}
	s.counters = map[string]float64{"vllm.generation_tokens": s.tokens, "vllm.prompt_tokens": s.tokens}
	if of.down {
		s.gauges["vllm.up"], s.counters = 0, nil
	}
	metrics := s.scrape()
	if of.down {
		for _, m := range metrics.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
			if m.Name() == "vllm.num_requests.running" {
				m.Gauge().DataPoints().At(0).SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
			}
		}
		return metrics
	}
	observed(metrics, "vllm.time_to_first_token", s.n, s.n, s.late)
	observed(metrics, "vllm.request.queue_time", s.n, s.n, s.queued)
	m := metrics.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().AppendEmpty()
	m.SetName("vllm.request.success")
	sum := m.SetEmptySum()
	for reason, v := range map[string]float64{"stop": s.n - s.errors, "error": s.errors} {
		p := sum.DataPoints().AppendEmpty()
		p.SetDoubleValue(v)
		p.Attributes().PutStr("model_name", "a model")
		p.Attributes().PutStr("engine", "0")
		p.Attributes().PutStr("finished_reason", reason)
	}
	return metrics
}

// named has the time and the resource of a scrape, of which Prometheus makes the labels job and instance.
func named(metrics pmetric.Metrics, server int, at float64) pmetric.Metrics {
	rm := metrics.ResourceMetrics().At(0)
	rm.Resource().Attributes().PutStr("service.name", "vllm")
	rm.Resource().Attributes().PutStr("service.instance.id", strconv.Itoa(server))
	now := pcommon.NewTimestampFromTime(after(at))
	for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
		switch m.Type() {
		case pmetric.MetricTypeSum:
			m.Sum().SetIsMonotonic(true)
			m.Sum().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			for _, p := range m.Sum().DataPoints().All() {
				p.SetTimestamp(now)
			}
		case pmetric.MetricTypeGauge:
			m.Gauge().DataPoints().At(0).SetTimestamp(now)
		case pmetric.MetricTypeHistogram:
			m.Histogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			m.Histogram().DataPoints().At(0).SetTimestamp(now)
		default:
		}
	}
	return metrics
}

// An alert fires once its condition holds for its time, about the right server, and for nothing else. The times are
// worked out: a fault begins after the scrape at its second, and rules see the scrapes up to 10 s before.
func TestWireReportsWhatFires(t *testing.T) {
	t.Parallel()
	// What is about the model is about both servers.
	both := func(r judge.Report) [2]judge.Report { return [2]judge.Report{r, r} }
	one := func(condition string) [2]judge.Report {
		return [2]judge.Report{{Condition: condition, Severity: 3}, healthy}
	}
	for name, want := range map[string]struct {
		begins, fires float64
		says          [2]judge.Report
		usual, bad    ten
	}{
		// up is 0 first at 610, which the rules see at 660; two minutes are its time.
		"down": {600, 780, one("unreachable"), ten{}, ten{down: true}},
		// The five minutes before 900 have one value of the tokens, and that lasts for five more.
		"stalled": {600, 1200, one("stalled"), ten{}, ten{stands: true}},
		// Of both servers' requests 10 % fail: 5 % of five minutes is reached after 145 s of scrapes, which the rules
		// see at 780, and that lasts for five more.
		"failing": {600, 1080, both(judge.Report{Condition: "failing", Cause: "erroring", Severity: 3}), ten{}, ten{errors: 2}},
		// 6 times what 95 % allows are 30 %. Of both servers' requests 10 % are late in the 1270 s before, and 55 % after:
		// 30 % of all at (127 + 0.55 t) / (1270 + t), which is after 1016 s, and the rules see 1050 s at 2340.
		"late": {1280, 2340, both(judge.Report{Condition: "degraded", Severity: 3}), ten{late: 1}, ten{late: 10}},
		// Half of all wait 2.5 to 20 s in the queue. The p95 is above 5 s where a share s of five minutes does so with
		// (s - 0.05) / s * 17.5 s > 2.5 s, or s > 5.8 %: 50 of 560 at 660. That lasts for ten minutes: a ticket.
		"queued":  {600, 1260, both(judge.Report{Condition: "degraded", Severity: 2}), ten{}, ten{queued: 10}},
		"nothing": {0, 1e9, both(healthy), ten{late: 2, queued: 0.4, errors: 0.4}, ten{late: 2, queued: 0.4, errors: 0.4}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, err := NewWire(t.Context())
			require.NoError(t, err)
			var servers [2]tenEach
			for at := 10.0; at <= min(want.fires, 2400); at += 10 {
				for i := range servers {
					of := want.usual
					if i == 0 && at > want.begins {
						of = want.bad
					}
					got, err := w.Scraped(t.Context(), i, at, named(servers[i].next(of), i, at))
					require.NoError(t, err)
					expected := healthy
					if at >= want.fires {
						expected = want.says[i]
					}
					require.Equal(t, expected, got, "server %d at %v s", i, at)
				}
			}
			require.NoError(t, w.Close())
			assert.NoDirExists(t, w.dir)
		})
	}
}

// Each alert has a meaning and all that it reads is stored, so that nothing is left out when one changes.
func TestEveryAlertOnVLLMsNamesCanFire(t *testing.T) {
	t.Parallel()
	var want, got []string
	kept := slices.Collect(maps.Values(onTheWire))
	for _, g := range content.Groups() {
		for i := range g.Alerts {
			if g.Set != content.Wire {
				continue
			}
			want = append(want, g.Alerts[i].Name)
			expr, err := spelling.Parse(g.Alerts[i].Expr)
			require.NoError(t, err)
			for _, matchers := range parser.ExtractSelectors(expr) {
				name := matchers[slices.IndexFunc(matchers, func(m *labels.Matcher) bool { return m.Name == model.MetricNameLabel })].Value
				assert.Contains(t, kept, strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_count"))
			}
		}
	}
	for _, m := range means {
		got = append(got, m.alert)
	}
	slices.Sort(want)
	slices.Sort(got)
	assert.Equal(t, want, got)
	for metric, name := range onTheWire {
		if metric != "vllm.up" {
			assert.Equal(t, metric, catalog.BySource(name)[0].Metric.Name)
		}
	}
}
