package rivals

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/content"
	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
)

// tenEach is a server to which ten requests come in the 10 s between two scrapes.
type tenEach struct {
	written
	n, errors, tokens float64
}

// next is the next scrape. Of the ten, so many get their first token late and so many fail; without tokens nothing
// moves, and a server that is down has only the mark at the end of its series.
func (s *tenEach) next(late, errors, tokens float64, up bool) pmetric.Metrics {
	s.gauges = map[string]float64{"vllm.up": 0, "vllm.num_requests.running": 5}
	s.counters = map[string]float64{"vllm.generation_tokens": s.tokens}
	if up {
		s.gauges["vllm.up"] = 1
		if s.tokens += tokens; tokens > 0 {
			s.n, s.errors, s.late = s.n+10, s.errors+errors, s.late+late
		}
		s.counters["vllm.generation_tokens"], s.counters["vllm.prompt_tokens"] = s.tokens, s.tokens
	}
	metrics := s.scrape()
	if !up {
		for _, m := range metrics.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
			if m.Name() == "vllm.num_requests.running" {
				m.Gauge().DataPoints().At(0).SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
			}
		}
		return metrics
	}
	s.observe(metrics, "vllm.time_to_first_token", s.n, s.n)
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

// Each alert fires once its condition holds for its time, about the right server, and for nothing else. The times are
// worked out: a fault begins after the scrape at its second, and rules see the scrapes up to 10 s before.
func TestWireReportsWhatFires(t *testing.T) {
	t.Parallel()
	down := judge.Report{Condition: "unreachable", Severity: 3}
	for name, want := range map[string]struct {
		begins, fires float64
		of            [2]judge.Report
		next          func(s *tenEach, bad bool) pmetric.Metrics
	}{
		// up is 0 first at 610, which the rules see at 660; two minutes are its time.
		"down": {600, 780, [2]judge.Report{down, healthy}, func(s *tenEach, bad bool) pmetric.Metrics { return s.next(0, 0, 100, !bad) }},
		// The five minutes before 900 have one value of the tokens, and that lasts for five more.
		"stalled": {600, 1200, [2]judge.Report{{Condition: "stalled", Severity: 3}, healthy}, func(s *tenEach, bad bool) pmetric.Metrics {
			if bad {
				return s.next(0, 0, 0, true)
			}
			return s.next(0, 0, 100, true)
		}},
		// Of both servers' requests 10 % fail: 5 % of five minutes is reached after 145 s of scrapes, which the rules
		// see at 780, and that lasts for five more. It is about the model, so about both servers.
		"failing": {600, 1080, [2]judge.Report{
			{Condition: "failing", Cause: "erroring", Severity: 3}, {Condition: "failing", Cause: "erroring", Severity: 3},
		}, func(s *tenEach, bad bool) pmetric.Metrics {
			if bad {
				return s.next(0, 2, 100, true)
			}
			return s.next(0, 0, 100, true)
		}},
		// 6 times what 95 % allows are 30 %. Of both servers' requests 10 % are late in the 1270 s before, and 55 % after:
		// 30 % of all at (127 + 0.55 t) / (1270 + t), which is after 1016 s, and the rules see 1050 s at 2340.
		"late": {1280, 2340, [2]judge.Report{{Condition: "degraded", Severity: 3}, {Condition: "degraded", Severity: 3}}, func(s *tenEach, bad bool) pmetric.Metrics {
			if bad {
				return s.next(10, 0, 100, true)
			}
			return s.next(1, 0, 100, true)
		}},
		"nothing": {0, 1e9, [2]judge.Report{}, func(s *tenEach, _ bool) pmetric.Metrics { return s.next(2, 0.4, 100, true) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, err := NewWire(t.Context())
			require.NoError(t, err)
			var servers [2]tenEach
			for at := 10.0; at <= min(want.fires, 2400); at += 10 {
				for i := range servers {
					metrics := want.next(&servers[i], at > want.begins && i == 0)
					got, err := w.Scraped(t.Context(), i, at, metrics)
					require.NoError(t, err)
					expected := healthy
					if at >= want.fires {
						expected = want.of[i]
					}
					require.Equal(t, expected, got, "server %d at %v s", i, at)
				}
			}
			require.NoError(t, w.Close())
		})
	}
}

// Each of these alerts has a meaning, so that none is left out when one is added or renamed.
func TestEveryAlertOnVLLMsNamesHasAMeaning(t *testing.T) {
	t.Parallel()
	var want, got []string
	for _, g := range content.Groups() {
		for i := range g.Alerts {
			if g.Set == content.Wire {
				want = append(want, g.Alerts[i].Name)
			}
		}
	}
	for _, m := range means {
		got = append(got, m.alert)
	}
	slices.Sort(want)
	slices.Sort(got)
	assert.Equal(t, want, got)
	w, err := NewWire(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 2, w.severity["VLLMRawQueueTimeHigh"], "a ticket is a warning")
	assert.Equal(t, 3, w.severity["VLLMRawFirstTokenLateFast"], "a page is a page")
	require.NoError(t, w.Close())
	assert.NoDirExists(t, w.dir)
}
