package stages

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/gpu"
)

func TestAnUnknownChoiceIsReported(t *testing.T) {
	t.Parallel()
	check := func(choice Unmatched) (found []string) {
		config := GPUsConfig{Unmatched: choice}
		config.Check(func(key, format string, args ...any) { found = append(found, key+": "+fmt.Sprintf(format, args...)) })
		return found
	}
	assert.Empty(t, check(DefaultGPUsConfig().Unmatched))
	assert.Empty(t, check(Drop))
	assert.Equal(t, []string{`accelerators::unmatched: "no" is not known; write keep, or drop where several collectors read the same exporters of GPUs`}, check("no"))
}

// 10 tokens in the first second, 30 in the next, then an engine that goes: its tokens are gone as well.
func TestTokensOfASpanAreOnTheLineBetweenScrapes(t *testing.T) {
	t.Parallel()
	const second = int64(1e9)
	var g tokens
	for i, total := range []float64{100, 110, 140} {
		g.add(int64(i+1)*second, total, 8*second)
	}
	in := func(from, to float64) float64 {
		return g.in(gpu.Span{From: int64(from * 1e9), To: int64(to * 1e9)})
	}
	assert.InDelta(t, 20, in(1.5, 2.5), 1e-9)
	assert.InDelta(t, 40, in(1, 3), 1e-9)
	assert.True(t, math.IsNaN(in(0.5, 2)), "before the first scrape")
	assert.True(t, math.IsNaN(in(2, 3.5)), "after the last one")
	g.add(3*second, 150, 8*second)
	assert.InDelta(t, 50, in(1, 3), 1e-9, "another part of the same scrape")
	g.add(2*second, 1000, 8*second)
	assert.InDelta(t, 50, in(1, 3), 1e-9, "a late one is left out")
	g.add(4*second, 20, 8*second)
	assert.True(t, math.IsNaN(in(1, 3)))
	for i := range int64(1000) {
		g.add((5+i)*second, 20, 8*second)
	}
	assert.LessOrEqual(t, len(g.times), tokenSlots*tokenWindows)
}
