package rivals

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
)

// written is a server that a test counts for.
type written struct {
	counters, gauges map[string]float64
}

// scrape is what it shows.
func (s *written) scrape() pmetric.Metrics {
	all := pmetric.NewMetrics()
	to := all.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics()
	for name, v := range s.gauges {
		m := to.AppendEmpty()
		m.SetName(name)
		p := m.SetEmptyGauge().DataPoints().AppendEmpty()
		p.SetDoubleValue(v)
		if name != "vllm.up" {
			p.Attributes().PutStr("engine", "0")
			p.Attributes().PutStr("model_name", "a model")
		}
	}
	for name, v := range s.counters {
		m := to.AppendEmpty()
		m.SetName(name)
		p := m.SetEmptySum().DataPoints().AppendEmpty()
		p.SetDoubleValue(v)
		p.Attributes().PutStr("engine", "0")
		p.Attributes().PutStr("model_name", "a model")
	}
	return all
}

// observed adds a histogram, in which so many are between 2.5 and 20, and all others below.
func observed(to pmetric.Metrics, name string, sum, count, late float64) {
	m := to.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().AppendEmpty()
	m.SetName(name)
	p := m.SetEmptyHistogram().DataPoints().AppendEmpty()
	p.SetSum(sum)
	p.SetCount(uint64(count))
	p.ExplicitBounds().FromRaw([]float64{2.5, 20})
	p.BucketCounts().FromRaw([]uint64{uint64(count - late), uint64(late), 0})
	p.Attributes().PutStr("engine", "0")
	p.Attributes().PutStr("model_name", "a model")
}

// minutes are those of a server with 10 requests in each.
type minutes struct {
	t      *testing.T
	method *NSigma
	server written
	at     float64
	n      float64
	first  float64
}

func newMinutes(t *testing.T, method *NSigma) *minutes {
	t.Helper()
	m := &minutes{t: t, method: method, server: written{gauges: map[string]float64{"vllm.up": 1}, counters: map[string]float64{}}}
	m.scrape()
	return m
}

func (m *minutes) scrape() judge.Report {
	m.t.Helper()
	metrics := m.server.scrape()
	observed(metrics, "vllm.time_to_first_token", m.first, m.n, 0)
	got, err := m.method.Scraped(m.t.Context(), 0, m.at, metrics)
	require.NoError(m.t, err)
	return got
}

// minute is one with a mean wait for the first token, mean numbers of running requests and accepted tokens of a draft.
func (m *minutes) minute(wait, running, accepted float64) judge.Report {
	m.t.Helper()
	var got judge.Report
	for _, off := range []float64{-2, 2} { // Half of a minute each: the mean of the gauge is what was asked for.
		m.at += 30
		m.n += 5
		m.first += 5 * wait
		m.server.counters["vllm.spec_decode.num_drafts"] += 100
		m.server.counters["vllm.spec_decode.num_accepted_tokens"] += 100 * accepted
		m.server.gauges["vllm.num_requests.running"] = running + off
		got = m.scrape()
	}
	return got
}

// usual are n minutes: waits of 1 s, 10 running requests and 2 accepted tokens, with the deviations 0.1, 1 and 0.2.
func (m *minutes) usual(n int) (last judge.Report) {
	m.t.Helper()
	for i := range n {
		sign := float64(1 - i%2*2)
		last = m.minute(1+0.1*sign, 10+sign, 2+0.2*sign)
	}
	return last
}

var (
	unknown = judge.Report{Condition: "unknown", Severity: 1}
	healthy = judge.Report{Condition: "healthy"}
)

func degraded(cause string) judge.Report {
	return judge.Report{Condition: "degraded", Severity: 2, Cause: cause}
}

// Harm is two windows in a row beyond three deviations of those before; the cause is that of the furthest signal.
func TestNSigmaReportsTheSecondWindowBeyondThreeDeviations(t *testing.T) {
	t.Parallel()
	m := newMinutes(t, NewNSigma(30, false))
	assert.Equal(t, unknown, m.usual(29))
	assert.Equal(t, healthy, m.usual(1))
	assert.Equal(t, healthy, m.minute(1.31, 20, 2), "3.1 deviations, once")
	// With that one the mean is 1.01 and the deviation sqrt((30*0.01 + 0.31*0.31*30/31)/31) = 0.113.
	assert.Equal(t, degraded("decode_load"), m.minute(1.4, 20, 2), "3.5 deviations; ten more run")
	assert.Equal(t, healthy, m.minute(1, 10, 2))

	m = newMinutes(t, NewNSigma(30, false))
	m.usual(30)
	assert.Equal(t, healthy, m.minute(1.29, 20, 2))
	assert.Equal(t, healthy, m.minute(1.29, 20, 2), "2.9 deviations are none")
	assert.Equal(t, healthy, m.minute(2, 20, 2))
	assert.Equal(t, healthy, m.minute(1, 20, 2), "one window is none")
	assert.Equal(t, healthy, m.minute(0.1, 10, 2))
	assert.Equal(t, healthy, m.minute(0.1, 10, 2), "nobody is harmed by short waits")
}

// Of accepted tokens fewer are harm, and more are none.
func TestNSigmaKnowsTheDirectionOfHarm(t *testing.T) {
	t.Parallel()
	for accepted, want := range map[float64]string{1: "speculation_wasteful", 3: "decode_load"} {
		m := newMinutes(t, NewNSigma(30, false))
		m.usual(30)
		m.minute(2, 12, accepted) // 5 deviations of what is accepted, 2 of what runs.
		assert.Equal(t, degraded(want), m.minute(3, 12, accepted), accepted)
	}
}

// In the usual form what lasts is usual soon; the quiet one does not learn from it.
func TestQuietNSigmaDoesNotLearnFromHarm(t *testing.T) {
	t.Parallel()
	for quiet, want := range map[bool]judge.Report{true: degraded("decode_load"), false: healthy} {
		m := newMinutes(t, NewNSigma(10, quiet))
		m.usual(10)
		m.minute(2, 20, 2)
		for range 20 {
			m.minute(2, 20, 2)
		}
		assert.Equal(t, want, m.minute(2, 20, 2), quiet)
	}
}

// A process that starts again, or is away, has no window with the one before.
func TestNSigmaDropsTheWindowOfARestart(t *testing.T) {
	t.Parallel()
	m := newMinutes(t, NewNSigma(30, false))
	m.usual(30)
	m.at += 30
	m.first, m.n, m.server.counters = 1, 1, map[string]float64{}
	m.scrape()
	m.server.gauges["vllm.up"] = 0
	m.at += 300
	m.scrape()
	m.server.gauges["vllm.up"] = 1
	m.scrape()
	// The new process is as slow as the old one was: no window has other values.
	assert.Equal(t, healthy, m.usual(10))
	assert.InDelta(t, 40, m.method.servers[0].before[0].n, 0)
	assert.InDelta(t, 1, m.method.servers[0].before[0].mean, 1e-9)
}
