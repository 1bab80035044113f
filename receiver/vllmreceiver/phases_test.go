package vllmreceiver

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// Every target is scraped within one interval, and no moment has many more targets than a group
// should have, however many targets there are.
func TestTargetsAreSpreadInGroups(t *testing.T) {
	for _, interval := range []time.Duration{time.Millisecond, 100 * time.Millisecond, time.Second, 15 * time.Second, time.Hour} {
		for _, n := range []int{1, 2, 15, 16, 17, 100, 1000, 3001} {
			at := map[time.Duration]int{}
			for i := range n {
				phase := phaseOf(interval, i, n)
				assert.GreaterOrEqual(t, phase, time.Duration(0))
				assert.Less(t, phase, interval)
				at[phase]++
			}
			for phase, count := range at {
				assert.LessOrEqual(t, count, together+1, "%d targets each %s, at %s", n, interval, phase)
			}
			if interval <= time.Second && n > together {
				assert.LessOrEqual(t, len(at), 2*n/together+2, "%d targets each %s are in few groups", n, interval)
			}
		}
	}
}

// The same for targets that come one by one, in one process after the other: they fall on the
// same moments, whenever they come, and are not late.
func TestTargetsThatAreFoundLaterJoinTheGroups(t *testing.T) {
	const interval, n = 10 * time.Second, 1000
	at := map[time.Duration]int{}
	for i := range n {
		passed := time.Duration(i) * 317 * time.Microsecond
		phase := phaseAt(interval, fmt.Sprintf("http://10.0.%d.%d:8000/metrics", i/250, i%250), i+1, passed)
		assert.Less(t, phase, interval)
		assert.Greater(t, phase, -step(interval, i+1), "it is due at most one step ago, and so at once")
		at[(passed+phase)%interval]++
	}
	most := 0
	for _, count := range at {
		most = max(most, count)
	}
	assert.Less(t, most, 8*together)
	assert.Less(t, len(at), n/2, "they are in groups")
	moment := 7300 * time.Millisecond
	assert.Zero(t, (moment+phaseAt(interval, "http://a:8000/metrics", 100, moment))%time.Second)
}
