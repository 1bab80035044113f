package storagecheckextension

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-vllm/otelcol-vllm/internal/settings"
)

// Config is the configuration of the extension. All settings have defaults.
type Config struct {
	// CheckTimeout bounds the time of all checks together.
	CheckTimeout time.Duration `mapstructure:"check_timeout"`
	// SetAside limits the damaged files that are kept.
	SetAside SetAsideConfig `mapstructure:"set_aside"`

	// unread are the mistakes of Unmarshal. Validate reports them together with all others.
	unread []error
	_      struct{}
}

// Unmarshal reads the configuration.
func (c *Config) Unmarshal(conf *confmap.Conf) error {
	c.unread = settings.Decode(conf, c)
	return nil
}

// SetAsideConfig limits the damaged files that are kept in each directory. The oldest
// are deleted first.
type SetAsideConfig struct {
	// MaxSizeMiB is their largest total size in MiB.
	MaxSizeMiB int64 `mapstructure:"max_size_mib"`

	_ struct{}
}

func createDefaultConfig() component.Config {
	return &Config{CheckTimeout: time.Minute, SetAside: SetAsideConfig{MaxSizeMiB: 1024}}
}

// withoutUnit is the longest time that is treated as a mistake: a number without a unit
// is in nanoseconds.
const withoutUnit = 100 * time.Microsecond

// Validate reports all mistakes together.
func (c *Config) Validate() error {
	errs := slices.Clone(c.unread)
	switch {
	case c.CheckTimeout <= 0:
		errs = append(errs, errors.New("check_timeout: must be more than 0; write for example 1m"))
	case c.CheckTimeout <= withoutUnit:
		errs = append(errs, fmt.Errorf("check_timeout: %d has no unit; write %ds", c.CheckTimeout, c.CheckTimeout))
	}
	if c.SetAside.MaxSizeMiB < 1 || c.SetAside.MaxSizeMiB > 1<<30 {
		errs = append(errs, fmt.Errorf("set_aside::max_size_mib: must be from 1 to %d, not %d; the default is 1024", 1<<30, c.SetAside.MaxSizeMiB))
	}
	return errors.Join(errs...)
}
