package vllmprocessor

import "time"

// DiagnosisConfig has the choices for the diagnosis.
type DiagnosisConfig struct {
	// Enabled is true unless nothing shall be diagnosed.
	Enabled bool `mapstructure:"enabled"`
	// Hold is for how many windows a state has to last before it is told, and
	// before it is told that it is over.
	Hold int `mapstructure:"hold"`
	// RelearnAfter is how long latencies have to stay beyond what was usual, and be
	// stable, until they are taken as usual.
	RelearnAfter time.Duration `mapstructure:"relearn_after"`
	// StartTimeout is how long a server that refuses connections, or answers that it is
	// not ready, is starting before its first successful scrape.
	StartTimeout time.Duration `mapstructure:"start_timeout"`
	// SpeculationBreakEven is the number of tokens that a step of speculative
	// decoding has to give to be worth its drafts; 0 where nobody says.
	SpeculationBreakEven float64 `mapstructure:"speculation_break_even"`
	// Attributes puts the diagnosis on the derived metrics.
	Attributes DiagnosisAttributes `mapstructure:"attributes"`

	_ struct{}
}

// DiagnosisAttributes says where the attributes vllm.diagnosis.condition and
// vllm.diagnosis.cause stand.
type DiagnosisAttributes struct {
	// On is none, derived or resource.
	On AttributesOn `mapstructure:"on"`

	_ struct{}
}

// AttributesOn says what carries the condition and the primary cause. Either makes
// new series of the derived metrics with every change.
type AttributesOn string

const (
	// OnNone puts them on nothing: the default.
	OnNone AttributesOn = "none"
	// OnDerived puts those of an engine on the points of its derived metrics.
	OnDerived AttributesOn = "derived"
	// OnResource moves the derived metrics to a second resource, the input's with
	// those of the engine that is off worst.
	OnResource AttributesOn = "resource"
)

func defaultDiagnosisConfig() DiagnosisConfig {
	return DiagnosisConfig{Enabled: true, Hold: 2, RelearnAfter: time.Hour, StartTimeout: 10 * time.Minute, Attributes: DiagnosisAttributes{On: OnNone}}
}

func (c *Config) validateDiagnosis(add func(key, format string, args ...any)) {
	d := &c.Diagnosis
	switch on := d.Attributes.On; {
	case on != OnNone && on != OnDerived && on != OnResource:
		add("diagnosis::attributes::on", "%q is not known; write none, derived or resource", on)
	case on != OnNone && !d.Enabled:
		add("diagnosis::attributes::on", "there is nothing to tell, because the diagnosis is switched off; write none, or leave out enabled: false")
	}
	if d.Hold < 1 || d.Hold > maxHold {
		add("diagnosis::hold", "must be from 1 to %d windows, not %d; the default is 2", maxHold, d.Hold)
	}
	switch {
	case d.RelearnAfter <= 0:
		add("diagnosis::relearn_after", "must be more than 0; write for example 1h")
	case d.RelearnAfter <= withoutUnit:
		add("diagnosis::relearn_after", "%d has no unit; write %ds", d.RelearnAfter, d.RelearnAfter)
	case d.Hold >= 1 && d.Hold <= maxHold && d.RelearnAfter < c.leastRelearnAfter():
		add("diagnosis::relearn_after", "%s is too short: harm would be taken as usual as soon as it is told; write at least %s, five times hold times window",
			d.RelearnAfter, c.leastRelearnAfter())
	}
	switch {
	case d.StartTimeout < 0:
		add("diagnosis::start_timeout", "must not be negative; write for example 10m, or 0s to report a server that does not answer at once")
	case d.StartTimeout > 0 && d.StartTimeout <= withoutUnit:
		add("diagnosis::start_timeout", "%d has no unit; write %ds", d.StartTimeout, d.StartTimeout)
	case d.StartTimeout > maxStartTimeout:
		add("diagnosis::start_timeout", "%s is too long: a server that never starts would not be reported; write at most %s", d.StartTimeout, spell(maxStartTimeout))
	}
	if d.SpeculationBreakEven != 0 && !(d.SpeculationBreakEven >= 1 && d.SpeculationBreakEven <= 100) {
		add("diagnosis::speculation_break_even", "%g is no number of tokens per step; write for example 1.5, or leave it out", d.SpeculationBreakEven)
	}
}

// leastRelearnAfter is five times as long as it takes to tell of harm.
func (c *Config) leastRelearnAfter() time.Duration {
	return 5 * time.Duration(min(max(c.Diagnosis.Hold, 1), maxHold)) * c.Window
}

// maxStartTimeout is the longest start timeout. The largest models load in less.
const maxStartTimeout = 24 * time.Hour

// maxHold is the longest hold in windows.
const maxHold = 60
