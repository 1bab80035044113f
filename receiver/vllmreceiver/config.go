package vllmreceiver

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
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/scraper/scraperhelper"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/discover"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/exposition"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/fetch"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/metadata"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/normalize"
)

// Naming says which names the metrics get.
type Naming string

const (
	// NamingCanonical is the names of the catalogue: the default.
	NamingCanonical Naming = "canonical"
	// NamingWire keeps the names and labels of the wire.
	NamingWire Naming = "wire"
)

// Source says what the targets are.
type Source string

// The sources; SourceAuto, the default, goes by what a body contains.
const (
	SourceAuto    Source = "auto"
	SourceVLLM    Source = "vllm"
	SourceGateway Source = "gateway"
	SourceLoRA    Source = "lora"
)

var planSources = map[Source]normalize.Source{
	SourceAuto: normalize.SourceAuto, SourceVLLM: normalize.SourceVLLM,
	SourceGateway: normalize.SourceGateway, SourceLoRA: normalize.SourceLoRA,
}

// Config is the configuration of the receiver.
type Config struct {
	// Controller has collection_interval and initial_delay. Its timeout is the
	// same key as the client's and means the deadline of one fetch; the helper's
	// own use of it, which would cover the sending too, is off.
	Controller scraperhelper.ControllerConfig `mapstructure:",squash"`
	// Client is the one target's client, or the default for all targets.
	Client confighttp.ClientConfig `mapstructure:",squash"`
	// Targets are the servers to scrape, if they are several.
	Targets []TargetConfig `mapstructure:"targets"`
	// Discovery finds more servers, which come and go while the collector runs.
	Discovery DiscoveryConfig `mapstructure:"discovery"`
	// ServiceName is the resource attribute service.name, equal for all replicas.
	ServiceName string `mapstructure:"service_name"`
	// HealthCheck asks /health as well and adds the metric vllm.healthy.
	HealthCheck bool `mapstructure:"health_check"`
	// Limits bound what one target can cost.
	Limits LimitsConfig `mapstructure:"limits"`
	// Naming is canonical or wire.
	Naming Naming `mapstructure:"naming"`
	// Source says what the targets are, where their bodies do not show it.
	Source Source `mapstructure:"source"`
	// Gateway has the choices for inference gateways.
	Gateway GatewayConfig `mapstructure:"gateway"`
	// Prefixes are what a deployment puts before vLLM's family names, besides the
	// prefixes that are known already.
	Prefixes []string `mapstructure:"prefixes"`
	// CapacityFromBlocks gives vllm.kv_cache.capacity for servers before v0.24,
	// as blocks times block size, which overstates hybrid models.
	CapacityFromBlocks bool `mapstructure:"capacity_from_blocks"`
	// GenAI mirrors three histograms under the OpenTelemetry conventions.
	GenAI GenAIConfig `mapstructure:"gen_ai"`
	// Metrics switches metrics on and off by name.
	Metrics map[string]MetricConfig `mapstructure:"metrics"`
	// ResourceAttributes switches resource attributes on and off by name.
	ResourceAttributes metadata.ResourceAttributesConfig `mapstructure:"resource_attributes"`

	_ struct{}
}

// TargetConfig is one server.
type TargetConfig struct {
	// Client starts as a copy of the receiver's own and is then overridden.
	Client confighttp.ClientConfig `mapstructure:",squash"`
	// ResourceAttributes are added to the target's resource.
	ResourceAttributes map[string]any `mapstructure:"resource_attributes"`

	source *confmap.Conf
	_      struct{}
}

// LimitsConfig bounds what one target can cost.
type LimitsConfig struct {
	// BodySize is the largest body after decompression.
	BodySize ByteSize `mapstructure:"body_size"`
	// Series is the most series of one target; a histogram counts as one.
	Series int `mapstructure:"series"`
	// Adapters is the most LoRA adapters of one target that get series.
	Adapters int `mapstructure:"adapters"`
	// Targets is the most discovered targets of the receiver.
	Targets int `mapstructure:"targets"`
	// Memory is what all targets together may have remembered of large bodies; 0 is
	// an eighth of GOMEMLIMIT.
	Memory ByteSize `mapstructure:"memory"`
	// NameLength, LabelNameLength and LabelValueLength are the longest of each in
	// bytes; a line that exceeds one is dropped.
	NameLength       int `mapstructure:"name_length"`
	LabelNameLength  int `mapstructure:"label_name_length"`
	LabelValueLength int `mapstructure:"label_value_length"`

	_ struct{}
}

// GenAIConfig is the mirror of three histograms under the OpenTelemetry GenAI
// conventions.
type GenAIConfig struct {
	Enabled bool `mapstructure:"enabled"`
	// OperationName is the gen_ai.operation.name, which vLLM's metrics do not tell.
	OperationName string `mapstructure:"operation_name"`

	_ struct{}
}

// GatewayConfig has the choices for inference gateways.
type GatewayConfig struct {
	// FairnessID keeps the attribute fairness_id, which clients set as they like.
	// By default the series are added up over it.
	FairnessID bool `mapstructure:"fairness_id"`

	_ struct{}
}

// MetricConfig switches one metric.
type MetricConfig struct {
	// Enabled is nil where the catalogue's default holds.
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

// defaultLimits fit the memory of the shipped manifests, see docs/why/performance.md. A
// server with 64 engines has a body of about 4 MB with 8,000 series.
func defaultLimits() LimitsConfig {
	lines := exposition.DefaultLimits
	return LimitsConfig{
		BodySize: 8 << 20, Series: 20000, Adapters: 1000, Targets: 1000,
		NameLength: lines.Name, LabelNameLength: lines.LabelName, LabelValueLength: lines.LabelValue,
	}
}

// memory is what limits::memory means in bytes.
func (c *LimitsConfig) memory() int {
	if c.Memory > 0 {
		return int(c.Memory)
	}
	if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 {
		return int(limit / 8)
	}
	return memoryWithoutLimit
}

// memoryWithoutLimit is limits::memory where the process has no GOMEMLIMIT.
const memoryWithoutLimit = 256 << 20

func createDefaultConfig() component.Config {
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
		Source:             SourceAuto,
		GenAI:              GenAIConfig{OperationName: "chat"},
		ResourceAttributes: metadata.DefaultResourceAttributesConfig(),
	}
}

// Unmarshal decodes each target onto a copy of the receiver's own client, so
// that what a target leaves out is inherited.
func (c *Config) Unmarshal(conf *confmap.Conf) error {
	if err := conf.Unmarshal(c); err != nil {
		return err
	}
	if conf.IsSet("discovery") && conf.Get("discovery") == nil {
		// The key alone is the beginning of something that was forgotten.
		_, c.Discovery.mistakes = discover.Parse(nil)
	}
	if !conf.IsSet("timeout") && c.Controller.CollectionInterval > 0 {
		// A short interval alone is no mistake.
		c.Client.Timeout = min(c.Client.Timeout, c.Controller.CollectionInterval)
	}
	for i := range c.Targets {
		target := &c.Targets[i]
		inherited := TargetConfig{Client: c.Client, source: target.source}
		inherited.Client.Endpoint = ""
		if target.source != nil {
			if err := target.source.Unmarshal(&inherited); err != nil {
				return fmt.Errorf("targets::%d: %w", i, err)
			}
		}
		*target = inherited
	}
	return nil
}

// Unmarshal keeps what the user wrote, for Config.Unmarshal.
func (t *TargetConfig) Unmarshal(conf *confmap.Conf) error {
	t.source = conf
	return conf.Unmarshal(t)
}

// parseEndpoint reads the address of a target and adds /metrics where it has no
// path.
func parseEndpoint(endpoint string) (*url.URL, error) {
	if endpoint == "" {
		return nil, errors.New("is missing; write for example http://vllm-0:8000")
	}
	if !strings.Contains(endpoint, "://") {
		if strings.ContainsAny(endpoint, "@?#") {
			// What stands there may be a secret.
			return nil, errors.New("has no scheme; write http:// or https:// before it")
		}
		return nil, fmt.Errorf("has no scheme; write http://%s or https://%s", endpoint, endpoint)
	}
	address, err := url.Parse(endpoint)
	if err != nil {
		// The error of url.Parse repeats the address with its secrets.
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
	return address, nil
}

// instanceID is host and port, and the path where it is not /metrics.
func instanceID(address *url.URL) string {
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
