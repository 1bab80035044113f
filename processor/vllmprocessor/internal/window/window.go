// Package window keeps what the resources said lately and tells by how much
// their counters and histograms grew over a window of time, whatever restarts,
// gaps and late series lie in it. It is pure: time comes with the batches.
//
// Every cumulative series is kept as a running total, which continues over
// resets, on the one timeline of its resource. So an increase is the difference
// of two totals, and all series of a resource have the same window to the
// nanosecond.
package window

import (
	"math"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/collect"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/histogram"
)

// Long is the window of the values that need more than the usual one:
// estimates that settle only over several requests.
const Long = 5 * time.Minute

// samplesPerWindow bounds the memory of a series that is observed very often:
// closer observations replace each other, their increase is kept.
const (
	samplesPerWindow     = 120
	samplesPerLongWindow = 1200
)

// Settings are the same for all resources of a processor.
type Settings struct {
	// Window is the time that increases are taken over.
	Window time.Duration
	// MaxStaleness is the age after which an earlier value is forgotten.
	MaxStaleness time.Duration
	// Steps are the distributions whose increase since the previous batch is
	// kept as well.
	Steps [collect.NumInputs]bool
}

// Reason says why a point of a batch was not used.
type Reason uint8

// The reasons.
const (
	// OutOfOrder means: older than what the resource has already said.
	OutOfOrder Reason = iota
	// Duplicate means: a second point of a series at one time.
	Duplicate
	// SeriesLimit means: a new series beyond the limit of the processor.
	SeriesLimit
	// TooManyBuckets means: a distribution with more buckets than any server has.
	TooManyBuckets
	// GroupLimit means: a new engine or model beyond what a resource may have.
	GroupLimit
	// Future means: so far ahead of our clock that, if it were believed, all that
	// comes after it would be out of order.
	Future

	// NumReasons is the number of reasons, for arrays over them.
	NumReasons
)

// String is the reason as the processor's own telemetry spells it.
func (r Reason) String() string {
	return [NumReasons]string{"out_of_order", "duplicate", "series_limit", "too_many_buckets", "engine_limit", "future"}[r]
}

// Report says what a batch did to the state.
type Report struct {
	// Ignored counts the points that were not used.
	Ignored [NumReasons]int
	// Observed is true where the batch had at least one value; without any there
	// is nothing to derive.
	Observed bool
	// Changed is true where Observed, or where a series has ended.
	Changed bool
	// Used is the number of points that were taken into the state.
	Used int
	// Resets is the number of engines whose counters began anew.
	Resets int
	// Units is by how much the resource takes more of the limit than before.
	Units int
}

// Resource is the state of one resource. It is not safe for concurrent use.
type Resource struct {
	settings Settings
	// times is a ring over the sequence numbers of the timeline.
	times ring[int64]
	// seq is the number of the newest batch, base that of the oldest that still
	// counts. Numbers begin at 1.
	seq, base int64
	// keep and keepLong are how many batches the windows reach back.
	keep, keepLong int64

	// groups and rollups are in the order in which they came.
	groups  []*Group
	index   map[string]*Group
	rollups []*Rollup
	// nextGroup and nextRollup are the numbers of the next ones. A number is not
	// given to another.
	nextGroup, nextRollup int
	// rollupOf finds a roll-up by its attributes.
	rollupOf map[string]*Rollup
	engines  map[string]*engine
	// existed are groups that are not kept, with their numbers.
	existed       existed
	series, units int
	// allowed is how many groups may be kept.
	allowed int
	// answered is the number of the first batch that says more than whether the server
	// answers.
	answered int64

	increase histogram.Histogram
	zero     []float64
}

// engine is what restarts as one, see process: its counters fall together.
type engine struct {
	name string
	// epoch is the number of restarts.
	epoch int
	// seen is the number of the newest batch with one of its counters, before
	// that of the one before. restarted is the number of the batch that showed
	// the newest restart.
	seen, before, restarted int64
	// restartedAt is the time of that batch.
	restartedAt int64
	groups      []*Group
	// restarting is the number of the batch that has just shown a restart.
	restarting int64
}

// Group is one engine and model of a resource.
type Group struct {
	collect.Group
	// Number is that of no other group of its resource. A group that comes back has
	// the number that it had, as long as that is remembered.
	Number int

	// place is that in the resource's groups.
	place  int
	engine *engine
	rollup *Rollup // nil without an engine
	seq    int64   // of the newest value
	ended  bool
	inputs [collect.NumInputs][]*series
	// labels finds series of the inputs that have many.
	labels map[labelled]*series
	// existed are series that are not kept. returned is true where the group itself
	// may have been there before.
	existed  existed
	returned bool
	units    int
	// dropped is true once the resource does not have it any more.
	dropped bool
}

// Rollup is the engines of one model: the groups that differ in nothing but the
// engine.
type Rollup struct {
	// Number is that of no other roll-up of its resource.
	Number int
	// Attributes are those of its groups without the engine.
	Attributes []collect.Attribute

	key    string
	groups []*Group
}

// NewResource returns the state of a resource that has said nothing yet.
func NewResource(settings Settings) *Resource {
	return &Resource{
		settings: settings, times: ring[int64]{stride: 1}, index: map[string]*Group{}, rollupOf: map[string]*Rollup{},
		engines: map[string]*engine{}, existed: existed{limit: groupsExisted}, allowed: maxGroups,
	}
}

// Series is the number of series that are kept.
func (r *Resource) Series() int { return r.series }

// Time is the time of the newest batch in nanoseconds.
func (r *Resource) Time() int64 {
	if r.seq == 0 {
		return 0
	}
	return r.times.at(r.seq)[0]
}

// Observe takes a batch into the state. It takes at most room units more of the
// limit than before.
func (r *Resource) Observe(batch *collect.Batch, room int) Report {
	var report Report
	if r.seq > 0 && batch.Time < r.Time() {
		report.Ignored[OutOfOrder] = len(batch.Samples)
		return report
	}
	for i := range batch.Samples {
		report.Observed = report.Observed || !batch.Samples[i].Gone
	}
	report.Changed = report.Observed
	if report.Observed {
		r.advance(batch.Time)
	}
	update := update{Resource: r, batch: batch, most: r.units + min(room, math.MaxInt-r.units), report: &report}
	report.Units = -r.units
	update.run()
	report.Units += r.units
	return report
}

// closest is the least time between two observations that are kept, in
// nanoseconds.
func (s *Settings) closest() int64 {
	return int64(max(s.Window/samplesPerWindow, Long/samplesPerLongWindow))
}

// advance puts the time of a batch on the timeline. A batch at the time of the
// previous one is a part of it.
func (r *Resource) advance(t int64) {
	switch {
	case r.seq == 0:
		r.base = 1
	case t == r.Time():
		return
	case t-r.Time() > int64(r.settings.MaxStaleness):
		r.base = r.seq + 1
	case r.seq > r.base && t-r.times.at(r.seq - 1)[0] < r.settings.closest():
		r.times.at(r.seq)[0] = t
		return
	}
	r.keep = r.seq + 2 - r.reaching(r.settings.Window, t)
	r.keepLong = r.seq + 2 - r.reaching(max(r.settings.Window, Long), t)
	r.times.reserve(r.seq, r.keepLong)
	r.seq++
	r.times.at(r.seq)[0] = t
}

// reaching is the number of the newest batch that is at least length older than
// t, or else of the oldest that counts.
func (r *Resource) reaching(length time.Duration, t int64) int64 {
	oldest := max(r.base, r.times.oldest(r.seq))
	for seq := r.seq; seq > oldest; seq-- {
		if t-r.times.at(seq)[0] >= int64(length) {
			return seq
		}
	}
	return oldest
}

// baseline is the number of the batch that a window which ends now is compared
// with: the newest that is at least as old as the window, else the oldest. One
// older than two windows says nothing about this one. It is the newest batch
// itself where there is nothing to compare with.
func (r *Resource) baseline(length time.Duration) int64 {
	now := r.Time()
	seq := r.reaching(length, now)
	if now-r.times.at(seq)[0] > 2*int64(length) {
		seq++
	}
	return seq
}
