package plot

import "strconv"

// Line is a line of a chart. Points are pairs of x and y.
type Line struct {
	Name, Color string
	Dashed      bool
	Points      [][2]float64
}

// Percent draws lines between 0 and 100 % against a logarithmic axis with the given marks.
func Percent(title, x, y string, marks []float64, lines []Line) ([]byte, error) {
	c := chart{
		title: title,
		x:     axis{title: x, logarithmic: true, least: marks[0], most: marks[len(marks)-1]},
		y:     axis{title: y, least: 0, most: 100},
	}
	for _, m := range marks {
		c.x.marks = append(c.x.marks, mark{m, strconv.FormatFloat(m, 'g', -1, 64)})
	}
	for p := 0; p <= 100; p += 20 {
		c.y.marks = append(c.y.marks, mark{float64(p), strconv.Itoa(p)})
	}
	for _, l := range lines {
		s := series{name: l.Name, color: l.Color, dashed: l.Dashed}
		for _, p := range l.Points {
			s.points = append(s.points, point{p[0], p[1]})
		}
		c.lines = append(c.lines, s)
	}
	return c.svg()
}
