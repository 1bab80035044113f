package discover

import (
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/remote"
)

// maxShort is the maximum number of groups whose too short interval is logged.
const maxShort = 100

// warnOfShort logs once for each group that its interval is too short.
func (r *Runner) warnOfShort(short map[string]time.Duration) {
	var sources []string
	for source := range short {
		if len(r.short) < maxShort && !r.short[source] {
			r.short[source] = true
			sources = append(sources, source)
		}
	}
	if len(sources) == 0 {
		return
	}
	source := slices.Min(sources)
	r.options.Logger.Warn("Discovered targets ask for a __scrape_interval__ that is too short; "+
		min(minInterval, r.options.Defaults.Interval).String()+", the shortest that labels can set, is used instead. Correct it in the list of targets",
		zap.String("group", remote.Text(source)), zap.Duration("asked", short[source]), zap.Int("groups", len(sources)))
}

// logChanges logs which targets are new or gone, and whether the limit is exceeded.
func (r *Runner) logChanges(targets []Target, scraped map[string]bool, over int) {
	added, kept := 0, 0
	for i := range targets {
		if scraped[targets[i].URL.String()] {
			kept++
		} else {
			added++
		}
	}
	gone := len(scraped) - kept
	if added > 0 || gone > 0 {
		r.options.Logger.Info("Discovered targets have changed",
			zap.Int("found", added), zap.Int("gone", gone), zap.Int("scraped", len(targets)))
	} else if !r.reported {
		r.options.Logger.Info("Discovery has started and has found no targets yet")
	}
	r.reported = true
	if over > 0 != r.limited {
		r.limited = over > 0
		if over > 0 {
			r.options.Logger.Warn("Discovery has found more targets than limits::targets; those that were there first are scraped",
				zap.Int("limit", r.options.Limit), zap.Int("not_scraped", over))
		} else {
			r.options.Logger.Info("Discovery is within limits::targets again")
		}
	}
}
