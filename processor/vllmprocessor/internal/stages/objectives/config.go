package objectives

import (
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/objective"
)

// Config is the configuration of the objectives. Its keys are those of the processor:
// the collector names the key of an invalid objective by the Go structure, so the
// processor's own Config has the same three fields.
type Config struct {
	// Objectives are promises about latencies.
	Objectives []objective.Objective
	// BudgetWindow is the time that an error budget is for.
	BudgetWindow objective.Duration
	// BurnWindows are the times that burn rates are over.
	BurnWindows []objective.Duration
}

// DefaultConfig returns the default configuration, which has no objective.
func DefaultConfig() Config {
	return Config{
		BudgetWindow: objective.Duration(30 * 24 * time.Hour),
		BurnWindows:  []objective.Duration{objective.Duration(time.Hour), objective.Duration(6 * time.Hour)},
	}
}

// Check returns all invalid values, other than those within an objective, which the
// collector finds by its Validate.
func (c *Config) Check() error {
	return objective.ValidateAll(c.Objectives, c.BudgetWindow, c.BurnWindows)
}
