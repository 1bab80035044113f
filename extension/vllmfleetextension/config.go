package vllmfleetextension

import (
	"errors"
	"fmt"
	"slices"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-vllm/otelcol-vllm/internal/settings"
)

// Config is the configuration of the extension. All settings have defaults.
type Config struct {
	confighttp.ServerConfig `mapstructure:",squash"`
	// UnfitShare is the largest share of the servers of a pool that probes report as unfit at once, from 0 to 1. One
	// server of a pool can always be unfit, unless it is 0.
	UnfitShare float64 `mapstructure:"unfit_share"`

	// unread are the mistakes of Unmarshal. Validate reports them together with all others.
	unread []error
	_      struct{}
}

const defaultEndpoint = "localhost:55690"

func createDefaultConfig() component.Config {
	server := confighttp.NewDefaultServerConfig()
	server.NetAddr.Endpoint = defaultEndpoint
	return &Config{ServerConfig: server, UnfitShare: 0.3}
}

// Unmarshal reads the configuration.
func (c *Config) Unmarshal(conf *confmap.Conf) error {
	c.unread = settings.Decode(conf, c)
	return nil
}

// Validate reports all mistakes together.
func (c *Config) Validate() error {
	errs := slices.Clone(c.unread)
	if c.NetAddr.Endpoint == "" {
		errs = append(errs, errors.New("endpoint: is empty; write for example "+defaultEndpoint))
	}
	if !(c.UnfitShare >= 0 && c.UnfitShare <= 1) {
		errs = append(errs, fmt.Errorf("unfit_share: %g is not a share; write a number from 0 to 1, for example 0.3", c.UnfitShare))
	}
	return errors.Join(errs...)
}
