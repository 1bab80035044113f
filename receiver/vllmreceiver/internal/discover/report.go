package discover

import (
	"fmt"
	"maps"
	"slices"
	"sync"
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
	r.options.Logger.Warn("The __scrape_interval__ of discovered targets is too short; they are scraped every "+
		min(minInterval, r.options.Defaults.Interval).String()+", the shortest allowed. Correct it in the list of targets",
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
	r.logLimit(len(targets)+over, over)
}

// logLimit logs that the limit is exceeded, again if the advised limit would not do any
// more, and that it is not exceeded any longer. A tenth of the limit must be free for that:
// a fleet that is scaled around the limit all the time would fill the log.
func (r *Runner) logLimit(found, over int) {
	switch {
	case over > 0 && found > r.advised:
		r.advised = withRoom(found)
		r.options.Logger.Warn(fmt.Sprintf("Discovery has found %d targets, more than limits::targets (%d): the last %d are not scraped. "+
			"Set limits::targets to %d", found, r.options.Limit, over, r.advised))
	case over == 0 && r.advised > 0 && found <= r.options.Limit-r.options.Limit/10:
		r.advised = 0
		r.options.Logger.Info("Discovery is within limits::targets again")
	}
}

// withRoom returns a limit for this many targets: with the quarter that a rollout adds by
// default in Kubernetes, and rounded up to a hundred.
func withRoom(found int) int {
	return (found + (found+3)/4 + 99) / 100 * 100
}

// shareLog limits the lines about how many targets the relabelling rules keep.
type shareLog struct {
	// now is the newest tally, said is what was logged last.
	now, said tally
	about     string
	// due ends the wait for the next line; nil if there is nothing to log. gap is the time
	// to wait. It doubles with each line, so that a fleet that always changes has few lines,
	// and the first line has all that is found at the start.
	due  <-chan time.Time
	gap  time.Duration
	last time.Time
}

// maxShareGap is the longest time until a change of the share is logged.
const maxShareGap = 10 * time.Minute

// noteShare sets the newest tally. It is logged later, if it then still differs.
func (r *Runner) noteShare(t tally) {
	r.share.now = t
	if r.share.due == nil && t != r.share.said && drops(r.settings.RelabelConfigs) {
		r.share.due = time.After(max(2*r.options.Delay, time.Until(r.share.last.Add(r.share.gap))))
	}
}

// logShare logs how many targets the rules keep.
func (r *Runner) logShare() {
	s := &r.share
	s.due = nil
	if s.now == s.said {
		return
	}
	s.said, s.last, s.gap = s.now, time.Now(), min(2*s.gap, maxShareGap)
	onePool := r.settings.InferencePool != nil && r.settings.Kubernetes == nil && len(r.settings.Mechanisms) == 0
	lines := r.sharding.report(s.now, onePool)
	if lines.info != "" {
		r.options.Logger.Info(lines.info)
	}
	if lines.warning != "" && lines.about != s.about {
		r.options.Logger.Warn(lines.warning)
	}
	s.about = lines.about
}

// obstacles has why parts of the discovery do not work now.
type obstacles struct {
	// changed, if not nil, is called with one obstacle, as a sentence, or with "" if there is none.
	changed func(string)

	mu sync.Mutex
	// found has the obstacle of each part.
	found map[any]string
	last  string
}

func newObstacles(changed func(string)) *obstacles {
	return &obstacles{changed: changed, found: map[any]string{}}
}

// set sets the obstacle of one part; "" means that the part works.
func (o *obstacles) set(part any, sentence string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if sentence == "" {
		delete(o.found, part)
	} else {
		o.found[part] = sentence
	}
	one := ""
	if len(o.found) > 0 {
		one = slices.Min(slices.Collect(maps.Values(o.found)))
	}
	if one != o.last && o.changed != nil {
		o.last = one
		o.changed(one)
	}
}
