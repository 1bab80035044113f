package main

import (
	"fmt"
	"math"
)

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
