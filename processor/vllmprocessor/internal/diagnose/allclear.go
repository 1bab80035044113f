package diagnose

import (
	"cmp"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
)

// Harm that has collected evidence ends when the evidence against it is enough, which takes whole windows:
// its alert would stay for more than two minutes after users are served as before. So it ends as well once
// the last half minute has shown for soundFor, with soundRequests first tokens at least, both latencies as
// usual but for half of the difference that is harm. The work of the window has to be as usual as well, by the
// same half: with a drift, what is usual for a latency moves.
const (
	soundFor      = 45 * time.Second
	soundRequests = 5.0
	soundPart     = 0.5
)

// harmed reports whether there is enough evidence of harm by latencies.
func (e *engine) harmed() bool {
	for i := range e.Harms {
		if e.Harms[i].On {
			return true
		}
	}
	return false
}

// sound reports whether the last half minute shows the usual latencies, nobody who waits, and of each
// objective half of the misses that it allows at most. Without a usual latency nothing is sound.
func (f *felt) sound(settings *Settings, b *signal.Baseline, v *window.View, r *reading) bool {
	as := func(now, usual, least float64) bool {
		return now <= max(usual*(1+soundPart*(harmRatio-1)), usual+soundPart*least)
	}
	if !b.Ready() || r.doubtful || r.waitingNow > 1 || r.recent.firsts < soundRequests || r.recent.gaps < leastSteps ||
		!as(r.recent.first, b.Usual(signal.TimeToFirstToken), harmFirstToken) || !as(r.recent.gap, b.Usual(signal.InterTokenLatency), harmTokenGap) {
		return false
	}
	half := v.Over(r.recent.over)
	for i := range settings.Objectives {
		o := &settings.Objectives[i]
		if !o.Matches(v.Group().Value("model_name")) {
			continue
		}
		var seen window.Histogram
		if derive.Observations(&half, &seen, o.Input) != derive.OK || seen.Count < soundRequests || seen.Count-seen.Below(o.Threshold) > soundPart*(1-o.Target)*seen.Count {
			return false
		}
	}
	return true
}

// over reports whether measured harm has ended: requests are served as usual again. Without requests
// nothing shows that.
func (f *felt) over(settings *Settings, b *signal.Baseline, v *window.View, r *reading) bool {
	ttft := r.recent.first
	if r.recent.firsts < leastFelt {
		if ttft = r.Signals[signal.TimeToFirstToken]; !(r.FirstTokens > 0) && (f.First || !(r.recent.gaps >= leastSteps)) {
			return false
		}
	}
	model := v.Group().Value("model_name")
	first, gap := firstLimits(settings, b, model, r), gapLimits(settings, b, model)
	usual := func(now, usual, least, documented float64, l limits) bool {
		bar := max(asUsual*usual, usual+least)
		if !signal.Known(bar) {
			bar = cmp.Or(l.great/greatObjective/asUsual, documented)
		}
		return !(now > bar)
	}
	isFirst := func(now float64) bool {
		return usual(now, b.Usual(signal.TimeToFirstToken), harmFirstToken, defaultFirstToken, first)
	}
	isGap := usual(r.recent.gap, b.Usual(signal.InterTokenLatency), harmTokenGap, defaultTokenGap, gap)
	waiting, waited, _ := f.waits.now(r.At, 0)
	return isFirst(ttft) && (isGap || !(r.recent.gaps >= leastSteps)) && (r.doubtful || waiting <= 1 || isFirst(waited/waiting))
}
