// Package plot draws the curves by which the simulated engines are judged, as
// SVG.
//
// It is written here because three line charts need some hundred lines, a
// plotting library would be a large dependency of the module for nothing that
// users run, and equal numbers must give equal bytes, so that a test can
// detect an outdated picture.
package plot

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
)

// axis is a range of values and where it has marks.
type axis struct {
	title       string
	logarithmic bool
	least, most float64
	marks       []mark
}

type mark struct {
	at    float64
	label string
}

// share is how far along the axis a value is, 0 to 1 within it.
func (a axis) share(v float64) float64 {
	if a.logarithmic {
		return math.Log(v/a.least) / math.Log(a.most/a.least)
	}
	return (v - a.least) / (a.most - a.least)
}

// series is one line.
type series struct {
	name, color string
	dashed      bool
	points      []point
}

type point struct{ x, y float64 }

type chart struct {
	title string
	x, y  axis
	lines []series
}

// The layout in pixels.
const (
	width, height            = 760, 440
	left, right, top, bottom = 78, 34, 78, 62
	plotWidth, plotHeight    = width - left - right, height - top - bottom
	legendLine, legendGap    = 28, 8
	legendRow, legendRows    = 18, 2 // More rows make the picture higher.
)

// svg draws the chart. It fails where a point lies outside the axes, which then
// need other limits.
func (c chart) svg() ([]byte, error) {
	more := legendRow * max(0, (len(c.lines)+1)/2-legendRows)
	top, height := top+more, height+more
	var b bytes.Buffer
	put := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	put(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="%s" font-family="sans-serif" font-size="13" fill="#333333">`,
		width, height, width, height, escape(c.title))
	put(`<rect width="%d" height="%d" fill="#ffffff"/>`, width, height)
	put(`<text x="%d" y="26" font-size="16" font-weight="bold">%s</text>`, left, escape(c.title))
	for _, m := range c.x.marks {
		x := left + plotWidth*c.x.share(m.at)
		put(`<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#e3e3e3"/>`, x, top, x, top+plotHeight)
		put(`<text x="%.1f" y="%d" text-anchor="middle">%s</text>`, x, top+plotHeight+19, escape(m.label))
	}
	for _, m := range c.y.marks {
		y := float64(top) + plotHeight*(1-c.y.share(m.at))
		put(`<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#e3e3e3"/>`, left, y, left+plotWidth, y)
		put(`<text x="%d" y="%.1f" text-anchor="end">%s</text>`, left-8, y+4.5, escape(m.label))
	}
	put(`<path d="M%d %dV%dH%d" fill="none" stroke="#333333"/>`, left, top, top+plotHeight, left+plotWidth)
	put(`<text x="%d" y="%d" text-anchor="middle">%s</text>`, left+plotWidth/2, height-14, escape(c.x.title))
	put(`<text transform="translate(20 %d) rotate(-90)" text-anchor="middle">%s</text>`, top+plotHeight/2, escape(c.y.title))
	for i, s := range c.lines {
		dashes := ""
		if s.dashed {
			dashes = ` stroke-dasharray="6 4"`
		}
		// Two entries side by side.
		x, y := left+i%2*plotWidth/2, 44+i/2*legendRow
		put(`<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="%s" stroke-width="2"%s/>`, x, y, x+legendLine, y, s.color, dashes)
		put(`<text x="%d" y="%.1f">%s</text>`, x+legendLine+legendGap, float64(y)+4.5, escape(s.name))
		put(`<polyline fill="none" stroke="%s" stroke-width="2"%s points="`, s.color, dashes)
		for _, p := range s.points {
			x, y := c.x.share(p.x), c.y.share(p.y)
			if !(x >= 0 && x <= 1 && y >= 0 && y <= 1) {
				return nil, fmt.Errorf("%s: %s: the point at %v, %v lies outside the axes", c.title, s.name, p.x, p.y)
			}
			put("%.1f,%.1f", left+plotWidth*x, float64(top)+plotHeight*(1-y))
		}
		put(`"/>`)
		if len(s.points) == 1 { // A line of one point would not be seen.
			put(`<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`, left+plotWidth*c.x.share(s.points[0].x), float64(top)+plotHeight*(1-c.y.share(s.points[0].y)), s.color)
		}
	}
	put("</svg>")
	return b.Bytes(), nil
}

func escape(text string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(text)) // A buffer takes everything.
	return b.String()
}
