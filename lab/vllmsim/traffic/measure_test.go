package traffic

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// published are the numbers of the README beside the traces. Whoever cut the traces computed
// them with another program.
var published = map[string]struct {
	rate, idc1, idc60, within, peak float64
	prompt, output                  Quantiles
	reuse                           float64
}{
	"azure-2023-conv":        {5.53, 1.4, 16, 14, 1.5, Quantiles{1020, 2735, 4142}, Quantiles{129, 424, 601}, math.NaN()},
	"mooncake-conversation":  {3.40, 7.9, 2.9, 5.8, 1.2, Quantiles{6909, 27367, 85401}, Quantiles{350, 597, 1120}, 0.37},
	"servegen-large-24h":     {2.57, 4.3, 106, 3.3, 7.2, Quantiles{521, 2382, 13565}, Quantiles{65, 402, 1183}, math.NaN()},
	"servegen-reasoning-24h": {2.69, 2.8, 51, 3.4, 3.7, Quantiles{377, 3979, 17488}, Quantiles{594, 1500, 6524}, math.NaN()},
	"servegen-small-12h":     {4.03, 56, 3029, 5.2, 24, Quantiles{912, 937, 1223}, Quantiles{70, 80, 93}, math.NaN()},
	"coding-assistant": {
		math.NaN(), math.NaN(), math.NaN(), math.NaN(), math.NaN(),
		Quantiles{65395, 107623, 125565},
		Quantiles{219, 847, 4168},
		0.96,
	},
}

func TestMeasuresReproduceThePublishedStatistics(t *testing.T) {
	for name, want := range published {
		t.Run(name, func(t *testing.T) {
			traffic := trace(t, name)
			got := Measure(traffic)
			assert.Equal(t, want.prompt, got.Prompt)
			assert.Equal(t, want.output, got.Output)
			same(t, want.reuse, got.Reuse, 0.005, "reuse")
			if len(traffic.Conversations) > 0 {
				assert.True(t, math.IsNaN(got.Rate) && math.IsNaN(got.IDC60) && math.IsNaN(got.Lag))
				// The published pauses have those before the first turn, too.
				var think []float64
				for _, c := range traffic.Conversations {
					for _, turn := range c.Turns {
						think = append(think, turn.Think)
					}
				}
				assert.Equal(t, Quantiles{9, 263, 2716}, quantiles(think))
				// Counted apart, with another program.
				assert.Equal(t, Quantiles{9, 279, 2749}, got.Think)
				return
			}
			if name == "mooncake-conversation" {
				// The published index is that of the ticks.
				const tick = 3
				for i := range traffic.Arrivals {
					traffic.Arrivals[i].At = tick * math.Floor(traffic.Arrivals[i].At/tick+0.01)
				}
			}
			same(t, want.rate, got.Rate, 0.005, "rate")
			same(t, want.idc1, dispersion(counts(traffic, 1)), max(0.05, want.idc1/400), "IDC 1 s")
			same(t, want.idc60, got.IDC60, max(0.55, want.idc60/1000), "IDC 60 s")
			same(t, want.peak, got.PeakToMean, 0.05*max(1, want.peak/10), "peak to mean")
			// The published number takes the rest of the last ten minutes as minutes without
			// requests.
			traffic.Span = math.Ceil(traffic.Span/600) * 600
			same(t, want.within, within(counts(traffic, 60)), 0.5, "trend removed")
		})
	}
}

// same compares with a number that is NaN where there is none.
func same(t *testing.T, want, got, delta float64, what string) {
	t.Helper()
	if math.IsNaN(want) {
		assert.True(t, math.IsNaN(got), "%s: %v", what, got)
		return
	}
	assert.InDelta(t, want, got, delta, what)
}

func TestMeasuresOfSmallTraffic(t *testing.T) {
	runs := func(numbers ...int32) []engine.BlockRun {
		var all []engine.BlockRun
		for i := 0; i < len(numbers); i += 2 {
			all = append(all, engine.BlockRun{First: numbers[i], Last: numbers[i+1]})
		}
		return all
	}
	s := Measure(&engine.Traffic{
		Span: 240, BlockTokens: 10,
		Arrivals: []engine.Arrival{
			{At: 0, Prompt: 30, Output: 4, Prefix: runs(0, 2)},
			{At: 1, Prompt: 30, Output: 3, Prefix: runs(0, 1, 3, 3)},
			// Block 2 is known, but not after block 9.
			{At: 61, Prompt: 25, Output: 2, Prefix: runs(9, 9, 2, 2)},
			// The last block is partly filled: 25 tokens are found, not 30.
			{At: 200, Prompt: 25, Output: 1, Prefix: runs(0, 2)},
		},
	})
	assert.Equal(t, 4, s.Requests)
	assert.InDelta(t, 1.0/60, s.Rate, 1e-12)
	assert.InDelta(t, (20+25)/110.0, s.Reuse, 1e-12)
	// Minutes have 2, 1, 0 and 1 requests.
	assert.InDelta(t, (1+0+1+0)/3.0, s.IDC60, 1e-12)
	assert.InDelta(t, 2, s.PeakToMean, 1e-12)
	// Of 2, 1, 0 and 1, 0, 1: deviations 1, 0, -1 and 1/3, -2/3, 1/3.
	assert.InDelta(t, 0, s.Lag, 1e-12)
	// Prompt ranks 2.5, 2.5, 0.5, 0.5 against 3, 2, 1, 0.
	assert.InDelta(t, 4/math.Sqrt(4*5), s.Correlation, 1e-12)
	assert.True(t, math.IsNaN(s.Within), "no whole ten minutes")
	assert.True(t, math.IsNaN(s.Think.P50))

	s = Measure(&engine.Traffic{BlockTokens: 10, Conversations: []engine.Conversation{
		{Turns: []engine.Turn{{Think: 99, Prompt: 20, Output: 1, Prefix: runs(0, 1)}, {Think: 5, Prompt: 40, Output: 1, Prefix: runs(0, 3)}}},
		{Turns: []engine.Turn{{Think: 99, Prompt: 40, Output: 1, Prefix: runs(0, 3)}}},
	}})
	assert.InDelta(t, 20/100.0, s.Reuse, 1e-12, "block numbers are those of a conversation")
	assert.Equal(t, Quantiles{5, 5, 5}, s.Think)
	assert.Equal(t, Quantiles{2, 2, 2}, s.Turns)
}

func TestAPoissonProcessHasAnIndexOfOne(t *testing.T) {
	minutes := make([]float64, 1440)
	rng := newRandom(1, "poisson")
	for i := range minutes {
		for at := rng.ExpFloat64(); at < 60; at += rng.ExpFloat64() {
			minutes[i]++
		}
	}
	assert.InDelta(t, 1, dispersion(minutes), 0.15)
	assert.InDelta(t, 1, within(minutes), 0.15)
	for i := range minutes {
		minutes[i] += float64(i/10) * 3
	}
	assert.Greater(t, dispersion(minutes), 20.0, "a trend")
	assert.Less(t, within(minutes), 1.1, "the trend is removed")
}
