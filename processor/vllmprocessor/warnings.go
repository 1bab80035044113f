package vllmprocessor

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.uber.org/zap"

	"github.com/otelcol-vllm/otelcol-vllm/internal/defectlog"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/collect"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/stages"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
)

// topic is the subject of a warning that is logged once.
type topic uint8

const (
	aboutWindow topic = iota
	aboutFuture
	aboutStaleness
	aboutSize
	aboutEngines
	aboutAhead
	aboutDerived
	aboutTimes
	aboutDeltas
	aboutSharedGPUs
	aboutHostGPUs
	aboutGPULimit
	aboutGPUsAhead

	numTopics
)

// warnings are the topics that were logged.
type warnings [numTopics]atomic.Bool

// first reports whether a topic has not been logged yet, and records it.
func (w *warnings) first(about topic) bool { return w[about].CompareAndSwap(false, true) }

// warnOnce logs a warning, unless its topic was logged before. resource is that of the server that it is
// about; zero where it is about no single one.
func (p *vllmProcessor) warnOnce(about topic, resource pcommon.Map, format string, args ...any) {
	if !p.warned.first(about) {
		return
	}
	var fields []zap.Field
	if resource != (pcommon.Map{}) {
		fields = stages.ServerFields(resource)
	}
	p.logger.Warn(fmt.Sprintf(format, args...), fields...)
}

// shortLived is a resource that was forgotten after a single batch, and how often in
// a row.
type shortLived struct {
	key     string
	arrived time.Time
	times   int
}

// recordShortLived records that a resource is forgotten. It watches one at a time; one that
// does not come back is replaced.
func (p *vllmProcessor) recordShortLived(r *resource, now time.Time) {
	switch {
	case r.batches > 0:
	case p.shortLived.key == r.Key:
		p.shortLived.arrived = r.Arrived
		p.shortLived.times++
	case p.shortLived.key == "" || now.Sub(p.shortLived.arrived) > 10*p.config.MaxStaleness:
		p.shortLived = shortLived{r.Key, r.Arrived, 1}
	}
}

// warnShortLived warns once that resources are scraped less often than they are forgotten.
// Once can be an accident, so there must be two.
func (p *vllmProcessor) warnShortLived(key string, now time.Time) {
	if p.shortLived.times < 2 || p.shortLived.key != key {
		return
	}
	interval := now.Sub(p.shortLived.arrived)
	p.warnOnce(aboutStaleness, pcommon.Map{}, "a server is scraped only every %s, longer than max_staleness (%s), so it is forgotten between scrapes "+
		"and nothing is derived from it; set window and max_staleness to %s or more, or scrape more often",
		interval.Round(time.Millisecond), p.config.MaxStaleness, (2 * interval).Round(time.Second))
}

// warnSize warns once about points with more attributes than are kept.
func (p *vllmProcessor) warnSize(unread *collect.Report) {
	if unread[collect.TooLarge] > 0 {
		p.warnOnce(aboutSize, pcommon.Map{}, "points have more than 8 KiB of attributes, or belong to a resource with more than 512 attributes or 64 KiB of them, "+
			"and nothing is derived from them; remove attributes that do not say which server, engine or model it is before this processor")
	}
}

const (
	// lead is how far the time of a batch may be ahead of our clock. A later one
	// would make all that follows it out of order.
	lead = 5 * time.Minute
	// skew is the largest difference between two clocks that are set.
	skew = 30 * time.Second
	// apart is the least time between two batches that show that the times of a resource
	// were wrong. Batches that are sent again arrive faster.
	apart = time.Second
)

// isAhead reports whether a batch shows that the times of a resource were wrong: they
// are ahead of our clock, and for the second time in a row a batch arrives that is not,
// and that would be out of order until the clock gets there.
func (r *resource) isAhead(batch *input.Batch, now time.Time) bool {
	newest := r.Window.Time()
	if batch.Time >= newest {
		r.behind = time.Time{}
		return false
	}
	if time.Unix(0, newest).Sub(now) <= skew || time.Unix(0, batch.Time).Sub(now) > skew || r.history.Find(batch.Time, batch.Print()) != nil {
		return false
	}
	if r.behind.IsZero() {
		r.behind, r.behindTime = now, batch.Time
		return false
	}
	return batch.Time > r.behindTime && now.Sub(r.behind) >= apart
}

// warnAhead warns once that the windows of a resource were reset because its timestamps were wrong.
func (p *vllmProcessor) warnAhead(r *resource, now time.Time) {
	p.warnOnce(aboutAhead, r.Attributes, "points of a server were %s ahead of this machine's clock, and later ones were not. Its windows were reset; "+
		"for %s, its points that are more than %s ahead are ignored. Synchronize the clocks of all machines that send its metrics",
		time.Unix(0, r.Window.Time()).Sub(now).Round(time.Second), p.config.MaxStaleness, skew)
}

// warnTimes warns once that nothing is derived for some timestamps of a request.
func (p *vllmProcessor) warnTimes(r *resource) {
	p.warnOnce(aboutTimes, r.Attributes, "one OTLP request has points of a server with %d engines and models at many timestamps. All are counted, but values are "+
		"derived only for the newest %d timestamps. Place this processor before any batch processor, and send fewer timestamps in one request",
		r.Window.Engines(), r.times())
}

func (p *vllmProcessor) warnFuture(batch *stages.Batch) {
	p.warnOnce(aboutFuture, pcommon.Map{}, "points are %s ahead of this machine's clock, and nothing is derived from them; "+
		"synchronize the clocks of both machines", aheadOf(batch).Round(time.Second))
}

// aheadOf is how far a batch is ahead of our clock. Times beyond the year 2262 are negative.
func aheadOf(batch *stages.Batch) time.Duration {
	if batch.Time < 0 {
		return math.MaxInt64
	}
	return time.Unix(0, batch.Time).Sub(batch.Now)
}

// jitter is the part of a window by which two scrapes may be late, as any timer is, and
// still count as a window.
const jitter = 10

// warn logs once what a user can correct. before is the time of the previous batch in
// Unix nanoseconds.
func (p *vllmProcessor) warn(r *resource, batch *stages.Batch, attributes pcommon.Map, report *window.Report, before int64) {
	p.warnSeries(r, report)
	p.logDefaultBounds(r, batch, attributes)
	if report.Ignored[window.GroupLimit] > 0 {
		p.warnOnce(aboutEngines, attributes, "there are more engines and models than the limits, 1000 for one server and %d for all; "+
			"nothing is derived from the others. If the labels engine or model_name are made up, drop them before this processor, and if many servers share one resource, "+
			"give each of them its own service.instance.id", p.engines.Limit())
	}
	if before == 0 || batch.Time <= before || !report.Observed {
		return
	}
	r.batches++
	if r.batches == 1 && slices.ContainsFunc(batch.Samples, func(s input.Sample) bool { return s.Delta }) && p.warned.first(aboutDeltas) {
		p.logger.Info("counters arrive with delta temporality, so derived values are too low when a batch is lost; "+
			"if cumulative_to_delta is before this processor, move it behind", stages.ServerFields(attributes)...)
	}
	// One gap can be an accident, so two intervals have to be long.
	interval := time.Duration(batch.Time - before)
	if r.batches > 10 || 2*interval <= p.config.Window+p.config.Window/jitter {
		r.batches = 11
		return
	}
	if r.batches == 2 {
		p.warnOnce(aboutWindow, pcommon.Map{}, "the window (%s) is shorter than twice the time between two scrapes (%s), "+
			"so nothing is derived when one scrape is missed; set window to %s or more, or scrape more often",
			p.config.Window, interval.Round(time.Millisecond), (2 * interval).Round(time.Second))
	}
}

// warnSeries warns that there are more series than max_series, with the number to set. It
// waits for the third batch of a server with too many: by then all servers have been scraped
// and have their share, so that the number is for all of them. It warns again once that
// number would not be enough.
func (p *vllmProcessor) warnSeries(r *resource, report *window.Report) {
	if report.Lacking == 0 {
		return
	}
	if r.lacked < 2 {
		r.lacked++
		return
	}
	wanted, advised := p.series.Wanted(), p.advised.Load()
	number := withRoom(wanted)
	if int64(wanted) <= advised || wanted <= p.config.MaxSeries || !p.advised.CompareAndSwap(advised, int64(number)) {
		return
	}
	p.logger.Warn(fmt.Sprintf("there are %d series, more than max_series (%d), and nothing is derived from the others; "+
		"set max_series to %d, or keep metrics that are not vLLM's from this processor", wanted, p.config.MaxSeries, number))
}

// maxDefaultBounds is for how many servers the line about their buckets is logged.
const maxDefaultBounds = 20

// logDefaultBounds logs once for a server what is not derived because it pushes seconds in the buckets of an SDK.
func (p *vllmProcessor) logDefaultBounds(r *resource, batch *stages.Batch, attributes pcommon.Map) {
	if r.defaultBounds || !batch.Evidence.Signs.Has(input.DefaultBounds) {
		return
	}
	r.defaultBounds = true
	n := p.defaultBounds.Add(1)
	if n > maxDefaultBounds {
		return
	}
	var last string
	if n == maxDefaultBounds {
		last = ". Further servers with the same buckets are not logged"
	}
	p.logger.Info("a server pushes its latencies in seconds with the default buckets of an OpenTelemetry SDK, which begin with 0 to 5. "+
		"Rates, means and the diagnosis are derived; percentiles and objectives of latencies are not. "+
		"In the server's SDK, set a view with buckets for seconds, or let the vllm receiver scrape the server"+last, stages.ServerFields(attributes)...)
}

// withRoom returns a limit for this many series: with a quarter more, for servers of a
// rollout and for series that appear later, and rounded up to a thousand.
func withRoom(wanted int) int {
	return (wanted + (wanted+3)/4 + 999) / 1000 * 1000
}

// judgedServer is what the known defects of a resource were last looked up for.
type judgedServer struct {
	// batches counts the first two: one scrape can arrive in several requests.
	batches int
	judged  bool
	version string
	// lines is for how many versions they were logged.
	lines int
}

// logDefects logs which known defects of vLLM's metrics matter for a server that our
// receiver does not scrape.
func (p *vllmProcessor) logDefects(r *resource, attributes pcommon.Map, now time.Time) {
	defer p.defects.Flush(now)
	j := &r.defects
	if j.batches < 2 {
		j.batches++
	}
	version := r.Window.Reported()
	if j.batches < 2 || j.judged && j.version == version {
		return
	}
	j.judged, j.version = true, version
	if j.lines >= defectlog.MaxVersions {
		return
	}
	server, is := r.Window.Described()
	if is && p.defects.Add(now, serverName(attributes), &server) {
		j.lines++
	}
}

func serverName(attributes pcommon.Map) string {
	if name := stages.Named(attributes, "service.instance.id", "k8s.pod.name"); name != "" {
		return name
	}
	var parts []string
	for _, field := range stages.ServerFields(attributes) {
		parts = append(parts, field.String)
	}
	return strings.Join(parts, " ")
}
