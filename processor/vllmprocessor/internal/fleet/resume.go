package fleet

import (
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/collect"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/diagnose"
)

// resumed reports whether the diagnosis of a pool from before the collector restarted still holds:
// in the first window since then, because not all of its engines were read yet. The transition is
// that it continues.
func (p *pool) resumed(settings *diagnose.Settings, at int64) (transitions []diagnose.Transition, holds bool) {
	if p.before != nil {
		starved, fed, continues, is := p.report.Resume(settings, p.before, at)
		if is {
			p.starvedSince, p.fedSince, p.holds = starved, fed, at+int64(settings.Window)
		}
		p.before, transitions = nil, continues
	}
	return transitions, at < p.holds
}

// Diagnoses passes the diagnosis of each pool to put, in the form that Keeper takes.
func (p *Pools) Diagnoses(put func(attributes []collect.Attribute, diagnosis []byte)) {
	for _, one := range p.pools {
		if one == nil || p.byKey[keyOf(&p.key, one.attributes)] != one {
			continue
		}
		if data := one.report.Save(one.starvedSince, one.fedSince); data != nil {
			put(one.attributes, data)
		}
	}
}
