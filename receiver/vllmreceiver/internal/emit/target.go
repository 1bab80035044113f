package emit

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/exposition"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/normalize"
)

// Settings are what all scrapes of a target have in common.
type Settings struct {
	// ScopeName is that of the instrumentation scope. The scope has no version: backends for which
	// a scope is labels would have other series after each upgrade.
	ScopeName string
	// SchemaURL is that of the resource; see catalog.SchemaURL.
	SchemaURL string
	// MaxSeries is the maximum number of points in one scrape of the target; a histogram
	// counts as one. 0 means no limit.
	MaxSeries int
	// MaxAdapters is the maximum number of LoRA adapters in one state at a time; 0 is no
	// limit.
	MaxAdapters int
	// Own are the metrics about the scrape itself by their catalogue name; missing ones are
	// switched off.
	Own map[string]*catalog.Metric
	// Workload returns the resource of a workload, from that of its GPU exporter and the
	// attributes of the workload.
	Workload func(exporter pcommon.Resource, workload []exposition.Label) pcommon.Resource
}

// Scrape has the result of one successful scrape.
type Scrape struct {
	Time     time.Time
	Plan     *normalize.Plan
	Snapshot *exposition.Snapshot
	// Open is true if the sender did not declare the end of the body, so that series may be
	// missing there.
	Open bool
	// ServerTime is when the server answered by its own clock, in whole seconds; zero if it
	// does not report that. Answered is when the answer arrived, by our clock.
	ServerTime, Answered time.Time
}

// Report counts the series of a scrape by their result.
type Report struct {
	// Points is the number of points with a value, without those about the
	// scrape itself.
	Points int
	// Dropped counts the series without a point by reason. The reasons that the
	// plan already counts are not repeated.
	Dropped [normalize.NumReasons]int
	// Foreign is true where another process answered than the one whose points are emitted.
	Foreign bool
	// Balanced is true where the counters fall so often that several replicas must answer at
	// one address.
	Balanced bool
}

// Target is the memory of one target. It is not safe for concurrent use.
type Target struct {
	settings Settings
	resource pcommon.Resource
	plan     *normalize.Plan
	// states are those of the points of plan, by their index.
	states []state
	// vanished are series that an earlier plan had and this one lacks, by their keys. One
	// that appears again continues from its old state. There are at most MaxSeries.
	vanished map[normalize.SeriesKey]vanished
	// forgot is true once there was no room for a vanished series.
	forgot bool
	// ended are series that left the plan and whose end is not yet sent.
	ended []knownSeries
	// lastTime is the time of the last successful scrape; 0 before the first.
	lastTime pcommon.Timestamp
	// last records how complete the last successful scrape was.
	last reading
	// process is the process whose points are emitted.
	process process
	// restarted is true if the next scrape is known to be of another process.
	restarted bool
	own       ownMetrics
	// workloads are those of a GPU exporter; nil for others.
	workloads workloads
	resets    resetHistory
	scratch   scratch
}

// state is what is remembered of one series. A series is absent, or present without a
// usable value (neither seen nor live), or live. Only if a series was absent, its first
// value is an increase from 0.
type state struct {
	// start is the start time of a cumulative series.
	start pcommon.Timestamp
	// created is the server's own start time; 0 without.
	created pcommon.Timestamp
	// last is the last number: a counter's value, a histogram's count.
	last float64
	// absent is the time of the last scrape that proves that the series did not exist; 0
	// if none does.
	absent pcommon.Timestamp
	// seen is true once the series had a value.
	seen bool
	// forgotten is true for a series whose earlier state may have been forgotten.
	forgotten bool
	// live is true while the series' last point had a value, so that it needs an
	// end when it vanishes.
	live bool
	// admitted is true for a series within the limit.
	admitted bool
}

// New returns a target without any history.
func New(settings Settings) *Target {
	return &Target{
		settings: settings,
		resource: pcommon.NewResource(),
		vanished: map[normalize.SeriesKey]vanished{},
		own:      newOwnMetrics(settings.Own),
	}
}

// Known reports whether the target has had a successful scrape.
func (t *Target) Known() bool { return t.lastTime != 0 }

// SetResource sets the resource of later points. If it differs from the previous one,
// the ends of all series are appended to out under the previous resource.
func (t *Target) SetResource(resource pcommon.Resource, at time.Time, out pmetric.Metrics) {
	if t.resource.Attributes().Equal(resource.Attributes()) {
		return
	}
	t.End(at, out)
	t.workloads = nil
	t.resource = resource
}

// Emit appends the points of a successful scrape to out.
func (t *Target) Emit(s Scrape, own Own, out pmetric.Metrics) Report {
	if t.Foreign(s) {
		return t.emitForeign(s, own, out)
	}
	now := pcommon.NewTimestampFromTime(s.Time)
	report := Report{}
	t.endGone(s, out)
	displaced := t.coexists(s)
	t.adopt(s)
	if displaced {
		t.takeOver()
	}
	metrics := t.scope(out)
	metrics.EnsureCapacity(len(s.Plan.Metrics) + len(t.settings.Own))
	b := builder{
		target: t, now: now, values: s.Snapshot.Values, metrics: metrics, report: &report,
		scrape:      &s,
		resets:      t.detect(s, t.states),
		adapterSets: currentAdapterSets(s),
		exemplars:   exemplarsBySlot(s),
	}
	b.process = t.resolveProcess(s.process(), b.resets)
	b.build()
	t.emitEnded(now, metrics)
	t.own.emit(own, now, metrics)
	t.emitWorkloads(s, out, &report)
	t.forgetVanished(b.resets)
	report.Balanced = t.resets.record(b.resets.fell)
	t.restarted = false
	t.lastTime = now
	t.last = s.reading()
	if b.process.known() {
		t.process = b.process
	}
	return report
}

// Fail appends the end of all series and the points about a failed scrape.
func (t *Target) Fail(at time.Time, own Own, out pmetric.Metrics) {
	now := pcommon.NewTimestampFromTime(at)
	metrics := t.scope(out)
	t.endPoints(now, metrics)
	t.own.emit(own, now, metrics)
	t.endWorkloads(at, out)
}

// End appends the end of every live series, for a target that is no longer scraped or
// whose resource changes.
func (t *Target) End(at time.Time, out pmetric.Metrics) {
	now := pcommon.NewTimestampFromTime(at)
	part := pmetric.NewMetrics()
	metrics := t.scope(part)
	t.endPoints(now, metrics)
	t.own.emit(Own{}, now, metrics)
	if metrics.Len() > 0 {
		part.ResourceMetrics().MoveAndAppendTo(out.ResourceMetrics())
	}
	t.endWorkloads(at, out)
}

// Forget drops the state of the target's series, all of which have ended. The start of
// each series that it exposes next is unknown.
func (t *Target) Forget() {
	t.plan, t.states, t.workloads = nil, nil, nil
	t.takeOver()
}

// scope appends the target's resource and scope to out.
func (t *Target) scope(out pmetric.Metrics) pmetric.MetricSlice {
	resource := out.ResourceMetrics().AppendEmpty()
	t.resource.CopyTo(resource.Resource())
	resource.SetSchemaUrl(t.settings.SchemaURL)
	scope := resource.ScopeMetrics().AppendEmpty()
	scope.Scope().SetName(t.settings.ScopeName)
	return scope.Metrics()
}
