package scale

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/fleet"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/plot"
)

// pictureName is the file of the picture, in the folder of the results and beside the page.
const pictureName = "scale.svg"

// Tables is the result for people.
func (x *Result) Tables() string {
	var b strings.Builder
	parts := x.parts()
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		b.WriteString(parts[name] + "\n")
	}
	return b.String()
}

// parts are the generated parts of the page.
func (x *Result) parts() map[string]string {
	return map[string]string{
		"scale: setup": x.setup(), "scale: counters": x.counters(), "scale: handover": x.handovers(),
		"scale: sums": x.sums(), "scale: diagnosis": x.diagnoses(), "scale: usage": x.usages(),
	}
}

// WritePage writes the tables into the page, and the picture beside it. A second run, if there
// is one, has waited longer after each action.
func (x *Result) WritePage(file string, longer *Result) error {
	parts := x.parts()
	if longer != nil {
		parts["scale: longer"] = longer.longer()
	}
	picture, err := x.picture()
	if err != nil {
		return err
	}
	return fleet.WritePage(file, parts, map[string][]byte{pictureName: picture})
}

// longer is the diagnosis of a run that has waited longer.
func (x *Result) longer() string {
	return fmt.Sprintf("%s engines in %s pools, each read every %.0f s; %s:\n\n", thousands(x.Engines), thousands(x.Pools), x.Interval,
		x.Began.UTC().Format("2006-01-02")) + x.diagnoses()
}

func (x *Result) setup() string {
	var b strings.Builder
	b.WriteString("| | |\n|---|---|\n")
	row := func(what, format string, args ...any) {
		fmt.Fprintf(&b, "| %s | %s |\n", what, fmt.Sprintf(format, args...))
	}
	row("Date and machine", "%s, %s", x.Began.UTC().Format("2006-01-02"), x.Machine)
	row("Fleet", "%s engines, one each server, in %s pools, found as pods of a stand-in for the Kubernetes API", thousands(x.Engines), thousands(x.Pools))
	row("Scrapes", "each engine every %.0f s, `window: %.0fs`", x.Interval, x.Window)
	row("Length", "%.0f minutes, %s answers of engines, %s data points, %s MB of OTLP without compression",
		x.Seconds/60, thousands(x.Counters.Answers), thousands(x.Points), thousands(x.Bytes/1e6))
	kept := make([]string, len(x.Limits.Kept))
	for i, n := range x.Limits.Kept {
		kept[i] = thousands(n)
	}
	row("Targets of the 4 shards", "%s", strings.Join(kept, ", "))
	row("`limits::targets`", "%s", raised(x.Limits.FirstTargets, x.Limits.Targets))
	row("`max_series`", "%s", raised(x.Limits.FirstSeries, x.Limits.Series))
	row("Time between the end of a pod and the start of the next one", "%.0f s", x.Away)
	if x.FirstScrape > 0 {
		row("Time from a process that is ready to its first scrape, at most", "%.1f s", x.FirstScrape)
	}
	row("Time from SIGTERM to the end, at most", "%.1f s", x.LongestStop)
	return b.String()
}

func raised(first, advised int) string {
	if advised == 0 {
		return thousands(first) + " was enough"
	}
	return fmt.Sprintf("%s at the first start; the log then said to set %s, which was enough to the end", thousands(first), thousands(advised))
}

func (x *Result) counters() string {
	c := &x.Counters
	var b strings.Builder
	b.WriteString("| Scraped counters | |\n|---|---|\n")
	row := func(what string, n float64) { fmt.Fprintf(&b, "| %s | %s |\n", what, thousands(int(n))) }
	row("Counters and histograms of all engines", float64(c.Series))
	row("of which a start time changed", float64(c.Resets))
	row("points that fell without a new start time", float64(c.Falls))
	row("Answers that another shard has than the hash says", float64(c.Strangers))
	row("Points of three counters that were compared with the truth at that time", float64(c.Compared))
	row("of which are wrong", float64(c.Wrong))
	row("Increments of these counters", c.True)
	row("of which were lost", c.Lost)
	row("of which were doubled", c.Doubled)
	killed, ended := int64(0), int64(0)
	for _, m := range c.Missing {
		if m.How == "SIGKILL" {
			killed += m.Answers
		} else {
			ended += m.Answers
		}
	}
	row("Answers to the killed shard that never arrived", float64(killed))
	row("Answers to shards that were ended in order that never arrived", float64(ended))
	if x.FirstScrape > 0 { // Earlier runs did not look.
		row("Answers that were still in the queues of the two removed shards at the end; they were sent then", float64(x.Left))
		row("Points that fell where two shards read an engine at nearly the same time", float64(c.Crossed))
	}
	row("Answers that arrived twice", float64(c.Repeated))
	return b.String()
}

func (x *Result) handovers() string {
	var b strings.Builder
	b.WriteString("| | Engines | Without a reader: median, most | With two readers: median, most | Most beyond the processes | Requests in gaps | Requests counted twice |\n|---|---|---|---|---|---|---|\n")
	for _, o := range x.Actions {
		if o.Name == atRest {
			continue
		}
		for _, one := range []struct {
			what string
			e    effect
		}{{"that move", o.Moved}, {"whose shard was started again", o.Restarted}, {"the others", o.Untouched}} {
			if one.e.Engines == 0 {
				continue
			}
			fmt.Fprintf(&b, "| %s: %s | %s | %s | %s | %s | %s | %s |\n", o.Name, one.what, thousands(one.e.Engines),
				times(one.e.Gaps, one.e.Gap, one.e.MostGap), times(one.e.Overlaps, one.e.Overlap, one.e.MostOverlap),
				beyond(one.e), share(one.e.Lost, one.e.Requests), share(one.e.Doubled, one.e.Requests))
		}
	}
	return b.String()
}

func times(n int, median, most float64) string {
	if n == 0 {
		return "none"
	}
	return fmt.Sprintf("%s: %.1f s, %.1f s", thousands(n), median, most)
}

func beyond(e effect) string {
	if e.Gaps+e.Overlaps == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f s", max(0, e.MostBeyond))
}

func share(n, of float64) string {
	if n == 0 {
		return "0"
	}
	return fmt.Sprintf("%s of %s", thousands(int(n)), thousands(int(of)))
}

func (x *Result) sums() string {
	o := &x.Objective
	var b strings.Builder
	b.WriteString("| `vllm.slo.valid`, over the whole run | Requests | Of the truth |\n|---|---|---|\n")
	for _, one := range []struct {
		what string
		n    float64
	}{
		{"what the engines served", o.True},
		{"the last value of each start time, added up", o.ByStart},
		{"followed as one series that is reset where it falls, as `increase` does", o.OneSeries},
	} {
		fmt.Fprintf(&b, "| %s | %s | %.1f %% |\n", one.what, thousands(int(one.n)), 100*one.n/max(1, o.True))
	}
	return b.String()
}

func (x *Result) diagnoses() string {
	var b strings.Builder
	b.WriteString("| | Pools of shards that went on | of which changed | Pools of other shards | of which changed | to | The same again after |\n|---|---|---|---|---|---|---|\n")
	for _, o := range x.Actions {
		d := &o.Diagnosis
		back := "-"
		if d.TouchedChanged > d.Not {
			back = fmt.Sprintf("at most %.0f s", d.Back)
		}
		if d.Not > 0 {
			back += fmt.Sprintf("; %d not within %.0f s", d.Not, o.Watched)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s |\n", o.Name, thousands(d.Untouched), thousands(d.UntouchedChanged),
			thousands(d.Touched), thousands(d.TouchedChanged), tally(d.Meanwhile), back)
	}
	b.WriteString("\n| | Pools by condition before | Engines by condition before |\n|---|---|---|\n")
	for _, o := range x.Actions {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", o.Name, tally(o.Diagnosis.Before), tally(o.Diagnosis.EnginesBefore))
	}
	return b.String()
}

// tally is a list of names with how often each is there.
func tally(counts map[string]int) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		label := "`" + name + "`"
		if name == "" {
			label = "none yet"
		}
		out = append(out, fmt.Sprintf("%s %s", label, thousands(counts[name])))
	}
	if len(out) == 0 {
		return "-"
	}
	return strings.Join(out, ", ")
}

func (x *Result) usages() string {
	var b strings.Builder
	b.WriteString("| | Shard | Targets | Cores | Busiest 10 s | Processor time of a scrape | Resident memory, median | Most | Most for a target |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, u := range x.Usage {
		perScrape, perTarget := "-", "-"
		if u.Targets > 0 {
			perTarget = fmt.Sprintf("%.2f MB", u.Peak/1e6/float64(u.Targets))
			if u.Action == atRest {
				perScrape = fmt.Sprintf("%.2f ms", 1e3*u.Cores*x.Interval/float64(u.Targets))
			}
		}
		fmt.Fprintf(&b, "| %s | %d | %s | %.2f | %.2f | %s | %.0f MB | %.0f MB | %s |\n", u.Action, u.Member, thousands(u.Targets),
			u.Cores, u.MostCores, perScrape, u.Resident/1e6, u.Peak/1e6, perTarget)
	}
	return b.String()
}

// picture draws the memory of each shard.
func (x *Result) picture() ([]byte, error) {
	colors := []string{"#0b63b0", "#b34700", "#2e7d32", "#7b3fa0", "#8a6d00", "#00707a"}
	var lines []plot.Line
	for member := range manyShards {
		line := plot.Line{Name: fmt.Sprintf("shard %d", member), Color: colors[member%len(colors)]}
		last := 0.0
		for _, s := range x.Samples {
			// A point each four seconds is enough.
			if s.Member == member && s.At-last >= 4 {
				last = s.At
				line.Points = append(line.Points, [2]float64{s.At / 60, s.Resident / 1e6})
			}
		}
		if len(line.Points) > 0 {
			lines = append(lines, line)
		}
	}
	return plot.Linear("Resident memory of each shard", "minutes. Shard: one of the collectors that divide the fleet. Drop: restart. 4 and 5: added for a time", "MB", lines)
}

// thousands writes a number with commas.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
