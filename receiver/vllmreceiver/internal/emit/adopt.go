package emit

import (
	"hash/maphash"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/normalize"
)

// adopt makes the plan of a scrape the target's own: series that both plans have
// keep their history, those that only the old one has end. In the steady state the
// plan is the same and this costs nothing.
func (t *Target) adopt(s Scrape) {
	plan := s.Plan
	if plan == t.plan {
		return
	}
	held := t.vanished
	t.vanished = map[normalize.SeriesKey]vanished{}
	old := t.byKey()
	absent := t.provenAbsent(s)
	t.states = make([]state, 0, plan.Points)
	admitted := 0
	for metric, point := range plan.All() {
		var st state
		if series, ok := old[point.Key]; ok {
			st = series.state
			delete(old, point.Key)
		} else if returned, ok := held[point.Key]; ok {
			st = returned.state
			st.admitted = false
			delete(held, point.Key)
		} else {
			st = t.unseen(metric, point, absent)
		}
		if st.admitted {
			admitted++
		}
		t.states = append(t.states, st)
	}
	// Series that were within the limit stay; new ones fill what is left.
	for i := range t.states {
		if t.states[i].admitted {
			continue
		}
		if t.settings.MaxSeries > 0 && admitted >= t.settings.MaxSeries {
			break
		}
		t.states[i].admitted = true
		admitted++
	}
	t.retire(old, held)
	t.plan = plan
}

// provenAbsent is the time of the last scrape, where what it lacked did not exist;
// 0 where that is not known: a body whose end may be missing lacks series that
// exist, and a line that could not be read then and can be read now was one.
func (t *Target) provenAbsent(s Scrape) pcommon.Timestamp {
	if t.last.partial || t.last.badLines > s.badLines() {
		return 0
	}
	return t.lastTime
}

// unseen is the state of a series of which nothing is remembered. It is new where
// the last scrape proves it absent; else its start is unknown. The series may have
// been there and not been usable, or under another name, or be one that was
// forgotten.
func (t *Target) unseen(metric *normalize.Metric, point *normalize.Point, absent pcommon.Timestamp) state {
	switch {
	case metric.Kind == catalog.KindGauge || !t.Known():
		return state{}
	case t.forgot:
		return state{forgotten: true}
	case t.plan.Has(metric, point):
		return state{}
	}
	return state{absent: absent}
}

// byKey has the series of the current plan.
func (t *Target) byKey() map[normalize.SeriesKey]oldSeries {
	series := make(map[normalize.SeriesKey]oldSeries, len(t.states))
	if t.plan == nil {
		return series
	}
	for metric, point := range t.plan.All() {
		series[point.Key] = oldSeries{t.states[point.Index], metric, point}
	}
	return series
}

// oldSeries is a series of the plan before.
type oldSeries struct {
	state
	metric *normalize.Metric
	point  *normalize.Point
}

// vanished is a series that the plan lacks. It holds no text, so that the memory
// of what vanished is bounded in bytes by its number of entries.
type vanished struct {
	state
	// process is the hash of the point's process.
	process uint64
}

// retire ends the series that left and remembers their numbers for a while. A
// gauge has no history to go on with.
func (t *Target) retire(old map[normalize.SeriesKey]oldSeries, held map[normalize.SeriesKey]vanished) {
	for key, series := range old {
		if series.live {
			t.ended = append(t.ended, endedSeries{series.metric, series.point, series.start})
			series.live = false
		}
		if series.metric.Kind != catalog.KindGauge {
			t.remember(key, vanished{series.state, processHash(series.point.Process)})
		}
	}
	for key, v := range held {
		t.remember(key, v)
	}
}

// remember keeps a series that vanished, if there is room. What finds none is
// forgotten, and from then on a series that nothing is known of may be that one.
func (t *Target) remember(key normalize.SeriesKey, v vanished) {
	if t.settings.MaxSeries > 0 && len(t.vanished) >= t.settings.MaxSeries {
		t.forgot = true
		return
	}
	t.vanished[key] = v
}

// forgetVanished drops what is remembered of processes that restarted: what
// vanished from them before began anew if it comes back.
func (t *Target) forgetVanished(r resets) {
	switch {
	case r.all:
		clear(t.vanished)
		t.forgot = false
	case len(r.processes) > 0:
		restarted := make(map[uint64]bool, len(r.processes))
		for process := range r.processes {
			restarted[processHash(process)] = true
		}
		for key, v := range t.vanished {
			if restarted[v.process] {
				delete(t.vanished, key)
			}
		}
		// Where there is one process, it is the one that restarted.
		t.forgot = t.forgot && !restarted[processHash("")]
	}
}

var processSeed = maphash.MakeSeed()

func processHash(process string) uint64 { return maphash.String(processSeed, process) }
