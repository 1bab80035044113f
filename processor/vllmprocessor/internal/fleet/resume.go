package fleet

import (
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/collect"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/diagnose"
)

// resumed reports whether the diagnosis of a pool from before the collector restarted still holds:
// in the first window since then, because not all of its engines were read yet.
func (p *pool) resumed(settings *diagnose.Settings, at int64) bool {
	if p.before != nil {
		if starved, fed, is := p.report.Resume(settings, p.before, at); is {
			p.starvedSince, p.fedSince, p.holds = starved, fed, at+int64(settings.Window)
		}
		p.before = nil
	}
	return at < p.holds
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
