package said

import (
	"fmt"
	"slices"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/run"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/story"
)

// clearWithin is how long after the end of harm a warning may stay, in seconds.
const clearWithin = 90

// Misses compares what was said about a run with what must and must not be said, and returns a
// sentence for each difference:
//
//   - harm is reported within its time, and the first condition or cause that says why is one that
//     the story names;
//   - a server is not said to be well while users are harmed;
//   - a warning ends within 90 s after the harm;
//   - there is no warning without harm, but where the story names it: harm of less than five
//     times the usual is real as well;
//   - what a story excludes is never the reason of a warning.
func Misses(book *story.Book, r *run.Run, all *All) (out []string) {
	miss := func(at float64, format string, values ...any) {
		out = append(out, fmt.Sprintf("every %s, %s: ", all.Interval, r.PhaseAt(at))+fmt.Sprintf(format, values...))
	}
	for i := range all.Heard {
		h := &all.Heard[i]
		name := string(h.Level) + ", " + h.What
		within := h.Level.Deadline(all.Interval.Seconds())
		lasted := h.To - h.From
		switch {
		case !h.Reported() && lasted > within:
			miss(h.From, "%s, for %.0f s: not reported", name, lasted)
		case h.Reported() && h.After > within:
			miss(h.From, "%s: reported after %.0f s, not within %.0f s", name, h.After, within)
		}
		if h.Denied > 0 {
			miss(h.From, "%s: said to be well for %.0f s", name, h.Denied)
		}
		if !h.Reported() {
			continue
		}
		// Harm is measured before its cause is known.
		first := slices.IndexFunc(all.Said, func(s judge.Said) bool { return s.At >= h.Report.At && s.At <= h.To && names(s) })
		switch want := storyAt(book, r, h.From); {
		case want == nil:
		case first < 0 && !says(want.Say, h.Report):
			miss(h.From, "%s: no cause is named, and it is %s", name, strings.Join(want.Say, " or "))
		case first >= 0 && !says(want.Say, all.Said[first]) && !says(want.Say, h.Report):
			miss(h.From, "%s: reported as %s, not as %s", name, spelled(all.Said[first]), strings.Join(want.Say, " or "))
		}
		switch {
		case h.Cleared > clearWithin:
			miss(h.From, "%s: cleared %.0f s after its end, not within %d s", name, h.Cleared, clearWithin)
		case h.Cleared < 0 && h.To+clearWithin < r.End():
			miss(h.From, "%s: not cleared %.0f s after its end", name, r.End()-h.To)
		}
	}
	for _, s := range all.Unfelt {
		if want := storyAt(book, r, s.At); want == nil || !says(want.Say, s) {
			miss(s.At, "%s without harm", spelled(s))
		}
	}
	for _, s := range all.Said {
		if want := storyAt(book, r, s.At); want != nil && s.Severity >= 2 && len(want.Never) > 0 && says(want.Never, s) {
			miss(s.At, "%s, which it is not", spelled(s))
		}
	}
	return out
}

// storyAt is the story at a time; nil in the steady phase.
func storyAt(book *story.Book, r *run.Run, at float64) *story.Story {
	for i, s := range r.Spans {
		if at >= s.To && i+1 < len(r.Spans) {
			continue
		}
		name, _, is := strings.Cut(r.Play.Phases[i].Name, "/")
		if j := slices.IndexFunc(book.Stories, func(s story.Story) bool { return s.Name == name }); is && j >= 0 {
			return &book.Stories[j]
		}
		return nil
	}
	return nil
}

// says reports whether a report is one of some conditions or causes.
func says(one []string, s judge.Said) bool {
	return slices.Contains(one, s.Condition) || slices.Contains(one, s.Cause)
}

// names reports whether a warning says why.
func names(s judge.Said) bool {
	return s.Severity >= 2 && (s.Cause != "" || s.Condition != "degraded" && s.Condition != "critical")
}

func spelled(s judge.Said) string { return strings.TrimSuffix(s.Condition+" "+s.Cause, " ") }

// minuteSeconds is a minute.
const minuteSeconds = 60.0

// Minutes counts the minutes at whose end users felt harm of five times the usual or more, those of them in which it
// was reported then, and those with a condition or a cause that the story names.
func Minutes(book *story.Book, r *run.Run, all *All) (felt, reported, right int) {
	for at := minuteSeconds; at <= r.End(); at += minuteSeconds {
		if !slices.ContainsFunc(all.Felt, func(f judge.Felt) bool { return f.From <= at && at <= f.To }) {
			continue
		}
		felt++
		now := judge.Said{}
		for _, s := range all.Said {
			if s.At <= at {
				now = s
			}
		}
		if now.Severity < 2 && now.Condition != "degraded" {
			continue
		}
		reported++
		if want := storyAt(book, r, at); want != nil && says(want.Say, now) {
			right++
		}
	}
	return felt, reported, right
}
