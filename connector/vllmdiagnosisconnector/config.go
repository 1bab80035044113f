package vllmdiagnosisconnector

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-vllm/otelcol-vllm/internal/settings"
)

// Config is the configuration of the connector. The default is complete.
type Config struct {
	// Initial emits the first diagnosis of every engine. Without it, a first diagnosis is
	// emitted only where its severity is a warning or more.
	Initial bool `mapstructure:"initial"`
	// MaxStaleness is the time without a point after which an engine is forgotten.
	MaxStaleness time.Duration `mapstructure:"max_staleness"`
	// MaxEngines is the most engines, of all resources, and pools whose diagnosis
	// is kept.
	MaxEngines int `mapstructure:"max_engines"`

	// unread are the mistakes of Unmarshal. Validate reports them together with all others.
	unread []error
	_      struct{}
}

// Unmarshal reads the configuration.
func (c *Config) Unmarshal(conf *confmap.Conf) error {
	c.unread = settings.Decode(conf, c)
	return nil
}

func createDefaultConfig() component.Config {
	return &Config{MaxStaleness: 5 * time.Minute, MaxEngines: 10_000}
}

const (
	// minStaleness is the least: servers are not scraped more often than once a
	// second.
	minStaleness = time.Second
	// withoutUnit is the longest time that is a slip: a number without a unit
	// counts nanoseconds.
	withoutUnit = 100 * time.Microsecond
)

// Validate reports all invalid values together.
func (c *Config) Validate() error {
	errs := slices.Clone(c.unread)
	switch {
	case c.MaxStaleness <= 0:
		errs = append(errs, errors.New("max_staleness: must be more than 0; write for example 5m"))
	case c.MaxStaleness <= withoutUnit:
		errs = append(errs, fmt.Errorf("max_staleness: %d has no unit; write %ds", c.MaxStaleness, c.MaxStaleness))
	case c.MaxStaleness < minStaleness:
		errs = append(errs, fmt.Errorf("max_staleness: %s is too short; write at least twice the time between two scrapes, for example 5m", c.MaxStaleness))
	}
	if c.MaxEngines < 1 {
		errs = append(errs, fmt.Errorf("max_engines: must be at least 1, not %d; the default is 10000", c.MaxEngines))
	}
	return errors.Join(errs...)
}
