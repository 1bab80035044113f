package diagnose

import (
	"fmt"
	"math"
	"strconv"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// Evidence returns what a change was judged by: the signals that the catalogue
// names for its condition and cause, each with its value and what it usually is.
func (t *Transition) Evidence() []string {
	condition, _ := catalog.ConditionByName(t.To.Condition.String())
	names := condition.Signals
	if t.To.Explained {
		if cause, known := catalog.CauseByName(t.To.Primary.String()); known {
			names = append(append([]string(nil), names...), cause.Signals...)
		}
	}
	var evidence []string
	told := map[string]bool{}
	for _, name := range names {
		for s := range NumSignals {
			if s.String() != name || told[name] || !known(t.Signals[s]) {
				continue
			}
			told[name] = true
			line := name + " " + short(t.Signals[s])
			if usual := t.Usual[s]; known(usual) {
				line += ", usually " + short(max(usual, 0))
			}
			evidence = append(evidence, line)
		}
	}
	return evidence
}

// short writes a number with three digits.
func short(x float64) string {
	if math.Abs(x) >= 1000 {
		return fmt.Sprintf("%.0f", x)
	}
	return strconv.FormatFloat(x, 'g', 3, 64)
}
