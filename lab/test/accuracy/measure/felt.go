package main

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
)

// scrapes is the time between two scrapes of a story, in seconds: the judge's default.
const scrapes = 10

// Heard is harm that the users of a server felt.
type Heard struct {
	Server int `json:"server,omitempty"`
	judge.Heard
}

// heard compares what the users of all servers felt with what was said of it.
func heard(played *judge.Played, until float64) (out []Heard) {
	for i, felt := range played.Felt {
		for _, h := range judge.Hear(felt, played.Said[i], nil, scrapes, until) {
			out = append(out, Heard{i, h})
		}
	}
	return out
}

// felt are the minutes in which users of a server felt harm of a level, or had shortly before.
func (r *Record) felt(server, minutes int, levels ...judge.Level) []bool {
	out := make([]bool, minutes+1)
	for i := range r.Heard {
		if h := &r.Heard[i]; h.Server == server && slices.Contains(levels, h.Level) {
			for j := int(h.From / window); j <= min(int(h.To/window)+grace, minutes); j++ {
				out[j] = true
			}
		}
	}
	return out
}

// felt says how soon harm was reported that users of a real server would feel: the limits are
// those of the real servers. Harm that ended before it had to be reported is not among it.
func (t *table) felt(scores []Score) {
	t.head("harm as of a real server", "count", "reported", "in time", "reported as healthy")
	for _, level := range []judge.Level{judge.Great, judge.Clear} {
		within := level.Deadline(scrapes)
		n, reported, inTime, denied := 0, 0, 0, 0.0
		for i := range scores {
			for _, h := range scores[i].Heard {
				if h.Level != level || !h.Reported() && h.To-h.From <= within {
					continue
				}
				n++
				denied += h.Denied
				if h.Reported() {
					reported++
				}
				if h.Reported() && h.After <= within {
					inTime++
				}
			}
		}
		share := func(k int) string { return fmt.Sprintf("%d (%s)", k, percent(float64(k)/float64(max(1, n)))) }
		t.row(string(level), strconv.Itoa(n), share(reported), share(inTime)+fmt.Sprintf(", within %.0f s", within), fmt.Sprintf("%.0f min", denied/60))
	}
}

// longestOf is the length of a story in seconds.
func longestOf(lines []judge.Line) float64 {
	last := -1
	for i := range lines {
		last = max(last, lines[i].Minute)
	}
	return float64(last+1) * window
}
