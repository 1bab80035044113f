// Package page writes what users felt in a run beside what was said of it: lines for a
// terminal, and a page with the timeline.
package page

import (
	"fmt"
	"math"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/run"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/said"
)

// Lines returns a line for each harm that users felt, at each interval, and for each warning
// without one.
func Lines(r *run.Run, all []*said.All) string {
	var b strings.Builder
	usual := r.Usual()
	fmt.Fprintf(&b, "usual: first token %s, then %s a token\n", duration(usual.First), duration(usual.Token))
	if len(all) == 0 {
		return b.String()
	}
	if len(all[0].Felt) == 0 {
		fmt.Fprintln(&b, "users felt no harm of five times the usual or more")
	}
	for i := range all[0].Felt {
		f := &all[0].Felt[i]
		fmt.Fprintf(&b, "%s: %s, felt from %s to %s (%s), worst %s\n", f.Level, f.What, clock(f.From), clock(f.To), r.PhaseAt(f.From), worst(f))
		for _, a := range all {
			fmt.Fprintf(&b, "  every %-4s %s\n", a.Interval.String()+":", Heard(&a.Heard[i]))
		}
	}
	for _, a := range all {
		for _, s := range a.Unfelt {
			fmt.Fprintf(&b, "every %s: %s at %s (%s), while users felt no such harm\n", a.Interval, verdict(s), clock(s.At), r.PhaseAt(s.At))
		}
	}
	if len(r.Live) > 0 {
		fmt.Fprintln(&b, Live(r.Live, all[0].Records))
	}
	return b.String()
}

// Live compares the records of the running collector with those of the replay.
func Live(live, replayed []run.Record) string {
	apart := 0.0
	same := len(live) == len(replayed)
	for i := 0; same && i < len(live); i++ {
		apart = max(apart, math.Abs(live[i].At-replayed[i].At))
		same = live[i].Condition == replayed[i].Condition && live[i].Cause == replayed[i].Cause
	}
	if same {
		return fmt.Sprintf("the running collector wrote the same %d records, at most %.0f s apart", len(live), apart)
	}
	list := func(of []run.Record) string {
		var out []string
		for _, r := range of {
			out = append(out, strings.TrimSuffix(clock(r.At)+" "+r.Condition+" "+r.Cause, " "))
		}
		return strings.Join(out, ", ")
	}
	return "the running collector wrote other records: " + list(live) + "\n  the replay: " + list(replayed)
}

// Heard says what was reported of a harm.
func Heard(h *judge.Heard) string {
	var out []string
	switch {
	case !h.Reported():
		out = append(out, "not reported")
	case h.After < 0:
		out = append(out, "was reported before: "+verdict(h.Report))
	default:
		out = append(out, fmt.Sprintf("reported after %.0f s: %s", h.After, verdict(h.Report)))
	}
	if h.Paged >= 0 {
		out = append(out, fmt.Sprintf("paged after %.0f s", h.Paged))
	} else if h.Level != judge.Clear {
		out = append(out, "no page")
	}
	if h.Denied > 0 {
		out = append(out, fmt.Sprintf("said to be well for %.0f s", h.Denied))
	}
	if h.Reported() {
		if h.Cleared >= 0 {
			out = append(out, fmt.Sprintf("cleared %.0f s after its end", h.Cleared))
		} else {
			out = append(out, "not cleared by the end")
		}
	}
	return strings.Join(out, "; ")
}

func verdict(s judge.Said) string {
	out := s.Condition
	if s.Cause != "" {
		out += ", " + s.Cause
	}
	if s.Detail != "" {
		out += " (" + s.Detail + ")"
	}
	return fmt.Sprintf("%s, severity %d", out, s.Severity)
}

func worst(f *judge.Felt) string {
	if f.What == "answer" {
		return fmt.Sprintf("%.0f %% of the answers", 100*f.Worst)
	}
	return duration(f.Worst)
}

// duration writes seconds with two digits that count.
func duration(seconds float64) string {
	switch {
	case seconds < 0.9995:
		return fmt.Sprintf("%.0f ms", 1000*seconds)
	case seconds < 9.95:
		return fmt.Sprintf("%.1f s", seconds)
	default:
		return fmt.Sprintf("%.0f s", seconds)
	}
}

func clock(seconds float64) string {
	s := int(math.Round(seconds))
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}
