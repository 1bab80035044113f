package scrape

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/configauth"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/config/configoptional"
)

func TestOnlyATargetWithTheSettingsOfTheReceiverSharesItsTransport(t *testing.T) {
	t.Parallel()
	cfg := DefaultConfig()
	s := &Group{Config: cfg}
	address := &url.URL{Scheme: "http", Host: "127.0.0.1:8000"}
	for name, change := range map[string]func(*confighttp.ClientConfig){
		"the same":      func(*confighttp.ClientConfig) {},
		"its address":   func(c *confighttp.ClientConfig) { c.Endpoint = "http://127.0.0.1:8000" },
		"its timeout":   func(c *confighttp.ClientConfig) { c.Timeout = time.Hour },
		"its headers":   func(c *confighttp.ClientConfig) { c.Headers.Set("Authorization", configopaque.String("secret")) },
		"compressed":    func(c *confighttp.ClientConfig) { c.Compression = "gzip" },
		"not: TLS":      func(c *confighttp.ClientConfig) { c.TLS.CAFile = "/ca.pem" },
		"not: name":     func(c *confighttp.ClientConfig) { c.TLS.ServerName = "other" },
		"not: unproven": func(c *confighttp.ClientConfig) { c.TLS.InsecureSkipVerify = true },
		"not: proxy":    func(c *confighttp.ClientConfig) { c.ProxyURL = "http://127.0.0.1:3128" },
		"not: buffer":   func(c *confighttp.ClientConfig) { c.ReadBufferSize = 1 << 16 },
		"not: auth": func(c *confighttp.ClientConfig) {
			c.Auth = configoptional.Some(configauth.Config{})
		},
		"not: cookies":    func(c *confighttp.ClientConfig) { c.Cookies = configoptional.Some(confighttp.CookiesConfig{}) },
		"not: keep-alive": func(c *confighttp.ClientConfig) { c.DisableKeepAlives = true },
	} {
		client := cfg.Client
		change(&client)
		assert.Equal(t, !strings.HasPrefix(name, "not"), s.sharesTransport(client, address), name)
	}
	// With settings of all targets that need one each, none shares.
	for name, change := range map[string]func(*confighttp.ClientConfig){
		"proxy":       func(c *confighttp.ClientConfig) { c.ProxyURL = "http://127.0.0.1:3128" },
		"authority":   func(c *confighttp.ClientConfig) { c.TLS.CAFile = "/ca.pem" },
		"certificate": func(c *confighttp.ClientConfig) { c.TLS.CertFile = "/cert.pem" },
		"key":         func(c *confighttp.ClientConfig) { c.TLS.KeyFile = "/key.pem" },
		"no timeout":  func(c *confighttp.ClientConfig) { c.IdleConnTimeout = 0 },
	} {
		all := DefaultConfig()
		change(&all.Client)
		assert.False(t, (&Group{Config: all}).sharesTransport(all.Client, address), name)
	}
}

func TestASharedTransportThatCannotBeBuiltHasNoUser(t *testing.T) {
	t.Parallel()
	var s sharedTransport
	_, err := s.join("a", func() (*http.Transport, error) { return nil, errors.New("no certificate") })
	require.EqualError(t, err, "no certificate")
	build := func() (*http.Transport, error) { return &http.Transport{}, nil }
	first, err := s.join("a", build)
	require.NoError(t, err)
	second, err := s.join("b", build)
	require.NoError(t, err)
	assert.Same(t, first, second)
	again, err := s.join("a", build)
	require.NoError(t, err)
	assert.Nil(t, again)
	s.leave("a")
	assert.Same(t, first, s.transport)
	again, err = s.join("a", build)
	require.NoError(t, err)
	assert.Same(t, first, again)
	s.leave("a")
	s.leave("b")
	assert.Nil(t, s.transport)
}

// What a server could keep with a transport of its own, it keeps with the shared one.
func TestTheLimitsOfIdleConnectionsAreThoseOfEachServer(t *testing.T) {
	t.Parallel()
	for _, of := range []struct{ all, each, want int }{{100, 0, 2}, {0, 0, 2}, {1, 0, 1}, {100, 7, 7}, {3, 7, 3}, {0, 7, 7}} {
		transport := &http.Transport{MaxIdleConns: of.all, MaxIdleConnsPerHost: of.each}
		limitEach(transport)
		assert.Zero(t, transport.MaxIdleConns)
		assert.Equal(t, of.want, transport.MaxIdleConnsPerHost, "%+v", of)
	}
}
