package soak

import (
	"slices"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/fleet"
)

// step is something that the soak does at a time after its begin.
type step struct {
	at   time.Duration
	what action
	// mode and outage say how something fails, lasts for how long.
	mode   mode
	outage fleet.Outage
	lasts  time.Duration
}

type action uint8

const (
	// churn replaces a target.
	churn action = iota
	// disturb makes a target fail.
	disturb
	changeEngines
	changeModel
	// fail makes the backend fail, recover ends that.
	fail
	restore
	// reload sends SIGHUP, restart ends the process and starts it again.
	reload
	restart
)

const (
	churnEvery   = 2 * time.Second
	disturbEvery = time.Second
	outageLasts  = 15 * time.Second
	// The last part of a soak has no failures, so that the queue can drain.
	quietPart = 40 * time.Second
	// judgedFrom is the shortest soak in which growth is judged.
	judgedFrom = 4 * time.Minute
)

var (
	modes   = []mode{hanging, failing, garbage, resetting, cutting, refusing}
	outages = []fleet.Outage{fleet.Unavailable, fleet.Unreachable, fleet.Losing, fleet.Slow}
)

// schedule is what a soak does.
type schedule struct {
	steps []step
	// warm is when the numbers are expected to be flat, active when the failures end.
	warm, active, total time.Duration
}

// newSchedule makes the schedule of a soak. The process is restarted once, during the first
// outage and before the warm-up ends: what it held must come back from the disk, and a new
// process must not hide what the old one leaked.
func newSchedule(total time.Duration) schedule {
	s := schedule{total: total, active: total - min(quietPart, total/4)}
	s.warm = max(total/5, min(90*time.Second, total/3))
	every := min(time.Minute, s.active/2)
	lasts := min(outageLasts, every/4)
	for i, at := 0, every/3; at+lasts < s.active; i, at = i+1, at+every {
		how := outages[i%len(outages)]
		s.steps = append(s.steps, step{at: at, what: fail, outage: how}, step{at: at + lasts, what: restore})
	}
	s.steps = append(s.steps, step{at: every/3 + lasts/3, what: restart})
	reloads := max(50*time.Second, total/6)
	for at := reloads; at < s.active; at += reloads {
		s.steps = append(s.steps, step{at: at, what: reload})
	}
	for at := churnEvery; at < s.active; at += churnEvery {
		s.steps = append(s.steps, step{at: at, what: churn})
	}
	for i, at := 0, disturbEvery; at < s.active; i, at = i+1, at+disturbEvery {
		next := step{at: at, what: disturb, lasts: time.Duration(8+i%9) * time.Second}
		switch n := i % (len(modes) + 2); {
		case n < len(modes):
			next.mode = modes[n]
			if next.mode == refusing {
				next.lasts = 4 * time.Second
			}
		case n == len(modes):
			next.what = changeEngines
		default:
			next.what = changeModel
		}
		s.steps = append(s.steps, next)
	}
	slices.SortStableFunc(s.steps, func(a, b step) int { return int(a.at - b.at) })
	return s
}
