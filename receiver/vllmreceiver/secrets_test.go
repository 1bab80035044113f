package vllmreceiver

import (
	"errors"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/fetch"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/metadata"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/scrape"
)

// A secret in the address is in no error of the configuration.
func TestValidateReportsNoSecret(t *testing.T) {
	for _, endpoint := range []string{
		"user:hunter2@vllm:8000", "vllm:8000/metrics?api_key=hunter2", "ftp://user:hunter2@vllm", "http://user:hunter2@", "http://user:hunter2@vllm:x",
	} {
		t.Run(endpoint, func(t *testing.T) {
			_, err := scrape.ParseEndpoint(endpoint)
			require.Error(t, err)
			assert.NotContains(t, err.Error(), "hunter2")
		})
	}
}

// Nor in the error of a start that fails.
func TestAFailedStartReportsNoSecret(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"query": func(c *Config) { c.Client.Endpoint = "https://127.0.0.1:1/metrics?api_key=hunter2" },
		"user":  func(c *Config) { c.Client.Endpoint = "https://hunter2@127.0.0.1:1" },
		"address of proxy": func(c *Config) {
			c.Client.Endpoint = "http://127.0.0.1:1"
			c.Client.TLS.CAFile = ""
			c.Client.ProxyURL = "http://u:hunter2@:bad"
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := scrape.DefaultConfig()
			cfg.Client.TLS.CAFile = "testdata/missing.pem"
			change(cfg)
			r, err := newReceiver(cfg, receivertest.NewNopSettings(metadata.Type), consumertest.NewNop())
			require.NoError(t, err)
			err = r.Start(t.Context(), componenttest.NewNopHost())
			require.Error(t, err)
			assert.NotContains(t, err.Error(), "hunter2")
		})
	}
}

type wrapping struct{ err error }

func (w wrapping) RoundTrip(*http.Request) (*http.Response, error) { return nil, w.err }

// An authenticator's own request fails with the address of its token server,
// which may hold a secret as well.
func TestAnAuthenticatorsAddressIsNotInTheMessage(t *testing.T) {
	inner := &url.Error{Op: "Post", URL: "https://token.example/t?client_secret=hunter2", Err: errors.New("no route to host")}
	client := fetch.New(fetch.Settings{
		HTTP: &http.Client{Transport: wrapping{inner}}, URL: url.URL{Scheme: "http", Host: "127.0.0.1:1", Path: "/metrics"},
		Timeout: time.Second, Limit: 1,
	})
	_, err := client.Version(t.Context())
	require.Error(t, err)
	assert.NotContains(t, fetch.AsError(err).Message, "hunter2")
}

// One server under two spellings has one service.instance.id, so that its
// series would collide; so would two whose addresses differ by the query alone.
func TestTargetsOfOneInstanceAreRefused(t *testing.T) {
	for _, second := range []string{"http://vllm:80/metrics", "http://VLLM", "http://user@vllm", "http://vllm/metrics?x=1", "http://vllm#x"} {
		t.Run(second, func(t *testing.T) {
			cfg := scrape.DefaultConfig()
			cfg.Targets = []TargetConfig{{Client: cfg.Client}, {Client: cfg.Client}}
			cfg.Targets[0].Client.Endpoint = "http://vllm"
			cfg.Targets[1].Client.Endpoint = second
			assert.Error(t, cfg.Validate())
		})
	}
}

// Mistakes that Validate lets pass and that only show in operation, or never.
func TestValidateFindsFurtherMistakes(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"a target's timeout longer than the interval": func(c *Config) {
			c.Client.Endpoint = ""
			c.Targets = []TargetConfig{{Client: c.Client}}
			c.Targets[0].Client.Endpoint = "http://vllm"
			c.Targets[0].Client.Timeout = time.Minute
		},
		"a port that does not exist":                   func(c *Config) { c.Client.Endpoint = "http://vllm:99999" },
		"an interval of nanoseconds (15 without unit)": func(c *Config) { c.Controller.CollectionInterval = 15; c.Client.Timeout = 15 },
		"a negative initial delay":                     func(c *Config) { c.Controller.InitialDelay = -time.Second },
		"a malformed proxy":                            func(c *Config) { c.Client.ProxyURL = "http://:bad" },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := scrape.DefaultConfig()
			cfg.Client.Endpoint = "http://vllm"
			change(cfg)
			assert.Error(t, cfg.Validate())
		})
	}
}
