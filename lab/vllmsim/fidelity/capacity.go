package fidelity

import (
	"context"
	"fmt"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// cacheSizes compares the number of tokens that fit into the KV cache.
func cacheSizes(_ context.Context, d *data) ([]Line, error) {
	fits := Line{Quantity: CacheSize, Bar: 0.25, What: "dense models"}
	var out []Line
	err := d.each("capacity.csv", func(r row) {
		e := engineOf{r.text("gpu"), r.text("model"), r.whole("tp"), r.text("weights"), r.text("kv_dtype")}
		tokens, why := cacheOf(e)
		if why != "" {
			out = append(out, Line{What: e.String(), Note: why})
			return
		}
		fits.Pairs = append(fits.Pairs, Pair{e.String(), r.number("kv_cache_tokens"), tokens})
	})
	if err != nil {
		return nil, fmt.Errorf("capacity: %w", err)
	}
	return append([]Line{fits}, out...), nil
}

// cacheOf returns the tokens that the simulator gives an engine, or why it gives none. An
// fp8 cache has half of the bytes per token.
func cacheOf(e engineOf) (tokens float64, why string) {
	if _, known := shapes[e.model]; !known {
		return 0, "not simulated: its attention is not of a dense model"
	}
	m := engine.Measured(e.String(), e.card(), nil)
	tokens = float64(m.Blocks) * blockTokens
	if e.kv == "fp8" {
		tokens *= 2
	}
	return tokens, ""
}
