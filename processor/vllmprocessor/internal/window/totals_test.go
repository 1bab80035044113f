package window

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// Totals return each number as it was stored, however large, and as long as they keep it.
func TestTotalsAreStoredExactly(t *testing.T) {
	t.Parallel()
	special := []float64{0, 1, 41, math.MaxUint32, math.MaxUint32 + 1, 1 << 53, 1.5, -3, 1e300}
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 3))
		stride := 1 + r.IntN(60)
		stored, want := newTotals(stride), map[int64][]float64{}
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
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 5))
		stride, places := narrowest+r.IntN(30), int64(2+r.IntN(40))
		growth := uint32(1) << r.IntN(18)
		stored, want := newTotals(stride), map[int64][]float64{}
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
		stored := newTotals(5)
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
