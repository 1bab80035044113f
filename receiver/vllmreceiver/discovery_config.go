package vllmreceiver

import (
	"strings"

	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/discover"
)

// DiscoveryConfig finds servers as Prometheus does. Its keys are Prometheus's
// kubernetes_sd_configs, http_sd_configs, file_sd_configs, dns_sd_configs,
// static_configs and relabel_configs, and the short forms kubernetes and
// inference_pool.
type DiscoveryConfig struct {
	// settings is nil without discovery, and where there are mistakes.
	settings *discover.Settings
	// mistakes are told by Validate, together with all others.
	mistakes []error

	_ struct{}
}

// Unmarshal reads the section with Prometheus's own unmarshallers, which the
// collector's cannot replace: their defaults and checks are in them.
func (d *DiscoveryConfig) Unmarshal(conf *confmap.Conf) error {
	d.settings, d.mistakes = discover.Parse(conf.ToStringMap())
	return nil
}

func (d *DiscoveryConfig) isSet() bool { return d.settings != nil || len(d.mistakes) > 0 }

func (d *DiscoveryConfig) validate(add func(key, format string, args ...any)) {
	for _, mistake := range d.mistakes {
		// The mistake begins with its key below the section, or has none.
		key, message, found := strings.Cut(mistake.Error(), ": ")
		if !found || strings.Contains(key, " ") {
			add("discovery", "%s", mistake.Error())
			continue
		}
		add("discovery::"+key, "%s", message)
	}
}
