package exposition

import (
	"fmt"
	"strconv"
	"strings"
)

// render writes a snapshot as lines that a test can be read by: one per family,
// one per series, one per exemplar, problem and number of duplicates.
func render(s *Snapshot) []string {
	var out []string
	for _, f := range s.Layout.Families {
		line := f.Kind.String() + " " + f.Name
		if f.Unit != "" {
			line += " in " + f.Unit
		}
		if f.Help != "" {
			line += ": " + f.Help
		}
		out = append(out, line)
		for i := range f.Series {
			out = append(out, "  "+renderSeries(s, &f.Series[i]))
		}
	}
	for _, e := range s.Exemplars {
		line := fmt.Sprintf("exemplar of %s: %s %s", renderNumber(s.Values[e.Slot]), renderLabels(e.Labels), renderNumber(e.Value))
		if e.HasTimestamp {
			line += fmt.Sprintf(" at %d", e.Timestamp)
		}
		out = append(out, line)
	}
	for _, p := range s.Problems {
		out = append(out, fmt.Sprintf("line %d: %s", p.Line, p.Reason))
	}
	if s.Duplicates > 0 {
		out = append(out, fmt.Sprintf("duplicates: %d", s.Duplicates))
	}
	return out
}

func renderSeries(s *Snapshot, series *Series) string {
	parts := []string{renderLabels(series.Labels)}
	number := func(name string, slot int) {
		if slot != NoSlot {
			parts = append(parts, strings.TrimSpace(name+" "+renderNumber(s.Values[slot])))
		}
	}
	number("", series.Value)
	for _, b := range series.Buckets {
		number("<="+renderNumber(b.UpperBound)+":", b.Slot)
	}
	for _, q := range series.Quantiles {
		number("q"+renderNumber(q.Quantile)+":", q.Slot)
	}
	number("sum", series.Sum)
	number("count", series.Count)
	number("created", series.Created)
	return strings.Join(parts, " ")
}

func renderLabels(labels []Label) string {
	parts := make([]string, len(labels))
	for i, l := range labels {
		parts[i] = l.Name + "=" + strconv.Quote(l.Value)
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func renderNumber(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
