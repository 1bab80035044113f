package judge

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Said is what was reported about a server from a time on, in seconds of the story.
type Said struct {
	At        float64 `json:"at"`
	Condition string  `json:"condition"`
	Severity  int     `json:"severity"`
	Cause     string  `json:"cause,omitempty"`
	Detail    string  `json:"detail,omitempty"`
}

// SaidOf reads what the processor reports from its output: that of the worst engine.
func SaidOf(at float64, metrics pmetric.Metrics) Said {
	r := readReport(metrics, serverPrefix)
	return r.said(at)
}

// differs reports whether another report says something else.
func (r *report) differs(other *report) bool { return r.said(0) != other.said(0) }

func (r *report) said(at float64) Said {
	s := Said{At: at, Condition: r.condition, Severity: r.severity}
	if len(r.causes) > 0 && (r.causes[0].Role == "primary" || r.severity < warning) {
		s.Cause, s.Detail = r.causes[0].Name, r.causes[0].Detail
	}
	return s
}

// Heard is harm that users felt, with what was reported of it.
type Heard struct {
	Felt
	// Report is the first report of harm while the harm lasts: a warning, or that the engine is degraded; Condition is empty
	// without one. After is how long after the beginning of the harm it came, in seconds; below
	// 0 it was there before. Greatest is the greatest severity.
	Report   Said    `json:"report"`
	After    float64 `json:"after"`
	Greatest int     `json:"greatest"`
	// Paged is how long after the beginning an alert paged, 0 where one did already, and Cleared
	// how long after the end of all harm that was felt together with this the report was no warning any
	// more; -1 is never.
	Paged   float64 `json:"paged"`
	Cleared float64 `json:"cleared"`
	// Denied is for how many seconds the server was said to be healthy or idle, after the time
	// within which harm is to be reported.
	Denied float64 `json:"denied"`
}

// Reported reports whether a warning was reported before the harm was over.
func (h *Heard) Reported() bool { return h.Report.Condition != "" }

// Deadline is how long after its beginning harm is to be reported at the latest, in seconds,
// at an interval between scrapes.
func (l Level) Deadline(interval float64) float64 {
	switch {
	case l == Clear:
		return 90
	case interval > 5:
		return 60
	default:
		return 45
	}
}

// Page is a time in which an alert paged, in seconds of the story.
type Page struct{ From, To float64 }

// Hear compares harm with what was said, in the order of its times. pages are in the order of
// their beginnings, interval is that of the scrapes, until the end of the story; all in seconds.
func Hear(felt []Felt, said []Said, pages []Page, interval, until float64) []Heard {
	out := make([]Heard, 0, len(felt))
	for _, f := range felt {
		h := Heard{Felt: f, Paged: -1, Cleared: -1}
		over := f.To
		for _, g := range felt { // They are in the order of their beginnings.
			if g.From <= over && g.To > over {
				over = g.To
			}
		}
		for i, s := range said {
			end := until
			if i+1 < len(said) {
				end = said[i+1].At
			}
			if end <= f.From || s.At > f.To+minuteSeconds {
				continue
			}
			if s.At <= f.To {
				h.Greatest = max(h.Greatest, s.Severity)
			}
			if (s.Severity >= warning || s.Condition == "degraded") && s.At <= f.To && !h.Reported() {
				h.Report, h.After = s, s.At-f.From
			}
			if s.Condition == "healthy" || s.Condition == "idle" {
				h.Denied += max(0, min(end, f.To)-max(s.At, f.From+f.Level.Deadline(interval)))
			}
		}
		if at := slices.IndexFunc(said, func(s Said) bool { return s.At > over && s.Severity < warning }); at >= 0 && h.Reported() {
			h.Cleared = said[at].At - over
		}
		if last := lastBefore(said, over); h.Greatest >= warning && last.Severity < warning {
			h.Cleared = 0
		}
		for _, p := range pages {
			// One alert pages for all harm of an incident, also for that which is felt a little later. An
			// alert of an earlier incident goes on for minutes after it, and pages nobody for this one.
			if p.To > f.From && p.From >= f.From-2*minuteSeconds && p.From <= f.To+minuteSeconds {
				h.Paged = max(0, p.From-f.From)
				break
			}
		}
		out = append(out, h)
	}
	return out
}

// lastBefore is what was said at a time.
func lastBefore(said []Said, at float64) Said {
	out := Said{Severity: -1}
	for _, s := range said {
		if s.At <= at {
			out = s
		}
	}
	return out
}

// Unfelt returns the warnings that began while no harm of these levels was felt, or had been
// in the two minutes before.
func Unfelt(felt []Felt, said []Said) (out []Said) {
	before := 0
	for _, s := range said {
		began := s.Severity >= warning && before < warning
		before = s.Severity
		if began && !slices.ContainsFunc(felt, func(f Felt) bool { return s.At >= f.From && s.At <= f.To+2*minuteSeconds }) {
			out = append(out, s)
		}
	}
	return out
}
