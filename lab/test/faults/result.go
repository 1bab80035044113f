package faults

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Result is what a run has shown.
type Result struct {
	Fault *Fault
	// Reads is how often the working servers were read; Lost is how many of these
	// reads never arrived, Skipped how many intervals had none.
	Reads, Lost, Skipped int
	// Peak is the most resident memory.
	Peak int64
	// Killed is why the run was ended early.
	Killed string
	// Stop is the time from SIGTERM to the end, Exit how it ended.
	Stop time.Duration
	Exit error
	// LogBytes is what the collector wrote after its start, Sentence the line that
	// reports the fault.
	LogBytes int
	Sentence string
	Log      string
	// Wrong is what Check found.
	Wrong error
}

// The bars of a run.
const (
	// mostStop is well below the 30 seconds after which Kubernetes kills.
	mostStop = 10 * time.Second
	// mostLog is for a run of a minute or less. A target that fails has one line
	// when it begins to and one when it ends.
	mostLog = 32 << 10
)

// Failures are the bars that a run missed; limit is the memory that it may use.
func (r *Result) Failures(limit int64) []string {
	var found []string
	bad := func(is bool, format string, args ...any) {
		if is {
			found = append(found, fmt.Sprintf(format, args...))
		}
	}
	bad(r.Killed != "", "%s", r.Killed)
	bad(r.Reads == 0, "the working servers were never read")
	bad(r.Lost > 0, "%d of %d scrapes of the working servers did not arrive", r.Lost, r.Reads)
	bad(r.Skipped > 0, "%d scrapes of the working servers were left out", r.Skipped)
	bad(r.Peak > limit, "%d MiB of memory, more than the container's limit of %d MiB", r.Peak>>20, limit>>20)
	bad(r.Stop > mostStop, "SIGTERM took %s", r.Stop.Round(100*time.Millisecond))
	bad(r.Exit != nil && r.Killed == "", "the collector ended with %v", r.Exit)
	bad(r.LogBytes > mostLog, "%d KB of log", r.LogBytes>>10)
	bad(r.Fault.Says != nil && r.Sentence == "", "no line of the log reports it")
	bad(strings.Contains(r.Log, "\n"+forged), "a line of the log was forged")
	bad(strings.Contains(r.Log, "panic: "), "a panic is in the log")
	if r.Wrong != nil {
		found = append(found, r.Wrong.Error())
	}
	return found
}

// entry is a line of the collector's log: time, level, where, message, fields.
var entry = regexp.MustCompile(`(?m)^\d{4}-\d\d-\d\dT\S+\t(info|warn|error)\t(?:\S+:\d+\t)?([^\t\n]*)(?:\t(\{.*\}))?$`)

// sentence finds the first line of the log that names an address and matches a
// pattern, and returns it without what is the same in each line.
func sentence(log, addr string, pattern *regexp.Regexp) string {
	for _, found := range entry.FindAllStringSubmatch(log, -1) {
		whole := found[2] + " " + found[3]
		if !strings.Contains(whole, addr) || !pattern.MatchString(whole) {
			continue
		}
		var fields map[string]any
		_ = json.Unmarshal([]byte(found[3]), &fields)
		parts := []string{found[1], found[2]}
		for _, name := range []string{"error", "reason"} {
			if value, ok := fields[name].(string); ok {
				parts = append(parts, value)
			}
		}
		return strings.Join(parts, ": ")
	}
	return ""
}

// afterStart is the log after the line that reports the start of the collector.
func afterStart(log string) string {
	if _, after, found := strings.Cut(log, "Everything is ready. Begin running and processing data."); found {
		return after
	}
	return log
}

// find returns the faults whose names a pattern matches.
func find(pattern *regexp.Regexp) []*Fault {
	var found []*Fault
	for _, section := range All() {
		for i := range section.Faults {
			if pattern.MatchString(section.Faults[i].Name) {
				found = append(found, &section.Faults[i])
			}
		}
	}
	return slices.Clip(found)
}
