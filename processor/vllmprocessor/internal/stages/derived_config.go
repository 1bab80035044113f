package stages

import (
	"fmt"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
)

// Interpolation is how a quantile is placed within its bucket.
type Interpolation string

const (
	// Linear takes the observations of a bucket as evenly spread, as Prometheus does:
	// the default.
	Linear Interpolation = "linear"
	// MeanConstrained spreads them so that their mean is the true one.
	MeanConstrained Interpolation = "mean_constrained"
)

// DerivedConfig is the configuration of the values over the window.
type DerivedConfig struct {
	// Quantiles are the quantiles of the latencies, from 0 to 1. An empty list switches
	// them off.
	Quantiles []float64 `mapstructure:"quantiles"`
	// CapacityFromBlocks takes blocks times block size as the capacity of the KV
	// cache of servers before v0.24, which overstates hybrid models.
	CapacityFromBlocks bool `mapstructure:"capacity_from_blocks"`
	// Percentiles has the choices for quantiles.
	Percentiles Percentiles `mapstructure:"percentiles"`
	// Hardware is what the GPUs of the servers can do; the first entry that matches
	// counts.
	Hardware []Hardware `mapstructure:"hardware"`

	_ struct{}
}

// Percentiles has the choices for quantiles.
type Percentiles struct {
	// Interpolation is linear or mean_constrained.
	Interpolation Interpolation `mapstructure:"interpolation"`
	// PerEngine adds the quantiles of each engine where a server has several.
	PerEngine bool `mapstructure:"per_engine"`
	// Detailed adds the quantiles of the lengths of prompts and outputs, of the time in the
	// queue, and of the time per output token.
	Detailed bool `mapstructure:"detailed"`

	_ struct{}
}

// DefaultDerivedConfig returns the default configuration.
func DefaultDerivedConfig() DerivedConfig {
	return DerivedConfig{Quantiles: []float64{0.5, 0.95, 0.99}, Percentiles: Percentiles{Interpolation: Linear}}
}

// Switches reports whether a choice of the configuration switches on a metric that is off
// by default.
func (c *DerivedConfig) Switches(metric string) bool {
	return c.Percentiles.Detailed && derive.Detailed(metric)
}

// Check reports all invalid values.
func (c *DerivedConfig) Check(invalid Invalid) {
	seen := map[float64]bool{}
	for i, q := range c.Quantiles {
		key := fmt.Sprintf("quantiles::%d", i)
		switch {
		case q > 1 && q <= 100:
			invalid(key, "%g is not from 0 to 1; write %.6g for p%g", q, q/100, q)
		case !(q >= 0 && q <= 1):
			invalid(key, "%g is not from 0 to 1; write for example 0.95", q)
		case seen[q]:
			invalid(key, "%g is there twice; remove one", q)
		}
		seen[q] = true
	}
	if c.Percentiles.Detailed && len(c.Quantiles) == 0 {
		invalid("percentiles::detailed", "adds quantiles, and the list of quantiles is empty; write for example quantiles: [0.5, 0.95], or remove detailed")
	}
	switch c.Percentiles.Interpolation {
	case Linear, MeanConstrained:
	default:
		invalid("percentiles::interpolation", "%q is not known; write linear or mean_constrained", c.Percentiles.Interpolation)
	}
	c.checkHardware(invalid)
}
