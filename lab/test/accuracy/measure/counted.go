package main

import (
	"fmt"
	"math"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/accuracy/stories"
)

// demandBySource says how much of demand_exceeds_capacity is by traffic without any fault.
func demandBySource(scores []Score) string {
	part := func(keep func(*Score) bool) Counts {
		sum, _ := tally(scores, []string{demand}, func(s *Score, v *Verdict) bool { return strong(s, v) && keep(s) }).total(0)
		return sum
	}
	alone := part(func(s *Score) bool { return s.Kind == stories.Healthy })
	others := part(func(s *Score) bool { return s.Kind != stories.Healthy })
	return fmt.Sprintf(`Of the minutes of `+"`"+demand+"`"+` %.0f are of healthy stories whose traffic is too much (right in %s), and %.0f of
stories with a fault (right in %s).`, alone.Of, percent(alone.Right/alone.Of), others.Of, percent(others.Right/others.Of))
}

// withoutLong says what the headline is without the stories with many minutes of one fault.
func withoutLong(scores []Score) string {
	of := func(keep func(*Score, *Verdict) bool) string {
		return within(tally(scores, stories.Inferred, func(s *Score, v *Verdict) bool { return keep(s, v) && !slow(s) }).macro(ofRight))
	}
	return fmt.Sprintf(`Drifts and faults from the start last longer than the others, so they have more weight. Without them, the cause is right in
%s of the minutes for causes that must be inferred on tuned models, and in
%s on untuned ones.`, of(tuned), of(untuned))
}

// counted says which harmful minutes do not count.
func counted(scores []Score) string {
	phases := map[Phase]int{}
	drained, harmless, withFault, unjudged, sought, less, more, none := 0, 0, 0, 0, 0, 0, 0, 0
	for i := range scores {
		s := &scores[i]
		unjudged += s.Minutes - s.Judged
		if s.hasFault() {
			withFault++
			if math.IsNaN(s.Noticed) {
				harmless++
			}
		}
		if len(s.Sought) == 1 {
			sought++
			switch got := s.got(); {
			case got < s.wanted()/farFromWanted:
				less++
			case got > s.wanted()*farFromWanted:
				more++
			}
			if effectBin(s.got()) == 0 {
				none++
			}
		}
		for _, v := range s.Verdicts {
			phases[v.Phase]++
			if v.Phase == Draining && v.Reported {
				drained++
			}
		}
	}
	return fmt.Sprintf(`In %d of %d stories with a fault, the fault did harm in no minute. Of all harmful minutes %d count. These do not: %d within
three windows of an onset, %d in which no cause alone accounts for a fifth of the harm or which had requests that
had not ended ten minutes after the story, and %d after the end of the fault,
while the queue drains (harm was reported in %s of them). %d further minutes had fewer than 20 requests and were not judged.
Of %d stories in which one effect was sought, %d reached less than four fifths of it, because no value that is tried does so
much harm there, or fewer than 20 requests arrive while it lasts (%d of them less than 0.87, so that they are in no row by
effect), and %d more than five quarters, because harm jumps over it from one value to the next.`,
		harmless, withFault, phases[Counted], phases[Settling], phases[Undetermined], phases[Draining],
		percent(float64(drained)/float64(phases[Draining])), unjudged, sought, less, none, more)
}

// farFromWanted is the ratio from which a sought effect was not reached.
const farFromWanted = 1.25
