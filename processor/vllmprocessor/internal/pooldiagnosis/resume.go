package pooldiagnosis

import (
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/diagnose"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// resume reports whether the diagnosis of a pool from before the collector restarted still holds:
// in the first window since then, because not all of its engines were read yet. The transition is
// that it continues.
func (p *pool) resume(settings *diagnose.Settings, at int64) (transitions []diagnose.Transition, holds bool) {
	if p.before != nil {
		starved, fed, continues, is := p.report.Resume(settings, p.before, at)
		if is {
			p.starvedSince, p.fedSince, p.resumed = starved, fed, at
		}
		p.before, transitions = nil, continues
	}
	if p.resumed > 0 && (at < p.resumed || at-p.resumed >= int64(settings.Window)) {
		// The window has passed, or the clock was set back.
		p.resumed = 0
	}
	return transitions, p.resumed > 0
}

// Diagnoses passes the diagnosis of each pool to put, in the form that Keeper takes.
func (p *Pools) Diagnoses(put func(attributes []input.Attribute, diagnosis []byte)) {
	for _, one := range p.pools {
		if one == nil || p.byKey[keyOf(&p.key, one.attributes)] != one {
			continue
		}
		if data := one.report.Save(one.starvedSince, one.fedSince); data != nil {
			put(one.attributes, data)
		}
	}
}
