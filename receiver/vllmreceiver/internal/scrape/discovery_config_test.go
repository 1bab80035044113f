package scrape

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/prometheus/common/config"
	"github.com/prometheus/prometheus/discovery"
	"github.com/prometheus/prometheus/discovery/http"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/discover"
)

const everyMechanism = `
discovery:
  kubernetes:
    {namespaces: [inference], selector: app=vllm, port: 8080, node: node-1, ready_only: false, path: /m, scheme: https, api_server: "https://10.0.0.1:6443"}
  inference_pool: {name: llama, namespace: inference}
  kubernetes_sd_configs:
    - {role: pod, api_server: "https://user:hunter2@10.0.0.1:6443", namespaces: {names: [a]}, basic_auth: {username: me, password: hunter2}}
  http_sd_configs:
    - {url: "http://user:hunter2@sd/targets?token=hunter2", refresh_interval: 30s, authorization: {credentials: hunter2}}
    - {url: "http://other/targets", oauth2: {client_id: me, client_secret: hunter2, token_url: "http://tokens/?k=hunter2"}}
    - {url: "http://third", http_headers: {X-Api-Key: {secrets: [hunter2]}}, proxy_url: "http://user:hunter2@proxy:3128"}
  file_sd_configs: [{files: [/etc/targets/*.json]}]
  dns_sd_configs: [{names: [vllm.svc], type: A, port: 8000}]
  static_configs: [{targets: ["a:1", "b:1"], labels: {team: search, __param_token: hunter2}}]
  relabel_configs:
    - {source_labels: [team], regex: "s(.*)", target_label: group, replacement: "x$1"}
    - {source_labels: [team], target_label: empty, replacement: ""}
    - {regex: secret, action: labeldrop}
    - {target_label: __param_token, replacement: hunter2}
`

// What is printed must be what is read, except for the secrets.
func TestTheConfigurationOfDiscoveryMakesTheRoundTrip(t *testing.T) {
	cfg, err := decode(t, everyMechanism)
	require.NoError(t, err)
	require.NoError(t, confmap.Validate(cfg))
	printed := confmap.New()
	require.NoError(t, printed.Marshal(cfg))
	text, err := yaml.Marshal(printed.ToStringMap())
	require.NoError(t, err)
	for _, all := range []string{string(text), fmt.Sprintf("%v %+v %#v", cfg, cfg, cfg)} {
		assert.NotContains(t, all, "hunter2")
	}
	for _, want := range []string{
		"selector: app=vllm", "ready_only: false", "name: llama", "url: http://REDACTED@sd/targets?REDACTED",
		"credentials: '[REDACTED]'", "password: '[REDACTED]'", "/etc/targets/*.json", "vllm.svc", "team: search", `replacement: ""`,
	} {
		assert.Contains(t, string(text), want)
	}

	again := DefaultConfig()
	require.NoError(t, printed.Unmarshal(again))
	require.NoError(t, confmap.Validate(again))
	reprinted := confmap.New()
	require.NoError(t, reprinted.Marshal(again))
	assert.Equal(t, printed.ToStringMap(), reprinted.ToStringMap())
	require.Len(t, again.Discovery.Mechanisms, len(cfg.Discovery.Mechanisms))
	assert.Equal(t, cfg.Discovery.Kubernetes, again.Discovery.Kubernetes)
	assert.Equal(t, cfg.Discovery.InferencePool, again.Discovery.InferencePool)
	require.Len(t, again.Discovery.RelabelConfigs, 4)
	assert.Equal(t, cfg.Discovery.RelabelConfigs[:3], again.Discovery.RelabelConfigs[:3])
}

// All of the configuration, through YAML as `print-config` writes it.
func TestThePrintedConfigurationCanBeReadAgain(t *testing.T) {
	for name, text := range map[string]string{
		"one target":     "endpoint: http://vllm-0:8000\ncollection_interval: 30s\ntimeout: 20s",
		"several":        "targets: [{endpoint: http://vllm-0:8000, resource_attributes: {zone: a}}, {endpoint: http://vllm-1:8000, timeout: 3s}]\nlimits: {body_size: 1MiB}\nmetrics: {vllm.up: {enabled: false}}",
		"canaries":       "canary: {interval: 20s}\ntargets: [{endpoint: http://vllm-0:8000}, {endpoint: http://vllm-1:8000, canary: {enabled: false}}]",
		"only discovery": "discovery: {kubernetes: {selector: a=b}}",
		"none of it":     "endpoint: http://vllm-0:8000",
	} {
		t.Run(name, func(t *testing.T) {
			cfg, err := decode(t, text)
			require.NoError(t, err)
			printed := confmap.New()
			require.NoError(t, printed.Marshal(cfg))
			file := filepath.Join(t.TempDir(), "config.yaml")
			out, err := yaml.Marshal(printed.ToStringMap())
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(file, out, 0o600))
			read, err := confmaptest.LoadConf(file)
			require.NoError(t, err)
			again := DefaultConfig()
			require.NoError(t, read.Unmarshal(again))
			require.NoError(t, confmap.Validate(again))
			// The helper's use of the same key is off.
			cfg.Controller.Timeout, again.Controller.Timeout = 0, 0
			assert.Equal(t, cfg.Client, again.Client)
			assert.Equal(t, cfg.Limits, again.Limits)
			assert.Equal(t, cfg.Canary.Get(), again.Canary.Get())
			assert.Equal(t, cfg.Controller, again.Controller)
			require.Len(t, again.Targets, len(cfg.Targets))
			for i := range cfg.Targets {
				assert.Equal(t, cfg.Targets[i].Client, again.Targets[i].Client)
				assert.Equal(t, cfg.Targets[i].Canary.Get(), again.Targets[i].Canary.Get())
				assert.Len(t, again.Targets[i].ResourceAttributes, len(cfg.Targets[i].ResourceAttributes))
			}
			assert.Len(t, again.Metrics, len(cfg.Metrics))
			for name := range cfg.Metrics {
				assert.Equal(t, cfg.Metrics[name], again.Metrics[name])
			}
			reprinted := confmap.New()
			require.NoError(t, reprinted.Marshal(again))
			assert.Equal(t, withoutEmpty(printed.ToStringMap()), withoutEmpty(reprinted.ToStringMap()))
		})
	}
}

// withoutEmpty drops what is nothing, which is written in several ways.
func withoutEmpty(all map[string]any) map[string]any {
	for name, value := range all {
		switch value := value.(type) {
		case map[string]any:
			if len(withoutEmpty(value)) == 0 {
				delete(all, name)
			}
		case []any:
			for _, item := range value {
				if item, ok := item.(map[string]any); ok {
					withoutEmpty(item)
				}
			}
			if len(value) == 0 {
				delete(all, name)
			}
		case nil:
			delete(all, name)
		}
	}
	return all
}

// A program can make the configuration by itself.
func TestDiscoveryCanBeConfiguredInGo(t *testing.T) {
	require.NoError(t, componenttest.CheckConfigStruct(DefaultConfig()))
	cfg := DefaultConfig()
	cfg.Discovery.Kubernetes = &discover.Kubernetes{Selector: "app=vllm", Pods: discover.Pods{Node: "node-1"}}
	require.NoError(t, confmap.Validate(cfg))
	cfg.Discovery.Kubernetes.Selector = "not a selector="
	require.ErrorContains(t, confmap.Validate(cfg), "discovery::kubernetes::selector: is not a label selector")
	cfg.Discovery.Kubernetes = nil
	cfg.Discovery.InferencePool = &discover.InferencePool{Name: "llama"}
	require.ErrorContains(t, confmap.Validate(cfg), "discovery::inference_pool::namespace: is missing")
	cfg.Discovery.InferencePool = nil
	cfg.Discovery.Mechanisms = discovery.Configs{&http.SDConfig{URL: "http://sd", HTTPClientConfig: config.HTTPClientConfig{
		Authorization: &config.Authorization{Credentials: "hunter2"},
	}}}
	require.ErrorContains(t, confmap.Validate(cfg), "discovery::http_sd_configs: refresh_interval 0s is too short")
	assert.NotContains(t, fmt.Sprintf("%v %+v %#v", cfg, *cfg, cfg.Discovery), "hunter2")
}

func TestAFileThatIsMissingIsFoundBeforeTheStart(t *testing.T) {
	for text, want := range map[string]string{
		"endpoint: https://a\ntls: {ca_file: testdata/none.pem}":                                    "tls::ca_file",
		"endpoint: https://a\ntls: {cert_file: testdata/none.pem, key_file: group.go}":              "tls::cert_file",
		"targets: [{endpoint: https://a, tls: {ca_file: testdata/none.pem}}]":                       "targets::0::tls::ca_file",
		"discovery: {kubernetes: {selector: a=b, kubeconfig_file: testdata/none.yaml}}":             "discovery::kubernetes::kubeconfig_file",
		"discovery: {http_sd_configs: [{url: http://a, tls_config: {ca_file: testdata/none.pem}}]}": "tls_config::ca_file",
	} {
		cfg, err := decode(t, text)
		require.NoError(t, err)
		err = confmap.Validate(cfg)
		require.ErrorContains(t, err, want, text)
		assert.ErrorContains(t, err, "testdata/none")
	}
	cfg, err := decode(t, "tls: {ca_file: testdata/none.pem}\ntargets: [{endpoint: https://a}, {endpoint: https://b}]")
	require.NoError(t, err)
	err = confmap.Validate(cfg)
	require.ErrorContains(t, err, "tls::ca_file: the file cannot be read: stat testdata/none.pem")
	assert.NotContains(t, err.Error(), "targets::", "an inherited mistake is reported once")
}
