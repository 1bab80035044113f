package pools

import (
	"iter"
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/diagnose"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// Source is a resource: its engines, and the requests that wait at it where it is a
// gateway. The diagnosis of a resource is one.
type Source interface {
	Members() iter.Seq[diagnose.Member]
	Queues() []diagnose.Queue
}

// Diagnosis is that of the pools.
type Diagnosis struct {
	places[Source, *pool]
	// keeper keeps the references of pools that have gone; nil for none.
	keeper      diagnose.Keeper
	key         []byte
	transitions []diagnose.Transition
	values      []derive.Value
}

// NewDiagnosis returns the diagnosis of at most so many pools. Without a keeper nothing of them is kept.
func NewDiagnosis(limit int, keeper diagnose.Keeper) *Diagnosis {
	return &Diagnosis{places: newPlaces(limit, func(one *pool) { one.end(keeper) }), keeper: keeper}
}

// Begin removes the members of the last evaluation.
func (p *Diagnosis) Begin() { p.empty() }

// Add adds the engines of a source, which is a server of that name. It returns false where an engine was left
// out because there are too many pools.
func (p *Diagnosis) Add(s Source, server string, attributesOf AttributesOf) (complete bool) {
	complete = true
	for engine := range s.Members() {
		to := p.pool(s, attributesOf(nil, engine.Attributes))
		if to == nil {
			complete = false
			continue
		}
		p.join(to, s)
		to.meet(s, &engine)
		engine.Beside(to.askedBefore)
		to.asked = to.asked.Plus(engine.Asked)
		to.members = append(to.members, newMember(&engine, server))
	}
	return complete
}

// Queue adds the requests that wait at a gateway. It is called after all engines were
// added. The requests belong to each pool that has no attribute with another value than
// the gateway's. Where these are several pools, it is unknown for which of them the
// requests are: they count only where all of these pools have room.
func (p *Diagnosis) Queue(s Source) {
	for _, q := range s.Queues() {
		full := slices.ContainsFunc(p.all, func(one *pool) bool { return one.takes(&q) && !one.roomy() })
		for _, one := range p.all {
			if !full && one.takes(&q) {
				one.queued += q.Requests
			}
		}
	}
}

// Delay takes what the gateways before the pools add, by the key of a pool. It is called after all engines
// were added.
func (p *Diagnosis) Delay(delays map[string]Delay, at int64) {
	for _, one := range p.all {
		if one == nil || one.empty() {
			continue
		}
		if d, known := delays[one.key]; known {
			one.delay = d
			one.usualDelay.add(at, d.Gateway)
		}
	}
}

// pool returns the pool with some attributes; nil where there is no place for it.
func (p *Diagnosis) pool(s Source, attributes []input.Attribute) *pool {
	p.key = keyOf(p.key[:0], attributes)
	if known := p.byKey[string(p.key)]; known != nil {
		return known
	}
	at, has := p.add(s, string(p.key), slices.Clone(attributes))
	if !has {
		return nil
	}
	added := &pool{place: at, report: diagnose.NewReport(at.number, at.attributes), delay: unknownDelay}
	p.put(added)
	added.begin(p.keeper)
	return added
}

// Evaluate judges the pools at a time in Unix nanoseconds. It returns the values to
// report and the changes, both valid until the next call. The diagnoses of the engines
// have been held already, so the condition of a pool follows them without a hold.
func (p *Diagnosis) Evaluate(settings *diagnose.Settings, at int64, enabled map[*derive.Row]bool) ([]derive.Value, []diagnose.Transition) {
	p.transitions, p.values = p.transitions[:0], p.values[:0]
	for _, one := range p.all {
		if one == nil || one.empty() {
			continue
		}
		one.conclude(at)
		judged := one.judge(settings, at)
		continues, holds := one.resume(settings, at)
		if p.transitions = append(p.transitions, continues...); !holds {
			for _, change := range one.report.Observe(settings, judged) {
				change.Usual, change.Felt = one.usual(), one.sentence()
				p.transitions = append(p.transitions, change)
			}
		}
		p.values = one.report.Values(enabled, p.values)
	}
	return p.values, p.transitions
}

// resume reports whether the diagnosis of a pool from before the collector restarted still holds:
// in the first window since then, because not all of its engines were read yet. The transition is
// that it continues.
func (p *pool) resume(settings *diagnose.Settings, at int64) (transitions []diagnose.Transition, holds bool) {
	if p.before != nil {
		continues, is := p.report.Resume(settings, p.before, at)
		if is {
			p.resumed = at
		}
		p.before, transitions = nil, continues
	}
	if p.resumed > 0 && (at < p.resumed || at-p.resumed >= int64(settings.Window)) {
		// The window has passed, or the clock was set back.
		p.resumed = 0
	}
	return transitions, p.resumed > 0
}

// References passes what is usual in each pool to put.
func (p *Diagnosis) References(put diagnose.Put) {
	p.known(func(one *pool) {
		if data := one.references(); data != nil {
			put(diagnose.References, one.attributes, data)
		}
	})
}

// Diagnoses passes the diagnosis of each pool to put.
func (p *Diagnosis) Diagnoses(put diagnose.Put) {
	p.known(func(one *pool) {
		if data := one.report.Save(); data != nil {
			put(diagnose.PoolDiagnosis, one.attributes, data)
		}
	})
}
