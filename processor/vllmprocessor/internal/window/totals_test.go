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

func TestAtMostAThirdOfARingIsFree(t *testing.T) {
	t.Parallel()
	for keep := int64(1); keep < 2000; keep++ {
		size := sizeFor(keep)
		require.GreaterOrEqual(t, size, keep)
		if keep > 2 {
			require.Less(t, float64(size-keep), float64(size)/3+1e-9, "for %d", keep)
		}
	}
}
