package vllmreceiver

import (
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/scrape"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/scrapetest"
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
		assert.Eventually(t, func() bool { return s.Load() >= 6 }, within, 5*time.Millisecond)
	}
	for i, c := range connections {
		_, total := c.now()
		// One for metrics, one for the version, and now and then one that came too late.
		assert.LessOrEqual(t, total, 3, addresses[i])
	}
	require.NoError(t, r.Shutdown(t.Context()))
	for i, c := range connections {
		assert.Eventually(t, func() bool { open, _ := c.now(); return open == 0 }, within, time.Millisecond, addresses[i])
	}
}

// Targets with the same address and other paths, as of a gateway, take nothing from each other:
// neither the idle connections, which would be opened again for each scrape, nor those of
// max_conns_per_host, which one slow target would keep.
func TestTargetsOfOneServerHaveTheirOwnConnections(t *testing.T) {
	t.Parallel()
	const targets, each = 20, 10
	c := &counted{open: map[net.Conn]bool{}}
	scraped := map[string]*atomic.Int64{"/slow": {}}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if of := scraped[r.URL.Path]; of != nil {
			of.Add(1)
		}
		if r.URL.Path == "/slow" {
			<-r.Context().Done()
			return
		}
		// So that scrapes of several targets overlap.
		time.Sleep(20 * time.Millisecond)
		quick(w, r)
	}))
	server.Config.ConnState = c.note
	addresses := []string{"http://" + server.Listener.Addr().String() + "/slow"}
	for i := range targets {
		scraped[fmt.Sprintf("/of/%d", i)] = &atomic.Int64{}
		addresses = append(addresses, fmt.Sprintf("http://%s/of/%d", server.Listener.Addr(), i))
	}
	server.Start()
	t.Cleanup(server.Close)
	start(t, new(consumertest.MetricsSink), func(cfg *Config) {
		cfg.Controller.CollectionInterval = 50 * time.Millisecond
		cfg.Client.MaxConnsPerHost = 1
		for i := range cfg.Targets {
			cfg.Targets[i].Client.MaxConnsPerHost, cfg.Targets[i].Client.Timeout = 1, within
		}
	}, addresses...)
	assert.Eventually(t, func() bool {
		for path, n := range scraped {
			if n.Load() < each && path != "/slow" {
				return false
			}
		}
		return scraped["/slow"].Load() > 0
	}, within, 5*time.Millisecond)
	_, total := c.now()
	assert.LessOrEqual(t, total, targets+1)
}

// A target that is added after the file of the authority has changed trusts the new authority.
func TestATargetThatIsAddedReadsTheCertificatesAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	old, _, _ := scrapetest.SelfSigned(t, dir)
	text, err := os.ReadFile(old)
	require.NoError(t, err)
	authority := filepath.Join(dir, "authority.pem")
	require.NoError(t, os.WriteFile(authority, text, 0o600))
	address, _, _ := countedServer(t, "127.0.0.1")
	r := start(t, new(consumertest.MetricsSink), func(cfg *Config) {
		cfg.Client.TLS.CAFile = authority
		cfg.Targets[0].Client.TLS.CAFile = authority
	}, address)

	var scrapes atomic.Int64
	secured := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		scrapes.Add(1)
		quick(w, q)
	}))
	t.Cleanup(secured.Close)
	renewed := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secured.Certificate().Raw})
	require.NoError(t, os.WriteFile(authority, renewed, 0o600))
	at, err := scrape.ParseEndpoint(secured.URL)
	require.NoError(t, err)
	require.NoError(t, r.Add(t.Context(), scrape.Server{Address: at, Client: r.config.Client}))
	assert.Eventually(t, func() bool { return scrapes.Load() > 0 }, within, 5*time.Millisecond)
}

// Without idle_conn_timeout, the connection of a target that is removed does not stay open.
func TestARemovedTargetKeepsNoConnectionWithoutATimeout(t *testing.T) {
	t.Parallel()
	stays, _, _ := countedServer(t, "127.0.0.1")
	goes, scrapes, c := countedServer(t, "127.0.0.1")
	r := start(t, new(consumertest.MetricsSink), func(cfg *Config) {
		cfg.Client.IdleConnTimeout = 0
		for i := range cfg.Targets {
			cfg.Targets[i].Client.IdleConnTimeout = 0
		}
	}, stays, goes)
	assert.Eventually(t, func() bool { return scrapes.Load() > 1 }, within, 5*time.Millisecond)
	at, err := scrape.ParseEndpoint(goes)
	require.NoError(t, err)
	require.NoError(t, r.Remove(t.Context(), at))
	assert.Eventually(t, func() bool { open, _ := c.now(); return open == 0 }, within, 5*time.Millisecond)
}
