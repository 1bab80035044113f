package rulefile

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/content"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/pageparts"
)

// Page is the page about the alerts.
const Page = "docs/alerts.md"

// PageParts returns the generated parts of the page about the alerts.
func PageParts() map[string]map[string]string {
	return map[string]map[string]string{Page: {
		"alert-list": alertTable(content.Stable), "wire-alerts": alertTable(content.Wire),
		"records": recordTable(), "parameters": parameterTable(), "outages": outageTable(),
	}}
}

func alertTable(set string) string {
	var b strings.Builder
	b.WriteString("| Alert | Severity | Waits | Fires when |\n|---|---|---|---|\n")
	for _, g := range content.Groups() {
		if g.Set != set {
			continue
		}
		for i := range g.Alerts {
			a := &g.Alerts[i]
			first, _, _ := strings.Cut(a.Meaning, ". ")
			wait := "–"
			if a.For > 0 {
				wait = model.Duration(a.For).String()
			}
			fmt.Fprintf(&b, "| [%[1]s](runbooks/%[1]s.md) | %s | %s | %s |\n", a.Name, a.Severity, wait, pageparts.Cell(strings.TrimSuffix(first, ".")+"."))
		}
	}
	return b.String()
}

// recordTable has one row for the series that differ only in their window.
func recordTable() string {
	var b strings.Builder
	b.WriteString("| Series | Windows | Unit | Meaning |\n|---|---|---|---|\n")
	type row struct{ series, unit, meaning string }
	var rows []row
	windows := map[row][]string{}
	for _, g := range content.Groups() {
		for _, r := range g.Records {
			name, window := r.Name, ""
			if cut := strings.LastIndexByte(r.Name, ':'); windowed.MatchString(r.Name[cut+1:]) {
				name, window = r.Name[:cut], "`"+r.Name[cut+1:]+"`"
			}
			series := row{name, r.Unit, pageparts.Cell(r.Meaning)}
			if _, known := windows[series]; !known {
				rows = append(rows, series)
			}
			windows[series] = append(windows[series], window)
		}
	}
	for _, r := range rows {
		fmt.Fprintf(&b, "| `%s` | %s | `%s` | %s |\n", r.series, strings.Join(windows[r], ", "), r.unit, r.meaning)
	}
	return b.String()
}

// windowed is the end of the name of a recorded series over a window.
var windowed = regexp.MustCompile(`^(rate|last)?\d+[mhd]$`)

func parameterTable() string {
	var b strings.Builder
	b.WriteString("| Name in the mixin | Default | Meaning |\n|---|---|---|\n")
	for _, p := range content.Parameters() {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", p.Name, strconv.FormatFloat(p.Value, 'f', -1, 64), pageparts.Cell(p.Meaning))
	}
	return b.String()
}

// outageTable shows after what time an outage of everything pages, by the target.
func outageTable() string {
	value := map[string]float64{}
	for _, p := range content.Parameters() {
		value[p.Name] = p.Value
	}
	after := func(factor string, allowed float64, window time.Duration) string {
		share := min(value[factor]*allowed, value["errorRatioAlways"])
		text := (time.Duration(share * float64(window))).Round(6 * time.Second)
		return fmt.Sprintf("%.1f min", text.Minutes())
	}
	var b strings.Builder
	b.WriteString("| Target | Highest burn rate | VLLMBudgetBurnFast after | VLLMBudgetBurnMedium after |\n|---|---|---|---|\n")
	for _, t := range []struct {
		target  string
		allowed float64
	}{{"99.9 %", 0.001}, {"99.5 %", 0.005}, {"99 %", 0.01}, {"95 %", 0.05}, {"90 %", 0.1}, {"80 %", 0.2}} {
		fmt.Fprintf(&b, "| %s | %.0f | %s | %s |\n", t.target, 1/t.allowed, after("burnFast", t.allowed, time.Hour), after("burnMedium", t.allowed, 6*time.Hour))
	}
	return b.String()
}
