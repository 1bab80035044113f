package fidelity

import (
	"fmt"
	"math"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/pageparts"
)

// Markdown returns the table: for each section one, and above it the number of bars held.
func Markdown(lines []Line) string {
	var b strings.Builder
	held, bars := 0, 0
	for _, l := range lines {
		if len(l.Pairs) > 0 && l.Bar > 0 {
			bars++
			if l.Held() {
				held++
			}
		}
	}
	fmt.Fprintf(&b, "%d of %d bars are held.\n", held, bars)
	section := ""
	for _, l := range lines {
		if l.Section != section {
			section = l.Section
			fmt.Fprintf(&b, "\n**%s**\n\n", section)
			b.WriteString("| Setup | Quantity | Cases | Measured | Simulated | Error | 9 of 10 within | Bar | |\n")
			b.WriteString("|---|---|---|---|---|---|---|---|---|\n")
		}
		b.WriteString(l.markdown())
	}
	return b.String()
}

func (l Line) markdown() string {
	note := l.Note
	if l.Fitted {
		note = strings.TrimSuffix("fitted; "+note, "; ")
	}
	if len(l.Pairs) == 0 {
		return fmt.Sprintf("| %s | | | | | | | | %s |\n", pageparts.Cell(l.What), pageparts.Cell(note))
	}
	measured, simulated, signed, _ := l.Median()
	p90 := ""
	if len(l.Pairs) > 1 {
		p90 = fmt.Sprintf("%.0f %%", 100*l.P90())
	}
	bar := "held"
	if !l.Held() {
		bar = "**missed**"
	}
	limit := fmt.Sprintf("%.0f %%", 100*l.Bar)
	if l.Factor {
		limit = fmt.Sprintf("factor %.1f", 1+l.Bar)
	}
	text := fmt.Sprintf("| %s | %s | %d | %s | %s | %s | %s | %s: %s | %s |\n", pageparts.Cell(l.What), l.Quantity, len(l.Pairs),
		digits(measured), digits(simulated), percent(signed), p90, limit, bar, pageparts.Cell(note))
	return strings.ReplaceAll(text, "|  |", "| |")
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
