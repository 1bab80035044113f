// Package window keeps the recent samples of each resource and computes by how much
// counters and histograms grew over a window of time, across restarts, gaps and
// series that appear late. It is pure: it takes the time from the batches.
//
// A cumulative series is stored as a running total that continues over resets. All
// series of a resource share one timeline. So an increase is the difference of two
// totals, and all series of a resource have exactly the same window. Histogram is such an increase of a
// distribution, with its quantiles and means.
package window

import (
	"math"
	"sort"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// Long is the window of estimates that need several requests to become stable.
const Long = 5 * time.Minute

// samples bounds the memory of a series that is observed very often: of observations that are closer together than this
// part of the longer window only the last is stored, as long as that is at most a quarter of the window. No increase is
// lost, because totals are stored. What is not sent any more is noticed as much later. stepped is the same where steps
// are stored: what a step counts is compared with the observation before it.
const samples, stepped = 75, 600

// Settings are the same for all resources of a processor.
type Settings struct {
	// Window is the time that increases are taken over.
	Window time.Duration
	// MaxStaleness is the age after which an earlier value is no longer compared with.
	MaxStaleness time.Duration
	// Steps are the distributions whose increase since the previous batch is
	// stored as well.
	Steps [input.NumMetrics]bool
}

// apart returns how far apart stored observations are at least.
func (s *Settings) apart() time.Duration {
	parts := time.Duration(samples)
	if s.Steps != ([input.NumMetrics]bool{}) {
		parts = stepped
	}
	return min(max(s.Window, Long)/parts, s.Window/4)
}

// Reason is why a point of a batch was not used.
type Reason uint8

// The reasons.
const (
	// OutOfOrder means: older than the newest batch of the resource.
	OutOfOrder Reason = iota
	// Duplicate means: a second point of a series at one time, or a gauge of what a
	// counter counts already.
	Duplicate
	// SeriesLimit means: a new series beyond the limit of the processor.
	SeriesLimit
	// TooManyBuckets means: a distribution with more buckets than any server has.
	TooManyBuckets
	// GroupLimit means: a new engine or model beyond what a resource may have.
	GroupLimit
	// Future means: so far ahead of our clock that accepting it would make all later
	// points out of order.
	Future

	// NumReasons is the number of reasons, for arrays over them.
	NumReasons
)

// String is the reason as the processor's own telemetry spells it.
func (r Reason) String() string {
	return [NumReasons]string{"out_of_order", "duplicate", "series_limit", "too_many_buckets", "engine_limit", "future"}[r]
}

// Report is what a batch changed.
type Report struct {
	// Ignored counts the points that were not used.
	Ignored [NumReasons]int
	// Lacking is what the series beyond the limit of the processor would take of it.
	Lacking int
	// Observed is true where the batch had at least one value. Without a value there
	// is nothing to derive.
	Observed bool
	// Changed is true where Observed, or where a series has ended.
	Changed bool
	// Used is the number of points that were taken into the state.
	Used int
	// Resets is the number of engines whose counters restarted from 0.
	Resets int
}

// Resource is the state of one resource. It is not safe for concurrent use.
type Resource struct {
	settings Settings
	times    timeline
	// seq is the number of the newest batch. base is the number of the oldest batch
	// that may be compared with. Numbers begin at 1.
	seq, base int64
	// keep and keepLong are how many batches the windows reach back.
	keep, keepLong int64

	// groups and rollups are in the order of their first sample.
	groups  []*Group
	index   map[string]*Group
	rollups []*Rollup
	// nextGroup and nextRollup are the next numbers to assign. No number is assigned
	// twice.
	nextGroup, nextRollup int
	rollupOf              map[rollupKey]*Rollup
	engines               map[string]*engine
	// existed are removed groups, with their numbers.
	existed       existed
	series, units int
	// allowed is the most groups that may be stored.
	allowed int
	// answered is the number of the first batch with a sample of the server itself. Up
	// and Healthy are samples of its receiver.
	answered int64
	// evidence is what is known of the server. version is what follows from it, once it
	// is judged.
	evidence input.Evidence
	version  Version
	judged   bool
	// scaled is true once engines were added while the server ran.
	scaled bool
	// canaries is nil where none are to be left out.
	canaries *canaries

	increase Histogram
	zero     []float64
}

// engine is all groups that restart together, see process: their counters fall at the
// same time.
type engine struct {
	name string
	// epoch is how often its counters began again, and restarts how often it restarted.
	epoch, restarts int
	// seen is the number of the newest batch with one of its counters, and before the
	// number of the batch with one before that. restarted is the number of the batch
	// that showed the newest restart, and renewed that of the batch in which the counters
	// last began again, with or without a restart.
	seen, before, restarted, renewed int64
	// restartedAt is the time of that batch, in Unix nanoseconds.
	restartedAt int64
	groups      []*Group
	// restarting is the time of the batch in which a restart was found, in Unix nanoseconds.
	restarting int64
}

// Group is one engine and model of a resource.
type Group struct {
	input.Group
	// Number is unique within the resource. A removed group that appears again gets its
	// old number, as long as the number is remembered.
	Number int

	// place is its index in the groups of the resource.
	place  int
	engine *engine
	rollup *Rollup // nil without an engine
	whole  *Rollup // of a gateway; nil for other groups
	seq    int64   // of the newest value
	ended  bool
	inputs inputs
	// labels is an index of the series of inputs that have many.
	labels map[labelled]*series
	// existed are removed series. returned is true where the group itself may have
	// existed before.
	existed  existed
	returned bool
	units    int
	// bad is the number of the newest batch that shows a bad observation, see bad.go, and
	// badBefore that of the one before it.
	bad, badBefore int64
	// unclear is the number of the newest batch with gauges that contradict each other, and
	// contradicted are these gauges.
	unclear      int64
	contradicted []input.Metric
	// dropped is true once the group is removed from the resource.
	dropped bool
}

// Rollup is the engines of one model: the groups whose attributes differ only in the
// engine. Or it is a whole gateway: those that differ only in model and target.
type Rollup struct {
	// Number is unique among the roll-ups of the resource.
	Number int
	// Attributes are those that its groups have in common.
	Attributes []input.Attribute
	// Gateway is true for a whole gateway.
	Gateway bool

	key    rollupKey
	groups []*Group
	// deltas are the inputs of which an engine has sent a delta.
	deltas [input.NumMetrics]bool
}

// NewResource returns the state of a resource without samples.
func NewResource(settings Settings) *Resource {
	return &Resource{
		settings: settings, index: map[string]*Group{}, rollupOf: map[rollupKey]*Rollup{},
		engines: map[string]*engine{}, existed: existed{limit: groupsExisted}, allowed: maxGroups,
	}
}

// Series is the number of series that are stored.
func (r *Resource) Series() int { return r.series }

// Time is the time of the newest batch in Unix nanoseconds; 0 without one.
func (r *Resource) Time() int64 {
	if r.seq == 0 {
		return 0
	}
	return *r.times.at(r.seq)
}

// Observe adds a batch to the state. The resource then takes at most room units more of
// the limit than before.
func (r *Resource) Observe(batch *input.Batch, room int) Report {
	var report Report
	if r.seq > 0 && batch.Time < r.Time() {
		report.Ignored[OutOfOrder] = len(batch.Samples)
		return report
	}
	for i := range batch.Samples {
		report.Observed = report.Observed || !batch.Samples[i].Gone
	}
	report.Changed = report.Observed
	gap := r.seq > 0 && batch.Time-r.Time() > int64(r.settings.MaxStaleness)
	if report.Observed {
		r.advance(batch.Time)
	}
	update := &update{Resource: r, batch: batch, most: r.units + min(room, math.MaxInt-r.units), report: &report}
	update.run()
	r.learn(batch, gap || report.Resets > 0)
	r.followCanaries()
	return report
}

// advance adds the time of a batch, in Unix nanoseconds, to the timeline. A batch with
// the time of the previous one is a part of that one.
func (r *Resource) advance(t int64) {
	switch {
	case r.seq == 0:
		r.base = 1
	case t == r.Time():
		return
	case t-r.Time() > int64(r.settings.MaxStaleness):
		r.base = r.seq + 1
	case r.seq > r.base && t-*r.times.at(r.seq - 1) < int64(r.settings.apart()):
		*r.times.at(r.seq) = t
		return
	}
	r.keep = r.seq + 2 - r.reaching(r.settings.Window, t)
	r.keepLong = r.seq + 2 - r.reaching(max(r.settings.Window, Long), t)
	r.times.reserve(r.seq, r.keepLong)
	r.seq++
	*r.times.at(r.seq) = t
}

// reaching is the number of the newest batch that is at least length older than t.
// Without such a batch it is the number of the oldest one.
func (r *Resource) reaching(length time.Duration, t int64) int64 {
	oldest := max(r.base, r.times.oldest(r.seq))
	// The times are in order.
	newer := sort.Search(int(r.seq-oldest), func(i int) bool { return t-*r.times.at(oldest + 1 + int64(i)) < int64(length) })
	return oldest + int64(newer)
}

// baseline is the number of the batch at which the current window begins: the newest
// that is at least as old as the window, else the oldest. A batch older than two
// windows is not used. Where no batch can be used, it is the newest batch itself.
func (r *Resource) baseline(length time.Duration) int64 {
	now := r.Time()
	seq := r.reaching(length, now)
	if now-*r.times.at(seq) > 2*int64(length) {
		seq++
	}
	return seq
}

// timeline is the times of the newest batches, in Unix nanoseconds. The place of a batch follows from its
// number.
type timeline []int64

// at returns the time of a batch. The caller makes sure that it is stored.
func (t timeline) at(seq int64) *int64 { return &t[seq%int64(len(t))] }

// oldest is the oldest batch that is stored where newest is the newest.
func (t timeline) oldest(newest int64) int64 { return newest - int64(len(t)) + 1 }

// reserve makes room for keep times, including the one after newest.
func (t *timeline) reserve(newest, keep int64) {
	if int64(len(*t)) >= keep {
		return
	}
	grown := make(timeline, sizeFor(keep))
	for seq := max(t.oldest(newest), 0); seq <= newest && len(*t) > 0; seq++ {
		*grown.at(seq) = *t.at(seq)
	}
	*t = grown
}

// sizeFor returns the number of places for keep entries: 2, 4, 6 and so on, and from 16 on
// each an eighth more than the one before. So a ring that grows with the timeline is not
// copied for each entry, and at most an eighth of it is free once it is large.
func sizeFor(keep int64) int64 {
	size := int64(2)
	for size < keep {
		size += max(2, size/8)
	}
	return size
}
