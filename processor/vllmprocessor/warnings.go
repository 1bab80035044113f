package vllmprocessor

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/collect"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
)

// topic is what a sentence is about that is logged once.
type topic uint8

const (
	aboutSeries topic = iota
	aboutWindow
	aboutFuture
	aboutStaleness

	numTopics
)

// warnings are the sentences that were logged.
type warnings [numTopics]atomic.Bool

// first reports whether a sentence has not been logged yet, and takes it as logged.
func (w *warnings) first(about topic) bool { return w[about].CompareAndSwap(false, true) }

// lapsed is a resource that was forgotten after a single batch, and how often in
// a row.
type lapsed struct {
	key     string
	arrived time.Time
	times   int
}

// lapse notes that a resource is forgotten. One is watched at a time; one that
// does not come back gives way.
func (p *vllmProcessor) lapse(key string, r *resource, now time.Time) {
	switch {
	case r.batches > 0:
	case p.lapsed.key == key:
		p.lapsed.arrived = r.arrived
		p.lapsed.times++
	case p.lapsed.key == "" || now.Sub(p.lapsed.arrived) > 10*p.config.MaxStaleness:
		p.lapsed = lapsed{key, r.arrived, 1}
	}
}

// warnLapse says once that resources come less often than they are forgotten.
// Once proves nothing, so it has to happen twice.
func (p *vllmProcessor) warnLapse(key string, now time.Time) {
	if p.lapsed.times < 2 || p.lapsed.key != key || !p.warned.first(aboutStaleness) {
		return
	}
	interval := now.Sub(p.lapsed.arrived)
	p.logger.Warn(fmt.Sprintf("a server comes every %s only, which is longer than max_staleness (%s), so that it is forgotten each time "+
		"and nothing is derived from it; set window and max_staleness to %s or more, or scrape more often",
		interval.Round(time.Millisecond), p.config.MaxStaleness, (2 * interval).Round(time.Second)))
}

func (p *vllmProcessor) warnFuture(batch *collect.Batch, now time.Time) {
	if !p.warned.first(aboutFuture) {
		return
	}
	p.logger.Warn(fmt.Sprintf("points are %s ahead of this machine's clock, and nothing is derived from them; "+
		"set the clock here, or where they are made", time.Unix(0, batch.Time).Sub(now).Round(time.Second)))
}

// jitter is the part of a window by which scrapes may come late, as any timer does:
// two that come so late still are a window.
const jitter = 10

// warnings says once what a user can mend.
func (p *vllmProcessor) warnings(batch *collect.Batch, r *resource, report *window.Report, before int64) {
	if report.Ignored[window.SeriesLimit] > 0 && p.warned.first(aboutSeries) {
		p.logger.Warn(fmt.Sprintf("there are more series than max_series (%d), and nothing is derived from the others; "+
			"raise it, or keep metrics that are not vLLM's from this processor", p.config.MaxSeries))
	}
	if before == 0 || batch.Time <= before || !report.Observed {
		return
	}
	r.batches++
	// One gap proves nothing, so two intervals have to be long.
	interval := time.Duration(batch.Time - before)
	if r.batches > 10 || 2*interval <= p.config.Window+p.config.Window/jitter {
		r.batches = 11
		return
	}
	if r.batches == 2 && p.warned.first(aboutWindow) {
		p.logger.Warn(fmt.Sprintf("the window (%s) is shorter than twice the time between two scrapes (%s), "+
			"so that a single missed scrape leaves nothing to derive; set window to %s or more, or scrape more often",
			p.config.Window, interval.Round(time.Millisecond), (2 * interval).Round(time.Second)))
	}
}
