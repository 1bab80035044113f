package main

import (
	"fmt"
	"math"
)

// counted says which harmful minutes do not count.
func counted(scores []Score) string {
	phases := map[Phase]int{}
	harmless, withFault, unjudged, sought, less, more := 0, 0, 0, 0, 0, 0
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
		}
		for _, v := range s.Verdicts {
			phases[v.Phase]++
		}
	}
	return fmt.Sprintf(`Of all harmful minutes %d count. %d are within three windows of an onset, %d have no cause of a fifth or unended requests, and
in %d a queue drains. %d more have fewer than 20 requests. In %d of %d stories the fault did no harm. Of %d sought effects, %d were
reached to less than four fifths, and %d exceeded by a quarter.`,
		phases[Counted], phases[Settling], phases[Undetermined], phases[Draining], unjudged, harmless, withFault, sought, less, more)
}

// farFromWanted is the ratio from which a sought effect was not reached.
const farFromWanted = 1.25
