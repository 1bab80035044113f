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
	b.WriteString(x.diagnoses())
	return b.String()
}

// parts are the generated parts of the page.
func (x *Result) parts() map[string]string {
	return map[string]string{
		"scale: setup": x.setup(), "scale: counters": x.counters(), "scale: handover": x.handovers(),
		"scale: sums": x.sums(), "scale: usage": x.usages(),
	}
}

// WritePage writes the tables into the page, and the picture beside it. A second run, if there
// is one, has waited longer after each action, so the page has its diagnosis.
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
	row("Fleet", "%s engines in %s pools, found as pods of a stand-in for the Kubernetes API", thousands(x.Engines), thousands(x.Pools))
	row("Scrapes", "each engine every %.0f s, `window: %.0fs`", x.Interval, x.Window)
	row("Length", "%.0f minutes, %s scrapes, %s data points, %s MB of OTLP", x.Seconds/60, thousands(x.Counters.Answers), thousands(x.Points), thousands(x.Bytes/1e6))
	kept := make([]string, len(x.Limits.Kept))
	for i, n := range x.Limits.Kept {
		kept[i] = thousands(n)
	}
	row("Targets of the 4 shards", "%s", strings.Join(kept, ", "))
	row("`limits::targets`", "%s", raised(x.Limits.FirstTargets, x.Limits.Targets))
	row("`max_series`", "%s", raised(x.Limits.FirstSeries, x.Limits.Series))
	row("Time between two pods", "%.0f s", x.Away)
	if x.FirstScrape > 0 {
		row("Time from ready to the first scrape, at most", "%.1f s", x.FirstScrape)
	}
	return b.String()
}

func raised(first, advised int) string {
	if advised == 0 {
		return thousands(first) + " was enough"
	}
	return fmt.Sprintf("%s at first; the log advised %s, which was enough", thousands(first), thousands(advised))
}

func (x *Result) counters() string {
	c := &x.Counters
	var b strings.Builder
	b.WriteString("| Scraped counters | |\n|---|---|\n")
	row := func(what string, n float64) { fmt.Fprintf(&b, "| %s | %s |\n", what, thousands(int(n))) }
	of := func(what string, n, all float64) {
		fmt.Fprintf(&b, "| %s | %s of %s |\n", what, thousands(int(n)), thousands(int(all)))
	}
	of("Counters and histograms with a new start time or a fall", float64(c.Resets+c.Falls), float64(c.Series))
	of("Points that differ from the truth", float64(c.Wrong), float64(c.Compared))
	of("Increments lost or doubled", c.Lost+c.Doubled, c.True)
	killed, ended := int64(0), int64(0)
	for _, m := range c.Missing {
		if m.How == "SIGKILL" {
			killed += m.Answers
		} else {
			ended += m.Answers
		}
	}
	row("Scrapes lost by the killed shard", float64(killed))
	row("Scrapes lost by stopped shards", float64(ended))
	row("Scrapes that arrived twice", float64(c.Repeated))
	return b.String()
}

func (x *Result) handovers() string {
	var b strings.Builder
	b.WriteString("| Shards | Engines | Without a reader: median, most | With two readers | Requests in gaps | Twice |\n|---|---|---|---|---|---|\n")
	for _, o := range x.Actions {
		if o.Name == atRest {
			continue
		}
		for _, one := range []struct {
			what string
			e    effect
		}{{"moved", o.Moved}, {"restarted", o.Restarted}, {"others", o.Untouched}} {
			if one.e.Engines == 0 {
				continue
			}
			fmt.Fprintf(&b, "| %s: %s | %s | %s | %s | %s | %s |\n", o.Name, one.what, thousands(one.e.Engines),
				times(one.e.Gaps, one.e.Gap, one.e.MostGap), times(one.e.Overlaps, one.e.Overlap, one.e.MostOverlap),
				share(one.e.Lost, one.e.Requests), thousands(int(one.e.Doubled)))
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

func share(n, of float64) string {
	if n == 0 {
		return "0"
	}
	return fmt.Sprintf("%.0f %%", 100*n/of)
}

func (x *Result) sums() string {
	o := &x.Objective
	var b strings.Builder
	b.WriteString("| `vllm.slo.valid`, over the whole run | Requests | Of the truth |\n|---|---|---|\n")
	for _, one := range []struct {
		what string
		n    float64
	}{
		{"served", o.True},
		{"last values of all start times", o.ByStart},
		{"`increase` over one series", o.OneSeries},
	} {
		fmt.Fprintf(&b, "| %s | %s | %.1f %% |\n", one.what, thousands(int(one.n)), 100*one.n/max(1, o.True))
	}
	return b.String()
}

func (x *Result) diagnoses() string {
	var b strings.Builder
	b.WriteString("| Shards | Pools of shards that went on | changed | Pools of other shards | changed | The same again after |\n|---|---|---|---|---|---|\n")
	for _, o := range x.Actions {
		d := &o.Diagnosis
		back := "-"
		if d.TouchedChanged > d.Not {
			back = fmt.Sprintf("at most %.0f s", d.Back)
		}
		if d.Not > 0 {
			back += fmt.Sprintf("; %d not within %.0f s", d.Not, o.Watched)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", o.Name, thousands(d.Untouched), thousands(d.UntouchedChanged),
			thousands(d.Touched), thousands(d.TouchedChanged), back)
	}
	return b.String()
}

func (x *Result) usages() string {
	var b strings.Builder
	b.WriteString("| Shards | Cores | Busiest 10 s | Most resident memory, MB | For a target |\n|---|---|---|---|---|\n")
	for _, o := range x.Actions {
		var cores, busy, peak, target []float64
		for _, u := range x.Usage {
			if u.Action == o.Name && u.Targets > 0 {
				cores, busy, peak, target = append(cores, u.Cores), append(busy, u.MostCores), append(peak, u.Peak/1e6), append(target, u.Peak/1e6/float64(u.Targets))
			}
		}
		if len(cores) > 0 {
			fmt.Fprintf(&b, "| %s | %.2f to %.2f | %.2f | %.0f to %.0f | %.2f |\n", o.Name, slices.Min(cores), slices.Max(cores), slices.Max(busy),
				slices.Min(peak), slices.Max(peak), slices.Max(target))
		}
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
