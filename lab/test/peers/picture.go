package main

import (
	"encoding/xml"
	"fmt"
	"strings"
)

// bars are the programs of the picture with their colors.
var bars = []struct{ variant, color string }{
	{floorName, "#b0b0b0"}, {oursName, "#2a78b5"}, {oursProcessorName, "#7fb6dc"}, {peerName, "#d9822b"}, {peerProcessorName, "#efb57f"},
}

// The measures of the picture, in pixels.
const (
	labelWidth, barsWidth, barHeight, loadGap, legendHeight = 230, 420, 13, 14, 100
)

// picture draws the processor time of a scrape as bars.
func (r results) picture() []byte {
	most, loads := 0.0, []string{}
	for _, c := range scenarios() {
		if len(r.of(c.Name, peerName)) == 0 || c.Few {
			continue
		}
		loads = append(loads, c.Name)
		for _, bar := range bars {
			most = max(most, newSpread(r.of(c.Name, bar.variant).each(milliseconds)).median)
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
			cost := newSpread(runs.each(milliseconds)).median
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
		"<text x=\"10\" y=\"64\">Floor: a loop that only reads the bodies, one server after the other. Our receiver reads groups at once, so it can need less.</text>\n"+
		"<text x=\"10\" y=\"80\">Peer: a collector with the Prometheus receiver of opentelemetry-collector-contrib, and with processors for rates and ratios.</text>\n", width, y)
	return []byte(svg + legend.String() + b.String() + "</svg>\n")
}

func escaped(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text))
	return b.String()
}
