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

// Many servers that hold little, one that wants all, and some that need more than
// the limit divided by all of them.
func TestSharesThatAreNotUsedAreLeftToThoseThatNeedThem(t *testing.T) {
	q := quota.New(1000)
	noisy := q.Open()
	for range 150 {
		q.Open().Set(1)
	}
	all := noisy.Room()
	noisy.Set(all)
	assert.Equal(t, 1000, q.Used())
	good := make([]*quota.Share, 10)
	for i := range good {
		good[i] = q.Open()
	}
	for range 3 {
		all -= noisy.Excess()
		noisy.Set(all)
		all += noisy.Room()
		noisy.Set(all)
		for _, s := range good {
			s.Set(min(21, s.Room()))
		}
	}
	for _, s := range good {
		held := 21
		assert.Zero(t, s.Excess())
		s.Set(0)
		assert.GreaterOrEqual(t, s.Room(), held)
		s.Set(held)
	}
}

// An independent way to the same: shares that ask for more one after the other,
// each one unit at a time, end at the fair division.
func TestTheDivisionIsMaxMinFair(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 9))
		limit := 50 + r.IntN(500)
		want := make([]int, 1+r.IntN(40))
		for i := range want {
			want[i] = r.IntN(1 + limit/(1+r.IntN(20)))
		}
		fair := make([]int, len(want))
		for left, grew := limit, true; left > 0 && grew; {
			grew = false
			for i := range want {
				if fair[i] < want[i] && left > 0 {
					fair[i]++
					left--
					grew = true
				}
			}
		}
		q := quota.New(limit)
		shares := make([]*quota.Share, len(want))
		held := make([]int, len(want))
		for i := range shares {
			shares[i] = q.Open()
		}
		for range 20 {
			for _, i := range r.Perm(len(want)) {
				held[i] -= shares[i].Excess()
				shares[i].Set(held[i])
				held[i] = min(want[i], held[i]+shares[i].Room())
				shares[i].Set(held[i])
			}
		}
		for i := range held {
			held[i] -= shares[i].Excess()
			shares[i].Set(held[i])
		}
		assert.LessOrEqual(t, q.Used(), limit)
		for i := range held {
			assert.InDelta(t, fair[i], held[i], 1, "seed %d share %d wants %d of %d", seed, i, want[i], limit)
		}
	}
}

// One gives something to another only where it then still holds as many.
func TestMostIsFairWhereTheOtherHoldsFewer(t *testing.T) {
	for name, c := range map[string]struct {
		held map[string]int
		most string
		fair bool
	}{
		"nothing is held":      {map[string]int{}, "", false},
		"much more":            {map[string]int{"a": 5, "b": 2, "to": 1}, "a", true},
		"two more":             {map[string]int{"a": 3, "to": 1}, "a", true},
		"one more":             {map[string]int{"a": 2, "to": 1}, "a", false},
		"it holds most itself": {map[string]int{"a": 2, "to": 9}, "to", false},
		"it holds nothing":     {map[string]int{"a": 2, "b": 1}, "a", true},
		"one holds one":        {map[string]int{"a": 1}, "a", false},
	} {
		most, fair := quota.Most(c.held, "to")
		assert.Equal(t, c.most, most, name)
		assert.Equal(t, c.fair, fair, name)
	}
}

// Many shares are sorted once for several questions; what a share takes and gives back
// counts at once.
func TestASharesOwnRoomIsNeverStale(t *testing.T) {
	q := quota.New(4)
	a, b := q.Open(), q.Open()
	for range 4 {
		assert.True(t, a.Take())
	}
	assert.Equal(t, 0, a.Room())
	assert.False(t, a.Take())
	assert.Equal(t, 0, a.Excess(), "the limit is not exceeded")
	assert.Equal(t, 2, b.Room(), "half of the limit, whatever the other holds")
	assert.True(t, b.Take())
	assert.Equal(t, 1, a.Excess())
	a.Give()
	assert.Equal(t, 4, q.Used())
	assert.Equal(t, 0, a.Excess())
	b.Close()
	assert.Equal(t, 3, q.Used())
	assert.Equal(t, 1, a.Room())
	(*quota.Share)(nil).Close()
}

func TestWhatIsWantedIsWhatIsHeldAndLacking(t *testing.T) {
	q := quota.New(10)
	a, b := q.Open(), q.Open()
	assert.Zero(t, q.Wanted())
	a.Set(6)
	a.Lack(3)
	b.Set(4)
	b.Lack(20)
	assert.Equal(t, 33, q.Wanted())
	b.Lack(1)
	assert.Equal(t, 14, q.Wanted())
	a.Close()
	assert.Equal(t, 5, q.Wanted(), "a share that is closed wants nothing")
}
