//go:build e2e

package kubernetes

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/kubeapi"
)

// point is a point of a series.
type point struct {
	start, at pcommon.Timestamp
	value     float64
}

// history has the points of each series, in the order in which they came: of counters with
// the counts of histograms, of severities, and of what remains of error budgets.
type history struct{ counters, severities, budgets map[string][]point }

func newHistory() *history {
	return &history{counters: map[string][]point{}, severities: map[string][]point{}, budgets: map[string][]point{}}
}

// identity is a text for attributes.
func identity(attributes pcommon.Map) string {
	raw := attributes.AsRaw()
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(raw)) {
		fmt.Fprintf(&b, "%s=%v ", name, raw[name])
	}
	return b.String()
}

func (h *history) add(rm pmetric.ResourceMetrics) {
	if h == nil {
		return
	}
	resource := identity(rm.Resource().Attributes())
	for _, sm := range rm.ScopeMetrics().All() {
		for _, m := range sm.Metrics().All() {
			h.metric(resource+m.Name()+" ", m)
		}
	}
}

func (h *history) metric(name string, m pmetric.Metric) {
	switch {
	case m.Type() == pmetric.MetricTypeHistogram:
		for _, p := range m.Histogram().DataPoints().All() {
			if !p.Flags().NoRecordedValue() {
				id := name + identity(p.Attributes())
				h.counters[id] = append(h.counters[id], point{p.StartTimestamp(), p.Timestamp(), float64(p.Count())})
			}
		}
	case m.Type() == pmetric.MetricTypeSum && m.Sum().IsMonotonic():
		for _, p := range m.Sum().DataPoints().All() {
			h.number(h.counters, name, p)
		}
	case strings.HasSuffix(m.Name(), "diagnosis.severity"):
		for _, p := range m.Gauge().DataPoints().All() {
			h.number(h.severities, name, p)
		}
	case m.Name() == "vllm.slo.error_budget_remaining":
		for _, p := range m.Gauge().DataPoints().All() {
			h.number(h.budgets, name, p)
		}
	}
}

func (h *history) number(into map[string][]point, name string, p pmetric.NumberDataPoint) {
	if p.Flags().NoRecordedValue() {
		return
	}
	value := p.DoubleValue()
	if p.ValueType() == pmetric.NumberDataPointValueTypeInt {
		value = float64(p.IntValue())
	}
	id := name + identity(p.Attributes())
	into[id] = append(into[id], point{p.StartTimestamp(), p.Timestamp(), value})
}

// series returns the points of the one series whose name has all parts.
func (h *history) series(t *testing.T, from map[string][]point, parts ...string) []point {
	t.Helper()
	var found []string
	for name := range from {
		if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(name, part) }) {
			found = append(found, name)
		}
	}
	require.Len(t, found, 1, "%v", parts)
	return from[found[0]]
}

// worst is the highest severity of a point since a time, over all series.
func (h *history) worst(since time.Time) (string, float64) {
	name, worst := "", -1.0
	for id, points := range h.severities {
		for _, p := range points {
			if p.at >= pcommon.NewTimestampFromTime(since) && p.value > worst {
				name, worst = id, p.value
			}
		}
	}
	return name, worst
}

// falls are the counters that became less without a new start time.
func (h *history) falls() []string {
	var found []string
	for name, points := range h.counters {
		ordered := slices.SortedStableFunc(slices.Values(points), func(a, b point) int { return int(a.at) - int(b.at) })
		for i := range ordered[1:] {
			before, after := ordered[i], ordered[i+1]
			if after.value < before.value && after.start <= before.start {
				found = append(found, fmt.Sprintf("%s: from %g to %g", name, before.value, after.value))
			}
		}
	}
	return found
}

// locked reads the history while nothing is added.
func (f *fixture) locked(read func(h *history)) {
	f.seen.mu.Lock()
	defer f.seen.mu.Unlock()
	read(f.seen.history)
}

func (f *fixture) every(do int64) {
	for _, e := range f.engines {
		e.does.Store(do)
	}
}

// Pods are replaced one by one, as by a rollout of a Deployment, and the old ones stop
// answering before they are gone. No server and no pool has a severity that pages.
func TestARolloutOfServersIsNoIncident(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5")
	f.seen.history = newHistory()
	f.every(quick)
	f.apply(pod("127.0.0.2"), pod("127.0.0.3"))
	stop := f.start(t)
	eventually(t, "a healthy pool of two", func() bool {
		return f.seen.is("vllm.pool.replicas", 2)() && f.seen.is("vllm.pool.diagnosis.severity", 0)()
	})
	began := time.Now()
	for before, after := range map[string]string{"127.0.0.2": "127.0.0.4", "127.0.0.3": "127.0.0.5"} {
		fresh := pod(after)
		fresh.Unready = true
		f.apply(fresh)
		time.Sleep(time.Second)
		f.apply(pod(after))
		eventually(t, "the new server in the pool", f.seen.is("vllm.pool.replicas", 3))
		old := pod(before)
		old.Terminating, old.Unready = true, true
		f.apply(old)
		time.Sleep(time.Second)
		f.engines[before].does.Store(gone)
		time.Sleep(3 * time.Second)
		f.api.Delete(kubeapi.Pods, "vllm", old.Name)
		eventually(t, "the old server out of the pool", f.seen.is("vllm.pool.replicas", 2))
	}
	eventually(t, "a healthy pool of the new two", f.seen.is("vllm.pool.diagnosis.severity", 0))
	stop()
	f.locked(func(h *history) {
		assert.Len(t, h.severities, 5, "four engines and their pool")
		name, worst := h.worst(began)
		assert.LessOrEqual(t, worst, 1.0, "%s", name)
		assert.Empty(t, h.falls())
	})
}

// A collector is replaced while the backend is away, as by a rollout of the StatefulSet or a drain of its node: its pod
// ends, and one with the same name and the same volume begins.
func TestARolloutOfCollectorsContinues(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "127.0.0.2", "127.0.0.3")
	f.seen.history = newHistory()
	f.every(quick)
	f.apply(pod("127.0.0.2"), pod("127.0.0.3"))
	volume := fmt.Sprintf("extensions: {file_storage: {directory: %[1]q, compaction: {directory: %[1]q}}}\n", t.TempDir())
	stop := f.start(t, volume)
	eventually(t, "a healthy pool of two", func() bool {
		return f.seen.is("vllm.pool.replicas", 2)() && f.seen.is("vllm.pool.diagnosis.severity", 0)()
	})
	// Most of what its budget knows is quick.
	time.Sleep(3 * time.Second)
	f.engines["127.0.0.2"].does.Store(slow)
	eventually(t, "the degraded pool", f.seen.is("vllm.pool.diagnosis.severity", 2))
	f.seen.away.Store(true)
	left := time.Now()
	time.Sleep(3 * time.Second)
	stop()

	ended := time.Now()
	f.seen.away.Store(false)
	stop = f.start(t, volume)
	// What waited arrives first, so the time of a point counts.
	for _, named := range []string{"vllm.diagnosis.severity", "vllm.pool.diagnosis.severity"} {
		eventually(t, named+" of 2 from the new collector", func() (ok bool) {
			f.locked(func(h *history) {
				for name, points := range h.severities {
					newest := points[len(points)-1]
					ok = ok || strings.Contains(name, " "+named+" ") && newest.at >= pcommon.NewTimestampFromTime(ended) && newest.value == 2
				}
			})
			return ok
		})
	}
	stop()
	f.locked(func(h *history) {
		assert.Empty(t, h.falls())
		// Scrapes are 0.5 s apart. All of the time in which the backend was away arrive later.
		waited := slices.DeleteFunc(slices.Clone(h.series(t, h.counters, "k8s.pod.name=llama-3 ", "vllm.generation_tokens ")), func(p point) bool {
			return p.at < pcommon.NewTimestampFromTime(left) || p.at >= pcommon.NewTimestampFromTime(ended)
		})
		assert.GreaterOrEqual(t, len(waited), 5)
		assert.Len(t, h.severities, 3, "two engines and one pool: the new collector continues the series of the old one")
		// The severities go on: with the first point of the new collector and with each further one,
		// the engine that is degraded and its pool have 2, and the other engine is never said to be
		// ill. In between, for as long as the restart takes, there is no data.
		since := pcommon.NewTimestampFromTime(ended)
		for _, parts := range [][]string{{"k8s.pod.name=llama-2 ", "vllm.diagnosis.severity"}, {"vllm.pool.diagnosis.severity"}} {
			points := slices.SortedStableFunc(slices.Values(h.series(t, h.severities, parts...)), func(a, b point) int { return cmp.Compare(a.at, b.at) })
			first := slices.IndexFunc(points, func(p point) bool { return p.at >= since })
			require.Positive(t, first, "%v", parts)
			without := points[first].at.AsTime().Sub(points[first-1].at.AsTime())
			t.Logf("%v: no data for %s", parts, without)
			assert.Less(t, without, time.Minute, "%v: how long no data is allowed", parts)
			for _, p := range points[first-1:] {
				assert.Equal(t, 2.0, p.value, "%v: %s after the restart", parts, p.at.AsTime().Sub(ended))
			}
		}
		for _, p := range h.series(t, h.severities, "k8s.pod.name=llama-3 ", "vllm.diagnosis.severity") {
			assert.LessOrEqual(t, p.value, 1.0)
		}
		// The budget goes on from where it was. One that began anew would know late requests only.
		budget := h.series(t, h.budgets, "k8s.pod.name=llama-2 ", "objective=ttft ", "bound=lower ")
		old := slices.DeleteFunc(slices.Clone(budget), func(p point) bool { return p.at >= pcommon.NewTimestampFromTime(ended) })
		require.NotEmpty(t, old)
		require.Less(t, len(old), len(budget))
		last, next := old[len(old)-1].value, budget[len(old)].value
		assert.Greater(t, last, -15.0, "most requests were quick at first")
		assert.InDelta(t, last, next, 2)
	})
}
