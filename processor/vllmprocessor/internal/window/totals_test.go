package window

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// Totals return each number as it was stored, however large, and as long as they keep it.
func TestTotalsAreStoredExactly(t *testing.T) {
	t.Parallel()
	special := []float64{0, 1, 41, math.MaxUint32, math.MaxUint32 + 1, 1 << 53, 1.5, -3, 1e300}
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 3))
		stride := 1 + r.IntN(60)
		stored, want := totals{stride: stride}, map[int64][]float64{}
		seq := int64(1 + r.IntN(1000))
		stored.reserve(seq-1, 2)
		var b buffer
		oldest := seq
		for range 60 {
			if r.IntN(3) == 0 {
				oldest = max(oldest, stored.oldest(seq-1)) // what it has lost does not come back
				stored.reserve(seq-1, stored.places()+int64(r.IntN(3)))
			}
			numbers := make([]float64, stride)
			for i := range numbers {
				numbers[i] = float64(r.Uint32N(1 << r.IntN(32)))
				if i == stride-1 {
					numbers[i] = r.NormFloat64()
				}
			}
			if seed%4 == 0 && r.IntN(20) == 0 {
				numbers[r.IntN(stride)] = special[r.IntN(len(special))]
			}
			stored.set(seq, numbers)
			want[seq] = numbers
			for at := max(oldest, stored.oldest(seq)); at <= seq; at++ {
				require.Equal(t, want[at], stored.at(at, b[:]), "seed %d at %d newest %d places %d stride %d", seed, at, seq, stored.places(), stride)
				require.Equal(t, want[at][0], stored.number(at))
			}
			next := seq + 1
			if r.IntN(4) == 0 {
				next += int64(r.IntN(5))
				stored.fill(seq, next)
				oldest = max(oldest, stored.oldest(next)) // it fills what the next one needs
				for missing := seq + 1; missing < next; missing++ {
					want[missing] = slices.Clone(want[seq])
				}
			}
			seq = next
		}
	}
}

// Counts that grow are stored exactly as well, at any speed, and take half a word each while
// a window has few.
func TestTotalsThatGrowAreStoredExactly(t *testing.T) {
	t.Parallel()
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 5))
		stride, places := narrowest+r.IntN(30), int64(2+r.IntN(40))
		growth := uint32(1) << r.IntN(18)
		stored, want := totals{stride: stride}, map[int64][]float64{}
		stored.reserve(0, places)
		numbers := make([]float64, stride)
		for i := range numbers {
			numbers[i] = float64(r.Uint32())
		}
		var b buffer
		for seq := int64(1); seq < 200; seq++ {
			for i := range numbers {
				numbers[i] += float64(r.Uint32N(growth))
			}
			if seed%5 == 0 && seq == 150 {
				numbers = make([]float64, stride)
			}
			want[seq] = slices.Clone(numbers)
			stored.set(seq, numbers)
			for at := max(1, stored.oldest(seq)); at <= seq; at++ {
				require.Equal(t, want[at], stored.at(at, b[:]), "seed %d at %d newest %d", seed, at, seq)
				require.Equal(t, want[at][0], stored.number(at))
			}
		}
		beyond := slices.ContainsFunc(numbers[:stride-1], func(n float64) bool { return n > math.MaxUint32 })
		if int64(growth)*(stored.places()+1) < spread && seed%5 != 0 && !beyond {
			buckets := stride - 1
			require.Len(t, stored.words, buckets+int(stored.places())*((buckets+1)/2), "seed %d", seed)
		}
	}
}

// A base is not changed at each batch, however fast the counts grow.
func TestABaseLastsAsLongAsARing(t *testing.T) {
	t.Parallel()
	for _, growth := range []float64{1, 100, 1000, 1023, 1024, 1025, 3000} {
		stored := totals{stride: 5}
		stored.reserve(0, 32)
		places, changes := stored.places(), 0
		base := slices.Clone(stored.words[:4])
		for seq := int64(1); seq <= 100*places; seq++ {
			n := growth * float64(seq)
			stored.set(seq, []float64{n, n, n, n, 0})
			if !slices.Equal(base, stored.words[:4]) && stored.form == halves {
				changes++
				base = slices.Clone(stored.words[:4])
			}
		}
		require.LessOrEqual(t, changes, 102, "growth %g", growth)
	}
}

func TestAtMostAnEighthOfALargeRingIsFree(t *testing.T) {
	t.Parallel()
	for keep := int64(1); keep < 2000; keep++ {
		size := sizeFor(keep)
		require.GreaterOrEqual(t, size, keep)
		require.LessOrEqual(t, size-keep, max(1, size/8), "for %d", keep)
	}
}

// Totals are exact as well where counts fall, jump by about as much as a form can store, are
// no integers, or are missing for longer than the ring is.
func TestTotalsAreExactInAdverseHistories(t *testing.T) {
	t.Parallel()
	jumps := []float64{0, 1, 32766, 32767, 32768, 65534, 65535, 65536, 1 << 31, math.MaxUint32, 0.5, -1, -32767, -65536}
	odd := []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, math.Copysign(0, -1), 0.5, 1e300, math.MaxUint32, math.MaxUint32 + 1}
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 17))
		h := recorded{t: t, totals: totals{stride: 1 + r.IntN(12)}, want: map[int64][]float64{}, newest: int64(r.IntN(5000))}
		numbers := slices.Repeat([]float64{[]float64{0, 1000, math.MaxUint32 - 65535, math.MaxUint32 - 1}[r.IntN(4)]}, h.totals.stride)
		h.totals.reserve(h.newest, 2)
		h.oldest = h.newest + 1
		for range 80 {
			h.add(numbers)
			h.grow(int64(r.IntN(4)))
			h.fill([]int64{0, 0, int64(r.IntN(5)), h.totals.places() + int64(r.IntN(3))}[r.IntN(4)])
			if r.IntN(10) == 0 { // a series that begins again
				h.oldest = h.newest + 1
				numbers[r.IntN(len(numbers))] = float64(r.Uint32N(1 << r.IntN(32)))
			}
			if seed%3 == 0 && r.IntN(20) == 0 {
				numbers[r.IntN(len(numbers))] = odd[r.IntN(len(odd))]
			}
			all, together := r.IntN(2) == 0, jumps[r.IntN(len(jumps))]
			for i := range numbers {
				if all {
					numbers[i] += together
				} else {
					numbers[i] += jumps[r.IntN(1+int(seed)%len(jumps))]
				}
			}
		}
	}
}

// recorded compares totals with what was stored.
type recorded struct {
	t      *testing.T
	totals totals
	want   map[int64][]float64
	// newest is the newest batch, and oldest the oldest one that must be known.
	newest, oldest int64
}

func (h *recorded) add(numbers []float64) {
	h.newest++
	h.want[h.newest] = slices.Clone(numbers)
	h.totals.set(h.newest, numbers)
	h.check(h.newest)
}

func (h *recorded) grow(by int64) {
	h.oldest = max(h.oldest, h.totals.oldest(h.newest))
	h.totals.reserve(h.newest, min(h.totals.places()+by, 40))
	h.check(h.newest)
}

// fill stores the newest total for so many batches more.
func (h *recorded) fill(batches int64) {
	to := h.newest + 1 + batches
	h.totals.fill(h.newest, to)
	for missing := h.newest + 1; missing < to; missing++ {
		h.want[missing] = h.want[h.newest]
	}
	h.newest = to - 1
	h.oldest = max(h.oldest, h.totals.oldest(to)) // the place of the one before is that of the next
	h.check(to)
}

func (h *recorded) check(newest int64) {
	var b buffer
	for at := max(h.oldest, h.totals.oldest(newest)); at <= h.newest; at++ {
		got := h.totals.at(at, b[:])
		require.True(h.t, slices.EqualFunc(h.want[at], got, same64), "at %d of %d: %v, not %v", at, newest, got, h.want[at])
		require.True(h.t, same64(got[0], h.totals.number(at)))
	}
}

func same64(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }

// A batch after a gap costs as little as another: with the ring of before the gap, lower counts
// would change the base of all its totals.
func TestASeriesKeepsNoTotalsFromBeforeAGap(t *testing.T) {
	t.Parallel()
	r := NewResource(Settings{Window: Long, MaxStaleness: Long})
	at := int64(1)
	observe := func(count float64) *totals {
		r.Observe(&input.Batch{Time: at, Groups: []input.Group{{Key: "k"}}, Samples: []input.Sample{
			{Input: input.TimeToFirstToken, Bounds: []float64{1, 2, 3}, Counts: []float64{count, 0, 0, 0}, HasSum: true},
		}}, math.MaxInt)
		return &r.groups[0].inputs.of(input.TimeToFirstToken)[0].totals
	}
	for range 100 {
		at += int64(3 * time.Second)
		observe(1000)
	}
	require.GreaterOrEqual(t, observe(1000).places(), int64(100))
	for count := range 10 {
		at += int64(Long) + 1
		stored := observe(float64(1000 - count))
		require.Equal(t, int64(2), stored.places())
		require.Equal(t, halves, stored.form)
	}
}
