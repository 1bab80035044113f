package vllmprocessor

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/collect"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/diagnose"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/emit"
)

// diagnosis is what a processor does to diagnose the engines. What concerns a
// resource is called with the resource's lock held, other than snapshot.
type diagnosis struct {
	settings diagnose.Settings
	on       AttributesOn
	wanted   map[*derive.Row]bool
	// logging guards log.
	logging sync.Mutex
	log     changeLog

	id       component.ID
	open     func(ctx context.Context, host component.Host, name string) (storage.Client, error)
	archives *archives
	archive  *archive
	status   *storageStatus
	// each and add are the processor's.
	each func(visit func(key string, r *resource))
	add  func(ctx context.Context, out *output, s section) int
	// staleness is the processor's max_staleness.
	staleness time.Duration
}

// diagnosed is the part of a resource's state that the diagnosis has.
type diagnosed struct {
	state  diagnose.State
	memory emit.Memory
	// beside is the mark of the resource on which the derived series were told last,
	// at the time besideOf.
	beside   emit.Mark
	besideOf int64
}

// baselines are what was learned of engines. They change slowly, so that they are
// written less often than what is counted.
var baselines = kind{
	storage: "baselines", key: "baselines", interval: 5 * time.Minute, age: diagnose.BaselineMemory, newest: diagnose.Age,
	unread:    "the storage does not give back the baselines that were saved, so the diagnosis learns anew what is usual",
	unsaved:   "the baselines of the diagnosis could not be saved; they go on and are saved with the next attempt, but would be lost by a restart",
	damaged:   "what the storage has of baselines is damaged or was written by another version; %d of them could be read and continue, the others are learned anew",
	continued: "the diagnosis continues with the baselines that were saved",
	merged: "an earlier version took servers of several namespaces for one and learned one baseline of them; " +
		"the first of these servers continues with it, and the diagnosis learns anew what is usual for the others",
}

// diagnose gives a new processor its diagnosis, unless it is switched off.
func (p *vllmProcessor) diagnose(shared *archives) {
	config := p.config
	if !config.Diagnosis.Enabled {
		return
	}
	d := &diagnosis{
		settings: diagnose.Settings{
			Window: config.Window, Hold: config.Diagnosis.Hold, RelearnAfter: config.Diagnosis.RelearnAfter,
			StartTimeout: config.Diagnosis.StartTimeout, SpeculationBreakEven: config.Diagnosis.SpeculationBreakEven,
		},
		on:     config.Diagnosis.Attributes.On,
		wanted: map[*derive.Row]bool{},
		log: changeLog{
			logger: withoutStacks(p.logger), relearnAfter: config.Diagnosis.RelearnAfter, telemetry: p.telemetry,
			on: func(metric string) bool { return config.enabled(metric) && config.lacks(metric) == "" },
		},
		id: p.id, open: p.openStorage, archives: shared, archive: p.newArchive(baselines), status: p.storage,
		each: p.each, add: p.add, staleness: config.MaxStaleness,
	}
	for _, row := range diagnose.Rows() {
		d.wanted[row] = config.enabled(row.Metric)
	}
	for i := range config.Objectives {
		o := &config.Objectives[i]
		if in, known := collect.ByName(o.Metric); known {
			d.settings.Objectives = append(d.settings.Objectives, diagnose.Objective{
				Name: o.Name, Input: in, Threshold: o.Threshold.Seconds(), Target: o.Target, Matches: o.Matches,
			})
		}
	}
	p.diagnosis = d
}

// start opens the storage.
func (d *diagnosis) start(ctx context.Context, host component.Host) (err error) {
	if d == nil {
		return nil
	}
	d.archive, err = d.archives.attach(ctx, d.id, d, d.archive, func(name string) (storage.Client, error) { return d.open(ctx, host, name) })
	return err
}

func (d *diagnosis) shutdown(ctx context.Context) error {
	if d == nil {
		return nil
	}
	return d.archives.detach(ctx, d.id, d, d.archive.key)
}

// observe diagnoses the engines of a resource.
func (d *diagnosis) observe(ctx context.Context, batch *collect.Batch, r *resource, attributes pcommon.Map, now time.Time) {
	if d == nil {
		return
	}
	if r.diagnosed == nil {
		r.diagnosed = &diagnosed{state: diagnose.State{Keeper: &remembered{d, batch.Resource}}}
		if d.on == OnDerived {
			r.memory.Marks = r.diagnosed.mark
		}
	}
	transitions := r.diagnosed.state.Observe(&d.settings, r.state)
	if !r.derivedBefore(ofDiagnosis, now, d.staleness) {
		d.report(ctx, transitions, attributes, now)
	}
}

// report logs changes.
func (d *diagnosis) report(ctx context.Context, changes []diagnose.Transition, of pcommon.Map, now time.Time) {
	d.logging.Lock()
	defer d.logging.Unlock()
	d.log.tell(ctx, changes, of, now)
}

// tell writes the diagnosis of the engines of a resource.
func (d *diagnosis) tell(ctx context.Context, w *worker, batch *collect.Batch, r *resource, out *output) {
	if d == nil {
		return
	}
	w.values = r.diagnosed.state.Values(r.state, d.wanted, w.values)
	memory := &r.diagnosed.memory
	d.add(ctx, out, section{memory: memory, points: memory.Write(w.values, r.state.Time(), batch.Time)})
}

// expire keeps the baselines of a resource that is forgotten, for the case that it
// comes back.
func (d *diagnosis) expire(r *resource) {
	if d != nil && r.diagnosed != nil {
		r.diagnosed.state.End()
	}
}

// snapshot returns the baselines of all engines, and what is known of their servers.
func (d *diagnosis) snapshot() map[string][]byte {
	all := map[string][]byte{}
	d.each(func(resource string, r *resource) {
		if r.diagnosed == nil {
			return
		}
		for attributes, baseline := range r.diagnosed.state.Baselines() {
			all[baselineKey(resource, attributes)] = baseline
		}
		if server := r.diagnosed.state.Server(); server != nil {
			all[serverKey(resource)] = server
		}
	})
	return all
}

func (d *diagnosis) accessed(key string, err error) { d.status.accessed(key, err) }

// remembered is what the state of a resource asks about its engines.
type remembered struct {
	*diagnosis
	resource string
}

// Begin returns what was learned of an engine before.
func (r *remembered) Begin(attributes []collect.Attribute) []byte {
	state, _ := r.archive.begin(baselineKey(r.resource, attributes), keyBefore(r.resource, attributes, baselineName), r.resource, r.diagnosis)
	return state
}

// End keeps what was learned of an engine.
func (r *remembered) End(attributes []collect.Attribute, baseline []byte) {
	r.archive.end(baselineKey(r.resource, attributes), baseline, r.diagnosis)
}

// BeginServer returns what was known of the server before.
func (r *remembered) BeginServer() []byte {
	state, _ := r.archive.begin(serverKey(r.resource), "", r.resource, r.diagnosis)
	return state
}

// EndServer keeps what is known of the server.
func (r *remembered) EndServer(server []byte) {
	r.archive.end(serverKey(r.resource), server, r.diagnosis)
}

func serverKey(resource string) string { return stateKey(resource, nil, "server") }

func baselineKey(resource string, attributes []collect.Attribute) string {
	return stateKey(resource, attributes, baselineName)
}

const baselineName = "baseline"
