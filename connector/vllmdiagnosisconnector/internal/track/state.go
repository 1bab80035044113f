// Package track follows the diagnoses of engines and finds their transitions.
package track

import (
	"maps"
	"slices"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/connector/vllmdiagnosisconnector/internal/collect"
	"github.com/otelcol-vllm/otelcol-vllm/internal/message"
)

// State is the diagnosis of an engine or pool at one time. The zero value is
// none.
type State struct {
	Condition string
	// Severity is from 0 to 3.
	Severity int
	// Primary is the cause that does the most; empty without one. Detail is its
	// own, empty where it has none.
	Primary, Detail string
	// Contributing and Notices are names of causes, sorted, each once.
	Contributing, Notices []string
}

// Known is false for the zero value.
func (s *State) Known() bool { return s.Condition != "" }

// Equal reports whether two states are the same.
func (s *State) Equal(other *State) bool {
	return s.Condition == other.Condition && s.Severity == other.Severity &&
		s.Primary == other.Primary && s.Detail == other.Detail &&
		slices.Equal(s.Contributing, other.Contributing) && slices.Equal(s.Notices, other.Notices)
}

// Transition is the step from one state to another.
type Transition struct {
	// From is the state before, or the zero value where this is the first.
	From, To State
	// Time is the time of the points that say To, in nanoseconds since 1970.
	Time int64
	// Message is what the processor says about it; nil without.
	Message *message.Message
}

// stateOf is what a frame says; false where it does not say the severity and a
// condition. What cannot be at once, two conditions or two primary causes, is
// decided so that nothing severe is lost and the answer is always the same.
func stateOf(f *collect.Frame, precedence func(condition string) int) (State, bool) {
	s := State{Severity: f.Severity}
	for _, name := range slices.Sorted(maps.Keys(f.Conditions)) {
		if f.Conditions[name] && (s.Condition == "" || precedence(name) < precedence(s.Condition)) {
			s.Condition = name
		}
	}
	if s.Condition == "" || f.Severity == collect.NoSeverity {
		return State{}, false
	}
	active := make([]collect.Cause, 0, len(f.Causes))
	for cause, is := range f.Causes {
		if is {
			active = append(active, cause)
		}
	}
	slices.SortFunc(active, func(a, b collect.Cause) int {
		if by := strings.Compare(a.Name, b.Name); by != 0 {
			return by
		}
		return strings.Compare(a.Detail, b.Detail)
	})
	for _, cause := range active {
		switch {
		case cause.Role == collect.Notice:
			s.Notices = append(s.Notices, cause.Name)
		case cause.Role == collect.Primary && s.Primary == "":
			s.Primary, s.Detail = cause.Name, cause.Detail
		default:
			s.Contributing = append(s.Contributing, cause.Name)
		}
	}
	s.Contributing = slices.DeleteFunc(slices.Compact(s.Contributing), func(name string) bool { return name == s.Primary })
	s.Notices = slices.Compact(s.Notices)
	return s, true
}
