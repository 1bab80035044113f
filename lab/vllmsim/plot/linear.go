package plot

import (
	"math"
	"strconv"
)

// Line is a line of a chart. Points are pairs of x and y.
type Line struct {
	Name, Color string
	Dashed      bool
	Points      [][2]float64
}

// Linear draws lines against axes that begin at 0 and end above the largest value. Points must
// not be negative.
func Linear(title, x, y string, lines []Line) ([]byte, error) {
	var mostX, mostY float64
	for _, l := range lines {
		for _, p := range l.Points {
			mostX, mostY = max(mostX, p[0]), max(mostY, p[1])
		}
	}
	c := chart{title: title, x: upTo(x, mostX), y: upTo(y, mostY)}
	for _, l := range lines {
		s := series{name: l.Name, color: l.Color, dashed: l.Dashed}
		for _, p := range l.Points {
			s.points = append(s.points, point{p[0], p[1]})
		}
		c.lines = append(c.lines, s)
	}
	return c.svg()
}

// upTo is an axis from 0 to most or little more, with four to ten marks at round numbers.
func upTo(title string, most float64) axis {
	if !(most > 0) {
		most = 1
	}
	step := math.Pow(10, math.Floor(math.Log10(most)))
	for _, part := range []float64{0.1, 0.2, 0.5} {
		if most/(step*part) <= 10 {
			step *= part
			break
		}
	}
	a := axis{title: title, most: step * math.Ceil(most/step)}
	for i := 0.0; i*step <= a.most*(1+1e-9); i++ {
		a.marks = append(a.marks, mark{min(i*step, a.most), strconv.FormatFloat(i*step, 'g', 6, 64)})
	}
	return a
}
