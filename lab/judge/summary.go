package judge

import (
	"maps"
	"math"
	"slices"
)

// Summary counts the lines and the alarms of a story.
type Summary struct {
	// Minutes counts those of each server. Judged are those with enough requests, Harmful
	// those with harm; of these Reported had an alarm or was asleep where that is true, Right
	// the true cause as the primary one, and TopTwo the true cause among the first two.
	Minutes  int `json:"minutes"`
	Judged   int `json:"judged"`
	Harmful  int `json:"harmful"`
	Reported int `json:"reported"`
	Right    int `json:"right"`
	TopTwo   int `json:"top_two"`
	// DelayWindows has, for each server and stretch of harm that was reported, the time from
	// the end of its first minute to the end of the first minute with an alarm, in windows of
	// the processor.
	DelayWindows []float64 `json:"delay_windows"`
	// AlarmsWithHarm count the alarms at whose minute, or the one before, the server had
	// harm, AlarmsWithoutHarm those in a healthy minute, and AlarmsNotJudged all others.
	AlarmsWithHarm    int `json:"alarms_with_harm"`
	AlarmsWithoutHarm int `json:"alarms_without_harm"`
	AlarmsNotJudged   int `json:"alarms_not_judged"`
	// HealthyHours are those of minutes in which an alarm is one without harm: there was no
	// harm in them nor in the minute before, no scrape failed in them nor in the window before,
	// and each engine was judged, or nothing was injected yet and arrivals did not exceed
	// capacity.
	HealthyHours float64 `json:"healthy_hours"`
	// Sought is what was found for each effect.
	Sought []Sought `json:"sought"`
}

// trueShare is the least share of the harm that makes a cause a true one, and asGood the
// difference from the best cause that counts as equal.
const (
	trueShare = 0.20
	asGood    = 0.10
)

// True returns the causes that are right as the primary one of a harmful minute.
func (l *Line) True() []string {
	best := 0.0
	for _, share := range l.TrueCauses {
		best = max(best, share)
	}
	var out []string
	for _, c := range slices.Sorted(maps.Keys(l.TrueCauses)) {
		if share := l.TrueCauses[c]; share >= trueShare && share >= best-asGood {
			out = append(out, c)
		}
	}
	if len(out) > 0 {
		out = append(out, l.Also...)
	}
	return out
}

// Summary sums up a story.
func (p *Played) Summary() Summary {
	s := Summary{DelayWindows: []float64{}, Sought: p.Sought}
	if s.Sought == nil {
		s.Sought = []Sought{}
	}
	harmful := map[[2]int]bool{}
	// since is, by server, the first minute of the present stretch of harm; -1 where it was
	// reported already.
	since := map[int]int{}
	for i := range p.Lines {
		l := &p.Lines[i]
		s.Minutes++
		if l.Requests >= leastInAMean {
			s.Judged++
		}
		if !l.Harmful {
			if !l.open {
				// Otherwise it is not known that the harm has ended.
				delete(since, l.Server)
			}
			continue
		}
		s.Harmful++
		harmful[[2]int{l.Server, l.Minute}] = true
		if _, goes := since[l.Server]; !goes {
			since[l.Server] = l.Minute
		}
		// A server sleeps on command: that is reported, but it is not an alarm.
		if slept := l.Condition == asleep && slices.Contains(l.True(), asleep); l.Severity < warning && !slept {
			continue
		}
		s.Reported++
		if began := since[l.Server]; began >= 0 {
			s.DelayWindows = append(s.DelayWindows, round(float64(l.Minute-began)*minuteSeconds/p.Window.Seconds()))
			since[l.Server] = -1
		}
		right, second := l.named()
		if right {
			s.Right++
		}
		if right || second {
			s.TopTwo++
		}
	}
	healthy := map[[2]int]bool{}
	for i := range p.Lines {
		l := &p.Lines[i]
		if !l.open && !l.Harmful && !harmful[[2]int{l.Server, l.Minute - 1}] {
			healthy[[2]int{l.Server, l.Minute}] = true
		}
	}
	s.HealthyHours = round(float64(len(healthy)) / 60)
	for _, a := range p.Alarms {
		// An alarm at the end of a minute belongs to it.
		minute := max(0, int((a.At-1e-6)/minuteSeconds))
		switch {
		case harmful[[2]int{a.Server, minute}] || harmful[[2]int{a.Server, minute - 1}]:
			s.AlarmsWithHarm++
		case healthy[[2]int{a.Server, minute}]:
			s.AlarmsWithoutHarm++
		default:
			s.AlarmsNotJudged++
		}
	}
	return s
}

// named reports whether a true cause, or a condition that is one, is reported as the first,
// and whether it is the only one that contributes.
func (l *Line) named() (first, second bool) {
	right := l.True()
	if slices.Contains(right, l.Condition) {
		return true, false
	}
	var contributing []string
	for _, c := range l.Causes {
		switch c.Role {
		case "primary":
			first = slices.Contains(right, c.Name)
		case "contributing":
			contributing = append(contributing, c.Name)
		}
	}
	return first, len(contributing) == 1 && slices.Contains(right, contributing[0])
}

// round leaves three digits after the point.
func round(v float64) float64 { return math.Round(v*1000) / 1000 }
