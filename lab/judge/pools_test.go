package judge

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/race"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/scenario"
)

// The times of a story of a pool, in seconds: a warm-up, then the changes.
const (
	poolOnset  = 15 * 60.0
	poolLength = poolOnset + 12*60.0
	poolEnds   = poolOnset + 8*60.0
)

// poolStory is a story of four servers of one model that get six requests per second
// each.
type poolStory struct {
	// changes and faults are by server.
	changes [4][]engine.Change
	faults  [4][]Fault
	// queue is the number of requests that wait at the gateway, from the onset to the
	// end.
	queue float64
}

// from sets a parameter at the onset, and resets it at the end.
func from(p engine.Parameter, value float64) []engine.Change {
	return scenario.Changes([]Injection{{Parameter: p, Value: value, At: poolOnset, Until: poolEnds}}, 0, 1)
}

// everyServer returns the same changes for each server.
func everyServer(changes []engine.Change) [4][]engine.Change {
	return [4][]engine.Change{changes, changes, changes, changes}
}

// poolRecording is the reported diagnosis of a pool and of its servers.
type poolRecording struct {
	pool    []reading
	servers map[string][]reading
}

// recordPool runs a story with a processor that has a pool configured.
func recordPool(t *testing.T, s *poolStory) *poolRecording {
	t.Helper()
	race.SkipSequential(t)
	h := &poolRecording{servers: map[string][]reading{}}
	config, err := configure(map[string]any{"pool": map[string]any{"interval": "15s"}})
	require.NoError(t, err)
	d, err := newDiagnosis(t.Context(), config, begin)
	require.NoError(t, err)
	observe := func(name string, at float64, metrics pmetric.Metrics) {
		metrics.ResourceMetrics().At(0).Resource().Attributes().PutStr("service.instance.id", name)
		reported, err := d.observe(t.Context(), metrics)
		require.NoError(t, err)
		h.servers[name] = append(h.servers[name], reading{reported, at})
	}
	var worlds [4]*world
	var scrapers [4]*scraper
	for i := range worlds {
		cfg := chatServer(uint64(100+i), 6)
		cfg.Changes = s.changes[i]
		worlds[i], err = newWorld(cfg, s.faults[i], nil, func(*seen) {})
		require.NoError(t, err)
		scrapers[i] = newScraper(worlds[i], i, true)
	}
	for at := interval; at <= poolLength; at += interval {
		for i, w := range worlds {
			// Servers are scraped at different times, and not when the pools are emitted.
			now := at + float64(i) + 0.5
			d.advance(now)
			require.NoError(t, w.advance(now))
			metrics, _ := scrapers[i].scrape(w, d.clock.Now(), begin)
			observe(fmt.Sprint("server-", i), now, metrics)
			if d.pool != nil {
				h.pool = append(h.pool, reading{*d.pool, now})
				d.pool = nil
			}
		}
		queued := 0.0
		if at >= poolOnset && at < poolEnds {
			queued = s.queue
		}
		observe("gateway", at, gateway(queued, d.clock.Now()))
	}
	require.NoError(t, d.processor.Shutdown(t.Context()))
	return h
}

// gateway returns a scrape of a gateway with a queue for the model.
func gateway(queued float64, now time.Time) pmetric.Metrics {
	metrics := pmetric.NewMetrics()
	rm := metrics.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.instance.id", "gateway")
	m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("inference_gateway.epp.flow_control.queue.size")
	p := m.SetEmptyGauge().DataPoints().AppendEmpty()
	p.SetTimestamp(pcommon.NewTimestampFromTime(now))
	p.SetDoubleValue(queued)
	p.Attributes().PutStr("model_name", modelName)
	p.Attributes().PutStr("priority", "0")
	return metrics
}

// phase is a time with the same verdict.
type phase struct {
	verdict  string
	from, to float64
}

// phases returns the successive verdicts about a pool or a server, without the first
// minutes.
func phases(reported []reading) (all []phase) {
	for _, one := range reported {
		if one.at < 5*60 || one.condition == "" {
			continue
		}
		verdict := strings.TrimSpace(one.condition + " " + one.primary())
		if n := len(all); n > 0 && all[n-1].verdict == verdict {
			all[n-1].to = one.at
			continue
		}
		all = append(all, phase{verdict, one.at, one.at})
	}
	return all
}

// reportsCause reports whether a cause is reported in any role.
func reportsCause(reported []reading, cause string) bool {
	return slices.ContainsFunc(reported, func(one reading) bool { return one.primary() == cause || one.reports(cause, "contributing") })
}

// within requires that a verdict is reported at most the given seconds after the
// onset, not before the onset, and that it lasts to the end.
func within(t *testing.T, reported []reading, verdict string, seconds float64) {
	t.Helper()
	var first, last, left float64
	for _, one := range reported {
		if strings.TrimSpace(one.condition+" "+one.primary()) == verdict {
			if first == 0 {
				first = one.at
			}
			last, left = one.at, math.Inf(1)
		} else if one.at > last && math.IsInf(left, 1) {
			left = one.at
		}
	}
	t.Logf("%s is reported %.1f s after the onset and ends %.1f s after the end", verdict, first-poolOnset, left-poolEnds)
	assert.Greater(t, first, poolOnset, verdict)
	assert.LessOrEqual(t, first, poolOnset+seconds, verdict)
	assert.GreaterOrEqual(t, last, poolEnds, "it lasts to the end")
	for _, one := range reported {
		if one.at > first && one.at < poolEnds {
			assert.Equal(t, verdict, strings.TrimSpace(one.condition+" "+one.primary()), "%.0f s after the onset", one.at-poolOnset)
		}
	}
}

// noAlarms requires that there is no alarm.
func noAlarms(t *testing.T, reported []reading, who string) {
	t.Helper()
	for _, one := range reported {
		assert.False(t, one.alarms(), "%s at %.0f s: %+v", who, one.at, one)
	}
}

// all checks each server from least on.
func (h *poolRecording) all(t *testing.T, least int, check func(t *testing.T, reported []reading, who string)) {
	t.Helper()
	require.Len(t, h.servers, 5, "four servers and the gateway")
	for i := least; i < 4; i++ {
		name := fmt.Sprint("server-", i)
		check(t, h.servers[name], name)
	}
}

const (
	// reportedWithin is the longest time, in seconds, from the cause to the report in these
	// stories: hold is two windows of a minute, and scrapes and pools have intervals.
	reportedWithin = 105.0
	// inferredWithin is the same of causes that have to be certain: up to three windows more. Of an
	// overload it is known only when the queue has not drained for several windows, overloadedWithin.
	inferredWithin   = 300.0
	overloadedWithin = 500.0
	hot              = "server-0"
)

func TestAPoolOfHealthyServersIsHealthy(t *testing.T) {
	t.Parallel()
	h := recordPool(t, &poolStory{})
	noAlarms(t, h.pool, "the pool")
	h.all(t, 0, noAlarms)
	assert.Equal(t, "healthy", phases(h.pool)[0].verdict)
	assert.Len(t, phases(h.pool), 1)
}

// One server gets 85 % of all requests, more than it serves; their total is as before. More
// requests are not harm before they are more than it serves.
func TestUnevenRoutingIsReportedAsImbalance(t *testing.T) {
	t.Parallel()
	cold := from(engine.ParamArrivalRate, 0.2)
	h := recordPool(t, &poolStory{changes: [4][]engine.Change{from(engine.ParamArrivalRate, 4-3*0.2), cold, cold, cold}})
	within(t, h.pool, "degraded imbalanced", overloadedWithin)
	assert.False(t, reportsCause(h.pool, "slow_steps"))
	assert.True(t, slices.ContainsFunc(h.pool, func(one reading) bool { return one.reports("demand_exceeds_capacity", "contributing") }))
	within(t, h.servers[hot], "degraded demand_exceeds_capacity", overloadedWithin)
	h.all(t, 1, noAlarms)
}

func TestAPoolThatGetsTooMuchIsNotImbalanced(t *testing.T) {
	t.Parallel()
	h := recordPool(t, &poolStory{changes: everyServer(from(engine.ParamArrivalRate, 3.4))})
	within(t, h.pool, "degraded demand_exceeds_capacity", overloadedWithin)
	assert.False(t, reportsCause(h.pool, "imbalanced"))
}

// A server that is slow or has a smaller cache has more requests than the others, but
// as many arrive.
func TestAServerThatIsWorseIsNotImbalance(t *testing.T) {
	t.Parallel()
	for cause, change := range map[string][]engine.Change{
		"slow_steps":  from(engine.ParamBandwidth, 0.3),
		"kv_pressure": from(engine.ParamBlocks, 0.05),
	} {
		t.Run(cause, func(t *testing.T) {
			t.Parallel()
			h := recordPool(t, &poolStory{changes: [4][]engine.Change{change}})
			within(t, h.pool, "degraded "+cause, inferredWithin)
			within(t, h.servers[hot], "degraded "+cause, inferredWithin)
			assert.False(t, reportsCause(h.pool, "imbalanced"))
			h.all(t, 1, noAlarms)
		})
	}
}

func TestAPoolWithoutOneOfItsServersIsDegraded(t *testing.T) {
	t.Parallel()
	h := recordPool(t, &poolStory{faults: [4][]Fault{{{Unreachable, poolOnset, poolEnds}}}})
	within(t, h.pool, "degraded servers_lost", reportedWithin)
	within(t, h.servers[hot], "unreachable", reportedWithin)
	h.all(t, 1, noAlarms)
}

// The servers get no requests, while requests wait at the gateway.
func TestServersThatGetNothingAreStarved(t *testing.T) {
	t.Parallel()
	h := recordPool(t, &poolStory{changes: everyServer(from(engine.ParamArrivalRate, 0)), queue: 20})
	within(t, h.pool, "degraded upstream_starved", reportedWithin)
	h.all(t, 0, noAlarms)
}

// There are no requests: no queue at the gateway, and no cause.
func TestServersWithoutRequestsAreIdle(t *testing.T) {
	t.Parallel()
	h := recordPool(t, &poolStory{changes: everyServer(from(engine.ParamArrivalRate, 0))})
	noAlarms(t, h.pool, "the pool")
	assert.Equal(t, []string{"healthy", "idle", "healthy"}, func() (all []string) {
		for _, p := range phases(h.pool) {
			all = append(all, p.verdict)
		}
		return all
	}())
}
