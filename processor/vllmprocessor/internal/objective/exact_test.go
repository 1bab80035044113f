package objective

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// exact keeps every step: what the rings are held against.
type exact struct{ steps []span }

type span struct {
	from, to int64
	Counts
}

// over sums the steps that end in (since, at].
func (e exact) over(since, at int64) (sum Counts) {
	for _, s := range e.steps {
		if since < s.to && s.to <= at {
			sum.Valid += s.Valid
			sum.Good += s.Good
			sum.Undecided += s.Undecided
		}
	}
	return sum
}

// seen is the length of the union of all steps within (since, at].
func (e exact) seen(since, at int64) (length int64) {
	steps := slices.Clone(e.steps)
	slices.SortFunc(steps, func(a, b span) int { return int(a.from - b.from) })
	until := since
	for _, s := range steps {
		if from, to := max(s.from, until), min(s.to, at); to > from {
			length += to - from
			until = to
		}
	}
	return length
}

// feeder feeds a tracker and the exact reference with the same random steps.
type feeder struct {
	*rand.Rand
	tracker *Tracker
	exact   exact
	now     int64
	// grid is what all times are a multiple of: 1, or the width of a slot, so that
	// steps end where slots do.
	grid int64
}

// onGrid rounds a time down to the grid.
func (f *feeder) onGrid(at int64) int64 { return at - at%max(f.grid, 1) }

func (f *feeder) counts() Counts {
	valid := float64(f.IntN(50))
	good := float64(f.IntN(int(valid) + 1))
	return Counts{Valid: valid, Good: good, Undecided: float64(f.IntN(int(valid-good) + 1))}
}

func (f *feeder) add(from, to int64) Outcome {
	s := span{from, to, f.counts()}
	outcome := f.tracker.Add(from, to, s.Counts)
	if outcome == Added {
		f.exact.steps = append(f.exact.steps, s)
	}
	return outcome
}

// walk adds some steps of a few seconds with jitter, with a gap now and then.
func (f *feeder) walk(n int) {
	for range n {
		from := f.now
		if f.IntN(20) == 0 {
			from += f.onGrid(f.Int64N(20 * minute))
		}
		f.now = from + max(f.onGrid(f.Int64N(40*second)), f.grid, 1)
		f.add(from, f.now)
	}
}

func TestWindowEqualsAnExactOneWhoseEdgeIsLessThanASlotAway(t *testing.T) {
	t.Parallel()
	windows := Windows{
		Burn: []time.Duration{5 * time.Minute, time.Hour, 100*time.Minute + 7, 6 * time.Hour}, Budget: 3 * 24 * time.Hour,
	}
	for seed := range uint64(20) {
		f := &feeder{Rand: rand.New(rand.NewPCG(seed, 3)), tracker: newTracker(windows), now: epoch}
		if seed%2 == 1 {
			f.grid = 2500 * int64(time.Millisecond)
			f.now = f.onGrid(f.now)
		}
		for range 60 {
			f.walk(f.IntN(60))
			if f.IntN(10) == 0 {
				f.now += f.onGrid(f.Int64N(10 * hour))
			}
			// A straggler, no older than the shortest window.
			late := f.onGrid(f.now - f.Int64N(5*minute))
			seenUntil := f.tracker.seenUntil
			if late <= seenUntil && f.IntN(2) == 0 {
				f.add(late-second, late)
			}
			at := f.now
			if f.IntN(3) == 0 {
				at += f.onGrid(f.Int64N(hour))
			}
			for i, window := range append(slices.Clone(windows.Burn), windows.Budget) {
				reading := f.tracker.rings[i].over(at)
				w := int64(window)
				require.LessOrEqual(t, reading.Since, at-w)
				require.Greater(t, reading.Since, at-w-w/slotsPerWindow-1)
				require.Equal(t, f.exact.over(reading.Since, at), reading.Counts, "seed %d window %s", seed, window)
			}
		}
		total, _ := f.tracker.Totals()
		require.Equal(t, f.exact.over(0, f.now), total)
	}
}

func TestWhatIsForgottenIsWhatLiesInSlotsAfterTheTime(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		f := &feeder{Rand: rand.New(rand.NewPCG(seed, 16)), tracker: newTracker(Windows{Budget: time.Hour}), now: epoch}
		f.walk(200)
		ring := &f.tracker.rings[0]
		cut := f.now - f.Int64N(90*minute)
		ring.forget(cut)
		end := (ring.number(cut) + 1) * ring.width
		for _, at := range []int64{end - 1, end, f.now, f.now + 10*minute} {
			reading := ring.over(at)
			// What the window had moved past before is not found again.
			since := max(reading.Since, (ring.number(f.now)-ringSlots+1)*ring.width)
			require.Equal(t, f.exact.over(since, min(end, at)), reading.Counts)
			require.InDelta(t, float64(f.exact.seen(since, min(end, at)))/float64(at-reading.Since), reading.Coverage, 1e-12)
		}
	}
}

func TestCoverageEqualsTheUnionOfTheSteps(t *testing.T) {
	t.Parallel()
	windows := Windows{Burn: []time.Duration{5 * time.Minute, time.Hour}, Budget: 3 * 24 * time.Hour}
	for seed := range uint64(20) {
		f := &feeder{Rand: rand.New(rand.NewPCG(seed, 4)), tracker: newTracker(windows), now: epoch}
		for range 30 {
			f.walk(f.IntN(100))
			at := f.now + f.Int64N(5*minute)
			for i := range f.tracker.rings {
				reading := f.tracker.rings[i].over(at)
				want := float64(f.exact.seen(reading.Since, at)) / float64(at-reading.Since)
				require.InDelta(t, want, reading.Coverage, 1e-12)
			}
		}
	}
}

func TestCoverageOfManyServersIsNeverMoreThanTheUnion(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		f := &feeder{
			Rand:    rand.New(rand.NewPCG(seed, 5)),
			tracker: newTracker(Windows{Burn: []time.Duration{time.Hour}, Budget: 24 * time.Hour}), now: epoch,
		}
		last := []int64{epoch, epoch, epoch}
		for range 500 {
			f.now += f.Int64N(20 * second)
			server := f.IntN(len(last))
			if f.now <= last[server] {
				continue
			}
			if f.IntN(10) > 0 {
				f.add(last[server], f.now)
			}
			last[server] = f.now
			reading := f.tracker.Burn(0, f.now)
			want := float64(f.exact.seen(reading.Since, f.now)) / float64(f.now-reading.Since)
			require.LessOrEqual(t, reading.Coverage, want+1e-12)
			require.GreaterOrEqual(t, reading.Coverage, want*0.5)
		}
	}
}

// Latencies that are known one by one, counted into buckets as a server does:
// the truth lies in the interval for every threshold.
func TestTrueAttainmentIsAlwaysWithinTheInterval(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(6, 7))
	wide := 0
	for _, thresholds := range [][]float64{{0.001, 0.5, 2.5, 10}, {0.0005, 0.3, 3, 17, 2000}} {
		for _, threshold := range thresholds {
			tracker := newTracker(usual())
			truth := exact{}
			now := epoch
			for range 1500 {
				from := now
				now += 15*second + r.Int64N(second)
				inBuckets, known := Counts{}, Counts{}
				for range r.IntN(20) {
					// Log-normal around a second, with a heavy tail.
					latency := expNormal(r, 1.5)
					known.Valid++
					if latency <= threshold {
						known.Good++
					}
					inBuckets.Valid++
					lower, upper := bucketOf(firstTokenBounds, latency)
					switch {
					case upper <= threshold:
						inBuckets.Good++
					case lower < threshold:
						inBuckets.Undecided++
					}
				}
				tracker.Add(from, now, inBuckets)
				truth.steps = append(truth.steps, span{from, now, known})
			}
			for _, reading := range []Reading{tracker.Burn(0, now), tracker.Burn(1, now), tracker.Budget(now)} {
				known := truth.over(reading.Since, now)
				attainment, ok := reading.Attainment()
				require.True(t, ok)
				assert.LessOrEqual(t, attainment.Lower, known.Good/known.Valid)
				assert.GreaterOrEqual(t, attainment.Upper, known.Good/known.Valid)
				if slices.Contains(firstTokenBounds, threshold) {
					assert.Equal(t, attainment.Lower, attainment.Upper, "a threshold on a bound is exact")
				} else if attainment.Upper > attainment.Lower {
					wide++
				}
				burn := BurnRate(attainment, 0.95)
				assert.LessOrEqual(t, burn.Lower, burn.Upper)
			}
		}
	}
	assert.Positive(t, wide, "the intervals have a width somewhere")
}
