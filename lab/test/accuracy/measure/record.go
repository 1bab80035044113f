package main

import (
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
	"github.com/otelcol-vllm/otelcol-vllm/lab/test/accuracy/stories"
)

// Record is what is kept of a played story: enough to score it again. It is one line of
// the journal.
type Record struct {
	stories.Meta
	// Print is the fingerprint of what produced it.
	Print string `json:"print"`
	// Minutes counts the lines of all servers, Judged those with enough requests.
	Minutes int `json:"minutes"`
	Judged  int `json:"judged"`
	// Lines are those with harm or with an alarm, without the name of the story. All others
	// were neither harmful nor reported as harmful. A story with a fault of the exposition
	// keeps all of them: what is right there may be a notice or no alarm at all.
	Lines  []judge.Line  `json:"lines,omitempty"`
	Alarms []judge.Alarm `json:"alarms,omitempty"`
	// Notices are the changes to a notice of slower service: degraded, of severity 1.
	Notices []judge.Alarm `json:"notices,omitempty"`
	// Slow are servers and minutes in which users waited beyond the bar of harm against the usual, or an
	// objective was missed, whatever the reason.
	Slow   [][2]int       `json:"slow,omitempty"`
	Sought []judge.Sought `json:"sought,omitempty"`
	// Heard is harm by the limits of real servers, with what was said of it.
	Heard []Heard `json:"heard,omitempty"`
	// Said is what was reported of the server of a healthy story, from a time on each.
	Said []judge.Said `json:"said,omitempty"`
	// Tickets are how often the shipped alerts send a ticket without harm by a fault or by too much traffic; nil where that
	// was not evaluated. They are not kept, because the alerts change without the stories.
	Tickets *float64 `json:"-"`
	// CPU is what it took, in seconds of one processor.
	CPU float64 `json:"cpu"`
}

// leastRequests is how many requests of a minute have to count for a judgement.
const leastRequests = 20

// newRecord keeps what is needed of a played story.
func newRecord(meta stories.Meta, played *judge.Played) Record {
	r := Record{
		Meta: meta, Minutes: len(played.Lines), Alarms: played.Alarms, Notices: notices(played), Sought: played.Sought,
		Heard: heard(played, longestOf(played.Lines)),
	}
	if meta.Kind == stories.Healthy && len(played.Said) > 0 {
		r.Said = played.Said[0]
	}
	for _, l := range played.Lines {
		if l.Requests >= leastRequests {
			r.Judged++
		}
		if l.Slow {
			r.Slow = append(r.Slow, [2]int{l.Server, l.Minute})
		}
		if !l.Harmful && !alarming(&l) && meta.Kind != stories.Exposition {
			continue
		}
		l.Scenario = ""
		r.Lines = append(r.Lines, l)
	}
	return r
}

// notices are the times from which on a server had a notice of slower service, and no warning just before.
func notices(played *judge.Played) (out []judge.Alarm) {
	for server, all := range played.Said {
		was := false
		for _, said := range all {
			is := said.Condition == "degraded" && said.Severity >= 1
			if is && !was && said.Severity == 1 {
				out = append(out, judge.Alarm{Server: server, At: said.At, Severity: 1, Condition: said.Condition, Cause: said.Cause})
			}
			was = is
		}
	}
	return out
}

// alarming reports whether harm was reported: degraded or worse.
func alarming(l *judge.Line) bool {
	return l.Severity >= 2 || slices.Contains([]string{"degraded", "critical", "failing", "stalled", "unreachable"}, l.Condition)
}

// hasFault reports whether one of the servers has a fault.
func (r *Record) hasFault() bool {
	return slices.ContainsFunc(r.Injections, func(in stories.Injected) bool { return in.Cause != "" })
}

// wanted is the greatest effect that was sought; 0 if none was.
func (r *Record) wanted() float64 {
	out := 0.0
	for i := range r.Injections {
		out = max(out, r.Injections[i].Wanted)
	}
	return out
}

// got is the effect that the search found, of the first injection that has one; 0 without.
func (r *Record) got() float64 {
	if len(r.Sought) == 0 {
		return 0
	}
	return r.Sought[0].Got
}

// hours is the length of the story, of all its servers.
func (r *Record) hours() float64 { return float64(r.Minutes) / 60 }

// label is the report of a line as one word: the primary cause if harm is reported, else
// the condition.
func label(l *judge.Line) string {
	if l.Condition == "" {
		return "nothing"
	}
	if p := primary(l); alarming(l) && l.Condition != "stalled" && p != "" {
		return p
	}
	return l.Condition
}

func primary(l *judge.Line) string {
	for _, c := range l.Causes {
		if c.Role == "primary" {
			return c.Name
		}
	}
	return ""
}
