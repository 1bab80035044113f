package audit

import "fmt"

// Fate is the result for one line of a body that looks like a sample.
type Fate string

// The fates of a line.
const (
	// Emitted lines are in a point, with their value.
	Emitted Fate = "emitted"
	// Alias lines have an older name of a metric that the body also has under its newer
	// name, or are of a series that the body also has without its pid.
	Alias Fate = "folded as an alias"
	// StartTime lines are "_created": they become start times.
	StartTime Fate = "turned into a start time"
	// Info lines are of a family whose information is in its labels.
	Info Fate = "turned into numbers and resource attributes"
	// Disabled lines are of a metric that is off by default.
	Disabled Fate = "disabled by default"
	// BadLine lines cannot be read, or their family's type has no place for them.
	BadLine Fate = "dropped: bad line"
	// OrphanCreated lines are "_created" of a series that the body lacks.
	OrphanCreated Fate = "dropped: created time of no series"
	// Duplicate lines repeat a series of an earlier line.
	Duplicate Fate = "dropped: duplicate"
	// TypeConflict lines are Ray's gauge twins of counters.
	TypeConflict Fate = "dropped: type conflict"
	// BadHistogram lines are of a histogram or summary that does not add up.
	BadHistogram Fate = "dropped: does not add up"
	// Unused lines are 0, of what the server does not use.
	Unused Fate = "unused"
	// Sentinel lines have the value -1 that means absent.
	Sentinel Fate = "dropped: sentinel"
	// NaNCounter lines are counters that are not numbers.
	NaNCounter Fate = "dropped: counter is not a number"
	// Unsupported lines are of a gauge histogram.
	Unsupported Fate = "dropped: unsupported type"
)

// fates has the fate of each line.
type fates struct {
	of         map[int]Fate
	violations []string
}

func newFates() *fates { return &fates{of: map[int]Fate{}} }

// set sets the fate of a line. A second call for a line is a fault of this package.
func (f *fates) set(line int, fate Fate) {
	if old, ok := f.of[line]; ok {
		f.violations = append(f.violations, fmt.Sprintf("line %d: accounted for twice, %s and %s", line, old, fate))
		return
	}
	f.of[line] = fate
}

func (f *fates) setAll(lines []int, fate Fate) {
	for _, line := range lines {
		f.set(line, fate)
	}
}
