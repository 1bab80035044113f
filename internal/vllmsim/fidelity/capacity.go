package fidelity

import (
	"context"
	"fmt"
)

// cacheSizes compares the number of tokens that fit into the KV cache.
func cacheSizes(_ context.Context, d *data) ([]Line, error) {
	fits := Line{Quantity: CacheSize, Bar: 0.25, What: "dense models"}
	var out []Line
	err := d.each("capacity.csv", func(r row) {
		e := engineOf{r.text("gpu"), r.text("model"), r.whole("tp"), r.text("weights"), r.text("kv_dtype")}
		tokens, why := d.cacheOf(e)
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
