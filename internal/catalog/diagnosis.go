package catalog

import (
	"slices"
	"strings"
)

// Level is the kind of a cause.
type Level string

// The levels of causes.
const (
	// LevelEngine is a cause of one engine.
	LevelEngine Level = "engine"
	// LevelPool is a cause that only a pool can have.
	LevelPool Level = "pool"
	// LevelNotice is information about an engine and does no harm by itself.
	LevelNotice Level = "notice"
)

// Signal is a number that the diagnosis uses. Its name is a value of the attribute
// signal.
type Signal struct {
	Name string
	// Unit is a UCUM unit, "{annotation}" for counted things.
	Unit string
	// Meaning is one sentence.
	Meaning string
}

// Condition is a condition of an engine or a pool. Each has exactly one at a time.
type Condition struct {
	// Name is the value of the attribute condition.
	Name string
	// Severity is 0 for nothing to do, 1 for a look when there is time, 2 for a
	// warning and 3 for a page.
	Severity int
	// Meaning describes when it is reported. Sentence is for operators and complete by
	// itself.
	Meaning, Sentence string
	// Signals are the signals that it is judged by. Next are the next steps in order,
	// with names of metrics in backticks.
	Signals, Next []string
	// Anchor is the fragment of the condition's heading in docs/diagnosis.md.
	Anchor string
}

// Cause is a reason for the condition of an engine or a pool.
type Cause struct {
	// Name is the value of the attribute cause.
	Name  string
	Level Level
	// Meaning describes when it is reported. Sentence is for operators and complete by
	// itself.
	Meaning, Sentence string
	// Details are the values of the attribute detail; none for most causes.
	Details []Detail
	// Signals are the signals that it is judged by. Next are the next steps in order,
	// with names of metrics in backticks.
	Signals, Next []string
	// NotSeparable describes what these signals cannot distinguish.
	NotSeparable string
	// Anchor is the fragment of the cause's heading in docs/diagnosis.md.
	Anchor string
}

// Detail narrows a cause down.
type Detail struct {
	Name, Sentence string
}

// Conditions returns the conditions in order of precedence, the highest first. The
// slice is the table itself: do not change it.
func Conditions() []Condition { return conditions }

// Signals returns the signals, sorted by name. The slice is the table itself: do not
// change it.
func Signals() []Signal { return diagnosisSignals }

// ConditionByName returns the condition with the name.
func ConditionByName(name string) (*Condition, bool) {
	i := slices.IndexFunc(conditions, func(c Condition) bool { return c.Name == name })
	if i < 0 {
		return nil, false
	}
	return &conditions[i], true
}

// CauseByName returns the cause with the name.
func CauseByName(name string) (*Cause, bool) {
	i := slices.IndexFunc(causes, func(c Cause) bool { return c.Name == name })
	if i < 0 {
		return nil, false
	}
	return &causes[i], true
}

// StepsWith returns the steps that do not name a disabled metric. on reports whether a
// metric is enabled.
func StepsWith(steps []string, on func(metric string) bool) []string {
	return slices.DeleteFunc(slices.Clone(steps), func(step string) bool {
		for i, word := range strings.Split(step, "`") {
			// Every second part is in backticks.
			if _, isMetric := ByName(word); i%2 == 1 && isMetric && !on(word) {
				return true
			}
		}
		return false
	})
}
