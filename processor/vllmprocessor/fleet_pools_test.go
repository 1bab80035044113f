package vllmprocessor

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"

	known "github.com/otelcol-vllm/otelcol-vllm/internal/fleet"
)

// A pool of which half cannot be read is told as it is emitted, with what its detail says.
func TestPoolsAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink, a := new(consumertest.MetricsSink), asking(host())
		p := pooled(t, sink, withDiagnosis)
		require.NoError(t, p.Start(t.Context(), a))
		assert.Empty(t, a.source.Snapshot().Pools)
		working := 0.0
		works := func(server string) {
			require.NoError(t, p.ConsumeMetrics(t.Context(), gauges(server, map[string]float64{"vllm.num_requests.running": 3, "vllm.generation_tokens": working})))
		}
		for n := range 60 {
			working++
			works("a")
			if n < 20 {
				works("b")
			} else {
				require.NoError(t, p.ConsumeMetrics(t.Context(), silent("b", n == 20)))
			}
			time.Sleep(15 * time.Second)
		}
		synctest.Wait()
		emitted := lastOfPools(t, sink)
		require.Equal(t, "1", emitted["diagnosis.condition m unreachable"])
		snapshot := a.source.Snapshot()
		require.Len(t, snapshot.Pools, 1)
		pool := snapshot.Pools[0]
		assert.Equal(t, "m", pool.Name)
		assert.Equal(t, map[string]string{"model_name": "m"}, pool.Attributes)
		assert.Equal(t, 2, pool.Engines)
		assert.Equal(t, "unreachable", pool.Condition)
		assert.Equal(t, emitted["diagnosis.severity m"], fmt.Sprint(pool.Severity))
		require.Len(t, snapshot.Engines, 2)
		detail := a.source.Detail(pool.Key)
		require.NotNil(t, detail)
		assert.Contains(t, detail.Sentence, "Pool m: too many of its servers cannot be scraped")
		assert.Contains(t, detail.Sentence, "1 is unreachable: b")
		var told *known.Event
		for n := range a.events {
			if a.events[n].Key == pool.Key {
				told = &a.events[n]
			}
		}
		require.NotNil(t, told, "the change of the pool")
		assert.Equal(t, "m", told.Subject)
		assert.Equal(t, pool.Since, told.Since)
		require.NoError(t, p.Shutdown(t.Context()))
		assert.Equal(t, 1, a.left)
	})
}

// Budgets are those of the metrics: of the two bounds, those that say what is spent for certain.
func TestBudgetsAreThoseOfTheMetrics(t *testing.T) {
	config := within(promise("ttft", firstToken, 2*time.Second, 0.9))
	config.Diagnosis.Enabled = true
	i, a := asked(t, config)
	defer i.end()
	engines := map[string]*engineLog{"0": {born: noon}}
	i.shows("one:8000", engines)
	// Of 20, one was too late, and one between the bounds of the bucket that has the threshold.
	for n := range 20 {
		seconds := 0.3
		switch n {
		case 5:
			seconds = 4
		case 6:
			seconds = 1.5
		}
		i.shows("one:8000", engines, seconds)
	}
	got := i.shows("one:8000", engines)
	budgets := a.source.Snapshot().Budgets
	require.Len(t, budgets, 1)
	assert.Equal(t, "ttft", budgets[0].Objective)
	assert.Equal(t, "one:8000", budgets[0].Server)
	assert.Equal(t, "m", budgets[0].Model)
	assert.InDelta(t, 1-(1.0/20)/0.1, budgets[0].Remaining, 1e-9)
	assert.InDelta(t, (1.0/20)/0.1, budgets[0].Burn, 1e-9)
	assert.InDelta(t, got.values["error_budget_remaining{bound=upper,model_name=m,objective=ttft}"], budgets[0].Remaining, 1e-9)
	assert.InDelta(t, got.values["burn_rate{bound=lower,model_name=m,objective=ttft,window=1h}"], budgets[0].Burn, 1e-9)
}

// A registry that does not ask costs a batch nothing.
func TestWhoDoesNotAskCostsNothing(t *testing.T) {
	allocated := map[bool]float64{}
	for _, joined := range []bool{false, true} {
		p, f := benchProcessor(t), newFleet(t, 20, 1)
		if joined {
			require.NoError(t, p.start(t.Context(), asking(componenttest.NewNopHost())))
		} else {
			require.NoError(t, p.start(t.Context(), componenttest.NewNopHost()))
		}
		for range 25 {
			f.pass(t, p)
		}
		allocated[joined] = testing.AllocsPerRun(20, func() { f.pass(t, p) })
		require.NoError(t, p.shutdown(t.Context()))
	}
	assert.Greater(t, allocated[false], 100.0)
	assert.InEpsilon(t, allocated[false], allocated[true], 0.01)
}

// For the race detector: it is asked while batches arrive, servers change and pools are judged.
func TestItIsAskedWhileBatchesArrive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := asking(host())
		p := pooled(t, consumertest.NewNop(), withDiagnosis)
		require.NoError(t, p.Start(t.Context(), a))
		var all sync.WaitGroup
		for _, server := range []string{"a", "b", "c"} {
			all.Go(func() {
				for n := range 200 {
					values := map[string]float64{"vllm.num_requests.running": 3, "vllm.num_requests.waiting": float64(max(n-40, 0)), "vllm.generation_tokens": float64(min(n, 40))}
					assert.NoError(t, p.ConsumeMetrics(t.Context(), gauges(server, values)))
					time.Sleep(15 * time.Second)
				}
			})
		}
		stalled := 0
		all.Go(func() {
			for range 400 {
				snapshot := a.source.Snapshot()
				for n := range snapshot.Engines {
					if e := &snapshot.Engines[n]; e.Condition == "stalled" {
						assert.NotNil(t, a.source.Detail(e.Key))
						stalled++
					}
				}
				for n := range snapshot.Pools {
					assert.NotNil(t, a.source.Detail(snapshot.Pools[n].Key))
				}
				time.Sleep(7 * time.Second)
			}
		})
		all.Wait()
		assert.Positive(t, stalled)
		require.NoError(t, p.Shutdown(t.Context()))
	})
}

// What the processor does for one question about a thousand servers, and about one of them.
func BenchmarkAsked(b *testing.B) {
	p, f, a := benchProcessor(b), newFleet(b, 1000, 1), asking(componenttest.NewNopHost())
	require.NoError(b, p.start(b.Context(), a))
	for range 5 {
		f.pass(b, p)
	}
	engines := a.source.Snapshot().Engines
	require.Len(b, engines, 1000)
	b.Run("snapshot", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			a.source.Snapshot()
		}
	})
	b.Run("detail", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			a.source.Detail(engines[999].Key)
		}
	})
	require.NoError(b, p.shutdown(b.Context()))
}
