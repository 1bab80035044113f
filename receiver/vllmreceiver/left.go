package vllmreceiver

import (
	"maps"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/scrape"
)

// remember keeps the series of a target that was removed, within the limit of targets. It needs mu.
func (r *vllmReceiver) remember(t *runningTarget) {
	now := time.Now()
	maps.DeleteFunc(r.left, func(_ string, l scrape.Left) bool { return l.Old(now) })
	if len(r.left)+len(r.running) <= r.shared.config.Limits.Targets {
		r.left[t.key] = t.scraper.Leave()
	}
}

// continues gives a target the series that it had before it was removed, if it is the same one. It
// needs mu.
func (r *vllmReceiver) continues(t *runningTarget) {
	t.scraper.Continue(r.left[t.key])
	delete(r.left, t.key)
}
