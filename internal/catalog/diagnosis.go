package catalog

import (
	"slices"
	"strings"
)

// Level says what a cause is told of.
type Level string

// The levels of causes.
const (
	// LevelEngine is a cause of one engine.
	LevelEngine Level = "engine"
	// LevelPool is a cause that only a pool can have.
	LevelPool Level = "pool"
	// LevelNotice is worth a look at an engine, and no harm by itself.
	LevelNotice Level = "notice"
)

// Signal is a number that the diagnosis goes by, as the attribute signal names it.
type Signal struct {
	Name string
	// Unit is a UCUM unit, "{annotation}" for counted things.
	Unit string
	// Meaning is one sentence.
	Meaning string
}

// Condition is what an engine or a pool can be in; it is in exactly one.
type Condition struct {
	// Name is the value of the attribute condition.
	Name string
	// Severity is 0 for nothing to do, 1 for a look when there is time, 2 for a
	// warning and 3 for a page.
	Severity int
	// Meaning says when it is said, Sentence what an operator reads first.
	Meaning, Sentence string
	// Signals are what it is judged by. Next are steps in their order, with names
	// of metrics in backticks.
	Signals, Next []string
	// Anchor is the fragment of the condition's heading in docs/diagnosis.md.
	Anchor string
}

// Cause is why an engine or a pool is in its condition.
type Cause struct {
	// Name is the value of the attribute cause.
	Name string
	// Level says what the cause is told of.
	Level Level
	// Meaning says when it is said, Sentence what an operator reads first.
	Meaning, Sentence string
	// Details are the values of the attribute detail; none for most causes.
	Details []Detail
	// Signals are what it is judged by. Next are steps in their order, with names
	// of metrics in backticks.
	Signals, Next []string
	// NotSeparable says what looks the same in these signals.
	NotSeparable string
	// Anchor is the fragment of the cause's heading in docs/diagnosis.md.
	Anchor string
}

// Detail narrows a cause down.
type Detail struct {
	Name, Sentence string
}

// Conditions returns the conditions, each before those that it wins over. The
// slice is the table itself: read it, do not change it.
func Conditions() []Condition { return conditions }

// Causes returns the causes of engines, of pools and the notices, sorted within
// each. The slice is the table itself.
func Causes() []Cause { return causes }

// Signals returns the signals, sorted by name. The slice is the table itself.
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

// StepsWith returns the steps that name no metric which is switched off.
func StepsWith(steps []string, on func(metric string) bool) []string {
	return slices.DeleteFunc(slices.Clone(steps), func(step string) bool {
		for i, word := range strings.Split(step, "`") {
			// What stands in backticks is every second part.
			if _, isMetric := ByName(word); i%2 == 1 && isMetric && !on(word) {
				return true
			}
		}
		return false
	})
}
