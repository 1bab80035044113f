package engine

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What is computed for a request that is alone is what a request gets that is alone.
func TestARequestAloneTakesWhatIsComputed(t *testing.T) {
	for name, model := range Models() {
		for _, lengths := range [][2]int{{1, 40}, {900, 120}, {12000, 300}} {
			t.Run(fmt.Sprintf("%s, %v", name, lengths), func(t *testing.T) {
				w := fixed(0.01, lengths[0], lengths[1])
				cfg := Config{Seed: 3, Model: model, FrontEnd: DefaultFrontEnd(), Workload: w, KeepOutcomes: true, NoPrefixCaching: true}
				s, err := New(cfg)
				require.NoError(t, err)
				alone, err := NewAlone(cfg)
				require.NoError(t, err)
				s.AdvanceTo(5000)
				first, gap := alone.Request(lengths[0], 0, lengths[1])
				all := s.Outcomes()
				slices.SortFunc(all, func(a, b Outcome) int { return cmp.Compare(a.Arrived, b.Arrived) })
				seen := 0
				for i := 1; i+1 < len(all); i++ {
					o := &all[i]
					if all[i-1].Ended > o.Arrived || all[i+1].Arrived < o.Ended {
						continue // It was not alone.
					}
					seen++
					assert.InEpsilon(t, first, o.FirstToken, 0.001)
					assert.InEpsilon(t, gap, o.MeanGap, 0.01)
				}
				assert.Greater(t, seen, 20)
			})
		}
	}
}

// With speculation the gaps are those of steps, and tokens come several at a time.
func TestARequestAloneWithSpeculation(t *testing.T) {
	cfg := Config{
		Seed: 3, Model: Llama8B(), FrontEnd: DefaultFrontEnd(), Workload: fixed(0.02, 500, 400), KeepOutcomes: true, NoPrefixCaching: true,
		Speculation: Speculation{Acceptance: []float64{0.75, 0.6, 0.5}, Seconds: 1e-3},
	}
	s, err := New(cfg)
	require.NoError(t, err)
	alone, err := NewAlone(cfg)
	require.NoError(t, err)
	s.AdvanceTo(10000)
	first, gap := alone.Request(500, 0, 400)
	decoding, tokens := 0.0, 0.0
	for _, o := range s.Outcomes() {
		assert.GreaterOrEqual(t, o.FirstToken, first-1e-9)
		for _, n := range o.Gaps {
			decoding += o.MeanGap * float64(n)
		}
		tokens += float64(o.Output - 1)
	}
	assert.InEpsilon(t, gap, decoding/tokens, 0.02)
}

// A prompt of which a part is cached takes as long as the rest of it.
func TestARequestAloneWithCachedTokens(t *testing.T) {
	alone, err := NewAlone(Config{Model: Llama8B(), FrontEnd: DefaultFrontEnd(), Workload: fixed(1, 1, 1)})
	require.NoError(t, err)
	whole, _ := alone.Request(4000, 0, 10)
	half, _ := alone.Request(4000, 2000, 10)
	least, _ := alone.Request(4000, 4000, 10)
	assert.Less(t, half, whole)
	assert.Less(t, least, half)
	long, _ := alone.Request(4000, 0, 5000)
	assert.InDelta(t, whole, long, 1e-12)
}
