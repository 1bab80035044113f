package vllmprocessor

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap"

	"github.com/otelcol-vllm/otelcol-vllm/internal/identity"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/collect"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/emit"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/objective"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/quota"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/slo"
)

// objectives is what a processor does about its objectives. What concerns a
// resource is called with the resource's lock held, other than snapshot.
type objectives struct {
	plan      *slo.Plan
	config    *Config
	id        component.ID
	logger    *zap.Logger
	telemetry *telemetry
	open      func(ctx context.Context, host component.Host, name string) (storage.Client, error)
	archives  *archives
	archive   *archive
	status    *storageStatus
	// each and add are the processor's.
	each func(visit func(key string, r *resource))
	add  func(ctx context.Context, out *output, s section) int

	// mu guards what follows. It is taken after a resource's lock.
	mu       sync.Mutex
	patterns *objective.PatternWatch
	told     map[string]bool
	// trackers is shared among the resources.
	trackers *quota.Quota
}

// measured is the part of a resource's state that objectives have.
type measured struct {
	state  slo.State
	memory emit.Memory
	share  *quota.Share
}

// maxTrackers bounds how many trackers a processor has.
const maxTrackers = 10_000

// budgets are the states of trackers. They are written each minute; a month's
// budget is of use as long as it lasts.
func budgets(config *Config) kind {
	return kind{
		key: "objectives", interval: time.Minute, age: time.Duration(config.BudgetWindow), newest: objective.StateAge, thin: objective.Thin,
		unread:    "the storage does not give back the objectives that were saved, so budgets and burn rates start anew",
		unsaved:   "the objectives could not be saved; they go on and are saved with the next attempt, but would be lost by a restart",
		damaged:   "what the storage has of objectives is damaged or was written by another version; %d of their states could be read and continue, the others start anew",
		continued: "objectives continue where they were saved",
		merged: "an earlier version took servers of several namespaces for one and kept one error budget of them; " +
			"the first of these servers continues with it, and the budgets of the others start anew",
	}
}

// measure gives a new processor its objectives, if it has any.
func (p *vllmProcessor) measure(shared *archives) error {
	if len(p.config.Objectives) == 0 {
		return nil
	}
	plan, err := slo.NewPlan(p.config.Objectives, p.config.BudgetWindow, p.config.BurnWindows, p.config.enabled)
	if err != nil {
		return err
	}
	p.window.Steps = plan.Steps()
	o := &objectives{
		plan: plan, config: p.config, id: p.id, logger: p.logger, telemetry: p.telemetry, open: p.openStorage, archives: shared,
		archive: p.newArchive(budgets(p.config)), status: p.storage,
		each: p.each, add: p.add, trackers: quota.New(maxTrackers),
		patterns: objective.WatchPatterns(p.config.Objectives), told: map[string]bool{},
	}
	p.objectives = o
	return nil
}

// start opens the storage and says once what can be said about thresholds.
func (o *objectives) start(ctx context.Context, host component.Host) error {
	if o == nil {
		return nil
	}
	var err error
	o.archive, err = o.archives.attach(ctx, o.id, o, o.archive, func(name string) (storage.Client, error) { return o.open(ctx, host, name) })
	if err != nil {
		return err
	}
	for i := range o.config.Objectives {
		if note := o.config.Objectives[i].Note(); note != "" {
			o.told[note] = true
			o.logger.Info(note)
		}
	}
	return nil
}

func (o *objectives) shutdown(ctx context.Context) error {
	if o == nil {
		return nil
	}
	return o.archives.detach(ctx, o.id, o, o.archive.key)
}

// observe counts what a batch says.
func (o *objectives) observe(ctx context.Context, batch *collect.Batch, r *resource, now time.Time) {
	if o == nil {
		return
	}
	o.watch(batch, now)
	if r.measured == nil {
		r.measured = &measured{share: o.trackers.Open()}
	}
	m := r.measured
	keeper := &beginner{o, ctx, batch.Resource, m.share}
	if excess := m.share.Excess(); excess > 0 {
		m.state.Shrink(excess, keeper)
	}
	m.state.Observe(o.plan, r.state, keeper)
}

// tell writes what has been counted.
func (o *objectives) tell(ctx context.Context, w *worker, batch *collect.Batch, r *resource, out *output) {
	if o == nil {
		return
	}
	m := r.measured
	w.slo.CountsDiffer = false
	values := w.slo.Evaluate(o.plan, &m.state, r.state)
	if w.slo.CountsDiffer {
		o.warn("joint", "vllm.slo.joint_attainment is not told while the histograms of its objectives differ in their number of requests")
	}
	o.add(ctx, out, section{memory: &m.memory, points: m.memory.Write(values, r.state.Time(), batch.Time)})
}

// watch finds patterns that match nothing.
func (o *objectives) watch(batch *collect.Batch, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range batch.Groups {
		if model := batch.Groups[i].Value("model_name"); model != "" {
			o.patterns.See(model, now.UnixNano())
		}
	}
	for _, warning := range o.patterns.Warnings(now.UnixNano()) {
		o.logger.Warn(warning)
	}
}

// maxTold bounds how many different sentences are kept to be told once.
const maxTold = 100

// warn tells a sentence once for each topic.
func (o *objectives) warn(topic, sentence string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.told[topic] && len(o.told) < maxTold {
		o.told[topic] = true
		o.logger.Warn(sentence)
	}
}

// expire keeps the states of a resource that is forgotten, for the case that it
// comes back.
func (o *objectives) expire(r *resource) {
	if o == nil || r.measured == nil {
		return
	}
	for key, tracker := range r.measured.state.Each {
		o.archive.end(key, tracker.Encode(), o)
	}
	r.measured.share.Close()
}

// snapshot returns the states of all trackers.
func (o *objectives) snapshot() map[string][]byte {
	states := map[string][]byte{}
	o.each(func(_ string, r *resource) {
		if r.measured == nil {
			return
		}
		for key, tracker := range r.measured.state.Each {
			states[key] = tracker.Encode()
		}
	})
	return states
}

func (o *objectives) accessed(key string, err error) { o.status.accessed(key, err) }

// beginner is what a resource's state asks while it takes a batch.
type beginner struct {
	*objectives
	ctx      context.Context
	resource string
	share    *quota.Share
}

// Begin continues what was saved of a tracker.
func (k *beginner) Begin(group []collect.Attribute, o *objective.Objective, tracker *objective.Tracker, at int64) (string, bool) {
	if !k.share.Take() {
		k.warn("trackers", fmt.Sprintf("there are more than %d objectives on models of resources, and nothing is reported about the others; "+
			"the resources with most of them give way to the others; split the servers among several collectors, or write fewer objectives or narrower models",
			k.trackers.Limit()))
		return "", false
	}
	key := stateKey(k.resource, group, o.Name)
	if state, saved := k.archive.begin(key, keyBefore(k.resource, group, o.Name), k.resource, k.objectives); saved {
		switch outcome := tracker.Restore(state, at); outcome {
		case objective.RestoredAll, objective.RestoredNothing:
		default:
			k.warn(o.Name+outcome.String(), fmt.Sprintf("objective %q: %s", o.Name, outcome))
		}
	}
	return key, true
}

// End keeps the state of a tracker that there is no more.
func (k *beginner) End(key string, tracker *objective.Tracker) {
	k.archive.end(key, tracker.Encode(), k.objectives)
	k.share.Give()
}

// stateKey is the same for the same resource, model and objective after a
// restart. A resource's identity can be long.
func stateKey(resource string, group []collect.Attribute, name string) string {
	hash := sha256.New()
	for _, part := range []string{name, resource} {
		fmt.Fprintf(hash, "%d:%s", len(part), part)
	}
	for _, a := range group {
		fmt.Fprintf(hash, "%d:%s%d:%s", len(a.Name), a.Name, len(a.Value), a.Value)
	}
	return string(hash.Sum(nil))
}

// keyBefore is the key that an earlier version stored the same state with, in which
// the namespaces did not belong to a resource; empty where the key has not changed.
func keyBefore(resource string, group []collect.Attribute, name string) string {
	if before, changed := identity.Before(resource); changed {
		return stateKey(before, group, name)
	}
	return ""
}

// Buckets says what the buckets that a server really has mean for an objective.
func (k *beginner) Buckets(o *objective.Objective, bounds []float64) {
	if sentence := o.Resolution(bounds); sentence != "" {
		k.warn(sentence, sentence)
	}
}

// Refused counts a step for which there is no tracker.
func (k *beginner) Refused() { k.telemetry.unmeasured(k.ctx, stepLimit) }

// Took counts a step that was not counted.
func (k *beginner) Took(outcome objective.Outcome) {
	switch outcome {
	case objective.Late:
		k.telemetry.unmeasured(k.ctx, stepLate)
	case objective.Unsound:
		k.telemetry.unmeasured(k.ctx, stepUnsound)
	case objective.ClockSetBack:
		k.warn("clock", "the times of a resource went back by more than the shortest burn window; what its objectives had counted after them was forgotten")
	case objective.Added:
	}
}
