package main

import (
	"fmt"
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
	"github.com/otelcol-vllm/otelcol-vllm/lab/test/accuracy/stories"
)

// Alarms are false alarms and the hours in which they could be.
type Alarms struct {
	warnings, pages int
	// hours are those in which an alarm is false, time the part of them at the end of whose
	// minutes harm was reported.
	hours, time float64
	// byStory has a row of each story.
	byStory [][4]float64
}

// alarmRow has the false warnings and pages of a story, the hours in which they could be, and
// the part of these with a false report.
func alarmRow(s *Score) [4]float64 {
	own := [4]float64{2: s.Healthy, 3: s.FalseTime}
	for _, a := range s.False {
		own[0]++
		if a.Severity >= 3 {
			own[1]++
		}
	}
	return own
}

// falseAlarms adds up healthy stories, and the time before the onsets of the others, on
// generated and on recorded traffic. A page counts as a warning, too.
func falseAlarms(scores []Score, keep func(*Score) bool) Alarms {
	var out Alarms
	for i := range scores {
		s := &scores[i]
		if s.Kind == stories.Exposition || !keep(s) {
			continue
		}
		own := alarmRow(s)
		out.warnings += int(own[0])
		out.pages += int(own[1])
		out.hours += s.Healthy
		out.time += s.FalseTime
		if s.Healthy > 0 {
			out.byStory = append(out.byStory, own)
		}
	}
	return out
}

// strictAlarms counts the hours in which an objective is missed as well.
func strictAlarms(scores []Score, keep func(*Score) bool) Alarms {
	all := slices.Clone(scores)
	for i := range all {
		s := &all[i]
		s.Healthy += s.MissedHours
		s.FalseTime += s.BrokenTime
		s.False = slices.Concat(s.False, s.Broken)
	}
	return falseAlarms(all, keep)
}

// firstHour keeps of healthy stories their first hour, in which no baseline is learned yet.
// The reports that go on are not divided.
func firstHour(scores []Score, keep func(*Score) bool) Alarms {
	all := slices.Clone(scores)
	for i := range all {
		s := &all[i]
		s.Healthy, s.FalseTime = s.FirstHour, 0
		s.False = slices.DeleteFunc(slices.Clone(s.False), func(a judge.Alarm) bool { return a.At > 3600 })
	}
	return falseAlarms(all, func(s *Score) bool { return s.Kind == stories.Healthy && keep(s) })
}

// warningRate and pageRate are in 10,000 hours.
func (a *Alarms) warningRate() Interval { return a.rate(a.warnings, 0) }
func (a *Alarms) pageRate() Interval    { return a.rate(a.pages, 1) }

// rate has an interval that covers both that of Poisson, which few events need, and that by
// bootstrap over stories: false alarms come in groups, many in a story or none, so that of
// Poisson alone is too narrow.
func (a *Alarms) rate(events, column int) Interval {
	out := poisson(events, a.hours)
	if events == 0 || len(a.byStory) < 2 {
		return out
	}
	over := bootstrap(len(a.byStory), func(times []int) float64 {
		sum, hours := 0.0, 0.0
		for i := range a.byStory {
			n := float64(times[i])
			sum += n * a.byStory[i][column]
			hours += n * a.byStory[i][2]
		}
		return 10_000 * sum / hours
	})
	out.Low, out.High = min(out.Low, over.Low), max(out.High, over.High)
	return out
}

// fewHours is how many hours make no rate of 10,000.
const fewHours = 10

// warningText and pageText are the rates with their intervals; of very few hours, what was
// counted.
func (a *Alarms) warningText() string { return a.text(a.warnings, a.warningRate) }
func (a *Alarms) pageText() string    { return a.text(a.pages, a.pageRate) }

func (a *Alarms) text(events int, rate func() Interval) string {
	switch {
	case a.hours == 0:
		return "-"
	case a.hours < fewHours:
		return fmt.Sprintf("%d in %.1f h", events, a.hours)
	}
	return perTenThousand(rate())
}

// timeText is the share of the hours in which harm was reported.
func (a *Alarms) timeText() string {
	if a.hours == 0 {
		return "-"
	}
	return percent(a.time / a.hours)
}
