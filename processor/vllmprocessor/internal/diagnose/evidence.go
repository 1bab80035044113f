package diagnose

import (
	"fmt"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// Evidence returns what a change was judged by: the signals that the catalogue
// names for its cause and for its condition, the deciding ones first, each with its
// value, its unit and what is usual.
func (t *Transition) Evidence() []string {
	var names []string
	if t.To.Explained {
		if cause, known := catalog.CauseByName(t.To.Primary.String()); known {
			names = slices.Clone(cause.Signals)
		}
	}
	for c, is := range t.To.Notices {
		if cause, known := catalog.CauseByName(Cause(c).String()); known && is {
			names = append(names, cause.Signals...)
		}
	}
	condition, _ := catalog.ConditionByName(t.To.Condition.String())
	names = append(names, condition.Signals...)
	var evidence []string
	named := map[string]bool{}
	for _, name := range names {
		one, is := signal.Named(name)
		if named[name] || !is || !signal.Known(t.Signals[one]) {
			continue
		}
		named[name] = true
		line := name + " " + short(t.Signals[one]) + units[one]
		if usual := t.Usual[one]; signal.Known(usual) {
			line += " (usual " + short(max(usual, 0)) + ")"
		}
		evidence = append(evidence, line)
	}
	return evidence
}

// units are what stands behind the value of a signal: " requests/s". A share and a
// factor have none.
var units = func() (all [signal.Count]string) {
	for _, s := range catalog.Signals() {
		if i, is := signal.Named(s.Name); is && s.Unit != "1" {
			unit := strings.ReplaceAll(strings.ReplaceAll(s.Unit, "{", ""), "}", "s")
			if per, found := strings.CutPrefix(unit, "1/"); found {
				unit = "per " + strings.TrimSuffix(per, "s")
			}
			all[i] = " " + unit
		}
	}
	return all
}()

// short writes a number with three digits.
func short(x float64) string {
	if math.Abs(x) >= 1000 {
		return fmt.Sprintf("%.0f", x)
	}
	return strconv.FormatFloat(x, 'g', 3, 64)
}
