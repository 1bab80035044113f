package main

import (
	"fmt"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/accuracy/stories"
)

// What is counted in hours without a fault.
const (
	// nothing and natural are warnings, by what was behind them; noticed are notices of slower service, paged
	// pages without a cause to page.
	nothing = iota
	natural
	noticed
	paged
	// hours are those without a fault, slowed the part of them in a natural slow-down, falsely the part outside
	// of one with a report of harm.
	hours
	slowed
	falsely
	columns
)

// alarmRow is what is counted of a story.
type alarmRow [columns]float64

func alarmsOf(s *Score) alarmRow {
	return alarmRow{
		nothing: float64(len(s.False)), natural: float64(len(s.Natural)), noticed: float64(len(s.Notices)), paged: float64(len(s.Pages)),
		hours: s.Healthy, slowed: s.Slowed, falsely: s.FalseTime,
	}
}

// Alarms are what is counted of some stories, and of each of them.
type Alarms struct {
	sum     alarmRow
	byStory []alarmRow
}

func (a *Alarms) add(own alarmRow) {
	for i, v := range own {
		a.sum[i] += v
	}
	if own[hours] > 0 {
		a.byStory = append(a.byStory, own)
	}
}

// alarmsIn adds up healthy stories, and the time before the onsets of the others, on
// generated and on recorded traffic.
func alarmsIn(scores []Score, keep func(*Score) bool) Alarms {
	var out Alarms
	for i := range scores {
		if s := &scores[i]; s.Kind != stories.Exposition && keep(s) {
			out.add(alarmsOf(s))
		}
	}
	return out
}

// firstHour keeps of healthy stories their first hour, in which little is learned.
func firstHour(scores []Score) (out Alarms) {
	for i := range scores {
		s := &scores[i]
		if s.Kind != stories.Healthy || s.Recorded {
			continue
		}
		own := Score{Record: s.Record}
		own.alarms(0, s.harmful(0), 60)
		out.add(alarmsOf(&own))
	}
	return out
}

// ticketsIn adds up the tickets of healthy stories, in the column natural.
func ticketsIn(scores []Score, keep func(*Score) bool) Alarms {
	var out Alarms
	for i := range scores {
		if row := ticketRow(&scores[i]); row != nil && keep(&scores[i]) {
			out.add(alarmRow{natural: row[0], hours: row[1]})
		}
	}
	return out
}

func ticketRow(s *Score) []float64 {
	if s.Tickets == nil || s.Healthy == 0 {
		return nil
	}
	return []float64{*s.Tickets, s.Healthy}
}

// rate is that of a column in 10,000 hours. It has an interval that covers both that of Poisson, which few events
// need, and that by bootstrap over stories: false alarms come in groups, many in a story or none, so that of
// Poisson alone is too narrow.
func (a *Alarms) rate(column int) Interval {
	out := poisson(int(a.sum[column]), a.sum[hours])
	if a.sum[column] == 0 || len(a.byStory) < 2 {
		return out
	}
	over := bootstrap(len(a.byStory), func(times []int) float64 {
		sum, all := 0.0, 0.0
		for i := range a.byStory {
			n := float64(times[i])
			sum += n * a.byStory[i][column]
			all += n * a.byStory[i][hours]
		}
		return 10_000 * sum / all
	})
	out.Low, out.High = min(out.Low, over.Low), max(out.High, over.High)
	return out
}

// fewHours is how many hours make no rate of 10,000.
const fewHours = 10

// text is a rate with its interval; of very few hours, what was counted.
func (a *Alarms) text(column int) string {
	switch {
	case a.sum[hours] == 0:
		return "-"
	case a.sum[hours] < fewHours:
		return fmt.Sprintf("%.0f in %.1f h", a.sum[column], a.sum[hours])
	}
	return perTenThousand(a.rate(column))
}

// fleet are the hours of a hundred servers in a week.
const fleet = 100 * 7 * 24

// weekText is what a hundred servers get in a week.
func (a *Alarms) weekText(column int) string {
	if a.sum[hours] < fewHours {
		return a.text(column)
	}
	const scale = fleet / 10_000.0
	r := a.rate(column)
	return fmt.Sprintf("%.0f (%.0f to %.0f)", scale*r.Value, scale*r.Low, scale*r.High)
}

// shareText is the share of the hours that are of a kind.
func (a *Alarms) shareText(column int) string {
	if a.sum[hours] == 0 {
		return "-"
	}
	return percent(a.sum[column] / a.sum[hours])
}
