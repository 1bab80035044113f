package scrape

import (
	"math"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/normalize"
)

// decode reads a configuration as the collector does.
func decode(t *testing.T, text string) (*Config, error) {
	t.Helper()
	var raw map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(text), &raw))
	cfg := DefaultConfig()
	if err := confmap.NewFromStringMap(raw).Unmarshal(cfg); err != nil {
		return nil, err
	}
	return cfg, nil
}

func TestConfigStruct(t *testing.T) {
	require.NoError(t, componenttest.CheckConfigStruct(DefaultConfig()))
}

func TestConfigWithOneEndpoint(t *testing.T) {
	cfg, err := decode(t, `
endpoint: http://vllm-0:8000
collection_interval: 5s
timeout: 2s
limits: {body_size: 1MiB, series: 7}
metrics:
  vllm.kv_block.lifetime: {enabled: false}
resource_attributes:
  service.version: {enabled: false}
`)
	require.NoError(t, err)
	require.NoError(t, confmap.Validate(cfg))
	assert.Equal(t, 5*time.Second, cfg.Controller.CollectionInterval)
	assert.Equal(t, 2*time.Second, cfg.Client.Timeout)
	assert.Equal(t, ByteSize(1<<20), cfg.Limits.BodySize)
	assert.Equal(t, 7, cfg.Limits.Series)
	assert.Equal(t, map[string]bool{"vllm.kv_block.lifetime": false}, switches(cfg))
	assert.False(t, cfg.ResourceAttributes.ServiceVersion.Enabled)
	targets := Configured(cfg)
	require.Len(t, targets, 1)
	assert.Equal(t, "http://vllm-0:8000/metrics", targets[0].Address.String())
}

func TestAShortIntervalShortensTheDefaultTimeout(t *testing.T) {
	cfg, err := decode(t, `{collection_interval: 5s, targets: [{endpoint: "http://a"}]}`)
	require.NoError(t, err)
	require.NoError(t, confmap.Validate(cfg))
	assert.Equal(t, 5*time.Second, cfg.Client.Timeout)
	assert.Equal(t, 5*time.Second, cfg.Targets[0].Client.Timeout)
	cfg, err = decode(t, `{endpoint: "http://a", collection_interval: 1m}`)
	require.NoError(t, err)
	assert.Equal(t, 10*time.Second, cfg.Client.Timeout)
}

// A target inherits the settings that it does not set; those that it sets are its own
// and reaches neither the receiver nor the next target.
func TestTargetsInheritTheReceiversClient(t *testing.T) {
	cfg, err := decode(t, `
timeout: 3s
headers: {X-Tenant: a}
tls: {insecure_skip_verify: true}
max_idle_conns: 7
targets:
  - endpoint: https://vllm-1/custom/metrics
    timeout: 1s
    tls: {ca_file: group.go}
    auth: {authenticator: bearertokenauth}
    headers: {X-Tenant: b}
    resource_attributes: {k8s.pod.name: vllm-1, zone: 3}
  - endpoint: https://vllm-2
`)
	require.NoError(t, err)
	require.NoError(t, confmap.Validate(cfg))
	require.Len(t, cfg.Targets, 2)
	first, second := cfg.Targets[0], cfg.Targets[1]

	assert.Equal(t, time.Second, first.Client.Timeout)
	assert.Equal(t, "group.go", first.Client.TLS.CAFile)
	assert.True(t, first.Client.TLS.InsecureSkipVerify, "inherited inside a block that is overridden in part")
	require.True(t, first.Client.Auth.HasValue())
	tenant, _ := first.Client.Headers.Get("X-Tenant")
	assert.Equal(t, "b", string(tenant))
	assert.Equal(t, 7, first.Client.MaxIdleConns)
	assert.Equal(t, map[string]any{"k8s.pod.name": "vllm-1", "zone": 3}, first.ResourceAttributes)

	assert.Equal(t, 3*time.Second, second.Client.Timeout)
	assert.Empty(t, second.Client.TLS.CAFile)
	assert.False(t, second.Client.Auth.HasValue())
	tenant, _ = second.Client.Headers.Get("X-Tenant")
	assert.Equal(t, "a", string(tenant))
	assert.Empty(t, second.ResourceAttributes)
	assert.False(t, cfg.Client.Auth.HasValue())

	targets := Configured(cfg)
	assert.Equal(t, "vllm-1:443/custom/metrics", InstanceID(targets[0].Address))
	assert.Equal(t, "vllm-2:443", InstanceID(targets[1].Address))
}

func TestAHeaderThatCannotBeSentIsReportedWithoutItsValue(t *testing.T) {
	cfg, err := decode(t, `
headers: {Authorization: "Bearer abc\n"}
targets:
  - {endpoint: "http://a:8000"}
  - {endpoint: "http://b:8000", headers: {"X Y": "1"}}
`)
	require.NoError(t, err)
	err = confmap.Validate(cfg)
	require.ErrorContains(t, err, `headers::"Authorization": the name or the value cannot be sent; remove line breaks`)
	require.ErrorContains(t, err, `targets::1::headers::"X Y"`)
	assert.NotContains(t, err.Error(), "targets::0")
	assert.NotContains(t, err.Error(), "abc")
}

func TestAMetricThatNeedsTheHealthCheckIsRejectedWithoutIt(t *testing.T) {
	cfg, err := decode(t, `{endpoint: "http://a:8000", metrics: {vllm.healthy: {enabled: true}}}`)
	require.NoError(t, err)
	require.ErrorContains(t, confmap.Validate(cfg), "metrics::vllm.healthy: this metric needs the answer of /health; set health_check: true as well")
	cfg.HealthCheck = true
	require.NoError(t, confmap.Validate(cfg))
}

func TestAllConfigMistakesAreReportedTogether(t *testing.T) {
	cfg, err := decode(t, `
endpoint: vllm-0:8000
naming: otel
source: router
service_name: ""
timeout: 0s
limits: {series: -1, body_size: 0}
prefixes: [""]
metrics:
  vllm.kv_blok.lifetime: {enabled: false}
`)
	require.NoError(t, err)
	err = confmap.Validate(cfg)
	require.Error(t, err)
	for _, want := range []string{
		"endpoint: has no scheme; write http://vllm-0:8000 or https://vllm-0:8000",
		`naming: "otel" is unknown; write canonical or wire`,
		`source: "router" is unknown; write auto, vllm, gateway, lora, dcgm or amd`,
		"service_name: must not be empty",
		"timeout: must be more than 0",
		"limits::series: must be more than 0",
		"limits::body_size: must be more than 0",
		"prefixes::0: must not be empty",
		"metrics::vllm.kv_blok.lifetime: no metric has this name; did you mean vllm.kv_block.lifetime?",
	} {
		assert.Contains(t, err.Error(), want)
	}
}

func TestConfigMistakes(t *testing.T) {
	tests := []struct{ name, config, want string }{
		{"nothing to scrape", `{}`, "endpoint: no server to scrape"},
		{"a long host", `{endpoint: "http://` + strings.Repeat("a", 70_000) + `"}`, "endpoint: has a host and a path of more than 1024 bytes"},
		{
			"a metric of the processor", `{endpoint: "http://a", metrics: {vllm.prompt_throughput: {enabled: false}}}`,
			"metrics::vllm.prompt_throughput: the processor derives this metric; switch it under processors::vllm::metrics",
		},
		{"both ways", `{endpoint: "http://a", targets: [{endpoint: "http://b"}]}`, "set either endpoint or targets"},
		{"a target without address", `{targets: [{timeout: 1s}]}`, "targets::0::endpoint: is missing"},
		{"the same target twice", `{targets: [{endpoint: "http://a:1"}, {endpoint: "http://a:1/metrics"}]}`, "targets::1::endpoint: the same server as targets::0"},
		{"another scheme", `{endpoint: "ftp://a"}`, `the scheme "ftp"`},
		{"no host", `{endpoint: "http://"}`, "has no host"},
		{"no URL", `{endpoint: "http://[::1"}`, "is not a URL"},
		{"a list as attribute", `{targets: [{endpoint: "http://a", resource_attributes: {x: [1]}}]}`, "targets::0::resource_attributes::x: must be a text"},
		{"a timeout beyond the interval", `{endpoint: "http://a", timeout: 20s}`, "longer than collection_interval (15s)"},
		{"another compression", `{endpoint: "http://a", compression: zstd}`, `compression: "zstd" cannot be asked for; write gzip`},
		{"a limit of a target", `{targets: [{endpoint: "http://a", max_conns_per_host: -1}]}`, "targets::0::max_conns_per_host: must not be negative"},
		{"another compression of a target", `{targets: [{endpoint: "http://a", compression: snappy}]}`, `targets::0::compression: "snappy" cannot be asked for`},
		{"an interval of zero", `{endpoint: "http://a", collection_interval: 0s}`, "collection_interval"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg, err := decode(t, tt.config)
			require.NoError(t, err)
			assert.ErrorContains(t, confmap.Validate(cfg), tt.want)
		})
	}
}

// limits::memory is what is configured, else an eighth of GOMEMLIMIT, else 256 MiB.
func TestTheMemoryOfLayouts(t *testing.T) {
	before := debug.SetMemoryLimit(math.MaxInt64)
	defer debug.SetMemoryLimit(before)
	configured, standard := &LimitsConfig{Memory: 1}, &LimitsConfig{}
	assert.Equal(t, 1, configured.memory())
	assert.Equal(t, 256<<20, standard.memory())
	debug.SetMemoryLimit(1 << 40)
	assert.Equal(t, 1, configured.memory())
	assert.Equal(t, 1<<37, standard.memory())
}

// Each number is accepted at its bound and rejected one step beyond.
func TestTheBoundsOfNumbers(t *testing.T) {
	for _, tt := range []struct{ accepted, rejected, want string }{
		{"collection_interval: 1ms, timeout: 1ms", "collection_interval: 999us, timeout: 1us", "collection_interval: 999µs is too short"},
		{"initial_delay: 0s", "initial_delay: -1ns", "initial_delay: must not be negative"},
		{"initial_delay: 1h", "initial_delay: 10000h", "initial_delay: 10000h0m0s is too long: nothing is scraped until then; write at most 1h0m0s, for example 1s"},
		{"max_conns_per_host: 0", "max_conns_per_host: -1", "max_conns_per_host: must not be negative"},
		{"keepalive: {max_idle_conns: 0}", "keepalive: {max_idle_conns: -1}", "keepalive::max_idle_conns: must not be negative"},
		{"keepalive: {max_idle_conns_per_host: 0}", "keepalive: {max_idle_conns_per_host: -1}", "keepalive::max_idle_conns_per_host: must not be negative"},
		{"prefixes: [my_]", "prefixes: ['my vllm:']", `prefixes::0: "my vllm:" cannot be the prefix of a metric: names have no spaces, braces or quotes; write for example ray_`},
		{"proxy_url: 'socks5://a:1'", "proxy_url: 'nope://user:hunter2@x'", `proxy_url: a proxy cannot have the scheme "nope"; write http, https, socks5 or socks5h, for example http://proxy:3128`},
		{"timeout: 15s", "timeout: 15000000001ns", "timeout: 15.000000001s is longer than collection_interval (15s)"},
		{"timeout: 1ns", "timeout: 0s", "timeout: must be more than 0"},
		{"timeout: 1ns", "timeout: -1ns", "timeout: must not be negative"},
		{"limits: {body_size: 1}", "limits: {body_size: 0}", "limits::body_size: must be more than 0"},
		{"limits: {memory: 0}", "limits: {memory: -1}", "limits::memory: must not be negative"},
		{"limits: {series: 1}", "limits: {series: 0}", "limits::series: must be more than 0"},
		{"limits: {adapters: 1}", "limits: {adapters: 0}", "limits::adapters: must be more than 0"},
		{"limits: {devices: 1}", "limits: {devices: 0}", "limits::devices: must be more than 0"},
		{"limits: {targets: 1}", "limits: {targets: 0}", "limits::targets: must be more than 0"},
	} {
		cfg, err := decode(t, `{endpoint: "http://a", `+tt.accepted+"}")
		require.NoError(t, err, tt.accepted)
		require.NoError(t, confmap.Validate(cfg), tt.accepted)
		cfg, err = decode(t, `{endpoint: "http://a", `+tt.rejected+"}")
		require.NoError(t, err, tt.rejected)
		err = confmap.Validate(cfg)
		require.ErrorContains(t, err, tt.want)
		key, _, _ := strings.Cut(tt.want, " ")
		assert.Equal(t, 1, strings.Count(err.Error(), key), "%s is one mistake: %v", tt.rejected, err)
	}
	for target, want := range map[string]string{"1ns": "", "15s": "", "0s": "more than 0", "-1ns": "more than 0", "16s": "longer than collection_interval"} {
		cfg, err := decode(t, `{targets: [{endpoint: "http://a", timeout: `+target+`}]}`)
		require.NoError(t, err)
		if err = confmap.Validate(cfg); want == "" {
			require.NoError(t, err, target)
		} else {
			require.ErrorContains(t, err, "targets::0::timeout: ", target)
			require.ErrorContains(t, err, want, target)
		}
	}
}

func TestConfigTypos(t *testing.T) {
	for config, want := range map[string]string{
		`{endpoint: "http://a", limits: {body_size: huge}}`:  "write for example 16MiB",
		`{endpoint: "http://a", helth_check: true}`:          "helth_check: is unknown; did you mean health_check?",
		`{targets: [{endpoint: "http://a", tiemout: 1s}]}`:   "targets::0::tiemout: is unknown; did you mean timeout?",
		`{endpoint: "http://a", metrics: {vllm.up: false}}`:  "metrics::vllm.up: expected a map",
		`{endpoint: "http://a", collection_interval: "abc"}`: "collection_interval: is not a duration; write a number with its unit, for example 15s",
		`{endpoint: "http://a", collection_interval: 15sec}`: "collection_interval: is not a duration; write a number with its unit, for example 15s",
		`{endpoint: "http://a", intervall: 15s}`:             "intervall: is unknown; did you mean collection_interval?",
	} {
		cfg, err := decode(t, config)
		require.NoError(t, err)
		assert.ErrorContains(t, confmap.Validate(cfg), want, config)
	}
}

// A misspelt key hides no other mistake.
func TestUnknownKeysAndInvalidValuesAreReportedTogether(t *testing.T) {
	cfg, err := decode(t, `{endpont: "http://a", tls: {insecur: true}, canary: {timout: 5s, interval: 1ms}, naming: wires,
targets: [{endpoint: "http://a", canary: {paht: /v1}, timeout: 0s}, {endpoint: a}], resource_attributes: {service.instance.id: {enable: true}},
discovery: {kubernets: {}}}`)
	require.NoError(t, err)
	got := strings.Split(confmap.Validate(cfg).Error(), "\n")
	for _, want := range []string{
		"endpont: is unknown; did you mean endpoint?",
		"tls::insecur: is unknown; did you mean insecure?",
		"canary::timout: is unknown; did you mean timeout?",
		"canary::interval: 1ms is too short; write at least 1s, for example 15s",
		`naming: "wires" is unknown; write canonical or wire`,
		"targets::0::canary::paht: is unknown; did you mean path?",
		"targets::0::timeout: must be more than 0",
		"targets::1::endpoint: has no scheme; write http://a or https://a",
		"resource_attributes::service.instance.id::enable: is unknown; did you mean enabled?",
	} {
		assert.Contains(t, got, want)
	}
	assert.Contains(t, strings.Join(got, "\n"), "discovery::kubernets: is unknown")
}

// A mistake must not print what may be a password.
func TestConfigErrorsContainNoSecrets(t *testing.T) {
	cfg, err := decode(t, `{endpoint: "http://user:hunter2@[::1", headers: {Authorization: hunter2}}`)
	require.NoError(t, err)
	err = confmap.Validate(cfg)
	require.Error(t, err)
	assert.NotContains(t, err.Error(), "hunter2")
}

func TestEveryInfoAttributeOfTheCatalogueHasASwitch(t *testing.T) {
	for _, family := range catalog.InfoFamilies {
		for _, attribute := range family.Resource {
			if attribute.Attribute != versionAttribute {
				assert.Contains(t, switchFields, attribute.Attribute)
			}
		}
	}
}

// What the user knows of a target reaches the names of its metrics, and the
// router's metrics, which the catalogue does not list, have switches.
func TestTheSourceAndTheRoutersSwitches(t *testing.T) {
	cfg, err := decode(t, `
endpoint: http://epp
source: gateway
gateway: {fairness_id: true}
metrics:
  vllm_router.current_qps: {enabled: false}
`)
	require.NoError(t, err)
	require.NoError(t, confmap.Validate(cfg))
	options := planOptions(cfg)
	assert.Equal(t, normalize.SourceGateway, options.Source)
	assert.True(t, options.KeepFairness)
	assert.Equal(t, map[string]bool{"vllm_router.current_qps": false}, options.Enabled)
}

// Each repetition of a server names the first one, so that one edit after another is right.
func TestEveryRepetitionOfAServerNamesTheFirst(t *testing.T) {
	cfg, err := decode(t, `{targets: [{endpoint: "http://a:8000"}, {endpoint: "http://b:8000"}, {endpoint: "http://A:8000/metrics"}, {endpoint: "https://a:8000"}]}`)
	require.NoError(t, err)
	err = confmap.Validate(cfg)
	require.ErrorContains(t, err, "targets::2::endpoint: the same server as targets::0")
	require.ErrorContains(t, err, "targets::3::endpoint: the same server as targets::0")
	require.NotContains(t, err.Error(), "targets::1::endpoint")
}
