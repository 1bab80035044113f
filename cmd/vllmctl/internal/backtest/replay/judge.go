package replay

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor"
	"go.uber.org/zap"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/backtest/history"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/configfile"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/probe"
)

// Settings are what the judges of one backtest have in common.
type Settings struct {
	Receiver  *vllmreceiver.Config
	Processor *vllmprocessor.Config
	// Version is the vLLM version of raw targets, empty if it is not known.
	Version string
	// Begin is the time at which the history begins.
	Begin time.Time
	// Keep receives what the processor emitted, for rules; nil without any. It is called
	// from several goroutines.
	Keep func(ctx context.Context, metrics pmetric.Metrics) error
	// Period is what was asked for. Before it begins there is only warm-up.
	Period history.Span
}

// Coverage is what there was of a target.
type Coverage struct {
	// Scrapes is the number of scrapes in the period.
	Scrapes int `json:"scrapes"`
	// Failed is the number of failed scrapes.
	Failed int `json:"failed"`
	// Observed is the time between scrapes that follow each other.
	Observed float64 `json:"observed_seconds"`
	// Gaps is the time without any scrape.
	Gaps float64 `json:"gap_seconds"`
	// Interval is the usual time between two scrapes; 0 with fewer than two.
	Interval float64 `json:"interval_seconds"`
	// Engines is the number of engines that were judged.
	Engines int `json:"engines"`
	// Snapped is true if samples with different timestamps were joined into scrapes.
	Snapped bool `json:"snapped,omitempty"`
}

// Judge judges the targets that share a processor: one target, or all where there is a pool.
type Judge struct {
	settings  *Settings
	clock     *vllmprocessor.ManualClock
	processor processor.Metrics
	targets   []*target
	trackers  map[string]*tracker
	// byInstance has the names of the targets by the identity of their resources.
	byInstance map[string]string
	failed     error
}

// target is one target with what feeds it.
type target struct {
	*history.Target
	replay   *probe.Replay
	ours     *ours
	coverage Coverage
	last     int64
	// step is the time between the last two scrapes, in seconds.
	step    float64
	engines map[string]bool
	// shared is true where another target has the same instance.
	shared bool
}

// New returns a judge of targets. replays is shared by all judges.
func New(ctx context.Context, s *Settings, replays *probe.Replays, targets []*history.Target, shared func(*history.Target) bool) (*Judge, error) {
	j := &Judge{settings: s, clock: vllmprocessor.NewManualClock(s.Begin), trackers: map[string]*tracker{}, byInstance: map[string]string{}}
	for _, t := range targets {
		one := &target{Target: t, engines: map[string]bool{}, shared: shared(t)}
		if t.Form == history.Ours {
			one.ours = &ours{}
		} else {
			attributes := attributesOf(t.Labels, one.shared)
			var err error
			endpoint := endpointOf(t.Instance(), attributes)
			if one.replay, err = replays.Target(endpoint, attributes); err != nil {
				return nil, fmt.Errorf("%s: %w", t.Name, err)
			}
		}
		j.targets = append(j.targets, one)
		j.trackers[t.Name] = newTracker(s.Processor.MaxStaleness)
	}
	j.trackers[""] = newTracker(s.Processor.MaxStaleness)
	factory := vllmprocessor.NewFactoryWithClock(j.clock)
	settings := processor.Settings{ID: component.NewID(factory.Type()), TelemetrySettings: configfile.Telemetry(zap.NewNop())}
	var err error
	if j.processor, err = factory.CreateMetrics(ctx, settings, s.Processor, output{j}); err != nil {
		return nil, fmt.Errorf("processor: %w", err)
	}
	// A host without extensions: no state outlives a backtest.
	if err := j.processor.Start(ctx, &configfile.Host{}); err != nil {
		return nil, fmt.Errorf("processor: %w", err)
	}
	return j, nil
}

// output receives what the processor emits.
type output struct{ *Judge }

func (output) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (o output) ConsumeMetrics(ctx context.Context, metrics pmetric.Metrics) error {
	for _, r := range read(metrics, o.nameOf) {
		if t := o.trackers[r.subject.Target]; t != nil {
			t.see(&r)
			if one := o.target(r.subject.Target); one != nil {
				one.engines[r.subject.Engine] = true
			}
		}
	}
	if o.settings.Keep == nil {
		return nil
	}
	return o.settings.Keep(ctx, metrics)
}

func (j *Judge) target(name string) *target {
	for _, t := range j.targets {
		if t.Name == name {
			return t
		}
	}
	return nil
}

// nameOf returns the name of the target that a resource is of.
func (j *Judge) nameOf(resource pcommon.Map) string {
	if len(j.targets) == 1 {
		return j.targets[0].Name
	}
	return j.byInstance[identity(resource)]
}

// identity are the attributes that tell resources of one judge apart.
func identity(resource pcommon.Map) string {
	var key strings.Builder
	for _, name := range []string{"service.instance.id", "service.namespace", "service.name", "k8s.cluster.name", "k8s.namespace.name", "k8s.pod.name"} {
		if v, there := resource.Get(name); there {
			key.WriteString(v.AsString())
		}
		key.WriteByte(0)
	}
	return key.String()
}

// Window judges one window of the history: parts has what was read of each target of the
// judge, nil for nothing.
func (j *Judge) Window(ctx context.Context, window history.Span, parts []*history.Part) error {
	var feeds []*feed
	for i, p := range parts {
		if p != nil {
			feeds = append(feeds, j.feed(j.targets[i], p))
		}
	}
	for {
		var first *feed
		for _, f := range feeds {
			if f.next < len(f.part.Times) && (first == nil || f.part.Times[f.next] < first.part.Times[first.next]) {
				first = f
			}
		}
		if first == nil {
			break
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		at := first.part.Times[first.next]
		first.next++
		metrics, some := first.scrape(at)
		j.clock.Advance(time.UnixMilli(at).UTC())
		if !some || metrics.ResourceMetrics().Len() == 0 {
			continue
		}
		if len(j.targets) > 1 {
			for _, rm := range metrics.ResourceMetrics().All() {
				j.byInstance[identity(rm.Resource().Attributes())] = first.target.Name
			}
		}
		if err := j.processor.ConsumeMetrics(ctx, metrics); err != nil {
			return fmt.Errorf("%s at %s: %w", first.target.Name, time.UnixMilli(at).UTC().Format(time.RFC3339), err)
		}
	}
	if last := window.To.Add(-time.Millisecond); last.After(j.clock.Now()) {
		j.clock.Advance(last)
	}
	return j.failed
}

// feed gives the scrapes of one target in one window.
type feed struct {
	judge  *Judge
	target *target
	part   *history.Part
	body   *body
	next   int
	// usual is the interval of the part, in seconds.
	usual float64
}

func (j *Judge) feed(t *target, p *history.Part) *feed {
	f := &feed{judge: j, target: t, part: p, usual: history.Interval(p.Times)}
	if t.ours != nil {
		job := p.Target.Get("exported_job")
		if job == "" {
			job = p.Target.Get("job")
		}
		t.ours.use(p, t.Instance(), job)
	} else {
		f.body = newBody(p, j.settings.Receiver.Prefixes)
	}
	t.coverage.Snapped = t.coverage.Snapped || p.Snapped
	return f
}

// scrape returns the points of the scrape at a time; some is false where nothing is known
// about it.
func (f *feed) scrape(at int64) (metrics pmetric.Metrics, some bool) {
	when := time.UnixMilli(at).UTC()
	failed := false
	if f.target.ours != nil {
		metrics, _ = f.target.ours.at(at)
		failed = ourFailed(metrics)
	} else {
		text, samples := f.body.at(at)
		up, known := f.part.Up(at)
		if failed = known && !up || samples == 0; failed {
			metrics = f.target.replay.Fail(when, "")
		} else {
			metrics = f.target.replay.Scrape(when, text, f.judge.settings.Version)
		}
	}
	f.cover(at, failed)
	return metrics, true
}

// ourFailed reports whether stored points are of a failed scrape.
func ourFailed(metrics pmetric.Metrics) bool {
	for _, rm := range metrics.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if m.Name() == "vllm.up" && m.Gauge().DataPoints().Len() > 0 {
					return m.Gauge().DataPoints().At(0).DoubleValue() == 0
				}
			}
		}
	}
	return false
}

// cover counts a scrape.
func (f *feed) cover(at int64, failed bool) {
	t, period := f.target, f.judge.settings.Period
	if f.usual > 0 {
		t.coverage.Interval = f.usual
	}
	if at < period.From.UnixMilli() {
		t.last = at
		return
	}
	t.coverage.Scrapes++
	if failed {
		t.coverage.Failed++
	}
	if t.last == 0 {
		t.last = period.From.UnixMilli()
	}
	step := float64(at-max(t.last, period.From.UnixMilli())) / 1000
	t.last = at
	// Where the interval changes within a part, most of its steps may be of the other one:
	// what follows a step of the same length is not a gap.
	before := t.step
	t.step = step
	if t.coverage.Interval > 0 && step > 3*max(t.coverage.Interval, before) {
		t.coverage.Gaps += step
		return
	}
	t.coverage.Observed += step
}

// Result is what a judge found about one target, or about pools.
type Result struct {
	// Target is nil for pools.
	Target   *history.Target
	Episodes []Episode
	Coverage Coverage
	// Dropped is the number of episodes above the limit.
	Dropped int
}

// Finish ends the judge and returns what it found.
func (j *Judge) Finish(ctx context.Context) ([]Result, error) {
	var out []Result
	for _, t := range j.targets {
		tr := j.trackers[t.Name]
		c := t.coverage
		c.Engines = len(t.engines)
		last := max(t.last, j.settings.Period.From.UnixMilli())
		if silent := float64(j.settings.Period.To.UnixMilli()-last) / 1000; silent > 3*c.Interval && (c.Interval > 0 || c.Scrapes == 0) {
			c.Gaps += silent
		}
		r := Result{Target: t.Target, Coverage: c}
		r.Episodes = tr.finish()
		r.Dropped = tr.dropped
		if len(t.engines) <= 1 {
			for i := range r.Episodes {
				r.Episodes[i].Subject.Engine = ""
			}
		}
		out = append(out, r)
		if t.replay != nil {
			t.replay.Close()
		}
	}
	if pools := j.trackers[""].finish(); len(pools) > 0 {
		out = append(out, Result{Episodes: pools, Dropped: j.trackers[""].dropped})
	}
	err := j.processor.Shutdown(ctx)
	return out, errors.Join(j.failed, err)
}
