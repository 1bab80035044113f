package quota_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/quota"
)

func TestOneAloneMayHoldAll(t *testing.T) {
	q := quota.New(100)
	s := q.Open()
	assert.Equal(t, 100, s.Room())
	s.Set(100)
	assert.Zero(t, s.Room())
	assert.Zero(t, s.Excess())
	assert.False(t, s.Take())
}

func TestOneThatHoldsAllGivesBackWhatOthersNeed(t *testing.T) {
	q := quota.New(100)
	noisy := q.Open()
	noisy.Set(100)
	quiet := q.Open()
	assert.Equal(t, 50, quiet.Room(), "its share, though the limit is reached")
	quiet.Set(30)
	assert.Equal(t, 30, noisy.Excess(), "no more than the other needs")
	noisy.Set(70)
	assert.Zero(t, noisy.Excess())
	assert.Zero(t, noisy.Room())
	assert.Equal(t, 20, quiet.Room())
	noisy.Close()
	assert.Equal(t, 70, quiet.Room())
	assert.Equal(t, 30, q.Used())
}

// Whatever they do, each has room up to its share, and once all have given back
// what they must, the limit holds.
func TestTheLimitHoldsAndEachHasItsShare(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 4))
		limit := 1 + r.IntN(200)
		q := quota.New(limit)
		var shares []*quota.Share
		var held []int
		for range 300 {
			if len(shares) == 0 || r.IntN(20) == 0 {
				shares, held = append(shares, q.Open()), append(held, 0)
			}
			i := r.IntN(len(shares))
			require.GreaterOrEqual(t, shares[i].Room(), min(limit/len(shares)-held[i], 2*limit-q.Used()))
			held[i] += r.IntN(shares[i].Room() + 1)
			shares[i].Set(held[i])
			require.LessOrEqual(t, q.Used(), 2*limit)
		}
		total := 0
		for i, s := range shares {
			held[i] -= s.Excess()
			s.Set(held[i])
			total += held[i]
		}
		assert.LessOrEqual(t, total, limit)
		assert.Equal(t, total, q.Used())
	}
}
