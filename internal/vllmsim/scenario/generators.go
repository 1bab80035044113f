package scenario

import (
	"errors"

	"github.com/otelcol-vllm/otelcol-vllm/internal/vllmsim/engine"
)

// The generators of package traffic.
var (
	names    = func() []string { return nil }
	generate = func(string, uint64, float64, float64) (*engine.Traffic, error) {
		return nil, errors.New("there is no generator yet")
	}
)
