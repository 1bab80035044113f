package vllmreceiver

import (
	"maps"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/emit"
)

// leftFor is how long the series of a removed target are remembered, so that their start times do
// not go back where discovery finds it again.
const leftFor = time.Hour

// leftTarget is what is remembered of a removed target.
type leftTarget struct {
	at         time.Time
	attributes map[string]string
	emitter    *emit.Target
}

// remember keeps the series of a target that was removed, within the limit of targets. It needs mu.
func (r *vllmReceiver) remember(t *runningTarget) {
	now := t.scraper.now()
	maps.DeleteFunc(r.left, func(_ string, l leftTarget) bool { return now.Sub(l.at) > leftFor })
	if len(r.left)+len(r.running) <= r.shared.config.Limits.Targets {
		r.left[t.key] = leftTarget{now, t.scraper.identity.discovered, t.scraper.emitter}
	}
}

// continues gives a target the series that it had before it was removed, if it is the same one. It
// needs mu.
func (r *vllmReceiver) continues(t *runningTarget) {
	l, known := r.left[t.key]
	delete(r.left, t.key)
	if known && t.scraper.now().Sub(l.at) <= leftFor && maps.Equal(l.attributes, t.scraper.identity.discovered) {
		t.scraper.emitter = l.emitter
	}
}
