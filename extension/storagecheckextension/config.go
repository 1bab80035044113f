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
	// LockTimeout is how long to wait for another process to release a file.
	LockTimeout time.Duration `mapstructure:"lock_timeout"`
	// CheckTimeout bounds the time of all checks together.
	CheckTimeout time.Duration `mapstructure:"check_timeout"`
	// WatchInterval is the time between two checks for free space on the disk.
	WatchInterval time.Duration `mapstructure:"watch_interval"`
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
	// MaxFiles is their largest number. With 0, damaged files are deleted at once.
	MaxFiles int `mapstructure:"max_files"`
	// MaxSizeMiB is their largest total size in MiB.
	MaxSizeMiB int64 `mapstructure:"max_size_mib"`

	_ struct{}
}

func createDefaultConfig() component.Config {
	return &Config{
		LockTimeout:   5 * time.Second,
		CheckTimeout:  time.Minute,
		WatchInterval: time.Minute,
		SetAside:      SetAsideConfig{MaxFiles: 10, MaxSizeMiB: 1024},
	}
}

// withoutUnit is the longest time that is treated as a mistake: a number without a unit
// is in nanoseconds.
const withoutUnit = 100 * time.Microsecond

// Validate reports all mistakes together.
func (c *Config) Validate() error {
	errs := slices.Clone(c.unread)
	for _, setting := range []struct {
		name  string
		value time.Duration
	}{{"lock_timeout", c.LockTimeout}, {"check_timeout", c.CheckTimeout}, {"watch_interval", c.WatchInterval}} {
		switch {
		case setting.value <= 0:
			errs = append(errs, fmt.Errorf("%s: must be more than 0; write for example 5s", setting.name))
		case setting.value <= withoutUnit:
			errs = append(errs, fmt.Errorf("%s: %d has no unit; write %ds", setting.name, setting.value, setting.value))
		}
	}
	if c.SetAside.MaxFiles < 0 {
		errs = append(errs, fmt.Errorf("set_aside::max_files: must be at least 0, not %d; with 0 no damaged file is kept", c.SetAside.MaxFiles))
	}
	if c.SetAside.MaxSizeMiB < 1 || c.SetAside.MaxSizeMiB > 1<<30 {
		errs = append(errs, fmt.Errorf("set_aside::max_size_mib: must be from 1 to %d, not %d; the default is 1024", 1<<30, c.SetAside.MaxSizeMiB))
	}
	return errors.Join(errs...)
}
