package scrape

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/confmap"
	"golang.org/x/net/http/httpguts"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/normalize"
)

// CanaryConfig has the settings of canaries.
type CanaryConfig struct {
	// Interval is the time between two canaries to a server.
	Interval time.Duration `mapstructure:"interval"`
	// Timeout is the deadline of one canary.
	Timeout time.Duration `mapstructure:"timeout"`
	// Model is the model that is asked; empty for the first one that the server lists.
	Model string `mapstructure:"model"`
	// Path is where a canary is sent.
	Path string `mapstructure:"path"`
	// APIKey is sent as a bearer token.
	APIKey configopaque.String `mapstructure:"api_key,omitempty"`
	// Also has the kinds of servers that get canaries as well.
	Also []string `mapstructure:"also,omitempty"`

	_ struct{}
}

// The servers that get no canary unless they are named. One of several engines answers a canary,
// so that one which stands still is not found. With KV transfer a server may not answer alone.
const (
	alsoTransfer = "kv_transfer"
	alsoParallel = "data_parallel"
)

// DefaultCanary returns the defaults of canaries.
func DefaultCanary() CanaryConfig {
	return CanaryConfig{Interval: 15 * time.Second, Timeout: 15 * time.Second, Path: "/v1/completions"}
}

// Unmarshal fills in the defaults. They are not in the default configuration, because
// print-config prints a section that is off as null, which would switch it on when it is read.
func (c *CanaryConfig) Unmarshal(conf *confmap.Conf) error {
	if c.Interval == 0 && c.Timeout == 0 && c.Path == "" {
		*c = DefaultCanary()
	}
	return conf.Unmarshal(c)
}

// minCanary is the shortest interval and timeout of canaries.
const minCanary = time.Second

// validateCanaries finds mistakes in the canary of the receiver and in those of its targets. One
// that a target inherits is reported once.
func (c *Config) validateCanaries(add func(key, format string, args ...any)) {
	c.validateCanary("", &c.Canary, &c.Client, add)
	for i := range c.Targets {
		target := &c.Targets[i]
		if !reflect.DeepEqual(target.Canary.Get(), c.Canary.Get()) ||
			target.Client.Auth.HasValue() != c.Client.Auth.HasValue() || target.Client.MaxConnsPerHost != c.Client.MaxConnsPerHost {
			c.validateCanary(fmt.Sprintf("targets::%d::", i), &target.Canary, &target.Client, add)
		}
	}
}

func (c *Config) validateCanary(
	key string, of *configoptional.Optional[CanaryConfig], client *confighttp.ClientConfig, add func(key, format string, args ...any),
) {
	canary := of.Get()
	if canary == nil {
		return
	}
	key += "canary"
	switch c.Source {
	case normalize.SourceDCGM, normalize.SourceAMD, normalize.SourceGateway, normalize.SourceLoRA:
		add(key, "source says that the targets are not vLLM servers; remove canary, or list the servers in a receiver of their own")
	}
	if client.MaxConnsPerHost == 1 {
		add(key, "a canary that waits would take the only connection of the scrapes; set max_conns_per_host to 0 or to more than 1")
	}
	if canary.Interval < minCanary {
		add(key+"::interval", "%s is too short; write at least %s, for example 15s", canary.Interval, minCanary)
	}
	if canary.Timeout < minCanary {
		add(key+"::timeout", "%s is too short; write at least %s, for example 15s", canary.Timeout, minCanary)
	}
	if !strings.HasPrefix(canary.Path, "/") || strings.ContainsAny(canary.Path, "?#") {
		add(key+"::path", "must begin with / and have neither ? nor #; write for example /v1/completions")
	}
	switch {
	case !httpguts.ValidHeaderFieldValue(string(canary.APIKey)):
		// The value is a secret.
		add(key+"::api_key", "cannot be sent; remove line breaks and control characters")
	case canary.APIKey != "" && client.Auth.HasValue():
		add(key+"::api_key", "auth sets the credentials of all requests already; remove one of the two")
	}
	for i, word := range canary.Also {
		if word != alsoTransfer && word != alsoParallel {
			add(fmt.Sprintf("%s::also::%d", key, i), "%q is unknown; write %s or %s", word, alsoTransfer, alsoParallel)
		}
	}
}
