package scrape

import (
	"strings"

	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/discover"
)

// DiscoveryConfig configures the discovery of servers. Its keys are Prometheus's
// kubernetes_sd_configs, http_sd_configs, file_sd_configs, dns_sd_configs,
// static_configs and relabel_configs, and the short forms kubernetes and
// inference_pool.
type DiscoveryConfig struct {
	discover.Settings `mapstructure:",squash"`
	// mistakes were found by Unmarshal. Validate reports them together with all others.
	mistakes []error

	_ struct{}
}

// Unmarshal reads the section with Prometheus's own unmarshallers, because they contain
// its defaults and checks.
func (d *DiscoveryConfig) Unmarshal(conf *confmap.Conf) error {
	section := conf.ToStringMap()
	if len(section) == 0 {
		// print-config prints a configuration without discovery like this.
		*d = DiscoveryConfig{}
		return nil
	}
	settings, mistakes := discover.Parse(section)
	*d = DiscoveryConfig{mistakes: mistakes}
	if settings != nil {
		d.Settings = *settings
	}
	return nil
}

// Marshal writes the section without its secrets.
func (d DiscoveryConfig) Marshal(conf *confmap.Conf) error {
	all, err := d.Map()
	if err != nil {
		return err
	}
	return conf.Merge(confmap.NewFromStringMap(all))
}

func (d *DiscoveryConfig) isSet() bool {
	return d.IsSet() || len(d.RelabelConfigs) > 0 || len(d.mistakes) > 0
}

func (d *DiscoveryConfig) validate(add func(key, format string, args ...any)) {
	mistakes := d.mistakes
	if len(mistakes) == 0 && d.isSet() {
		// The configuration may have been created without Unmarshal.
		mistakes = d.Mistakes()
	}
	for _, mistake := range mistakes {
		// A mistake may begin with its key below the section.
		key, message, found := strings.Cut(mistake.Error(), ": ")
		if !found || strings.Contains(key, " ") {
			add("discovery", "%s", mistake.Error())
			continue
		}
		add("discovery::"+key, "%s", message)
	}
}
