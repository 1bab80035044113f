package defects

import (
	"fmt"
	"math"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// Seen is what an event showed: the metrics before, during and after it, and what the client
// itself knows of it. What a number must be follows from Did and from the flags of the
// server, never from what our own code makes of the metrics.
type Seen struct {
	Before, During, After Shown
	// Did has what the client counted and measured, by names of the event.
	Did map[string]float64
}

// rise is how much a name rose over the event.
func (s *Seen) rise(name string, label ...string) float64 {
	return s.After.sum(name, label...) - s.Before.sum(name, label...)
}

// Span is a range of numbers, with both of its ends.
type Span struct{ From, To float64 }

func exactly(v float64) Span { return Span{v, v} }
func atLeast(v float64) Span { return Span{v, math.Inf(1)} }
func atMost(v float64) Span  { return Span{math.Inf(-1), v} }

func (s Span) has(v float64) bool { return v >= s.From && v <= s.To }

func (s Span) String() string {
	switch {
	case s.From == s.To:
		return short(s.From)
	case math.IsInf(s.To, 1):
		return "at least " + short(s.From)
	case math.IsInf(s.From, -1):
		return "at most " + short(s.To)
	}
	return short(s.From) + " to " + short(s.To)
}

func short(v float64) string { return fmt.Sprintf("%.4g", v) }

// Number is a number of the metrics, with what it must be with the defect and without it.
type Number struct {
	What  string
	Is    float64
	Right Span
	Wrong Span
}

// Finding is what an event says of a defect. Unsure is the reason why it says nothing: what
// should have happened did not.
type Finding struct {
	Numbers []Number
	Unsure  string
}

// unless makes a finding that holds only if a condition is met.
func unless(met bool, unsure string, numbers ...Number) Finding {
	if met {
		unsure = ""
	}
	return Finding{numbers, unsure}
}

// Verdicts of a probe.
const (
	Present = "present"
	Absent  = "absent"
	Unknown = "cannot tell"
)

// Judgement looks for one defect in what an event showed.
type Judgement struct {
	Defect catalog.DefectID
	// From is the first version in which this event is said to show the defect. An older
	// version can have it in other events only.
	From string
	Find func(s *Seen) Finding
}

// Verdict is what was found out about a defect on a version.
type Verdict struct {
	Defect  catalog.DefectID `json:"defect"`
	Event   string           `json:"event"`
	Verdict string           `json:"verdict"`
	Says    string           `json:"says"`
	// Contradicts is true where the catalogue says the opposite.
	Contradicts bool `json:"contradicts,omitempty"`
}

// judge judges what a server of a version showed. The defect is there if all numbers are
// wrong, and is not if all are right.
func (j *Judgement) judge(event, version string, s *Seen) Verdict {
	found := j.Find(s)
	v := Verdict{Defect: j.Defect, Event: event, Verdict: Unknown}
	wrong, right := 0, 0
	var says []string
	for _, n := range found.Numbers {
		says = append(says, fmt.Sprintf("%s is %s (with the defect %s, without %s)", n.What, short(n.Is), n.Wrong, n.Right))
		if n.Wrong.has(n.Is) {
			wrong++
		}
		if n.Right.has(n.Is) {
			right++
		}
	}
	v.Says = strings.Join(says, "; ")
	release, _ := catalog.ParseRelease(version)
	switch {
	case found.Unsure != "":
		v.Says = found.Unsure + "; " + v.Says
	case wrong == len(found.Numbers) && right == 0:
		v.Verdict = Present
	case right < len(found.Numbers) || wrong > 0:
	case j.From != "" && !release.Within(j.From, ""):
		v.Says = "this event shows it only from " + j.From + " on; " + v.Says
	default:
		v.Verdict = Absent
	}
	v.Contradicts = v.Verdict != Unknown && (v.Verdict == Present) != j.Defect.Affects(version)
	return v
}
