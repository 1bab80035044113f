package accuracy

import (
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// dump writes a line per scrape: the truth of the minute that the scrape's window
// covers most, and the report.
func dump(out io.Writer, s *Story, bins []Bin, reported []Reported) error {
	signals, ratios := map[string]bool{}, map[string]bool{}
	for _, t := range reported {
		for name := range t.Signals {
			signals[name] = true
		}
		for name := range t.Ratios {
			ratios[name] = true
		}
	}
	head := []string{"run", "seconds", "harm", "true_primary", "true_also", "restored", "condition", "severity", "primary", "detail", "contributing", "notices"}
	names, ratioNames := slices.Sorted(maps.Keys(signals)), slices.Sorted(maps.Keys(ratios))
	head = append(head, names...)
	for _, name := range ratioNames {
		head = append(head, name+"/reference")
	}
	w := csv.NewWriter(out)
	if err := w.Write(head); err != nil {
		return err
	}
	for _, t := range reported {
		b := &Bin{}
		if n := int((t.At - window/2) / window); n >= 0 && n < len(bins) {
			b = &bins[n]
		}
		line := []string{
			s.Name, number(t.At), b.Word(), strings.Join(b.Primary, "|"), strings.Join(b.Also, "|"), shares(b.Restored),
			t.Condition, strconv.Itoa(t.Severity), t.Primary, t.Detail, strings.Join(t.Contributing, "|"), strings.Join(t.Notices, "|"),
		}
		line = values(line, names, t.Signals)
		line = values(line, ratioNames, t.Ratios)
		if err := w.Write(line); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}

// Word returns whether and how a minute was harmful.
func (b *Bin) Word() string {
	switch {
	case !b.Judged:
		return "not judged"
	case b.Latency && b.Lost:
		return "latency and answers"
	case b.Latency:
		return "latency"
	case b.Lost:
		return "answers"
	}
	return "none"
}

func shares(restored map[string]float64) string {
	var out []string
	for _, c := range slices.Sorted(maps.Keys(restored)) {
		out = append(out, fmt.Sprintf("%s=%.2f", c, restored[c]))
	}
	return strings.Join(out, " ")
}

func values(line, names []string, of map[string]float64) []string {
	for _, name := range names {
		text := ""
		if v, there := of[name]; there {
			text = number(v)
		}
		line = append(line, text)
	}
	return line
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }
