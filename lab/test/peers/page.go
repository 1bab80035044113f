package main

import (
	"fmt"
	"math"
	"os"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/fleet"
)

// The numbers of a run.
func milliseconds(r *result) float64 { return float64(r.CPU) / 1e6 }
func megabytes(r *result) float64    { return float64(r.Peak) / 1e6 }
func kilobytes(r *result) float64    { return r.Allocated / 1e3 }

// writePage writes the tables to the page.
func (r results) writePage(file, bin string) error {
	return fleet.WritePage(file, map[string]string{
		"bench-peers: processor": r.processorTable(), "bench-peers: memory": r.memoryTable(),
		"bench-peers: growth": r.growth(), "bench-peers: latency": r.latencyTable(), "bench-peers: size": sizes(bin),
	}, map[string][]byte{"performance-peers.svg": r.picture()})
}

// processorTable compares the processor time: the times, and then the ratios.
func (r results) processorTable() string {
	var times, of strings.Builder
	times.WriteString("| Load | Floor | Floor, in groups | Receiver | With processor | Peer | Peer with processors |\n|---|---|---|---|---|---|---|\n")
	of.WriteString("\n| Load | Peer / receiver | Peer / with processor | Above the floors: receiver | Above the floors: with processor |\n|---|---|---|---|---|\n")
	for _, c := range scenarios() {
		cost := func(variant string) []float64 { return r.of(c.Name, variant).each(milliseconds) }
		peer := cost(peerName)
		if len(peer) == 0 || c.Extra {
			continue
		}
		floor, groups := cost(floorName), cost(floorGroupsName)
		fmt.Fprintf(&times, "| %s |", c.Name)
		for _, numbers := range [][]float64{floor, groups, cost(oursName), cost(oursProcessorName), peer, cost(peerProcessorName)} {
			fmt.Fprintf(&times, " %s |", cell(newSpread(numbers), "%.3f", " ms"))
		}
		times.WriteString("\n")
		fmt.Fprintf(&of, "| %s |", c.Name)
		peerAbove := above(peer, floor)
		for _, numbers := range [][]float64{
			ratios(peer, cost(oursName)), ratios(peer, cost(oursProcessorName)),
			ratios(peerAbove, above(cost(oursName), groups)), ratios(peerAbove, above(cost(oursProcessorName), groups)),
		} {
			fmt.Fprintf(&of, " %s |", ranged(newSpread(numbers)))
		}
		of.WriteString("\n")
	}
	return times.String() + of.String()
}

// memoryTable compares memory and allocations.
func (r results) memoryTable() string {
	var b strings.Builder
	b.WriteString("| Load | Receiver | With processor | Peer | Receiver / peer | With processor / peer | Allocated for a scrape: receiver | With processor | Peer |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, c := range scenarios() {
		of := func(variant string) []float64 { return r.of(c.Name, variant).each(megabytes) }
		peer := of(peerName)
		if len(peer) == 0 || c.Name == "profile" {
			continue
		}
		fmt.Fprintf(&b, "| %s |", c.Name)
		for _, numbers := range [][]float64{of(oursName), of(oursProcessorName), peer} {
			fmt.Fprintf(&b, " %s |", cell(newSpread(numbers), "%.0f", " MB"))
		}
		for _, numbers := range [][]float64{ratios(of(oursName), peer), ratios(of(oursProcessorName), peer)} {
			s := newSpread(numbers)
			fmt.Fprintf(&b, " %.2f |", s.median)
		}
		for _, variant := range []string{oursName, oursProcessorName, peerName} {
			fmt.Fprintf(&b, " %s |", cell(newSpread(r.of(c.Name, variant).each(kilobytes)), "%.0f", " KB"))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// growth is how the cost grows with the number of targets and of engines: the exponent of the
// power that fits the processor time of a second, or of a scrape, best.
func (r results) growth() string {
	var b strings.Builder
	b.WriteString("| | Receiver | With processor | Peer |\n|---|---|---|---|\n")
	row := func(what string, loads []string, size []float64, perScrape bool) {
		fmt.Fprintf(&b, "| %s |", what)
		for _, variant := range []string{oursName, oursProcessorName, peerName} {
			var x, y []float64
			for i, load := range loads {
				runs := r.of(load, variant)
				if len(runs) == 0 {
					continue
				}
				cost := newSpread(runs.each(milliseconds)).median
				if !perScrape {
					cost *= size[i]
				}
				x, y = append(x, math.Log(size[i])), append(y, math.Log(cost))
			}
			if len(x) < 2 {
				b.WriteString(" not measured |")
				continue
			}
			fmt.Fprintf(&b, " %.2f |", slope(x, y))
		}
		b.WriteString("\n")
	}
	row("from 100 to 3000 targets x 10 s", []string{"100 targets x 10 s", "1000 targets x 10 s", "3000 targets x 10 s"}, []float64{100, 1000, 3000}, false)
	row("from 1 to 8 engines", []string{"100 targets x 5 s, 1 engine", "100 targets x 5 s, 8 engines"}, []float64{1, 8}, true)
	return b.String()
}

// slope is that of the line of least squares.
func slope(x, y []float64) float64 {
	n, sx, sy, sxx, sxy := float64(len(x)), 0.0, 0.0, 0.0, 0.0
	for i := range x {
		sx, sy, sxx, sxy = sx+x[i], sy+y[i], sxx+x[i]*x[i], sxy+x[i]*y[i]
	}
	return (n*sxy - sx*sy) / (n*sxx - sx*sx)
}

// latencyTable has the time from the answer of a server to the export, and that of the start.
func (r results) latencyTable() string {
	var b strings.Builder
	b.WriteString("| | From the answer to the export: median | 99 of 100 | From the start of the program to the first export |\n|---|---|---|---|\n")
	for _, variant := range []string{oursName, oursProcessorName, peerName, peerProcessorName} {
		runs := r.of(exported.Name, variant)
		if len(runs) == 0 {
			continue
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", variant,
			cell(newSpread(runs.each(func(x *result) float64 { return float64(x.P50) / 1e6 })), "%.1f", " ms"),
			cell(newSpread(runs.each(func(x *result) float64 { return float64(x.P99) / 1e6 })), "%.1f", " ms"),
			cell(newSpread(runs.each(func(x *result) float64 { return x.FirstExport.Seconds() })), "%.2f", " s"))
	}
	return b.String()
}

// sizes has the sizes of the programs.
func sizes(bin string) string {
	var b strings.Builder
	b.WriteString("| Program | Size |\n|---|---|\n")
	for _, p := range []struct{ name, file string }{
		{"receiver and processor alone", "collector-ours"},
		{"peer: Prometheus receiver and processors", "collector-peer"},
		{"the distribution `otelcol-vllm`", "otelcol-vllm"},
	} {
		if info, err := os.Stat(bin + "/" + p.file); err == nil {
			fmt.Fprintf(&b, "| %s | %.0f MB |\n", p.name, float64(info.Size())/1e6)
		}
	}
	return b.String()
}

// cell is a median with its range.
func cell(s spread, format, unit string) string {
	if s == (spread{}) {
		return "-"
	}
	low, high := fmt.Sprintf(format, s.least), fmt.Sprintf(format, s.most)
	if low == high {
		return low + unit
	}
	return fmt.Sprintf(format, s.median) + unit + " (" + low + " to " + high + ")"
}

// ranged is a ratio with its range.
func ranged(s spread) string {
	if s == (spread{}) {
		return "-"
	}
	if s.least == s.most {
		return fmt.Sprintf("**%.1f**", s.median)
	}
	return fmt.Sprintf("**%.1f** (%.1f to %.1f)", s.median, s.least, s.most)
}
