package exposition

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// What is wrong with a line of OpenMetrics that its parser refuses. Each line has one mistake.
func TestReasonsOfBadLinesInOpenMetrics(t *testing.T) {
	for line, want := range map[string]Reason{
		"9a 3":             ReasonBadName,
		"9a{x=\"1\"} 3":    ReasonBadName,
		"{x=\"1\"} 2":      ReasonBadName,
		"{} 2":             ReasonBadName,
		"a{x=1} 5":         ReasonBadLabels,
		"a{x=\"1\" 4":      ReasonBadLabels,
		"a{9=\"1\"} 4":     ReasonBadLabels,
		"{\"a\",x=1} 1":    ReasonBadLabels,
		"{\"a\" x=\"\"} 1": ReasonBadLabels,
		"a 1 x":            ReasonBadTimestamp,
		"a{x=\"1\"} 1 x":   ReasonBadTimestamp,
		"a six":            ReasonBadValue,
		"a{x=\"1\"} six":   ReasonBadValue,
		"a  1":             ReasonBadValue,
		"a{x=\"1\"}  1":    ReasonBadValue,
	} {
		s := NewReader(NewMemory(0)).Read([]byte("b 1\n"+line+"\nc 1\n# EOF\n"), DialectOpenMetrics)
		assert.Equal(t, []Problem{{Line: 2, Reason: want}}, s.Problems, line)
	}
}
