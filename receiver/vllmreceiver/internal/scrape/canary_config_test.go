package scrape

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
)

func TestTheSettingsOfCanaries(t *testing.T) {
	cfg, err := decode(t, `{endpoint: "http://a"}`)
	require.NoError(t, err)
	assert.Nil(t, Configured(cfg)[0].Canary, "off")

	cfg, err = decode(t, `{endpoint: "http://a", canary: {}}`)
	require.NoError(t, err)
	require.NoError(t, confmap.Validate(cfg))
	assert.Equal(t, &CanaryConfig{Interval: 15 * time.Second, Timeout: 15 * time.Second, Path: "/v1/completions"}, Configured(cfg)[0].Canary)

	cfg, err = decode(t, `
canary: {interval: 30s, api_key: key, also: [kv_transfer]}
targets:
  - {endpoint: "http://a"}
  - {endpoint: "http://b", canary: {interval: 1m, model: b, path: /v1/chat/completions, also: [data_parallel]}}
  - {endpoint: "http://c", canary: {enabled: false}}
`)
	require.NoError(t, err)
	require.NoError(t, confmap.Validate(cfg))
	targets := Configured(cfg)
	assert.Equal(t, &CanaryConfig{
		Interval: 30 * time.Second, Timeout: 15 * time.Second, Path: "/v1/completions", APIKey: "key", Also: []string{"kv_transfer"},
	}, targets[0].Canary)
	assert.Equal(t, &CanaryConfig{
		Interval: time.Minute, Timeout: 15 * time.Second, Model: "b", Path: "/v1/chat/completions", APIKey: "key", Also: []string{"data_parallel"},
	}, targets[1].Canary)
	assert.Nil(t, targets[2].Canary)

	// What print-config prints of this is the same again: null is off.
	for _, text := range []string{`{endpoint: "http://a", canary: null}`, `{canary: {}, targets: [{endpoint: "http://a", canary: null}]}`} {
		cfg, err = decode(t, text)
		require.NoError(t, err)
		assert.Nil(t, Configured(cfg)[0].Canary, text)
	}

	cfg, err = decode(t, `{targets: [{endpoint: "http://a"}, {endpoint: "http://b", canary: {timeout: 5s}}]}`)
	require.NoError(t, err)
	targets = Configured(cfg)
	assert.Nil(t, targets[0].Canary)
	assert.Equal(t, &CanaryConfig{Interval: 15 * time.Second, Timeout: 5 * time.Second, Path: "/v1/completions"}, targets[1].Canary)
}

func TestMistakesInTheSettingsOfCanaries(t *testing.T) {
	for text, want := range map[string]string{
		`canary: {interval: 0s}`:                                             "canary::interval: 0s is too short; write at least 1s",
		`canary: {interval: 15}`:                                             "canary::interval: 15ns is too short",
		`canary: {interval: 999ms}`:                                          "canary::interval: 999ms is too short",
		`canary: {timeout: -1s}`:                                             "canary::timeout: -1s is too short; write at least 1s",
		`canary: {path: v1/completions}`:                                     "canary::path: must begin with /",
		`canary: {path: ""}`:                                                 "canary::path: must begin with /",
		`canary: {path: "/v1?x=y"}`:                                          "canary::path: must begin with / and have neither ? nor #",
		`canary: {also: [data_parallel, dp]}`:                                `canary::also::1: "dp" is unknown; write kv_transfer or data_parallel`,
		`canary: {api_key: "hunter2\n"}`:                                     "canary::api_key: cannot be sent; remove line breaks",
		"source: dcgm\ncanary: {}":                                           "canary: source says that the targets are not vLLM servers; remove canary",
		"source: amd\ncanary: {}":                                            "canary: source says",
		"source: gateway\ncanary: {}":                                        "canary: source says",
		"source: lora\ncanary: {}":                                           "canary: source says",
		"max_conns_per_host: 1\ncanary: {}":                                  "canary: a canary that waits would take the only connection of the scrapes; set max_conns_per_host to 0",
		"auth: {authenticator: bearertokenauth}\ncanary: {api_key: hunter2}": "canary::api_key: auth sets the credentials",
	} {
		for _, where := range []string{"", "targets::1::"} {
			full := "endpoint: http://a\n" + text
			if where != "" {
				lines := strings.Split(text, "\n")
				own := lines[len(lines)-1]
				full = strings.Join(lines[:len(lines)-1], "\n") + "\ntargets:\n  - {endpoint: \"http://a\"}\n  - {endpoint: \"http://b\", " + own + "}"
			}
			cfg, err := decode(t, full)
			require.NoError(t, err, full)
			err = confmap.Validate(cfg)
			require.ErrorContains(t, err, where+want, full)
			assert.NotContains(t, err.Error(), "hunter2")
			assert.NotContains(t, err.Error(), "\n", "there is one mistake")
		}
	}
	for _, valid := range []string{
		`canary: {interval: 1s, timeout: 1s}`, "source: vllm\ncanary: {}", "source: dcgm", "max_conns_per_host: 2\ncanary: {}",
		"auth: {authenticator: bearertokenauth}\ncanary: {}", "canary: {also: [kv_transfer, data_parallel]}",
	} {
		cfg, err := decode(t, "endpoint: http://a\n"+valid)
		require.NoError(t, err)
		require.NoError(t, confmap.Validate(cfg), valid)
	}
	// A target that inherits the canary may have a limit of its own that it does not go with.
	own, err := decode(t, "canary: {}\ntargets: [{endpoint: \"http://a\"}, {endpoint: \"http://b\", max_conns_per_host: 1}]")
	require.NoError(t, err)
	require.ErrorContains(t, confmap.Validate(own), "targets::1::canary: a canary that waits would take the only connection")
	// A mistake that targets inherit is reported once.
	cfg, err := decode(t, "canary: {interval: 1ms}\ntargets: [{endpoint: \"http://a\"}, {endpoint: \"http://b\"}]")
	require.NoError(t, err)
	assert.Equal(t, 1, strings.Count(confmap.Validate(cfg).Error(), "too short"))
}
