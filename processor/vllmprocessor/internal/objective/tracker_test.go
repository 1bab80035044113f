package objective

import (
	"math"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	second = int64(time.Second)
	minute = 60 * second
	hour   = 60 * minute
	day    = 24 * hour
	// epoch is when the tests begin: no multiple of any slot.
	epoch = int64(1_790_000_000_123_456_789)
)

// usual are the windows on by default.
func usual() Windows {
	return Windows{Burn: []time.Duration{time.Hour, 6 * time.Hour}, Budget: 30 * 24 * time.Hour}
}

func newTracker(windows Windows) *Tracker {
	o := ttft()
	return NewTracker(&o, windows, epoch)
}

// requests are counts of which a number was bad and another undecided.
func requests(valid, bad, undecided float64) Counts {
	return Counts{Valid: valid, Good: valid - bad - undecided, Undecided: undecided}
}

func TestSumsGrowFromTheStart(t *testing.T) {
	t.Parallel()
	tracker := newTracker(usual())
	require.Equal(t, Added, tracker.Add(epoch, epoch+15*second, requests(10, 1, 2)))
	require.Equal(t, Added, tracker.Add(epoch+15*second, epoch+30*second, requests(20, 3, 0)))
	total, start := tracker.Totals()
	assert.Equal(t, Counts{Valid: 30, Good: 24, Undecided: 2}, total)
	assert.Equal(t, epoch, start)
}

func TestAttainmentAndBurnRateAreIntervalsAroundTheUndecided(t *testing.T) {
	t.Parallel()
	tracker := newTracker(usual())
	tracker.Add(epoch, epoch+minute, requests(100, 4, 6))
	reading := tracker.Burn(0, epoch+minute)
	attainment, ok := reading.Attainment()
	require.True(t, ok)
	assert.Equal(t, Interval{Lower: 0.90, Upper: 0.96}, attainment)
	burn := BurnRate(attainment, 0.95)
	assert.InDelta(t, 0.8, burn.Lower, 1e-12, "4 of 100 are certainly bad, 5 are allowed")
	assert.InDelta(t, 2.0, burn.Upper, 1e-12, "at most 10 are")
	left := BudgetRemaining(burn)
	assert.InDelta(t, -1.0, left.Lower, 1e-12)
	assert.InDelta(t, 0.2, left.Upper, 1e-12)
}

func TestAThresholdOnABoundHasAnExactAttainment(t *testing.T) {
	t.Parallel()
	attainment, ok := requests(1000, 1, 0).Attainment()
	require.True(t, ok)
	assert.Equal(t, attainment.Lower, attainment.Upper)
}

func TestWithoutTrafficThereIsNoAttainment(t *testing.T) {
	t.Parallel()
	tracker := newTracker(usual())
	tracker.Add(epoch, epoch+minute, Counts{})
	for _, reading := range []Reading{tracker.Burn(0, epoch+minute), tracker.Budget(epoch + minute)} {
		_, ok := reading.Attainment()
		assert.False(t, ok)
		assert.Positive(t, reading.Coverage, "idle time was seen all the same")
	}
	tracker.Add(epoch+minute, epoch+2*minute, requests(5, 5, 0))
	_, ok := tracker.Burn(0, epoch+2*hour).Attainment()
	assert.False(t, ok, "the traffic left the window")
	_, ok = tracker.Burn(1, epoch+2*hour).Attainment()
	assert.True(t, ok)
}

func TestCoverageIsTheShareThatWasSeen(t *testing.T) {
	t.Parallel()
	tracker := newTracker(Windows{Burn: []time.Duration{time.Hour}, Budget: 24 * time.Hour})
	// Twelve minutes seen, six not, twelve seen.
	tracker.Add(epoch, epoch+12*minute, Counts{})
	tracker.Add(epoch+18*minute, epoch+30*minute, Counts{})
	now := epoch + 30*minute
	assert.InDelta(t, 24.0/60, tracker.Burn(0, now).Coverage, 1.0/120)
	assert.InDelta(t, 24.0/(24*60), tracker.Budget(now).Coverage, 1.0/120)
	assert.InDelta(t, 18.0/60, tracker.Burn(0, now+36*minute).Coverage, 1.0/120, "six minutes left the window")
	assert.Zero(t, tracker.Burn(0, now+2*hour).Coverage)
	assert.Zero(t, newTracker(usual()).Budget(epoch).Coverage)
}

func TestStepsOfSeveralServersAreSeenOnce(t *testing.T) {
	t.Parallel()
	tracker := newTracker(Windows{Burn: []time.Duration{time.Hour}, Budget: 24 * time.Hour})
	for i := range int64(480) {
		at := epoch + i*15*second
		tracker.Add(at, at+15*second, requests(2, 0, 0))
		tracker.Add(at-5*second, at+10*second, requests(3, 0, 0))
	}
	reading := tracker.Burn(0, epoch+2*hour)
	assert.InDelta(t, 1, reading.Coverage, 1e-9)
	assert.InDelta(t, 5*240, reading.Valid, 5*3, "the edge is known to 30 s and one step")
}

func TestStepThatComesLateCountsWhereItsWindowIsStillHeld(t *testing.T) {
	t.Parallel()
	tracker := newTracker(Windows{Burn: []time.Duration{5 * time.Minute, time.Hour}, Budget: 24 * time.Hour})
	now := epoch + 2*day
	tracker.Add(now-minute, now, requests(1, 0, 0))
	assert.Equal(t, Added, tracker.Add(now-21*minute, now-20*minute, requests(10, 0, 0)))
	assert.Equal(t, 1.0, tracker.Burn(0, now).Valid, "20 minutes ago is not in the last 5")
	assert.Equal(t, 11.0, tracker.Burn(1, now).Valid)
	assert.Equal(t, 11.0, tracker.Budget(now).Valid)

	before, _ := tracker.Totals()
	assert.Equal(t, Late, tracker.Add(now-26*hour, now-25*hour, requests(10, 0, 0)))
	after, _ := tracker.Totals()
	assert.Equal(t, before, after, "what no window holds is not in the sums either")
}

func TestClockSetBackIsBelievedAfterThreeSteps(t *testing.T) {
	t.Parallel()
	tracker := newTracker(Windows{Burn: []time.Duration{5 * time.Minute}, Budget: 24 * time.Hour})
	ahead := epoch + 10*day
	tracker.Add(ahead-minute, ahead, requests(100, 100, 0))
	outcomes := make([]Outcome, 0, 4)
	for i := range int64(4) {
		outcomes = append(outcomes, tracker.Add(epoch+i*minute, epoch+(i+1)*minute, requests(1, 0, 0)))
	}
	assert.Equal(t, []Outcome{Late, Late, ClockSetBack, Added}, outcomes)
	now := epoch + 4*minute
	assert.Equal(t, 2.0, tracker.Burn(0, now).Valid)
	assert.InDelta(t, 2.0/5, tracker.Burn(0, now).Coverage, 1.0/120)
	assert.Equal(t, 2.0, tracker.Budget(ahead).Valid+2, "nothing waits in the future")
}

func TestClockSetBackByMoreThanTheShortestWindowIsNoticed(t *testing.T) {
	t.Parallel()
	tracker := newTracker(Windows{Burn: []time.Duration{time.Hour, 5 * time.Minute}, Budget: 24 * time.Hour})
	tracker.Add(epoch, epoch+2*hour, requests(100, 0, 0))
	tracker.Add(epoch+hour, epoch+hour+minute, requests(1, 0, 0))
	tracker.Add(epoch+hour+minute, epoch+hour+2*minute, requests(1, 0, 0))
	assert.Equal(t, ClockSetBack, tracker.Add(epoch+hour+2*minute, epoch+hour+3*minute, requests(1, 0, 0)))
	assert.Equal(t, 1.0, tracker.Burn(1, epoch+hour+3*minute).Valid)
	assert.Equal(t, 3.0, tracker.Budget(epoch+hour+3*minute).Valid, "the 100 came later than now")
}

func TestStepLongerThanItsWindowFillsItOnce(t *testing.T) {
	t.Parallel()
	tracker := newTracker(Windows{Burn: []time.Duration{time.Hour}, Budget: 24 * time.Hour})
	tracker.Add(epoch, epoch+10*day, requests(100, 0, 0))
	now := epoch + 10*day
	assert.InDelta(t, 1, tracker.Burn(0, now).Coverage, 1e-9)
	assert.InDelta(t, 0.5, tracker.Burn(0, now+30*minute).Coverage, 1.0/slotsPerWindow)
	assert.Equal(t, 100.0, tracker.Burn(0, now+30*minute).Valid, "a step counts whole, at its end")
}

func TestReadingAsOfAnEarlierTimeLeavesOutWhatCameLater(t *testing.T) {
	t.Parallel()
	tracker := newTracker(Windows{Burn: []time.Duration{time.Hour}, Budget: 24 * time.Hour})
	tracker.Add(epoch, epoch+minute, requests(1, 0, 0))
	tracker.Add(epoch+minute, epoch+10*minute, requests(100, 0, 0))
	assert.Equal(t, 1.0, tracker.Burn(0, epoch+2*minute).Valid)
}

func TestStragglersDoNotSetTheClockBack(t *testing.T) {
	t.Parallel()
	tracker := newTracker(Windows{Burn: []time.Duration{5 * time.Minute}, Budget: 24 * time.Hour})
	for i := range int64(20) {
		at := epoch + day + i*minute
		require.Equal(t, Added, tracker.Add(at, at+minute, requests(1, 0, 0)))
		require.Equal(t, Added, tracker.Add(at-hour, at-hour+minute, requests(1, 0, 0)))
		require.Equal(t, Added, tracker.Add(at-hour, at-hour+minute, requests(1, 0, 0)))
	}
	assert.InDelta(t, 5, tracker.Burn(0, epoch+day+20*minute).Valid, 1)
	assert.Equal(t, 60.0, tracker.Budget(epoch+day+20*minute).Valid)
}

func TestStepThatCannotBeIsLeftOut(t *testing.T) {
	t.Parallel()
	tracker := newTracker(usual())
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []Counts{
		{Valid: -1},
		{Valid: 1, Good: -1},
		{Valid: 1, Undecided: -1},
		{Valid: 1, Good: 1, Undecided: 1},
		{Valid: nan},
		{Valid: 1, Good: nan},
		{Valid: 1, Undecided: nan},
		{Valid: inf},
		{Valid: inf, Good: inf},
		{Valid: 1, Good: inf},
	} {
		assert.Equal(t, Unsound, tracker.Add(epoch, epoch+1, c), "%v", c)
	}
	assert.Equal(t, Unsound, tracker.Add(epoch, epoch, requests(1, 0, 0)))
	assert.Equal(t, Unsound, tracker.Add(epoch+1, epoch, requests(1, 0, 0)))
	total, _ := tracker.Totals()
	assert.Zero(t, total)
	assert.Equal(t, Added, tracker.Add(epoch, epoch+1, Counts{Valid: 0.3, Good: 0.1, Undecided: 0.2}), "0.1 + 0.2 exceeds 0.3 by rounding only")
	attainment, _ := tracker.Budget(epoch + 1).Attainment()
	assert.LessOrEqual(t, attainment.Upper, 1.0)
}

func TestOutcomesHaveNames(t *testing.T) {
	t.Parallel()
	assert.Equal(t, []string{"added", "late", "clock_set_back", "unsound"},
		[]string{Added.String(), Late.String(), ClockSetBack.String(), Unsound.String()})
}

func TestAddingAndReadingAllocatesNothing(t *testing.T) {
	tracker := newTracker(usual())
	at := epoch
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		tracker.Add(at, at+15*second, requests(10, 1, 1))
		at += 15 * second
		tracker.Burn(1, at)
		tracker.Budget(at)
	}))
}

// sizeOf is the memory of a tracker in bytes.
func sizeOf(t *Tracker) int {
	size := int(unsafe.Sizeof(*t))
	for i := range t.rings {
		size += int(unsafe.Sizeof(t.rings[i])) + cap(t.rings[i].slots)*int(unsafe.Sizeof(slot{}))
	}
	return size
}

func TestMemoryIsFixed(t *testing.T) {
	t.Parallel()
	tracker := newTracker(usual())
	size := sizeOf(tracker)
	assert.InDelta(t, 3*4000, size, 500)
	for at := epoch; at < epoch+40*day; at += hour {
		tracker.Add(at, at+hour, requests(1, 0, 0))
	}
	assert.Equal(t, size, sizeOf(tracker))
}

// The README says 24 kB for two objectives with a budget window of a day.
func TestTheMemoryOfATrackerIsAsTheREADMESays(t *testing.T) {
	t.Parallel()
	tracker := newTracker(Windows{Burn: usual().Burn, Budget: 24 * time.Hour})
	for at := epoch; at < epoch+day; at += minute {
		tracker.Add(at, at+minute, Counts{Valid: 2, Good: 1})
	}
	assert.InDelta(t, 12e3, sizeOf(tracker), 500)
	assert.LessOrEqual(t, len(tracker.Encode()), 6000)
}
