package soak

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/fleet"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/plot"
)

// Result is what a soak has shown. It is the content of soak.json.
type Result struct {
	Began     time.Time `json:"began"`
	Seconds   float64   `json:"seconds"`
	Collector string    `json:"collector"`
	Targets   int       `json:"targets"`
	Interval  string    `json:"interval"`
	Seed      uint64    `json:"seed"`
	// WarmUp and Active are the seconds between which growth is judged.
	WarmUp  float64 `json:"warm_up_seconds"`
	Active  float64 `json:"active_seconds"`
	Trends  []trend `json:"trends"`
	Balance balance `json:"balance"`
	// Events counts what was done to the servers, the backend and the collector.
	Events map[string]int `json:"events"`
	// MostQueue is the largest queue in bytes; Drained the seconds that it took to drain.
	MostQueue float64 `json:"most_queue"`
	Drained   float64 `json:"drained_seconds"`
	// Stops are the seconds from SIGTERM to the end of each process.
	Stops []float64 `json:"stop_seconds"`
	// CPU is the seconds of processor time of all processes.
	CPU float64 `json:"cpu_seconds"`
	// Taken is what the backend has taken.
	Taken       fleet.Taken    `json:"taken"`
	LogLevels   map[string]int `json:"log_levels"`
	Repetitions []repetition   `json:"log_repetitions"`
	Failures    []string       `json:"failures"`
	Samples     []sample       `json:"samples"`
}

// table is the result for people.
func (r *Result) table() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "quantity\tfirst third\tlast third\tmost\tgrowth\tallowed\tper hour\t\t\t")
	for _, t := range r.Trends {
		verdict := "flat"
		switch {
		case !t.Known:
			verdict = "not judged"
		case !t.Flat:
			verdict = "NOT FLAT"
		}
		fmt.Fprintf(w, "%s\t%.1f\t%.1f\t%.1f\t%+.1f\t%.1f\t%+.1f\t%s\t%s\t\n", t.Name, t.First, t.Last, t.Most, t.Last-t.First, t.Allowed, t.Slope, t.Unit, verdict)
	}
	_ = w.Flush() // A builder takes everything.
	g := r.Balance
	fmt.Fprintf(&b, "\nanswers that the servers gave: %d; the backend has received %d of them with %d points\n", g.Served, g.Received, g.Points)
	fmt.Fprintf(&b, "lost %d, incomplete %d, with too few points %d of %d compared, never given %d\n", g.Lost, g.Incomplete, g.Short, g.Compared, g.Unknown)
	fmt.Fprintf(&b, "received twice: %d answers, in %d requests that were sent again (a backend that loses its answer gets the data again)\n", g.Duplicates, r.Taken.Repeated)
	for _, why := range slices.Sorted(maps.Keys(g.Excused)) {
		fmt.Fprintf(&b, "missing without blame: %d (%s)\n", g.Excused[why], why)
	}
	fmt.Fprintf(&b, "the queue had up to %.0f MiB and drained in %.0f s; the backend took %d requests of %d MiB, and %d log records of the diagnosis\n",
		r.MostQueue/mebi, r.Drained, r.Taken.Requests, r.Taken.Bytes/mebi, r.Taken.LogRecords)
	fmt.Fprintf(&b, "the processes ended %.2f s after SIGTERM and took %.0f s of processor time in %.0f s\n", r.Stops, r.CPU, r.Seconds)
	fmt.Fprintf(&b, "what was done:")
	for _, name := range slices.Sorted(maps.Keys(r.Events)) {
		fmt.Fprintf(&b, " %s %d;", name, r.Events[name])
	}
	fmt.Fprintf(&b, "\nlog lines by level: %v; the most frequent:\n", r.LogLevels)
	for _, line := range r.Repetitions[:min(5, len(r.Repetitions))] {
		fmt.Fprintf(&b, "  %6d  %.160s\n", line.Count, line.Line)
	}
	return b.String()
}

// picture draws all quantities as a share of the median of their first third.
func (r *Result) picture() ([]byte, error) {
	colors := []string{"#0b63b0", "#b34700", "#2e7d32", "#7b3fa0"}
	var lines []plot.Line
	for i, q := range quantities {
		base := r.Trends[i].First
		if base <= 0 {
			// A short run has no thirds; the largest value is shown as 100 %.
			if base = r.Trends[i].Most; base <= 0 {
				continue
			}
		}
		name := fmt.Sprintf("%s (%.0f %s)", q.name, base, q.unit)
		line := plot.Line{Name: strings.ReplaceAll(name, " )", ")"), Color: colors[i%len(colors)]}
		for _, s := range r.Samples {
			if v := q.of(s); v >= 0 {
				line.Points = append(line.Points, [2]float64{s.At / 60, 100 * v / base})
			}
		}
		lines = append(lines, line)
	}
	return plot.Linear("What the collector used during a soak, a long run with load and faults", "minutes. Dips: reloads and a restart. Peaks of memory: outages of the backend, when batches wait", "% of the median of the first third (in brackets)", lines)
}

// write puts the result into a folder.
func (r *Result) write(dir string) error {
	picture, err := r.picture()
	if err != nil {
		return err
	}
	return fleet.Save(dir, "soak.json", r, map[string][]byte{"soak.txt": []byte(r.table()), "soak.svg": picture})
}
