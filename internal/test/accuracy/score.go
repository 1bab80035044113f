package accuracy

import (
	"math"
	"slices"
	"strings"
)

// Verdict is about one harmful minute.
type Verdict struct {
	Minute int
	// Class is the true cause, Said what was told: a cause, or a condition that
	// has none.
	Class, Said string
	// Right is true where harm was told and its cause a true primary one, TopTwo
	// where that is among the two strongest that were told.
	Right, TopTwo bool
}

// Result is what a story comes to.
type Result struct {
	Story *Story
	// Verdicts are those that count. Settling, Undetermined and Unjudged are
	// harmful minutes that do not: too soon after an onset, without a cause that
	// alone accounts for the harm, with too few requests to say.
	Verdicts                         []Verdict
	Settling, Undetermined, Unjudged int
	// Delay is the number of windows from the beginning of the first harmful
	// minute until the right cause was told; +Inf where it never was, and NaN
	// where nothing was harmful.
	Delay float64
	// Harmful are all harmful minutes, by true class; Tells what was told at their
	// ends.
	Harmful map[string]int
	Tells   map[string]int
	// Quiet are minutes before the first onset, Noisy those at whose end harm was
	// told.
	Quiet, Noisy int
}

// toldBy is what is told at a time: by the last scrape up to it.
func toldBy(told []Told, at float64) *Told {
	n, _ := slices.BinarySearchFunc(told, at, func(t Told, at float64) int {
		if t.At <= at {
			return -1
		}
		return 1
	})
	if n == 0 {
		return &Told{Severity: -1}
	}
	return &told[n-1]
}

// Says is what is told as one word: the primary cause where harm is told, else
// the condition.
func (t *Told) Says() string {
	switch {
	case t.Condition == "":
		return "nothing"
	case t.Alarms() && t.Condition != stalled && t.Primary != "":
		return t.Primary
	}
	return t.Condition
}

// score compares what was told with the truth, at the end of each minute, when
// the processor's window is that minute.
func score(s *Story, bins []Bin, told []Told) Result {
	r := Result{Story: s, Delay: math.NaN(), Harmful: map[string]int{}, Tells: map[string]int{}}
	first := -1
	for i := range bins {
		b := &bins[i]
		end := float64(i+1) * window
		says := toldBy(told, end)
		switch {
		case end <= s.onset():
			r.Quiet++
			if says.Alarms() {
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
		r.Tells[says.Says()]++
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
		v := Verdict{Minute: i, Class: b.Class(), Said: says.Says()}
		v.Right, v.TopTwo = right(s, b, says), topTwo(s, b, says)
		// Where two causes are as true, the one that was told is the class.
		if v.Right && slices.Contains(b.Primary, v.Said) {
			v.Class = v.Said
		}
		r.Verdicts = append(r.Verdicts, v)
	}
	if first >= 0 {
		r.Delay = delayFrom(s, bins, told, first)
	}
	return r
}

// delayFrom is the time from the beginning of a minute to the first right word
// about a harmful one, in windows.
func delayFrom(s *Story, bins []Bin, told []Told, first int) float64 {
	begin := float64(first) * window
	for i := range told {
		t := &told[i]
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

// right reports whether what is told of a harmful minute is true.
func right(s *Story, b *Bin, t *Told) bool {
	return slices.ContainsFunc(b.Primary, func(c string) bool { return condition(s, c, t) }) ||
		t.Alarms() && t.Primary != "" && b.named(t.Primary)
}

func topTwo(s *Story, b *Bin, t *Told) bool {
	return right(s, b, t) || t.Alarms() && slices.ContainsFunc(t.Top(), b.named)
}

// named reports whether a cause is a true primary one, under any of its names.
func (b *Bin) named(cause string) bool {
	return slices.Contains(b.Primary, cause) || slices.Contains(b.Also, cause)
}

// condition reports whether a truth that is a condition of its own is told. Once
// the engine works again, the queue that is left has no cause in the catalogue:
// then it is enough that harm is told.
func condition(s *Story, class string, t *Told) bool {
	if class != stalled && class != asleep {
		return false
	}
	return t.Condition == class || !s.Lasts(class, t.At) && t.Alarms()
}

// Told returns the tells as text, most often first.
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
