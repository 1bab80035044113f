package report

import (
	"fmt"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/backtest/replay"
)

// The timeline is 1000 units wide; the names of the lanes are on the left.
const (
	laneBegin = 120.0
	laneEnd   = 995.0
	// narrowest is the width of the shortest bar, so that a minute in a month can be seen.
	narrowest = 1.5
	// letter is about the width of a letter in a bar.
	letter = 5.6
)

// lane is a group of bars with a name. Bars that overlap are in several rows.
type lane struct {
	Name             string
	X, Width         float64
	Y, TextY, Height int
	Bars             []bar
	// ends are where the last bar of each row ends.
	ends []float64
	// missing counts the bars for which there was no room.
	missing int
}

type bar struct {
	X, Width, TextX string
	Y, TextY        int
	Class, Title    string
	Text, TextClass string
	Row             string
	line            int
}

// The heights of a bar and of a row of bars, and how many rows a lane can have.
const (
	barHeight = 18
	rowHeight = 20
	mostLines = 6
)

// layOut places a lane below a height, and returns its own height.
func (l *lane) layOut(y int) int {
	lines := max(1, len(l.ends))
	l.X, l.Width, l.Y, l.TextY, l.Height = laneBegin, laneEnd-laneBegin, y, y+13, lines*rowHeight-(rowHeight-barHeight)
	for i := range l.Bars {
		l.Bars[i].Y = y + l.Bars[i].line*rowHeight
		l.Bars[i].TextY = l.Bars[i].Y + 13
	}
	return lines*rowHeight + 2
}

// line returns the row of a bar: the first that is free, else the last.
func (l *lane) line(x, end float64) int {
	for i := range l.ends {
		if l.ends[i] <= x+0.05 {
			l.ends[i] = end
			return i
		}
	}
	if len(l.ends) < mostLines {
		l.ends = append(l.ends, end)
	}
	return len(l.ends) - 1
}

type tick struct{ X, Text, Anchor string }

// class is the colour of an episode.
func class(e *replay.Episode) string {
	switch {
	case e.Severity >= 3:
		return "s3"
	case e.Severity == 2:
		return "s2"
	case e.Condition == "idle":
		return "idle"
	case e.Condition == "unknown":
		return "s1"
	}
	return "healthy"
}

// place is where a time is.
func place(r *Report, at time.Time) float64 {
	share := at.Sub(r.From).Seconds() / r.To.Sub(r.From).Seconds()
	return laneBegin + min(max(share, 0), 1)*(laneEnd-laneBegin)
}

func coordinate(x float64) string { return fmt.Sprintf("%.1f", x) }

// add adds a bar, unless the lane or the page is full or the bar is outside.
func (p *htmlPage) add(l *lane, from, to time.Time, class, title, text, row string) {
	r := p.report
	if to.Before(r.From) || from.After(r.To) {
		return
	}
	if len(l.Bars) >= mostBars || p.bars >= mostPageBars {
		l.missing++
		return
	}
	p.bars++
	x, end := place(r, from), place(r, to)
	width := max(end-x, narrowest)
	b := bar{
		X: coordinate(x), Width: coordinate(width), TextX: coordinate(x + 3), Class: class, Title: title, Row: row,
		TextClass: "in", line: l.line(x, end),
	}
	if class == "s2" || class == "ticket" || class == "idle" {
		b.TextClass = "in dark" // White could not be read there.
	}
	if float64(len(text))*letter+6 < width {
		b.Text = text
	}
	l.Bars = append(l.Bars, b)
}

// steps are the times between ticks.
var steps = []time.Duration{
	time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 4 * time.Hour, 6 * time.Hour, 12 * time.Hour,
	24 * time.Hour, 2 * 24 * time.Hour, 7 * 24 * time.Hour, 14 * 24 * time.Hour, 30 * 24 * time.Hour,
}

// ticks are at most ten times of the axis, in the zone of the report.
func ticks(r *Report) []tick {
	length := r.To.Sub(r.From)
	step := steps[len(steps)-1]
	for _, s := range steps {
		if length/s <= 10 {
			step = s
			break
		}
	}
	layout := "15:04"
	if step >= 24*time.Hour {
		layout = "01-02"
	} else if length > 24*time.Hour {
		layout = "01-02 15:04"
	}
	var out []tick
	_, offset := r.From.In(r.Zone).Zone()
	shift := time.Duration(offset) * time.Second
	for at := r.From.Add(shift).Truncate(step).Add(-shift); !at.After(r.To); at = at.Add(step) {
		if at.Before(r.From) {
			continue
		}
		x := place(r, at)
		anchor := "middle"
		if x > laneEnd-30 {
			anchor = "end"
		}
		out = append(out, tick{coordinate(x), at.In(r.Zone).Format(layout), anchor})
	}
	return out
}
