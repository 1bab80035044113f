package scrape

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"go.yaml.in/yaml/v3"
)

func decoded(t *testing.T, text string) *Config {
	t.Helper()
	var raw map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(text), &raw))
	cfg := DefaultConfig()
	require.NoError(t, confmap.NewFromStringMap(raw).Unmarshal(cfg))
	return cfg
}

// What one target sets must not reach the other, nor the receiver's own.
func TestTargetsDoNotShareTheirOwnSettings(t *testing.T) {
	cfg := decoded(t, `
headers: {X-A: top, X-B: top}
auth: {authenticator: basicauth}
tls: {ca_file: top.pem, include_insecure_cipher_suites: true}
timeout: 3s
targets:
- {endpoint: "http://a", headers: {X-A: one}, tls: {ca_file: one.pem}, auth: {authenticator: bearertokenauth}, timeout: 1s}
- {endpoint: "http://b", headers: [{name: X-C, value: two}]}
- {endpoint: "http://c"}
`)
	get := func(i int, name string) string {
		v, _ := cfg.Targets[i].Client.Headers.Get(name)
		return string(v)
	}
	assert.Equal(t, "one", get(0, "X-A"))
	assert.Equal(t, "top", get(2, "X-A"))
	assert.Equal(t, "top", get(2, "X-B"))
	assert.Equal(t, "two", get(1, "X-C"))
	assert.Empty(t, get(0, "X-C"))
	assert.Equal(t, "one.pem", cfg.Targets[0].Client.TLS.CAFile)
	assert.Equal(t, "top.pem", cfg.Targets[1].Client.TLS.CAFile)
	assert.Equal(t, "bearertokenauth", cfg.Targets[0].Client.Auth.Get().AuthenticatorID.String())
	assert.Equal(t, "basicauth", cfg.Targets[2].Client.Auth.Get().AuthenticatorID.String())
	assert.Equal(t, time.Second, cfg.Targets[0].Client.Timeout)
	assert.Equal(t, 3*time.Second, cfg.Targets[2].Client.Timeout)
	own, _ := cfg.Client.Headers.Get("X-A")
	assert.Equal(t, "top", string(own))
}

// A target on another host may want none of the receiver's credentials.
func TestATargetCanDisableTheReceiversAuth(t *testing.T) {
	cfg := decoded(t, `
auth: {authenticator: basicauth}
headers: {Authorization: secret}
targets:
- {endpoint: "http://a", auth: {enabled: false}, headers: {}}
- {endpoint: "http://b"}
`)
	assert.False(t, cfg.Targets[0].Client.Auth.HasValue())
	assert.Empty(t, cfg.Targets[0].Client.Headers)
	assert.True(t, cfg.Targets[1].Client.Auth.HasValue())
}

// Each sentence is the new form, which gives the same client, and no target warns by itself.
func TestMovedSettingsAreReadAndSaid(t *testing.T) {
	cfg := decoded(t, `
idle_conn_timeout: 5s
max_idle_conns: 7
targets:
- {endpoint: "http://a", disable_keep_alives: true}
- {endpoint: "http://b", max_idle_conns_per_host: 2}
- {endpoint: "http://c"}
`)
	require.NoError(t, confmap.Validate(cfg))
	assert.Equal(t, []string{
		"idle_conn_timeout has moved; write keepalive: {idle_conn_timeout: 5s}",
		"max_idle_conns has moved; write keepalive: {max_idle_conns: 7}",
		"targets::0::disable_keep_alives has moved; write keepalive: {enabled: false}",
		"targets::1::max_idle_conns_per_host has moved; write keepalive: {max_idle_conns_per_host: 2}",
	}, cfg.Moved)
	same := decoded(t, `
keepalive: {idle_conn_timeout: 5s, max_idle_conns: 7}
targets:
- {endpoint: "http://a", keepalive: {enabled: false}}
- {endpoint: "http://b", keepalive: {max_idle_conns_per_host: 2}}
- {endpoint: "http://c"}
`)
	assert.Empty(t, same.Moved)
	assert.Equal(t, same.Client, cfg.Client)
	for i, target := range cfg.Targets {
		assert.Equal(t, same.Targets[i].Client, target.Client, i)
		core, logs := observer.New(zap.WarnLevel)
		client, err := newHTTPClient(t.Context(), target.Client, componenttest.NewNopHost(), component.TelemetrySettings{Logger: zap.New(core)})
		require.NoError(t, err)
		assert.Zero(t, logs.Len())
		transport := client.Transport.(*http.Transport)
		assert.Equal(t, i == 0, transport.DisableKeepAlives)
		assert.Equal(t, 5*time.Second, transport.IdleConnTimeout)
		assert.Equal(t, 7, transport.MaxIdleConns)
	}
	assert.Len(t, decoded(t, "{endpoint: 'http://a', keepalive: null, max_idle_conns: 3}").Moved, 1)
	off := decoded(t, "disable_keep_alives: true\ntargets: [{endpoint: 'http://a', max_idle_conns: 3}]")
	assert.Equal(t, "targets::0::max_idle_conns has moved; write keepalive: {enabled: false, max_idle_conns: 3}", off.Moved[1])
	assert.True(t, off.Targets[0].Client.DisableKeepAlives)
	unread := decoded(t, "endpoint: 'http://a'\ndisable_keep_alives: perhaps\nmax_idle_conns: 3")
	assert.Equal(t, []string{"max_idle_conns has moved; write keepalive: {max_idle_conns: 3}"}, unread.Moved)
	require.ErrorContains(t, confmap.Validate(unread), "disable_keep_alives")
	both := confmap.NewFromStringMap(map[string]any{"endpoint": "http://a", "max_idle_conns": 1, "keepalive": map[string]any{"max_idle_conns": 2}})
	cfg = DefaultConfig()
	require.NoError(t, both.Unmarshal(cfg))
	require.ErrorContains(t, confmap.Validate(cfg), "alongside the 'keepalive' section")
}

// What is in a list or a map is found as well, and a list of targets that cannot be read is not "no server".
func TestUnknownKeysInListsAndMaps(t *testing.T) {
	require.EqualError(t, confmap.Validate(decoded(t, `
endpoint: "http://a"
metrics: {vllm.up: {enabld: false}}
headers: [{name: x, value: y, valeu: z}]
middlewares: [{id: x, idd: y}]
`)), "headers::0::valeu: is unknown; did you mean value?\n"+
		"metrics::vllm.up::enabld: is unknown; did you mean enabled?\n"+
		"middlewares::0::idd: is unknown; did you mean id?")
	require.EqualError(t, confmap.Validate(decoded(t, `targets: ["http://a"]`)), `targets::0: expected a map or struct, got "string"`)
}
