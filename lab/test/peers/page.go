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
func anonymous(r *result) float64    { return float64(r.Anonymous) / 1e6 }

// writePage writes the tables to the page.
func (r results) writePage(file, bin string) error {
	growth, err := r.growthPicture()
	if err != nil {
		return err
	}
	return fleet.WritePage(file, map[string]string{
		"bench-peers: processor": r.processorTable(), "bench-peers: memory": r.memoryTable(), "bench-peers: sidecar": r.sidecarTable(),
		"bench-peers: growth": r.growth(), "bench-peers: latency": r.latencyTable(), "bench-peers: size": sizes(bin),
	}, map[string][]byte{"performance-peers.svg": r.picture(), "performance-growth.svg": growth})
}

// least is the least number of the rounds of a program under a load: what the machine disturbed least. It is 0 without any.
func (r results) least(load, variant string, number func(*result) float64) float64 {
	return newSpread(r.of(load, variant).each(number)).least
}

// compared are the loads that all programs run.
var compared = []string{often, many, engines8, differ}

// processorTable compares the processor time.
func (r results) processorTable() string {
	var b strings.Builder
	b.WriteString("| Load | Receiver, ms | With processor | Peer | Peer with processors | Peer / receiver | Peer / with processor |\n|---|---|---|---|---|---|---|\n")
	for _, load := range compared {
		of := func(variant string) float64 { return r.least(load, variant, milliseconds) }
		if of(peerName) == 0 {
			continue
		}
		row(&b, load, number("%.2f", of(oursName)), number("%.2f", of(oursProcessorName)), number("%.2f", of(peerName)), number("%.2f", of(peerProcessorName)),
			"**"+number("%.1f", of(peerName)/of(oursName))+"**", "**"+number("%.1f", of(peerName)/of(oursProcessorName))+"**")
	}
	return b.String()
}

// memoryTable compares memory.
func (r results) memoryTable() string {
	var b strings.Builder
	b.WriteString("| Load | Receiver, MB | With processor | Peer | Peer with processors | Receiver / peer | With processor / peer |\n|---|---|---|---|---|---|---|\n")
	for _, load := range compared {
		of := func(variant string) float64 { return r.least(load, variant, megabytes) }
		if of(peerName) == 0 {
			continue
		}
		row(&b, load, number("%.0f", of(oursName)), number("%.0f", of(oursProcessorName)), number("%.0f", of(peerName)), number("%.0f", of(peerProcessorName)),
			number("%.2f", of(oursName)/of(peerName)), "**"+number("%.2f", of(oursProcessorName)/of(peerName))+"**")
	}
	return b.String()
}

// sidecarTable compares what one server takes.
func (r results) sidecarTable() string {
	var b strings.Builder
	b.WriteString("| | Processor, ms a scrape | Memory, MB | of it anonymous | more than without a target |\n|---|---|---|---|---|\n")
	for _, v := range []struct{ variant, without string }{{oursName, oursName}, {oursProcessorName, oursName}, {peerName, peerName}} {
		of := func(what func(*result) float64) float64 { return r.least(sidecar, v.variant, what) }
		row(&b, v.variant, number("%.2f", of(milliseconds)), number("%.0f", of(megabytes)), number("%.0f", of(anonymous)),
			number("%.0f", of(megabytes)-r.least(nothing, v.without, megabytes)))
	}
	for _, variant := range []string{oursName, peerName} {
		row(&b, variant+", without a target", "", number("%.0f", r.least(nothing, variant, megabytes)), number("%.0f", r.least(nothing, variant, anonymous)), "")
	}
	return b.String()
}

// growthMeasures are what grows. A total is of all targets, and not for each scrape.
var growthMeasures = []struct {
	name   string
	number func(*result) float64
	total  bool
}{{"time", milliseconds, false}, {"memory", megabytes, true}}

// grown returns the sizes of the loads of a growth that were measured, and a number of each.
func (r results) grown(which int, number func(*result) float64, total bool) (x, y []float64) {
	g := &growths[which]
	for i, load := range g.loads {
		n := r.least(load, oursProcessorName, number)
		if n == 0 {
			continue
		}
		if !total && !g.perScrape {
			n *= g.sizes[i]
		}
		x, y = append(x, g.sizes[i]), append(y, n)
	}
	return x, y
}

// growth is how time and memory grow with the number of targets and of engines: the exponent of the
// power that fits best.
func (r results) growth() string {
	var b strings.Builder
	b.WriteString("| With processor | Processor time | Memory |\n|---|---|---|\n")
	for i := range growths {
		cells := []string{growths[i].what}
		for _, measure := range growthMeasures {
			x, y := r.grown(i, measure.number, measure.total)
			if len(x) < 2 {
				cells = append(cells, "not measured")
				continue
			}
			for k := range x {
				x[k], y[k] = math.Log(x[k]), math.Log(y[k])
			}
			cells = append(cells, fmt.Sprintf("%.2f", slope(x, y)))
		}
		row(&b, cells...)
	}
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
		if runs := r.of(exported, variant); len(runs) > 0 {
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

// number writes a number; 0 and what is not finite were not measured.
func number(format string, n float64) string {
	if n == 0 || math.IsInf(n, 0) || math.IsNaN(n) {
		return "-"
	}
	return fmt.Sprintf(format, n)
}
