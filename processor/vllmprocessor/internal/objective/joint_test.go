package objective

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
)

func TestJointAttainmentLiesBetweenAllOverlapsOfFailures(t *testing.T) {
	t.Parallel()
	got, reason := JointAttainment([]Counts{requests(100, 10, 0), requests(100, 20, 0), requests(100, 5, 5)})
	assert.Equal(t, derive.OK, reason)
	assert.InDelta(t, 0.6, got.Lower, 1e-12, "10, 20 and 10 other requests failed")
	assert.InDelta(t, 0.8, got.Upper, 1e-12, "the 20 include all that failed")

	got, _ = JointAttainment([]Counts{requests(100, 70, 0), requests(100, 60, 0)})
	assert.InDelta(t, 0, got.Lower, 1e-12)
	assert.InDelta(t, 0.3, got.Upper, 1e-12)
}

func TestJointAttainmentIsAbsentWithAReason(t *testing.T) {
	t.Parallel()
	ten := requests(10, 1, 0)
	for _, c := range []struct {
		parts  []Counts
		reason derive.Reason
	}{
		{[]Counts{ten, requests(11, 1, 0)}, derive.Contradiction},
		{[]Counts{{}, {}}, derive.Idle},
		{[]Counts{{}, ten}, derive.Contradiction},
	} {
		_, reason := JointAttainment(c.parts)
		assert.Equal(t, c.reason, reason)
	}
}

// Requests whose latencies are known one by one, and related in any way.
func TestTrueJointAttainmentIsAlwaysWithinTheInterval(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(8, 9))
	thresholds := []float64{4, 1, 0.06}
	sets := [][]float64{requestBounds, requestBounds, perTokenBounds}
	for range 300 {
		counts := make([]Counts, 3)
		relation := r.Float64()
		n, met := 1+r.IntN(200), 0.0
		for range n {
			shared := expNormal(r, 1)
			all := true
			for i := range thresholds {
				latency := thresholds[i] * 0.5 * (relation*shared + (1-relation)*expNormal(r, 1))
				all = all && latency <= thresholds[i]
				lower, upper := bucketOf(sets[i], latency)
				counts[i].Valid++
				if upper <= thresholds[i] {
					counts[i].Good++
				} else if lower < thresholds[i] {
					counts[i].Undecided++
				}
			}
			if all {
				met++
			}
		}
		got, reason := JointAttainment(counts)
		require.Equal(t, derive.OK, reason)
		require.LessOrEqual(t, got.Lower, met/float64(n)+1e-12)
		require.GreaterOrEqual(t, got.Upper, met/float64(n)-1e-12)
	}
}
