package main

import (
	"encoding/xml"
	"fmt"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/plot"
)

// bars are the programs of the picture with their colors.
var bars = []struct{ variant, color string }{
	{oursName, "#2a78b5"}, {oursProcessorName, "#7fb6dc"}, {peerName, "#d9822b"}, {peerProcessorName, "#efb57f"},
}

// The measures of the picture, in pixels.
const (
	labelWidth, barsWidth, barHeight, loadGap, legendHeight = 230, 420, 13, 14, 84
)

// picture draws the processor time of a scrape as bars.
func (r results) picture() []byte {
	most, loads := 0.0, []string{}
	for _, name := range []string{often, many, engines8} {
		if len(r.of(name, peerName)) == 0 {
			continue
		}
		loads = append(loads, name)
		for _, bar := range bars {
			most = max(most, r.least(name, bar.variant, milliseconds))
		}
	}
	var b strings.Builder
	y := legendHeight
	for _, load := range loads {
		fmt.Fprintf(&b, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n", labelWidth-8, y+barHeight-2, escaped(load))
		for _, bar := range bars {
			runs := r.of(load, bar.variant)
			if len(runs) == 0 {
				continue
			}
			cost := r.least(load, bar.variant, milliseconds)
			fmt.Fprintf(&b, "<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/><text x=\"%.1f\" y=\"%d\">%.2f</text>\n",
				labelWidth, y, cost/most*barsWidth, barHeight-2, bar.color, labelWidth+cost/most*barsWidth+4, y+barHeight-3, cost)
			y += barHeight
		}
		y += loadGap
	}
	var legend strings.Builder
	x := 10
	for _, bar := range bars {
		fmt.Fprintf(&legend, "<rect x=\"%d\" y=\"34\" width=\"11\" height=\"11\" fill=\"%s\"/><text x=\"%d\" y=\"44\">%s</text>\n", x, bar.color, x+16, escaped(bar.variant))
		x += 30 + 7*len(bar.variant)
	}
	width := labelWidth + barsWidth + 60
	svg := fmt.Sprintf("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%[1]d\" height=\"%[2]d\" viewBox=\"0 0 %[1]d %[2]d\" font-family=\"sans-serif\" font-size=\"11\">\n"+
		"<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n<text x=\"10\" y=\"20\" font-size=\"13\" font-weight=\"bold\">Processor time of a scrape in ms (less is better)</text>\n"+
		"<text x=\"10\" y=\"64\">Peer: a collector with the Prometheus receiver of opentelemetry-collector-contrib, and with processors for rates and ratios.</text>\n", width, y)
	return []byte(svg + legend.String() + b.String() + "</svg>\n")
}

func escaped(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text))
	return b.String()
}

// growthPicture draws how time and memory grow with the load, both as how many times those of the smallest one.
func (r results) growthPicture() ([]byte, error) {
	colors := []string{"#2a78b5", "#7fb6dc", "#d9822b", "#efb57f"}
	lines := []plot.Line{{Name: "in proportion", Color: "#b0b0b0", Dashed: true, Points: [][2]float64{{1, 1}, {30, 30}}}}
	for i := range growths {
		for k, measure := range growthMeasures {
			x, y := r.grown(i, measure.number, measure.total)
			line := plot.Line{Name: measure.name + ", " + growths[i].what, Color: colors[2*i+k]}
			for at := range x {
				line.Points = append(line.Points, [2]float64{x[at] / x[0], y[at] / y[0]})
			}
			lines = append(lines, line)
		}
	}
	return plot.Linear("Growth with the load", "times as many targets (from 100) or engines (from 1)", "times as much", lines)
}
