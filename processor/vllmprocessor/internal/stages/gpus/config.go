package gpus

import "github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/stages"

// Config has the choices for the metrics of GPUs.
type Config struct {
	// Unmatched is what becomes of the metrics of GPUs that belong to no server of this
	// processor: keep or drop.
	Unmatched Unmatched `mapstructure:"unmatched"`

	_ struct{}
}

// Unmatched is what becomes of metrics.
type Unmatched string

const (
	// Keep passes them on: the default.
	Keep Unmatched = "keep"
	// Drop removes them, where several collectors read the same exporters.
	Drop Unmatched = "drop"
)

// DefaultConfig returns the default configuration.
func DefaultConfig() Config { return Config{Unmatched: Keep} }

// Check reports all invalid values.
func (c *Config) Check(invalid stages.Invalid) {
	if c.Unmatched != Keep && c.Unmatched != Drop {
		invalid("accelerators::unmatched", "%q is not known; write keep, or drop where several collectors read the same exporters of GPUs", c.Unmatched)
	}
}
