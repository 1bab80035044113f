package fidelity

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Summary returns how close each quantity of several setups is, as a table in Markdown.
func Summary(lines []Line) string {
	var rows strings.Builder
	var quantities []string
	held := map[string]int{}
	errors := map[string][]float64{}
	all, bars := 0, 0
	for _, l := range lines {
		if len(l.Pairs) == 0 {
			continue
		}
		if !slices.Contains(quantities, l.Quantity) {
			quantities = append(quantities, l.Quantity)
		}
		_, _, signed, _ := l.Median()
		errors[l.Quantity] = append(errors[l.Quantity], signed)
		bars++
		if l.Held() {
			held[l.Quantity]++
			all++
		}
	}
	for _, q := range quantities {
		of := errors[q]
		if len(of) == 1 {
			continue
		}
		middle := quantile(of, 0.5) // This sorts them.
		fmt.Fprintf(&rows, "| %s | %d of %d | %s | %s, %s |\n", q, held[q], len(of), percent(middle), percent(of[0]), percent(of[len(of)-1]))
	}
	return fmt.Sprintf("The simulator holds %d of %d bars.\n\n| Quantity | Bars held | Median error | Lowest, highest |\n|---|---|---|---|\n%s", all, bars, rows.String())
}

// Table returns all lines with tabs between their cells.
func Table(lines []Line) string {
	var b strings.Builder
	b.WriteString("section\tsetup\tquantity\tcases\tmeasured\tsimulated\terror\t9 of 10 within\tbar\tnote\n")
	for _, l := range lines {
		b.WriteString(l.cells())
	}
	return b.String()
}

func (l Line) cells() string {
	note := l.Note
	if l.Fitted {
		note = strings.TrimSuffix("fitted; "+note, "; ")
	}
	if len(l.Pairs) == 0 {
		return l.Section + "\t" + l.What + strings.Repeat("\t", 8) + note + "\n"
	}
	measured, simulated, signed, _ := l.Median()
	p90 := ""
	if len(l.Pairs) > 1 {
		p90 = fmt.Sprintf("%.0f %%", 100*l.P90())
	}
	bar := "held"
	if !l.Held() {
		bar = "missed"
	}
	limit := fmt.Sprintf("%.0f %%", 100*l.Bar)
	if l.Factor {
		limit = fmt.Sprintf("factor %.1f", 1+l.Bar)
	}
	return fmt.Sprintf("%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s: %s\t%s\n", l.Section, l.What, l.Quantity, len(l.Pairs),
		digits(measured), digits(simulated), percent(signed), p90, limit, bar, note)
}

func percent(share float64) string {
	if text := fmt.Sprintf("%+.0f %%", 100*share); text != "-0 %" && text != "+0 %" {
		return text
	}
	return "0 %"
}

// digits writes three significant digits, and whole numbers above that.
func digits(v float64) string {
	places := 2 - int(math.Floor(math.Log10(math.Abs(v))))
	return fmt.Sprintf("%.*f", max(0, places), v)
}
