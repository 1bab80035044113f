package emit

import (
	"hash/maphash"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/exposition"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/normalize"
)

// adopt replaces the plan of the target with that of a scrape. Series in both plans
// keep their history; series that only the old plan has end. In the steady state the
// plan is the same and adopt does nothing.
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

// provenAbsent returns the time of the last scrape if a series that it lacked did not
// exist then, else 0. A body whose end may be missing proves nothing. Neither does a
// body with more unreadable lines than this one: one of them may have been the series.
func (t *Target) provenAbsent(s Scrape) pcommon.Timestamp {
	if t.last.partial || t.last.badLines > s.badLines() {
		return 0
	}
	return t.lastTime
}

// unseen returns the state of a series of which nothing is remembered. The series is
// new if the last scrape proves that it was absent. Otherwise its start is unknown: it
// may have been present without a usable value, or under another name, or may have
// been forgotten. That of a count which another program began is always unknown.
func (t *Target) unseen(metric *normalize.Metric, point *normalize.Point, absent pcommon.Timestamp) state {
	switch {
	case metric.Kind == catalog.KindGauge || metric.Baseline || !t.Known():
		return state{}
	case t.forgot:
		return state{forgotten: true}
	case t.plan.Has(metric, point):
		return state{}
	}
	return state{absent: absent}
}

// byKey returns the series of the current plan.
func (t *Target) byKey() map[normalize.SeriesKey]knownSeries {
	series := make(map[normalize.SeriesKey]knownSeries, len(t.states))
	if t.plan == nil {
		return series
	}
	for metric, point := range t.plan.All() {
		series[point.Key] = knownSeries{t.states[point.Index], metric, point}
	}
	return series
}

// vanished is a series that an earlier plan had and the current one lacks. It holds no
// text, so a limit on the number of entries is a limit in bytes.
type vanished struct {
	state
	// process is the hash of the point's process.
	process uint64
}

// retire ends the series that left the plan, and remembers the state of those that are
// cumulative. A gauge has no history. Neither has the count of a GPU: while its series
// was absent, it may have been in the resource of a workload.
func (t *Target) retire(old map[normalize.SeriesKey]knownSeries, held map[normalize.SeriesKey]vanished) {
	for key, series := range old {
		t.endSeries(series.metric, series.point, &series.state)
		if series.metric.Kind != catalog.KindGauge && !series.metric.Baseline {
			t.remember(key, vanished{series.state, processHash(series.point.Process)})
		}
	}
	for key, v := range held {
		t.remember(key, v)
	}
}

// remember stores a series that vanished, if there is room. Once one was forgotten, any
// series without a state may be that one.
func (t *Target) remember(key normalize.SeriesKey, v vanished) {
	if t.settings.MaxSeries > 0 && len(t.vanished) >= t.settings.MaxSeries {
		t.forgot = true
		return
	}
	t.vanished[key] = v
}

// forgetVanished drops the vanished series of processes that restarted: their series begin
// again when they appear again.
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
		// A body of a single process does not name it: then this process restarted.
		t.forgot = t.forgot && !restarted[processHash("")]
	}
}

var processSeed = maphash.MakeSeed()

func processHash(process string) uint64 { return maphash.String(processSeed, process) }

// reading records how complete a scrape was: whether a series that it lacks is absent.
type reading struct {
	// partial is true if the end of the body may be missing.
	partial bool
	// badLines is the number of sample lines that could not be read.
	badLines int
}

// reading returns how complete the scrape is.
func (s Scrape) reading() reading {
	r := reading{partial: s.Open, badLines: s.badLines()}
	for _, problem := range s.Snapshot.Problems {
		switch problem.Reason {
		case exposition.ReasonTooManyBadLines, exposition.ReasonTooManyLines, exposition.ReasonMissingEOF:
			r.partial = true
		}
	}
	return r
}

// badLines counts the lines of samples that could not be read.
func (s Scrape) badLines() int {
	n := 0
	for _, problem := range s.Snapshot.Problems {
		switch problem.Reason {
		case exposition.ReasonBadName, exposition.ReasonBadLabels, exposition.ReasonBadValue,
			exposition.ReasonBadTimestamp, exposition.ReasonWrongType, exposition.ReasonNameTooLong,
			exposition.ReasonLabelNameTooLong, exposition.ReasonLabelValueTooLong:
			n++
		}
	}
	return n
}
