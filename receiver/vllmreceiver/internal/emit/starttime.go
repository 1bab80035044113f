package emit

import (
	"math"
	"math/bits"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/exposition"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/normalize"
)

// resets are the restarts that one scrape shows.
type resets struct {
	// all is true where the process start time moved.
	all bool
	// processes are the server processes of which a counter fell.
	processes map[string]bool
	// fell is true where a counter fell.
	fell bool
}

// include reports whether the process of a series restarted.
func (r resets) include(process string) bool { return r.all || r.processes[process] }

// any reports whether there was a restart.
func (r resets) any() bool { return r.all || len(r.processes) > 0 }

// Restarted reports whether a scrape shows that a server process was replaced since the
// last scrape. It changes nothing.
func (t *Target) Restarted(s Scrape) bool {
	if !t.Known() {
		return false
	}
	if t.coexists(s) {
		return t.silent(pcommon.NewTimestampFromTime(s.Time))
	}
	if s.Plan == t.plan {
		return t.detect(s, t.states).any()
	}
	// Do not adopt this plan yet: it may depend on the version, which is requested again
	// after a restart.
	known := t.byKey()
	states := make([]state, 0, s.Plan.Points)
	for _, point := range s.Plan.All() {
		if series, ok := known[point.Key]; ok {
			states = append(states, series.state)
		} else {
			states = append(states, t.vanished[point.Key].state)
		}
	}
	return t.detect(s, states).any()
}

// Restart marks the next scrape as one of another process, which the points alone may
// not show.
func (t *Target) Restart() { t.restarted = true }

// detect compares a scrape with the last one. A restart of a process resets all its
// series together, including those that have already grown past their old value. Only
// vLLM's own counters show a restart; a faulty counter of a plug-in does not. There was
// no restart if the process reports the same start as before.
func (t *Target) detect(s Scrape, states []state) resets {
	r := resets{all: t.restarted}
	if !t.Known() {
		return r
	}
	switch t.relate(s.process()) {
	case same:
		return r
	case successor, neighbor:
		r.all = true
	}
	for metric, point := range s.Plan.All() {
		if metric.Kind == catalog.KindGauge || !metric.Engine {
			continue
		}
		st := &states[point.Index]
		if !st.seen || !fell(metric.Kind, point, s.Snapshot.Values, st.last) {
			continue
		}
		r.fell = true
		if r.processes == nil {
			r.processes = map[string]bool{}
		}
		r.processes[point.Process] = true
	}
	return r
}

// fell reports whether a point's number is less than before. NaN and a number below zero do
// not count as a fall, and neither does the count of an inconsistent histogram.
func fell(kind catalog.Kind, point *normalize.Point, values []float64, last float64) bool {
	if now := number(kind, point, values); !(now < last) || now < 0 {
		return false
	}
	if kind == catalog.KindHistogram {
		for i := range point.Parts {
			if _, reason := checkBuckets(&point.Parts[i], values); reason != normalize.ReasonNone {
				return false
			}
		}
	}
	return true
}

// number returns the number of a point that shows a reset, over all its parts: a gauge's or
// counter's value, or the count of a histogram or summary.
func number(kind catalog.Kind, point *normalize.Point, values []float64) float64 {
	total := 0.0
	for i := range point.Parts {
		slot := point.Parts[i].Value
		if kind == catalog.KindHistogram || kind == catalog.KindSummary {
			slot = point.Parts[i].Count
		}
		if slot != exposition.NoSlot {
			total += values[slot]
		}
	}
	if point.Convert != nil {
		return point.Convert.Of(total)
	}
	return total
}

// created returns the earliest "_created" of a point's parts; 0 if one lacks it.
func created(point *normalize.Point, values []float64) pcommon.Timestamp {
	earliest := pcommon.Timestamp(0)
	for i := range point.Parts {
		slot := point.Parts[i].Created
		if slot == exposition.NoSlot {
			return 0
		}
		at := unixTime(values[slot])
		if i == 0 {
			earliest = at
		}
		earliest = min(earliest, at)
	}
	return earliest
}

// unixTime converts Unix seconds. It returns 0 for a value that is not a time.
func unixTime(seconds float64) pcommon.Timestamp {
	if math.IsNaN(seconds) || seconds <= 0 || seconds > math.MaxInt64/1e9 {
		return 0
	}
	whole, fraction := math.Modf(seconds)
	return pcommon.Timestamp(int64(whole)*1e9 + int64(fraction*1e9))
}

// advance updates the start time of a cumulative series that has a value now.
func (b *builder) advance(st *state, point *normalize.Point, value float64) {
	raw := created(point, b.values)
	// A created time after the scrape comes from a skewed clock. It does not show when
	// the series began, but a newer one still shows that it began again.
	at := b.scrape.ours(raw)
	if at > b.now {
		at = 0
	}
	switch {
	case !st.seen:
		st.start = b.firstStart(st, at, point.Process)
	case st.created != 0 && raw > st.created, value < st.last, raw == 0 && b.resets.include(point.Process):
		st.start = b.resetStart(at, st.start)
	}
	if raw != 0 {
		st.created = raw
	}
	st.last = value
	st.seen = true
}

// firstStart returns the start of a series that had no value before. If the series was
// proven absent, its first value is an increase since then. Otherwise it starts with
// its process, if that start is known. Otherwise the first value is a baseline: its
// start is its own time, and no consumer counts it as an increase.
func (b *builder) firstStart(st *state, created pcommon.Timestamp, process string) pcommon.Timestamp {
	absent := st.absent
	if b.resets.include(process) && absent == 0 {
		// The new process began after the last scrape of the old one.
		absent = b.target.lastTime
	}
	switch {
	case created != 0:
		return created
	case absent != 0:
		return max(absent, b.process.start)
	case b.process.start != 0 && !st.forgotten:
		return b.process.start
	}
	return b.now
}

// resetStart returns the start of a series after a reset: the server's own created
// time if it is newer than the old start, else the last scrape before the reset. The
// last scrape may equal the old start, if that was the first point's own time. The
// result is then a nanosecond later, because an unchanged start means no reset.
func (b *builder) resetStart(created, old pcommon.Timestamp) pcommon.Timestamp {
	if created > old {
		return created
	}
	if b.process.start > old && b.process.start > b.target.process.start {
		// Clocks differ: the start is not before the last scrape of the old process.
		return max(b.process.start, b.target.lastTime)
	}
	return max(b.target.lastTime, old+1)
}

// resetHistory has a bit for each of the last eight scrapes, which is set if a counter fell.
type resetHistory uint8

// record adds one scrape. It reports whether counters fell in at least three of the last eight
// scrapes. A crash loop is slower than that; a load balancer in front of several replicas is not.
func (h *resetHistory) record(fell bool) bool {
	*h <<= 1
	if fell {
		*h |= 1
	}
	return bits.OnesCount8(uint8(*h)) >= 3
}
