package accuracy

import (
	"math"
	"slices"
	"strings"
)

// Verdict is about one harmful minute.
type Verdict struct {
	Minute int
	// Class is the true cause. Reported is the reported cause, or a condition without
	// a cause.
	Class, Reported string
	// Right is true if harm was reported with a true primary cause; TopTwo, if such a
	// cause is among the two strongest reported ones.
	Right, TopTwo bool
}

// Result is the score of a story.
type Result struct {
	Story *Story
	// Verdicts are those that count. Settling, Undetermined and Unjudged count the
	// minutes that do not: too soon after an onset, without a cause that alone
	// accounts for the harm, with too few requests for a judgement.
	Verdicts                         []Verdict
	Settling, Undetermined, Unjudged int
	// Delay is the number of windows from the beginning of the first harmful minute
	// until the right cause was reported; +Inf if it never was, NaN without harm.
	Delay float64
	// Harmful counts all harmful minutes by true class, Reported by the report at
	// their end.
	Harmful  map[string]int
	Reported map[string]int
	// Quiet counts the minutes before the first onset, Noisy those of them at whose end
	// harm was reported.
	Quiet, Noisy int
}

// reportedAt returns the report at a time: that of the last scrape up to it.
func reportedAt(reported []Reported, at float64) *Reported {
	n, _ := slices.BinarySearchFunc(reported, at, func(t Reported, at float64) int {
		if t.At <= at {
			return -1
		}
		return 1
	})
	if n == 0 {
		return &Reported{Severity: -1}
	}
	return &reported[n-1]
}

// Label is the report as one word: the primary cause if harm is reported, else the
// condition.
func (t *Reported) Label() string {
	switch {
	case t.Condition == "":
		return "nothing"
	case t.Alarms() && t.Condition != stalled && t.Primary != "":
		return t.Primary
	}
	return t.Condition
}

// score compares the report with the truth at the end of each minute, when the
// processor's window is that minute.
func score(s *Story, bins []Bin, reported []Reported) Result {
	r := Result{Story: s, Delay: math.NaN(), Harmful: map[string]int{}, Reported: map[string]int{}}
	first := -1
	for i := range bins {
		b := &bins[i]
		end := float64(i+1) * window
		latest := reportedAt(reported, end)
		switch {
		case end <= s.onset():
			r.Quiet++
			if latest.Alarms() {
				r.Noisy++
			}
			continue
		case !b.Judged:
			r.Unjudged++
			continue
		case !b.Harm:
			continue
		}
		r.Harmful[b.Class()]++
		r.Reported[latest.Label()]++
		if len(b.Primary) == 0 {
			r.Undetermined++
			continue
		}
		if first < 0 {
			first = i
		}
		if s.settling(i) {
			r.Settling++
			continue
		}
		v := Verdict{Minute: i, Class: b.Class(), Reported: latest.Label()}
		v.Right, v.TopTwo = right(s, b, latest), topTwo(s, b, latest)
		// If two causes are equally true, the reported one is the class.
		if v.Right && slices.Contains(b.Primary, v.Reported) {
			v.Class = v.Reported
		}
		r.Verdicts = append(r.Verdicts, v)
	}
	if first >= 0 {
		r.Delay = delayFrom(s, bins, reported, first)
	}
	return r
}

// delayFrom is the time, in windows, from the beginning of a minute to the first
// right report about a harmful minute.
func delayFrom(s *Story, bins []Bin, reported []Reported, first int) float64 {
	begin := float64(first) * window
	for i := range reported {
		t := &reported[i]
		n := int((t.At - 1e-9) / window)
		if t.At <= begin || n >= len(bins) || !bins[n].Harm {
			continue
		}
		if right(s, &bins[n], t) {
			return (t.At - begin) / window
		}
	}
	return math.Inf(1)
}

// right reports whether the report about a harmful minute is true.
func right(s *Story, b *Bin, t *Reported) bool {
	return slices.ContainsFunc(b.Primary, func(c string) bool { return condition(s, c, t) }) ||
		t.Alarms() && t.Primary != "" && b.named(t.Primary)
}

func topTwo(s *Story, b *Bin, t *Reported) bool {
	return right(s, b, t) || t.Alarms() && slices.ContainsFunc(t.Top(), b.named)
}

// named reports whether a cause is a true primary one, under any of its names.
func (b *Bin) named(cause string) bool {
	return slices.Contains(b.Primary, cause) || slices.Contains(b.Also, cause)
}

// condition reports whether a truth that is a condition was reported. After the
// engine works again, the remaining queue has no cause in the catalogue: then it is
// enough that harm is reported.
func condition(s *Story, class string, t *Reported) bool {
	if class != stalled && class != asleep {
		return false
	}
	return t.Condition == class || !s.Lasts(class, t.At) && t.Alarms()
}

// counted returns the counts as text, the largest first.
func counted(counts map[string]int) string {
	var names []string
	for name := range counts {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		if counts[a] != counts[b] {
			return counts[b] - counts[a]
		}
		return strings.Compare(a, b)
	})
	var out []string
	for _, name := range names {
		label := name
		if name == "" {
			label = "undetermined"
		}
		out = append(out, label+" "+number(float64(counts[name])))
	}
	return strings.Join(out, ", ")
}
