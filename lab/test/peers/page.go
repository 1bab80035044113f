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

// writePage writes the tables to the page.
func (r results) writePage(file, bin string) error {
	return fleet.WritePage(file, map[string]string{
		"bench-peers: processor": r.processorTable(), "bench-peers: memory": r.memoryTable(),
		"bench-peers: growth": r.growth(), "bench-peers: latency": r.latencyTable(), "bench-peers: size": sizes(bin),
	}, map[string][]byte{"performance-peers.svg": r.picture()})
}

// processorTable compares the processor time.
func (r results) processorTable() string {
	var b strings.Builder
	b.WriteString("| Load | Receiver, ms | With processor | Peer | Peer / receiver | Peer / with processor |\n|---|---|---|---|---|---|\n")
	for _, c := range scenarios() {
		cost := func(variant string) []float64 { return r.of(c.Name, variant).each(milliseconds) }
		ours, processor, peer := cost(oursName), cost(oursProcessorName), cost(peerName)
		if len(peer) == 0 || c.Extra {
			continue
		}
		row(&b, c.Name, median("%.3f", ours), median("%.3f", processor), median("%.3f", peer),
			ranged(ratios(peer, ours)), ranged(ratios(peer, processor)))
	}
	return b.String()
}

// memoryTable compares memory.
func (r results) memoryTable() string {
	var b strings.Builder
	b.WriteString("| Load | Receiver, MB | With processor | Peer |\n|---|---|---|---|\n")
	for _, c := range scenarios() {
		of := func(variant string) []float64 { return r.of(c.Name, variant).each(megabytes) }
		if peer := of(peerName); len(peer) > 0 && c.Name != "profile" {
			row(&b, c.Name, median("%.0f", of(oursName)), median("%.0f", of(oursProcessorName)), median("%.0f", peer))
		}
	}
	return b.String()
}

// growth is how the cost grows with the number of targets and of engines: the exponent of the
// power that fits the processor time of a second, or of a scrape, best.
func (r results) growth() string {
	var b strings.Builder
	b.WriteString("| | Receiver | With processor | Peer |\n|---|---|---|---|\n")
	line := func(what string, loads []string, size []float64, perScrape bool) {
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
	line("from 100 to 3000 targets x 10 s", []string{"100 targets x 10 s", "1000 targets x 10 s", "3000 targets x 10 s"}, []float64{100, 1000, 3000}, false)
	line("from 1 to 8 engines", []string{"100 targets x 5 s, 1 engine", "100 targets x 5 s, 8 engines"}, []float64{1, 8}, true)
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
	b.WriteString("| | Answer to export, median, ms | 99 % | Start to first export, s |\n|---|---|---|---|\n")
	for _, variant := range []string{oursName, oursProcessorName, peerName, peerProcessorName} {
		if runs := r.of(exported.Name, variant); len(runs) > 0 {
			row(&b, variant, median("%.1f", runs.each(func(x *result) float64 { return float64(x.P50) / 1e6 })),
				median("%.1f", runs.each(func(x *result) float64 { return float64(x.P99) / 1e6 })),
				median("%.2f", runs.each(func(x *result) float64 { return x.FirstExport.Seconds() })))
		}
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

// row writes a row of a table.
func row(b *strings.Builder, cells ...string) {
	b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

// median is that of some numbers.
func median(format string, numbers []float64) string {
	if len(numbers) == 0 {
		return "-"
	}
	return fmt.Sprintf(format, newSpread(numbers).median)
}

// ranged is a median ratio, with its range if there are several.
func ranged(numbers []float64) string {
	s, out := newSpread(numbers), "**"+median("%.1f", numbers)+"**"
	if s.least == s.most {
		return out
	}
	return out + fmt.Sprintf(" (%.1f to %.1f)", s.least, s.most)
}
