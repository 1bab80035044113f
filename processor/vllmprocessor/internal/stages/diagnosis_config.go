package stages

import (
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/diagnose"
)

// DiagnosisConfig is the configuration of the diagnosis.
type DiagnosisConfig struct {
	// Enabled is true unless the diagnosis is switched off.
	Enabled bool `mapstructure:"enabled"`
	// Hold is the least number of windows of great harm until it is reported; small harm
	// takes longer. Errors and dropped requests are reported after, and end after, so many
	// windows.
	Hold int `mapstructure:"hold"`
	// RelearnAfter is how long latencies have to stay beyond what was usual, and be
	// stable, until they are taken as usual.
	RelearnAfter time.Duration `mapstructure:"relearn_after"`
	// StartTimeout is how long a server that refuses connections, or answers that it is
	// not ready, counts as starting before its first successful scrape.
	StartTimeout time.Duration `mapstructure:"start_timeout"`
	// SpeculationBreakEven is the number of tokens that a step of speculative
	// decoding has to give to be worth its drafts; 0 where it is not known.
	SpeculationBreakEven float64 `mapstructure:"speculation_break_even"`
	// Without is not a setting: the accuracy page measures with it what each part of the method is
	// there for.
	Without diagnose.Without `mapstructure:"-"`

	_ struct{}
}

// DefaultDiagnosisConfig returns the default configuration.
func DefaultDiagnosisConfig() DiagnosisConfig {
	return DiagnosisConfig{Enabled: true, Hold: 2, RelearnAfter: time.Hour, StartTimeout: 30 * time.Minute}
}

// Check reports all invalid values. window is that of the processor.
func (c *DiagnosisConfig) Check(window time.Duration, invalid Invalid) {
	if c.Hold < 1 || c.Hold > maxHold {
		invalid("diagnosis::hold", "must be from 1 to %d windows, not %d; the default is 2", maxHold, c.Hold)
	}
	const relearn = "diagnosis::relearn_after"
	switch {
	case c.RelearnAfter <= 0:
		invalid(relearn, "must be more than 0; write for example 1h")
	case invalid.LacksUnit(relearn, c.RelearnAfter):
	case c.Hold >= 1 && c.Hold <= maxHold && c.RelearnAfter < c.LeastRelearnAfter(window):
		invalid(relearn, "%s is too short: harm would be taken as usual as soon as it is reported; write at least %s, five times hold times window",
			c.RelearnAfter, c.LeastRelearnAfter(window))
	}
	const start = "diagnosis::start_timeout"
	switch {
	case c.StartTimeout < 0:
		invalid(start, "must not be negative; write for example 10m, or 0s to report a server that does not answer at once")
	case invalid.LacksUnit(start, c.StartTimeout):
	case c.StartTimeout > maxStartTimeout:
		invalid(start, "%s is too long: a server that never starts would not be reported; write at most %s", c.StartTimeout, Spell(maxStartTimeout))
	}
	if c.SpeculationBreakEven != 0 && !(c.SpeculationBreakEven >= 1 && c.SpeculationBreakEven <= 100) {
		invalid("diagnosis::speculation_break_even", "%g is not a number of tokens per step; write for example 1.5, or leave it out", c.SpeculationBreakEven)
	}
}

// LeastRelearnAfter is five times as long as it takes to report great harm.
func (c *DiagnosisConfig) LeastRelearnAfter(window time.Duration) time.Duration {
	return 5 * time.Duration(min(max(c.Hold, 1), maxHold)) * window
}

const (
	// maxStartTimeout is the longest start timeout. The largest models load in less.
	maxStartTimeout = 24 * time.Hour
	// maxHold is the longest hold in windows.
	maxHold = 60
)
