package accuracy

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/otelcol-vllm/otelcol-vllm/internal/vllmsim/engine"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor"
)

// The times of a story of a pool, in seconds: a warm-up, and then what happens.
const (
	poolOnset  = 15 * 60.0
	poolLength = poolOnset + 12*60.0
	poolEnds   = poolOnset + 8*60.0
)

// poolStory is what happens to four servers of one model, which get six requests
// per second each.
type poolStory struct {
	// changes and faults are by server.
	changes [4][]engine.Change
	faults  [4][]Fault
	// queue is what waits at the gateway, from the onset until the end.
	queue float64
}

// from sets a parameter at the onset, and back when it ends.
func from(p engine.Parameter, value float64) []engine.Change {
	return inject(p, value, poolOnset, poolEnds).Changes
}

// everyone is the same for each server.
func everyone(changes []engine.Change) [4][]engine.Change {
	return [4][]engine.Change{changes, changes, changes, changes}
}

// heard is what was told of a pool and of its servers.
type heard struct {
	begin   time.Time
	pool    []Told
	servers map[string][]Told
}

func (*heard) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (h *heard) ConsumeMetrics(_ context.Context, metrics pmetric.Metrics) error {
	at := time.Since(h.begin).Seconds()
	resource := metrics.ResourceMetrics().At(0).Resource().Attributes()
	if _, pool := resource.Get("otelcol.component.id"); pool {
		for _, m := range metrics.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
			if rest, is := strings.CutPrefix(m.Name(), "vllm.pool.diagnosis."); is {
				m.SetName("vllm.diagnosis." + rest)
			}
		}
		h.pool = append(h.pool, listen(metrics, "", at))
		return nil
	}
	instance := text(resource, "service.instance.id")
	h.servers[instance] = append(h.servers[instance], listen(metrics, "0", at))
	return nil
}

// hear lets a story happen before the eyes of a processor with a pool.
func hear(t *testing.T, s *poolStory) *heard {
	t.Helper()
	if raced {
		t.Skip("the race detector makes the engine thirty times slower")
	}
	h := &heard{servers: map[string][]Told{}}
	synctest.Test(t, func(t *testing.T) {
		factory := vllmprocessor.NewFactory()
		config := factory.CreateDefaultConfig().(*vllmprocessor.Config)
		require.NoError(t, confmap.NewFromStringMap(map[string]any{"pool": map[string]any{"interval": "15s"}}).Unmarshal(config))
		require.NoError(t, config.Validate())
		p, err := factory.CreateMetrics(t.Context(), processortest.NewNopSettings(factory.Type()), config, h)
		require.NoError(t, err)
		h.begin = time.Now()
		require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
		var worlds [4]*world
		var scrapers [4]*scraper
		for i := range worlds {
			cfg := server(uint64(100+i), engine.Llama8B(), 6)
			cfg.Changes = s.changes[i]
			worlds[i], err = newWorld(cfg, s.faults[i])
			require.NoError(t, err)
			scrapers[i] = newScraper(worlds[i])
		}
		for at := interval; at <= poolLength; at += interval {
			for i, w := range worlds {
				// Servers are not scraped at the same time, nor when the pools are told.
				scraped := at + float64(i) + 0.5
				time.Sleep(time.Until(h.begin.Add(seconds(scraped))))
				require.NoError(t, w.advance(scraped))
				metrics, _ := scrapers[i].scrape(w, time.Now(), h.begin)
				metrics.ResourceMetrics().At(0).Resource().Attributes().PutStr("service.instance.id", fmt.Sprint("server-", i))
				require.NoError(t, p.ConsumeMetrics(t.Context(), metrics))
			}
			queued := 0.0
			if at >= poolOnset && at < poolEnds {
				queued = s.queue
			}
			require.NoError(t, p.ConsumeMetrics(t.Context(), gateway(queued)))
		}
		require.NoError(t, p.Shutdown(t.Context()))
	})
	return h
}

// gateway is a scrape of a gateway with a queue for the model.
func gateway(queued float64) pmetric.Metrics {
	metrics := pmetric.NewMetrics()
	rm := metrics.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.instance.id", "gateway")
	m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("inference_gateway.epp.flow_control.queue.size")
	p := m.SetEmptyGauge().DataPoints().AppendEmpty()
	p.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
	p.SetDoubleValue(queued)
	p.Attributes().PutStr("model_name", modelName)
	p.Attributes().PutStr("priority", "0")
	return metrics
}

// phase is what was told in a row.
type phase struct {
	verdict  string
	from, to float64
}

// phases are the verdicts of a pool or a server one after the other, without the
// first minutes.
func phases(told []Told) (all []phase) {
	for _, one := range told {
		if one.At < 5*60 || one.Condition == "" {
			continue
		}
		verdict := strings.TrimSpace(one.Condition + " " + one.Primary)
		if n := len(all); n > 0 && all[n-1].verdict == verdict {
			all[n-1].to = one.At
			continue
		}
		all = append(all, phase{verdict, one.At, one.At})
	}
	return all
}

// says tells whether it is told of a cause in any role.
func says(told []Told, cause string) bool {
	return slices.ContainsFunc(told, func(one Told) bool { return one.Primary == cause || slices.Contains(one.Contributing, cause) })
}

// within requires that a verdict is told so many seconds after the onset at the
// latest, not before it, and stands at the end of it.
func within(t *testing.T, told []Told, verdict string, seconds float64) {
	t.Helper()
	var first, last, left float64
	for _, one := range told {
		if strings.TrimSpace(one.Condition+" "+one.Primary) == verdict {
			if first == 0 {
				first = one.At
			}
			last, left = one.At, math.Inf(1)
		} else if one.At > last && math.IsInf(left, 1) {
			left = one.At
		}
	}
	t.Logf("%s is told %.1f s after the onset and left %.1f s after the end", verdict, first-poolOnset, left-poolEnds)
	assert.Greater(t, first, poolOnset, verdict)
	assert.LessOrEqual(t, first, poolOnset+seconds, verdict)
	assert.GreaterOrEqual(t, last, poolEnds, "it lasts until the end")
	for _, one := range told {
		if one.At > first && one.At < poolEnds {
			assert.Equal(t, verdict, strings.TrimSpace(one.Condition+" "+one.Primary), "%.0f s after the onset", one.At-poolOnset)
		}
	}
}

// calm requires that nothing is told to be wrong.
func calm(t *testing.T, told []Told, who string) {
	t.Helper()
	for _, one := range told {
		assert.False(t, one.Alarms(), "%s at %.0f s: %+v", who, one.At, one)
	}
}

// all requires the same of each server that is not left out.
func (h *heard) all(t *testing.T, least int, check func(t *testing.T, told []Told, who string)) {
	t.Helper()
	require.Len(t, h.servers, 5, "four servers and the gateway")
	for i := least; i < 4; i++ {
		name := fmt.Sprint("server-", i)
		check(t, h.servers[name], name)
	}
}

const (
	// told is within how many seconds after its cause a verdict is told in these
	// stories: hold is two windows of a minute, and scrapes and pools have intervals.
	told = 105.0
	hot  = "server-0"
)

func TestAPoolOfHealthyServersIsHealthy(t *testing.T) {
	t.Parallel()
	h := hear(t, &poolStory{})
	calm(t, h.pool, "the pool")
	h.all(t, 0, calm)
	assert.Equal(t, "healthy", phases(h.pool)[0].verdict)
	assert.Len(t, phases(h.pool), 1)
}

// One server gets 70 % of what they all get together, which is as much as before.
func TestAnUnevenRouterIsToldAsImbalance(t *testing.T) {
	t.Parallel()
	cold := from(engine.ParamArrivalRate, 0.4)
	h := hear(t, &poolStory{changes: [4][]engine.Change{from(engine.ParamArrivalRate, 4-3*0.4), cold, cold, cold}})
	within(t, h.pool, "degraded imbalanced", told)
	assert.False(t, says(h.pool, "slow_steps"))
	assert.True(t, slices.ContainsFunc(h.pool, func(one Told) bool { return slices.Contains(one.Contributing, "demand_exceeds_capacity") }))
	within(t, h.servers[hot], "degraded demand_exceeds_capacity", told)
	h.all(t, 1, calm)
}

func TestAPoolThatGetsTooMuchIsNotImbalanced(t *testing.T) {
	t.Parallel()
	h := hear(t, &poolStory{changes: everyone(from(engine.ParamArrivalRate, 3.4))})
	within(t, h.pool, "degraded demand_exceeds_capacity", told)
	assert.False(t, says(h.pool, "imbalanced"))
}

// A server that is slow, or has a smaller cache, has more requests in it than the
// others. As many come.
func TestAServerThatIsWorseIsNotImbalance(t *testing.T) {
	t.Parallel()
	for cause, change := range map[string][]engine.Change{
		"slow_steps":  from(engine.ParamBandwidth, 0.3),
		"kv_pressure": from(engine.ParamBlocks, 0.05),
	} {
		t.Run(cause, func(t *testing.T) {
			t.Parallel()
			h := hear(t, &poolStory{changes: [4][]engine.Change{change}})
			within(t, h.pool, "degraded "+cause, told)
			within(t, h.servers[hot], "degraded "+cause, told)
			assert.False(t, says(h.pool, "imbalanced"))
			h.all(t, 1, calm)
		})
	}
}

func TestAPoolWithoutOneOfItsServersIsDegraded(t *testing.T) {
	t.Parallel()
	h := hear(t, &poolStory{faults: [4][]Fault{{{Unreachable, poolOnset, poolEnds}}}})
	within(t, h.pool, "degraded", told)
	within(t, h.servers[hot], "unreachable", told)
	h.all(t, 1, calm)
}

// The servers get nothing, while requests wait at the gateway.
func TestServersThatGetNothingAreStarved(t *testing.T) {
	t.Parallel()
	h := hear(t, &poolStory{changes: everyone(from(engine.ParamArrivalRate, 0)), queue: 20})
	within(t, h.pool, "degraded upstream_starved", told)
	h.all(t, 0, calm)
}

// Nobody sends anything: no queue at the gateway, and no cause.
func TestServersThatNobodyAsksAreIdle(t *testing.T) {
	t.Parallel()
	h := hear(t, &poolStory{changes: everyone(from(engine.ParamArrivalRate, 0))})
	calm(t, h.pool, "the pool")
	assert.Equal(t, []string{"healthy", "idle", "healthy"}, func() (all []string) {
		for _, p := range phases(h.pool) {
			all = append(all, p.verdict)
		}
		return all
	}())
}
