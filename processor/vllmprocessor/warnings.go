package vllmprocessor

import (
	"fmt"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

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
	aboutSize
	aboutEngines
	aboutAhead
	aboutDerived
	aboutTimes

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

// warnSize says once that points have more attributes than are kept.
func (p *vllmProcessor) warnSize(unread *collect.Report) {
	if unread[collect.TooLarge] == 0 || !p.warned.first(aboutSize) {
		return
	}
	p.logger.Warn("points have more than 8 KiB of attributes, or belong to a resource with more than 512 attributes or 64 KiB of them, " +
		"and nothing is derived from them; remove attributes that do not say which server, engine or model it is before this processor")
}

const (
	// lead is how far the time of a batch may be ahead of our clock. One from later
	// would make all that follows it out of order.
	lead = 5 * time.Minute
	// skew is how far two clocks that are set are apart at most.
	skew = 30 * time.Second
)

// apart is the least time between two batches that show that the times of a resource
// were wrong. Batches that are sent again come faster.
const apart = time.Second

// isAhead reports whether a batch shows that the times of a resource were wrong: they
// are ahead of our clock, and for the second time in a row a batch comes which is not,
// and which would be out of order until the clock gets there.
func (r *resource) isAhead(batch *collect.Batch, now time.Time) bool {
	newest := r.state.Time()
	if batch.Time >= newest {
		r.behind = time.Time{}
		return false
	}
	if time.Unix(0, newest).Sub(now) <= skew || time.Unix(0, batch.Time).Sub(now) > skew || r.history.find(batch.Time, batch.Print()) != nil {
		return false
	}
	if r.behind.IsZero() {
		r.behind, r.behindTime = now, batch.Time
		return false
	}
	return batch.Time > r.behindTime && now.Sub(r.behind) >= apart
}

// warnAhead says once that a resource begins anew because its times were wrong.
func (p *vllmProcessor) warnAhead(r *resource, now time.Time) {
	if !p.warned.first(aboutAhead) {
		return
	}
	p.logger.Warn(fmt.Sprintf("points of a server were %s ahead of this machine's clock, and later ones were not; its windows begin again, "+
		"and for %s points of it that are more than %s ahead are not used; set the clocks of all machines that send its metrics",
		time.Unix(0, r.state.Time()).Sub(now).Round(time.Second), p.config.MaxStaleness, skew), serverFields(r.attributes)...)
}

// warnTimes says once that nothing is derived for some times of a request.
func (p *vllmProcessor) warnTimes(r *resource, attributes pcommon.Map) {
	if !p.warned.first(aboutTimes) {
		return
	}
	p.logger.Warn(fmt.Sprintf("a request has many times of one server with %d engines and models; all of them are counted, and values are "+
		"derived for the newest %d times only; place this processor before any batch processor, and send fewer times in one request",
		r.state.Engines(), r.times()), serverFields(attributes)...)
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
func (p *vllmProcessor) warnings(batch *collect.Batch, r *resource, attributes pcommon.Map, report *window.Report, before int64) {
	if report.Ignored[window.SeriesLimit] > 0 && p.warned.first(aboutSeries) {
		p.logger.Warn(fmt.Sprintf("there are more series than max_series (%d), and nothing is derived from the others; "+
			"raise it, or keep metrics that are not vLLM's from this processor", p.config.MaxSeries))
	}
	if report.Ignored[window.GroupLimit] > 0 && p.warned.first(aboutEngines) {
		p.logger.Warn(fmt.Sprintf("there are more engines and models than are kept, which is 1000 of a server and %d of all servers, "+
			"and nothing is derived from the others; if the labels engine or model_name are made up, drop them before this processor, and if many servers share one resource, "+
			"give each of them its own service.instance.id", p.engines.Limit()), serverFields(attributes)...)
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
