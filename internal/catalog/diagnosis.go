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
	// From are the metrics and the other signals that it is computed from, sorted.
	From []string
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
	// Signals are the signals that it is judged by.
	Signals []string
	// Next are the next steps in order.
	Next []Step
	// NotSeparable describes what looks the same as this condition.
	NotSeparable string
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
	// Signals are the signals that it is judged by.
	Signals []string
	// Next are the next steps in order.
	Next []Step
	// NotSeparable describes what these signals cannot distinguish.
	NotSeparable string
}

// Step is one step of a diagnosis.
type Step struct {
	// Text is a whole sentence, with names of metrics in backticks.
	Text string
	// Queries are PromQL to paste, in the suffixed spelling, for all servers.
	Queries []string
	// Board is the uid of a dashboard and Panel the title of the panel of it that shows it;
	// empty for none.
	Board, Panel string
}

// Flag is a flag of vLLM that runbooks advise to change.
type Flag struct {
	// Name begins with two dashes.
	Name string
	// Values are the unit, what it counts for, the default, and the versions of vLLM that have it.
	Values string
	// Meaning is what it sets; Raise and Lower are what a larger and a smaller value do
	// and cost. Flags that are only on or off have the effect of on as Raise.
	Meaning, Raise, Lower string
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

// Causes returns the causes, sorted by name within their level. The slice is the table
// itself: do not change it.
func Causes() []Cause { return causes }

// Flags returns the flags of vLLM that runbooks advise to change, sorted by name. The
// slice is the table itself: do not change it.
func Flags() []Flag { return flags }

// RunbookBase is where the runbooks are. The newest page is the right one for every
// version: names of alerts, conditions and causes do not change.
const RunbookBase = "https://github.com/otelcol-vllm/otelcol-vllm/blob/main/docs/runbooks/"

// RunbookURL returns the address of the runbook of an alert, a condition or a cause.
func RunbookURL(name string) string { return RunbookBase + name + ".md" }

// StepsWith returns the texts of the steps that do not name a disabled metric. on reports whether a
// metric is enabled.
func StepsWith(steps []Step, on func(metric string) bool) []string {
	var left []string
	for _, step := range steps {
		named := false
		for i, word := range strings.Split(step.Text, "`") {
			// Every second part is in backticks.
			_, isMetric := ByName(word)
			named = named || i%2 == 1 && isMetric && !on(word)
		}
		if !named {
			left = append(left, step.Text)
		}
	}
	return left
}
