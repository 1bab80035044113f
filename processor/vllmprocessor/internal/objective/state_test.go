package objective

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// lived is a tracker after ten days of steps, with a gap, and its last time.
func lived(windows Windows) (*Tracker, int64) {
	f := &feeder{Rand: rand.New(rand.NewPCG(10, 11)), tracker: newTracker(windows), now: epoch}
	for range 10 {
		f.walk(200)
		f.now += day
	}
	f.walk(500)
	return f.tracker, f.now
}

func TestWindowsContinueAfterARestartAndSumsBeginAnew(t *testing.T) {
	t.Parallel()
	before, down := lived(usual())
	up := down + 10*minute
	o := ttft()
	after := NewTracker(&o, usual(), up)
	require.Equal(t, RestoredAll, after.Restore(before.Encode(), up))
	for i := range before.rings {
		assert.Equal(t, before.rings[i].over(up), after.rings[i].over(up))
	}
	total, start := after.Totals()
	assert.Zero(t, total)
	assert.Equal(t, up, start)

	after.Add(up, up+minute, requests(7, 0, 0))
	total, _ = after.Totals()
	assert.Equal(t, 7.0, total.Valid)
	now := up + minute
	assert.Equal(t, before.Burn(0, now).Valid+7, after.Burn(0, now).Valid)
	assert.InDelta(t, before.Burn(0, now).Coverage+1.0/60, after.Burn(0, now).Coverage, 1.0/slotsPerWindow,
		"while the collector was down nothing was seen")
}

func TestTimeThatTheStateHasSeenIsNotSeenAgain(t *testing.T) {
	t.Parallel()
	before := newTracker(usual())
	before.Add(epoch, epoch+30*minute, requests(1, 0, 0))
	after := newTracker(usual())
	require.Equal(t, RestoredAll, after.Restore(before.Encode(), epoch+31*minute))
	after.Add(epoch+20*minute, epoch+40*minute, requests(1, 0, 0))
	assert.InDelta(t, 40.0/60, after.Burn(0, epoch+40*minute).Coverage, 1.0/slotsPerWindow)
}

func TestStateWithWhatCannotBeIsDamaged(t *testing.T) {
	t.Parallel()
	for story, spoil := range map[string]func(*Tracker){
		"more good than valid": func(t *Tracker) { t.rings[0].at(t.rings[0].newest).Good += 1e6 },
		"a negative count":     func(t *Tracker) { t.rings[1].at(t.rings[1].newest).Undecided = -1 },
		"not a number":         func(t *Tracker) { t.rings[1].at(t.rings[1].newest).Valid = math.NaN() },
		"negative time":        func(t *Tracker) { t.rings[2].at(t.rings[2].newest).seen = -1 },
		"a slot beyond time":   func(t *Tracker) { t.rings[2].newest = math.MaxInt64 / 1000 },
		"a window of a second": func(t *Tracker) { t.rings[2].window = second },
		"a long name":          func(t *Tracker) { t.metric = string(make([]byte, 2000)) },
		"no window":            func(t *Tracker) { t.rings = nil },
		"too many windows":     func(t *Tracker) { t.rings = slices.Repeat(t.rings, maxRings) },
	} {
		tracker := newTracker(usual())
		tracker.Add(epoch, epoch+minute, requests(10, 1, 1))
		spoil(tracker)
		_, err := decodeState(tracker.Encode())
		assert.ErrorIs(t, err, errDamaged, story)
	}
	state := newTracker(usual()).Encode()
	state = append(state, 0)
	_, err := decodeState(state)
	assert.ErrorIs(t, err, errDamaged, "more than a state")
}

func TestStateWithASlotTwiceIsDamaged(t *testing.T) {
	t.Parallel()
	tracker := newTracker(Windows{Budget: time.Hour})
	tracker.rings[0].count(epoch, requests(10, 1, 1))
	older := len(tracker.Encode()) - len(binary.AppendUvarint(nil, ringSlots))
	tracker.rings[0].count(epoch+30*second, requests(10, 1, 1))
	data := tracker.Encode()
	_, err := decodeState(data)
	require.NoError(t, err)
	require.Equal(t, byte(1), data[older], "the second slot follows the newest")
	data[older] = 0
	_, err = decodeState(data)
	assert.ErrorIs(t, err, errDamaged)
}

func TestStateOfANewTrackerCanBeRestored(t *testing.T) {
	t.Parallel()
	assert.Equal(t, RestoredNothing, newTracker(usual()).Restore(newTracker(usual()).Encode(), epoch))
}

func TestStateStaysSmall(t *testing.T) {
	t.Parallel()
	tracker := newTracker(usual())
	for at := epoch; at < epoch+31*day; at += minute {
		tracker.Add(at, at+minute, requests(1000, 13, 5))
	}
	assert.InDelta(t, 6000, len(tracker.Encode()), 1000)

	// As large as it can be: every number takes its longest form.
	windows := Windows{Budget: 366 * 24 * time.Hour}
	for i := range maxBurnWindows {
		windows.Burn = append(windows.Burn, 366*24*time.Hour-time.Duration(i))
	}
	tracker = newTracker(windows)
	for at := epoch; at < epoch+368*day; at += hour {
		tracker.Add(at, at+hour, Counts{Valid: 1e6 / 3.0, Good: 1e5 / 3.0, Undecided: 1e4 / 3.0})
	}
	assert.Less(t, len(tracker.Encode()), maxStateSize)
	require.Equal(t, RestoredAll, newTracker(windows).Restore(tracker.Encode(), epoch+368*day))
}

func TestChangeOfTheTargetKeepsTheCounts(t *testing.T) {
	t.Parallel()
	before, now := lived(usual())
	o := ttft()
	o.Target = 0.5
	after := NewTracker(&o, usual(), now)
	require.Equal(t, RestoredAll, after.Restore(before.Encode(), now))
	assert.Equal(t, before.Budget(now), after.Budget(now))
}

func TestChangeOfMetricOrThresholdStartsAnew(t *testing.T) {
	t.Parallel()
	before, now := lived(usual())
	for want, change := range map[Restored]func(*Objective){
		RestoredOtherMetric:    func(o *Objective) { o.Metric = "vllm.e2e_request_latency" },
		RestoredOtherThreshold: func(o *Objective) { o.Threshold = Duration(time.Second) },
	} {
		o := ttft()
		change(&o)
		after := NewTracker(&o, usual(), now)
		assert.Equal(t, want, after.Restore(before.Encode(), now))
		assert.Zero(t, after.Budget(now).Valid)
		assert.Contains(t, want.String(), "starts again")
	}
}

func TestOtherBurnWindowsKeepThoseThatAreTheSame(t *testing.T) {
	t.Parallel()
	before, now := lived(usual())
	windows := Windows{Burn: []time.Duration{5 * time.Minute, 6 * time.Hour}, Budget: 30 * 24 * time.Hour}
	o := ttft()
	after := NewTracker(&o, windows, now)
	require.Equal(t, RestoredWindows, after.Restore(before.Encode(), now))
	assert.Zero(t, after.Burn(0, now).Coverage, "a new window has seen nothing")
	assert.Equal(t, before.Burn(1, now), after.Burn(1, now))
	assert.Equal(t, before.Budget(now), after.Budget(now))

	fewer := NewTracker(&o, Windows{Budget: 30 * 24 * time.Hour}, now)
	require.Equal(t, RestoredWindows, fewer.Restore(before.Encode(), now))
	assert.Equal(t, before.Budget(now), fewer.Budget(now))
}

func TestOtherBudgetWindowTakesOverWhatItReaches(t *testing.T) {
	t.Parallel()
	for _, days := range []int{1, 3, 7, 28, 31, 90, 366} {
		f := &feeder{Rand: rand.New(rand.NewPCG(12, 13)), tracker: newTracker(usual()), now: epoch}
		for range 20 * 24 * 4 {
			f.now += 15 * minute
			f.add(f.now-15*minute, f.now)
		}
		now := f.now
		o := ttft()
		after := NewTracker(&o, Windows{Burn: usual().Burn, Budget: time.Duration(days) * 24 * time.Hour}, now)
		require.Equal(t, RestoredWindows, after.Restore(f.tracker.Encode(), now))
		got := after.Budget(now)
		// A slot of 6 h moves whole to its end: what the window holds is all there,
		// and at most 6 h from before it.
		most, least := f.exact.over(got.Since-30*day/slotsPerWindow, now), f.exact.over(got.Since, now)
		assert.LessOrEqual(t, got.Valid, most.Valid, "%d days", days)
		assert.GreaterOrEqual(t, got.Valid, least.Valid, "%d days", days)
		assert.LessOrEqual(t, got.Coverage, 1.0)
		assert.Positive(t, got.Coverage)
		assert.Equal(t, f.tracker.Burn(1, now), after.Burn(1, now))
	}
}

func TestStateFromTheFutureIsCutOff(t *testing.T) {
	t.Parallel()
	before := newTracker(usual())
	before.Add(epoch, epoch+minute, requests(10, 0, 0))
	before.Add(epoch+2*day, epoch+2*day+minute, requests(1000, 1000, 0))
	after := newTracker(usual())
	now := epoch + hour
	require.Equal(t, RestoredUntilNow, after.Restore(before.Encode(), now))
	assert.Equal(t, 10.0, after.Budget(now).Valid)
	assert.Equal(t, Added, after.Add(now, now+minute, requests(1, 0, 0)))
	assert.Equal(t, 11.0, after.Budget(now+3*day).Valid, "nothing waits in the future")
	assert.InDelta(t, 1.0/60, after.Burn(0, now+minute).Coverage, 1.0/slotsPerWindow)
}

func TestStateOlderThanTheBudgetWindowIsNothing(t *testing.T) {
	t.Parallel()
	before, last := lived(usual())
	after := newTracker(usual())
	assert.Equal(t, RestoredNothing, after.Restore(before.Encode(), last+31*day))
	assert.Zero(t, after.Budget(last+31*day).Coverage)
	age, ok := StateAge(before.Encode())
	assert.True(t, ok)
	assert.Equal(t, last, age)
}

// Other damage shows the checksum of the archive.
func TestAStateThatIsNotWholeIsDamagedAndChangesNothing(t *testing.T) {
	t.Parallel()
	before, now := lived(usual())
	state := before.Encode()
	r := rand.New(rand.NewPCG(14, 15))
	for i := range 2000 {
		damaged := state[:r.IntN(len(state))]
		if i%2 == 0 {
			damaged = append(slices.Clone(state), byte(r.IntN(256)))
		}
		after := newTracker(usual())
		require.Equal(t, RestoredDamaged, after.Restore(damaged, now))
		require.Equal(t, newTracker(usual()), after)
		_, ok := StateAge(damaged)
		require.False(t, ok)
	}
	assert.Equal(t, RestoredDamaged, newTracker(usual()).Restore(nil, now))
	assert.Equal(t, RestoredDamaged, newTracker(usual()).Restore(make([]byte, maxStateSize+1), now))
}

// Of any bytes, what is read is sound and can be used.
func FuzzRestore(f *testing.F) {
	before, last := lived(usual())
	f.Add(before.Encode(), last)
	f.Add(newTracker(Windows{Budget: time.Minute}).Encode(), int64(0))
	small := newTracker(Windows{Burn: []time.Duration{time.Hour}, Budget: 24 * time.Hour})
	small.Add(epoch, epoch+minute, requests(3, 1, 1))
	small.Add(epoch+minute, epoch+2*minute, requests(5, 1, 1))
	f.Add(small.Encode(), epoch+3*minute)
	f.Fuzz(func(t *testing.T, state []byte, now int64) {
		now &= 1<<62 - 1
		saved, err := decodeState(state)
		if err != nil {
			return
		}
		o := Objective{Metric: saved.metric, Threshold: saved.threshold}
		tracker := NewTracker(&o, usual(), now)
		tracker.Restore(state, now)
		tracker.Add(now, now+second, requests(3, 1, 1))
		for i := range tracker.rings {
			reading := tracker.rings[i].over(now + second)
			if reading.Coverage < 0 || reading.Coverage > 1 {
				t.Fatalf("coverage %v", reading.Coverage)
			}
			if attainment, ok := reading.Attainment(); ok && !(0 <= attainment.Lower && attainment.Lower <= attainment.Upper && attainment.Upper <= 1) {
				t.Fatalf("attainment %v of %v", attainment, reading.Counts)
			}
		}
		again := NewTracker(&o, usual(), now)
		if outcome := again.Restore(tracker.Encode(), now+second); outcome != RestoredAll {
			t.Fatalf("what was restored and saved again: %s", outcome)
		}
	})
}

// What is forgotten after a time that the ring has not reached is nothing.
func TestForgettingTheFutureChangesNothing(t *testing.T) {
	r := newRing(time.Hour)
	for i := range int64(120) {
		r.count(epoch+i*30*second, requests(1, 0, 0))
	}
	now := epoch + 119*30*second
	before := r.over(now)
	r.forget(now)
	r.forget(now + hour)
	assert.Equal(t, before, r.over(now))
	assert.Equal(t, 120.0, before.Valid)
	r.count(now+30*second, requests(5, 0, 0))
	assert.Equal(t, 125.0, r.over(now+30*second).Valid, "the slot at the edge counts whole")
	r.forget(now - 30*second)
	assert.Equal(t, 119.0, r.over(now).Valid, "the slot that lies after the time is empty")
}

// A slot is a 120th of its window, rounded up where that is not a whole number.
func TestASlotIsA120thOfItsWindow(t *testing.T) {
	assert.Equal(t, 30*second, newRing(time.Hour).width)
	assert.Equal(t, 6*hour, newRing(30*24*time.Hour).width)
	assert.Equal(t, 30*second+1, newRing(time.Hour+1).width)
}

// Of a state whose windows have moved past all slots nothing but its frame remains.
func TestThinRemovesTheSlotsThatLeftTheWindows(t *testing.T) {
	tracker := newTracker(usual())
	empty := len(tracker.Encode())
	for i := range int64(50) {
		tracker.Add(epoch+i*minute, epoch+(i+1)*minute, requests(1, 0, 0))
	}
	whole := tracker.Encode()
	now := epoch + 50*minute
	assert.Equal(t, whole, Thin(whole, now))
	later := Thin(whole, now+3*hour)
	assert.Less(t, len(later), len(whole), "the window of an hour is empty")
	assert.Greater(t, len(later), empty+20, "the others are not")
	assert.Less(t, len(Thin(whole, now+40*day)), empty+40)
	newest, ok := StateAge(Thin(whole, now+40*day))
	assert.True(t, ok)
	assert.Equal(t, now, newest)
}
