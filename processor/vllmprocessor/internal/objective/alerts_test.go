package objective

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The usual page of a service with 99.9 %: a burn of 14.4 over an hour and over
// the last five minutes. At 100 requests in ten seconds, 10 % of which begin to
// fail, the burn over a window w is 100*d/w after d. So an hour reaches 14.4 after
// 518.4 s; five minutes fall below it 256.8 s after the failures end.
func TestBurnOf14FiresAndClearsAtTheTimesThatFollowFromIt(t *testing.T) {
	t.Parallel()
	const (
		target   = 0.999
		scrape   = 10 * second
		fails    = 2 * hour
		recovers = 2*hour + 20*minute
	)
	tracker := newTracker(Windows{Burn: []time.Duration{5 * time.Minute, time.Hour}, Budget: 30 * 24 * time.Hour})
	certain := func(window int, at int64) float64 {
		attainment, ok := tracker.Burn(window, at).Attainment()
		require.True(t, ok)
		return BurnRate(attainment, target).Lower
	}
	fired, cleared := int64(0), int64(0)
	for after := scrape; after <= 4*hour; after += scrape {
		bad := 0.0
		if after > fails && after <= recovers {
			bad = 10
		}
		at := epoch + after
		require.Equal(t, Added, tracker.Add(at-scrape, at, requests(100, bad, 0)))
		firing := certain(0, at) > 14.4 && certain(1, at) > 14.4
		switch {
		case firing && fired == 0:
			fired = after
		case !firing && fired != 0 && cleared == 0:
			cleared = after
		}
		if after == recovers {
			assert.InDelta(t, 100, certain(0, at), 1e-9, "five minutes of 10 % failures where 0.1 % is allowed")
			assert.InDelta(t, 100.0/3, certain(1, at), 100.0/3/slotsPerWindow, "20 of 60 minutes")
		}
	}
	// Both come at the end of a step, and a window is longer by less than a slot,
	// which makes whole steps of it.
	assert.InDelta(t, 518.4, seconds(fired-fails), 14.4/100*3600/slotsPerWindow+2*10)
	assert.InDelta(t, 256.8, seconds(cleared-recovers), 300.0/slotsPerWindow+2*10)
	assert.Greater(t, seconds(fired-fails), 518.0, "never early")
	assert.Greater(t, seconds(cleared-recovers), 256.0)
}

func TestBudgetIsUsedUpByThePlanAndRecoversAsTheWindowMovesOn(t *testing.T) {
	t.Parallel()
	const target = 0.99
	tracker := newTracker(Windows{Budget: 30 * 24 * time.Hour})
	left := func(at int64) Interval {
		attainment, ok := tracker.Budget(at).Attainment()
		require.True(t, ok)
		return BudgetRemaining(BurnRate(attainment, target))
	}
	at := epoch
	days := func(n int64, bad, undecided float64) {
		for range n * 24 {
			tracker.Add(at, at+hour, requests(1000, bad, undecided))
			at += hour
		}
	}
	days(30, 0, 0)
	assert.InDelta(t, 1, left(at).Lower, 1e-12)
	days(3, 50, 0)
	// 3 days at five times the allowed rate use half of the 30 days' budget.
	assert.InDelta(t, 0.5, left(at).Lower, 0.01)
	days(3, 50, 100)
	assert.InDelta(t, 0, left(at).Upper, 0.01)
	assert.InDelta(t, -1, left(at).Lower, 0.02, "what is undecided may cost as much again")
	days(30, 0, 0)
	assert.Greater(t, left(at).Lower, 0.85, "at most one slot of the bad days is left")
	days(1, 0, 0)
	assert.InDelta(t, 1, left(at).Lower, 1e-12)
}

func seconds(nanoseconds int64) float64 { return float64(nanoseconds) / float64(second) }
