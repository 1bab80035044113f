package vllmreceiver

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/configauth"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/consumer/consumertest"
)

// counted are the connections of a server by their state.
type counted struct {
	mu    sync.Mutex
	open  map[net.Conn]bool
	total int
}

func (c *counted) note(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		c.open[conn] = true
		c.total++
	case http.StateClosed:
		delete(c.open, conn)
	}
}

func (c *counted) now() (open, total int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.open), c.total
}

// countedServer is a server with the text of vLLM at an own loopback address.
func countedServer(t *testing.T, ip string) (address string, scrapes *atomic.Int64, c *counted) {
	t.Helper()
	c, scrapes = &counted{open: map[net.Conn]bool{}}, &atomic.Int64{}
	listener, err := net.Listen("tcp", net.JoinHostPort(ip, "0"))
	require.NoError(t, err)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/metrics") {
			scrapes.Add(1)
		}
		quick(w, r)
	}))
	require.NoError(t, server.Listener.Close())
	server.Listener = listener
	server.Config.ConnState = c.note
	server.Start()
	t.Cleanup(server.Close)
	return "http://" + listener.Addr().String(), scrapes, c
}

// Go's transport keeps 100 idle connections, and all targets share one. Each target still
// keeps its own connection, so that no scrape opens one, and Shutdown closes all.
func TestEachOfManyTargetsKeepsItsConnection(t *testing.T) {
	t.Parallel()
	const servers = 130
	var addresses []string
	var scrapes []*atomic.Int64
	var connections []*counted
	for i := range servers {
		address, s, c := countedServer(t, fmt.Sprintf("127.0.9.%d", i+1))
		addresses, scrapes, connections = append(addresses, address), append(scrapes, s), append(connections, c)
	}
	sink := new(consumertest.MetricsSink)
	r := start(t, sink, func(cfg *Config) {
		cfg.Controller.CollectionInterval = 200 * time.Millisecond
		for i := range cfg.Targets {
			cfg.Targets[i].Client.Timeout = within
		}
	}, addresses...)
	for _, s := range scrapes {
		assert.Eventually(t, func() bool { return s.Load() >= 5 }, within, 5*time.Millisecond)
	}
	assert.Equal(t, servers, r.shared.transport.users)
	for i, c := range connections {
		_, total := c.now()
		assert.LessOrEqual(t, total, 2, addresses[i]) // one for metrics, one for the version
	}
	require.NoError(t, r.Shutdown(t.Context()))
	for i, c := range connections {
		assert.Eventually(t, func() bool { open, _ := c.now(); return open == 0 }, within, time.Millisecond, addresses[i])
	}
	assert.Zero(t, r.shared.transport.users)
}

func TestOnlyATargetWithTheSettingsOfTheReceiverSharesItsTransport(t *testing.T) {
	t.Parallel()
	cfg := createDefaultConfig().(*Config)
	s := &shared{config: cfg}
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
	cfg.Client.ProxyURL = "http://127.0.0.1:3128"
	assert.False(t, s.sharesTransport(cfg.Client, address))
}

func TestASharedTransportThatCannotBeBuiltHasNoUser(t *testing.T) {
	t.Parallel()
	var s sharedTransport
	_, err := s.join(func() (*http.Transport, error) { return nil, errors.New("no certificate") })
	require.EqualError(t, err, "no certificate")
	first, err := s.join(func() (*http.Transport, error) { return &http.Transport{}, nil })
	require.NoError(t, err)
	second, err := s.join(func() (*http.Transport, error) { return &http.Transport{}, nil })
	require.NoError(t, err)
	assert.Same(t, first, second)
	s.leave()
	assert.Same(t, first, s.transport)
	s.leave()
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
