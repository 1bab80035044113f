package exposition

import (
	"strings"
	"unicode/utf8"
)

// The longest texts in bytes, as the body writes them, that a line may have. A line that
// exceeds them is dropped, because names and labels are stored and sent with every point.
const (
	// MaxName is the longest name of a metric or label.
	MaxName = 512
	// MaxLabelValue has room for a label that lists a thousand LoRA adapters.
	MaxLabelValue = 64 << 10
)

const (
	// maxHelp is the maximum length of a help text in bytes; the rest is cut. A help text
	// is sent with every batch and does not identify a series.
	maxHelp = 1 << 10
	// maxUnit is the longest unit.
	maxUnit = 64
	// maxExemplarLabels is how many characters the labels of an exemplar may have, by
	// the OpenMetrics specification.
	maxExemplarLabels = 128
)

// cutHelp returns the part of a help text that is kept.
func cutHelp(text []byte) string {
	if len(text) <= maxHelp {
		return string(text)
	}
	const mark = "..."
	end := maxHelp - len(mark)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return string(text[:end]) + mark
}

// tooManyCharacters reports whether the labels of an exemplar are longer than its
// specification allows.
func tooManyCharacters(labels []Label) bool {
	n := 0
	for _, l := range labels {
		n += utf8.RuneCountInString(l.Name) + utf8.RuneCountInString(l.Value)
	}
	return n > maxExemplarLabels
}

// unitFits reports whether a unit is one, and not a text.
func unitFits(unit string) bool { return len(unit) <= maxUnit && !strings.ContainsAny(unit, "\n\r") }
