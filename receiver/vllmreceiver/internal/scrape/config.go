package scrape

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/url"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/scraper/scraperhelper"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/internal/settings"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/discover"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/fetch"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/metadata"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/normalize"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/remote"
)

// Naming selects the names of the metrics.
type Naming string

const (
	// NamingCanonical selects the names of the catalogue. It is the default.
	NamingCanonical Naming = "canonical"
	// NamingWire keeps the names and labels of the server.
	NamingWire Naming = "wire"
)

// Config is the configuration of the receiver.
type Config struct {
	// Controller has collection_interval and initial_delay. Its timeout has the same key
	// as that of the client, which is the deadline of one fetch. The helper does not use
	// it, because its deadline would include sending.
	Controller scraperhelper.ControllerConfig `mapstructure:",squash"`
	// Client is the client of the only target, or the default for all targets.
	Client confighttp.ClientConfig `mapstructure:",squash"`
	// Targets are the servers to scrape, if there are several.
	Targets []TargetConfig `mapstructure:"targets"`
	// Discovery finds more servers while the collector runs.
	Discovery DiscoveryConfig `mapstructure:"discovery"`
	// ServiceName is the resource attribute service.name, equal for all replicas.
	ServiceName string `mapstructure:"service_name"`
	// Canary sends small requests to servers without traffic; there are none without it.
	Canary configoptional.Optional[CanaryConfig] `mapstructure:"canary"`
	// HealthCheck asks /health as well and adds the metric vllm.healthy.
	HealthCheck bool `mapstructure:"health_check"`
	// Limits are the limits of each target.
	Limits LimitsConfig `mapstructure:"limits"`
	// Naming is canonical or wire.
	Naming Naming `mapstructure:"naming"`
	// Source is the kind of the targets, if their bodies do not show it.
	Source normalize.Source `mapstructure:"source"`
	// Gateway has the settings for inference gateways.
	Gateway GatewayConfig `mapstructure:"gateway"`
	// Prefixes are further prefixes that a deployment adds to vLLM's family names.
	Prefixes []string `mapstructure:"prefixes"`
	// CapacityFromBlocks emits vllm.kv_cache.capacity for servers before v0.24, as the
	// blocks of one engine times the block size. The product is too large for models with
	// several kinds of attention.
	CapacityFromBlocks bool `mapstructure:"capacity_from_blocks"`
	// GenAI mirrors three histograms under the OpenTelemetry conventions.
	GenAI GenAIConfig `mapstructure:"gen_ai"`
	// Preset is what is emitted: the metrics of a preset, and those that the processor computes them from.
	Preset catalog.Preset `mapstructure:"preset"`
	// Metrics switches metrics on and off by name.
	Metrics map[string]MetricConfig `mapstructure:"metrics"`
	// ResourceAttributes switches resource attributes on and off by name.
	ResourceAttributes metadata.ResourceAttributesConfig `mapstructure:"resource_attributes"`

	// Moved are sentences about settings that the Collector has moved, with the new form.
	Moved []string `mapstructure:"-"`
	// unread are the mistakes of Unmarshal. Validate reports them together with all others.
	unread []error
	_      struct{}
}

// TargetConfig is one server.
type TargetConfig struct {
	// Client inherits the settings of the receiver's own client.
	Client confighttp.ClientConfig `mapstructure:",squash"`
	// ResourceAttributes are added to the target's resource.
	ResourceAttributes map[string]any `mapstructure:"resource_attributes"`
	// Canary inherits the settings of the receiver.
	Canary configoptional.Optional[CanaryConfig] `mapstructure:"canary"`

	source *confmap.Conf
	_      struct{}
}

// LimitsConfig has the limits of each target.
type LimitsConfig struct {
	// BodySize is the largest body after decompression.
	BodySize ByteSize `mapstructure:"body_size"`
	// Series is the maximum number of series; a histogram counts as one.
	Series int `mapstructure:"series"`
	// Adapters is the maximum number of LoRA adapters with series.
	Adapters int `mapstructure:"adapters"`
	// Devices is the maximum number of GPUs of an exporter, and of the workloads that use
	// them.
	Devices int `mapstructure:"devices"`
	// Targets is the maximum number of discovered targets of the receiver.
	Targets int `mapstructure:"targets"`
	// Memory limits the memory for the layouts of large bodies of all targets together; 0
	// means an eighth of GOMEMLIMIT.
	Memory ByteSize `mapstructure:"memory"`

	_ struct{}
}

// GenAIConfig is the mirror of three histograms under the OpenTelemetry GenAI
// conventions.
type GenAIConfig struct {
	Enabled bool `mapstructure:"enabled"`

	_ struct{}
}

// GatewayConfig has the settings for inference gateways.
type GatewayConfig struct {
	// FairnessID keeps the attribute fairness_id. Clients can set any value, so by default
	// the series are added up over it.
	FairnessID bool `mapstructure:"fairness_id"`

	_ struct{}
}

// MetricConfig switches one metric.
type MetricConfig struct {
	// Enabled is nil if the preset applies.
	Enabled *bool `mapstructure:"enabled"`

	_ struct{}
}

// ByteSize is a number of bytes, written as "16MiB" or 16777216.
type ByteSize int64

// UnmarshalText reads a size with a unit.
func (s *ByteSize) UnmarshalText(text []byte) error {
	n, err := humanize.ParseBytes(string(text))
	if err != nil || n > 1<<40 {
		return fmt.Errorf("%q is not a size; write for example 16MiB", text)
	}
	*s = ByteSize(n)
	return nil
}

// defaultLimits returns limits that fit the memory of the shipped manifests, see docs/why/performance.md. A
// server with 64 engines has a body of about 4 MB with 8,000 series.
func defaultLimits() LimitsConfig {
	return LimitsConfig{BodySize: 8 << 20, Series: 20000, Adapters: 1000, Devices: 256, Targets: 1000}
}

// memory returns limits::memory in bytes.
func (c *LimitsConfig) memory() int {
	if c.Memory > 0 {
		return int(c.Memory)
	}
	if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 {
		return int(limit / 8)
	}
	return memoryWithoutLimit
}

// memoryWithoutLimit is the default of limits::memory without a GOMEMLIMIT.
const memoryWithoutLimit = 256 << 20

// DefaultConfig returns the defaults of the receiver.
func DefaultConfig() *Config {
	controller := scraperhelper.NewDefaultControllerConfig()
	controller.CollectionInterval = 15 * time.Second
	client := confighttp.NewDefaultClientConfig()
	client.Timeout = 10 * time.Second
	return &Config{
		Controller:         controller,
		Client:             client,
		ServiceName:        "vllm",
		Limits:             defaultLimits(),
		Naming:             NamingCanonical,
		Source:             normalize.SourceAuto,
		ResourceAttributes: metadata.DefaultResourceAttributesConfig(),
	}
}

// Unmarshal decodes each target into a copy of the receiver's own client and canary, so that a target
// inherits the settings that it does not set.
func (c *Config) Unmarshal(conf *confmap.Conf) error {
	c.Moved = moveKeepalive(conf, &c.Client)
	c.unread = settings.Decode(conf, c)
	if conf.IsSet("discovery") && conf.Get("discovery") == nil {
		// The key without a value is an unfinished configuration.
		_, c.Discovery.mistakes = discover.Parse(nil)
	}
	if !conf.IsSet("timeout") && c.Controller.CollectionInterval > 0 {
		// An interval shorter than the default timeout is not a mistake.
		c.Client.Timeout = min(c.Client.Timeout, c.Controller.CollectionInterval)
	}
	for i := range c.Targets {
		target := &c.Targets[i]
		inherited := TargetConfig{Client: c.Client, Canary: c.Canary}
		inherited.Client.Endpoint = ""
		if target.source != nil {
			for _, sentence := range moveKeepalive(target.source, &inherited.Client) {
				c.Moved = append(c.Moved, fmt.Sprintf("targets::%d::%s", i, sentence))
			}
			for _, mistake := range settings.Decode(target.source, &inherited) {
				c.unread = append(c.unread, fmt.Errorf("targets::%d::%w", i, mistake))
			}
		}
		if target.source != nil && target.source.IsSet("canary") && target.source.Get("canary") == nil {
			// print-config prints a canary that is off like this.
			inherited.Canary = configoptional.None[CanaryConfig]()
		}
		inherited.source = nil // Otherwise it would stay in memory.
		*target = inherited
	}
	return nil
}

// moveKeepalive moves those settings of an HTTP client into the section keepalive that the Collector
// has moved there with v0.160, and returns a sentence with the new form for each. Without this, the
// Collector warns for each target, also where it inherits the setting. Where the section is there,
// the Collector says what is wrong. client has what the settings are added to.
func moveKeepalive(conf *confmap.Conf, client *confighttp.ClientConfig) (moved []string) {
	if conf.Get("keepalive") != nil {
		return nil
	}
	section, off := map[string]any{}, ""
	if client.DisableKeepAlives && !conf.IsSet("disable_keep_alives") {
		// A section without this would enable what the target inherits as disabled.
		section["enabled"], off = false, "enabled: false, "
	}
	for _, old := range []string{"disable_keep_alives", "idle_conn_timeout", "max_idle_conns", "max_idle_conns_per_host"} {
		if !conf.IsSet(old) {
			continue
		}
		value := conf.Get(old)
		setting := old
		if old == "disable_keep_alives" {
			disabled, is := value.(bool)
			if !is {
				continue // Decode says what is wrong.
			}
			setting, value = "enabled", !disabled
		}
		section[setting] = value
		conf.Delete(old)
		moved = append(moved, fmt.Sprintf("%s has moved; write keepalive: {%s%s: %v}", old, off, setting, value))
	}
	if len(moved) > 0 {
		// Merging a map of plain values cannot fail.
		_ = conf.Merge(confmap.NewFromStringMap(map[string]any{"keepalive": section}))
	}
	return moved
}

// Unmarshal stores the configuration of the target for Config.Unmarshal.
func (t *TargetConfig) Unmarshal(conf *confmap.Conf) error {
	t.source = conf
	return nil
}

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

// ParseEndpoint reads the address of a target and adds /metrics if it has no path.
func ParseEndpoint(endpoint string) (*url.URL, error) {
	if endpoint == "" {
		return nil, errors.New("is missing; write for example http://vllm-0:8000")
	}
	if !strings.Contains(endpoint, "://") {
		if strings.ContainsAny(endpoint, "@?#") {
			// The text may contain a secret.
			return nil, errors.New("has no scheme; write http:// or https:// before it")
		}
		return nil, fmt.Errorf("has no scheme; write http://%s or https://%s", endpoint, endpoint)
	}
	address, err := url.Parse(endpoint)
	if err != nil {
		// The error of url.Parse contains the address with its secrets.
		return nil, errors.New("is not a URL; write for example http://vllm-0:8000")
	}
	if address.Scheme != "http" && address.Scheme != "https" {
		return nil, fmt.Errorf("has the scheme %q; only http and https can be scraped", address.Scheme)
	}
	if address.Hostname() == "" {
		return nil, errors.New("has no host; write for example http://vllm-0:8000")
	}
	if n, err := strconv.Atoi(port(address)); err != nil || n < 1 || n > 65535 {
		return nil, errors.New("has a port that does not exist; ports go from 1 to 65535")
	}
	if address.Fragment != "" {
		return nil, errors.New("has a fragment (#...), which is never sent; remove it")
	}
	if address.Path == "" || address.Path == "/" {
		address.Path = fetch.DefaultPath
	}
	if len(InstanceID(address)) > remote.MaxInstance {
		return nil, fmt.Errorf("has a host and a path of more than %d bytes; each line of the log about this target would repeat them", remote.MaxInstance)
	}
	return address, nil
}

// InstanceID returns host and port, and the path if it is not /metrics.
func InstanceID(address *url.URL) string {
	id := net.JoinHostPort(address.Hostname(), port(address))
	if address.Path != fetch.DefaultPath {
		id += address.EscapedPath()
	}
	return id
}

func port(address *url.URL) string {
	if p := address.Port(); p != "" {
		return p
	}
	if address.Scheme == "https" {
		return "443"
	}
	return "80"
}
