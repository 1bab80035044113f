package vllmfleetextension

import (
	"bufio"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/bearertokenauthextension"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/extension/extensioncapabilities"
	"go.opentelemetry.io/collector/extension/extensiontest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-vllm/otelcol-vllm/extension/vllmfleetextension/internal/metadata"
	"github.com/otelcol-vllm/otelcol-vllm/internal/fleet"
)

// extensions are a host with these.
type extensions map[component.ID]component.Component

func (e extensions) GetExtensions() map[component.ID]component.Component { return e }

// start starts the extension with a configuration, which gets a port of its own, and returns its address and log.
func start(t *testing.T, host component.Host, settings map[string]any) (f *fleetServer, address string, logs *observer.ObservedLogs) {
	t.Helper()
	config := createDefaultConfig().(*Config)
	if settings["endpoint"] == nil {
		settings["endpoint"] = "127.0.0.1:0"
	}
	require.NoError(t, confmap.NewFromStringMap(settings).Unmarshal(config))
	require.NoError(t, config.Validate())
	with := extensiontest.NewNopSettings(metadata.Type)
	core, logs := observer.New(zap.InfoLevel)
	with.Logger = zap.New(core)
	created, err := NewFactory().Create(t.Context(), with, config)
	require.NoError(t, err)
	f = created.(*fleetServer)
	require.NoError(t, f.Start(t.Context(), host))
	return f, logs.All()[0].ContextMap()["address"].(string), logs
}

func stop(t *testing.T, f *fleetServer) {
	t.Helper()
	require.NoError(t, f.Shutdown(t.Context()))
}

func request(t *testing.T, client *http.Client, address, authorization string) (*http.Response, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	require.NoError(t, err)
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	return client.Do(r)
}

// lonely returns a client that keeps no connections.
func lonely(transport *http.Transport) *http.Client {
	transport.DisableKeepAlives = true
	return &http.Client{Transport: transport}
}

func TestTheConfiguration(t *testing.T) {
	assert.NoError(t, createDefaultConfig().(*Config).Validate())
	for name, tc := range map[string]struct {
		settings map[string]any
		wants    []string
	}{
		"unknown":  {map[string]any{"unfit_shares": 1, "endpoint": ""}, []string{"unfit_shares: ", "endpoint: is empty"}},
		"too much": {map[string]any{"unfit_share": 30}, []string{"unfit_share: 30 is not a share"}},
		"negative": {map[string]any{"unfit_share": -0.1}, []string{"unfit_share: -0.1 is not a share"}},
		"no one":   {map[string]any{"unfit_share": ".nan"}, []string{"unfit_share: "}},
		"both":     {map[string]any{"unfit_share": 2, "tls": map[string]any{"certfile": "x"}}, []string{"unfit_share: 2", "certfile"}},
	} {
		t.Run(name, func(t *testing.T) {
			config := createDefaultConfig().(*Config)
			require.NoError(t, confmap.NewFromStringMap(tc.settings).Unmarshal(config))
			err := config.Validate()
			for _, want := range tc.wants {
				assert.ErrorContains(t, err, want)
			}
		})
	}
	config := createDefaultConfig().(*Config)
	require.NoError(t, confmap.NewFromStringMap(map[string]any{"unfit_share": 0, "write_timeout": "5s", "auth": map[string]any{"authenticator": "bearertokenauth"}}).Unmarshal(config))
	require.NoError(t, config.Validate())
	assert.Zero(t, config.UnfitShare)
	assert.Equal(t, 5*time.Second, config.WriteTimeout)
	assert.Equal(t, defaultEndpoint, config.NetAddr.Endpoint, "what is not set has its default")
	assert.True(t, config.Auth.HasValue())
}

// Without a processor that it can ask it is of no use, and says so to all who could notice.
func TestWithoutAProcessor(t *testing.T) {
	f, _, logs := start(t, componenttest.NewNopHost(), map[string]any{})
	defer stop(t, f)
	var watcher extensioncapabilities.PipelineWatcher = f
	require.NoError(t, watcher.Ready())
	require.Equal(t, 2, logs.Len())
	assert.Equal(t, alone, logs.All()[1].ContextMap()["reason"])
	a := ask(t)
	assert.NotContains(t, a.get("/probe/a").Body.String()+a.get("/").Body.String(), alone)
	a.leave()
	a.clock = a.clock.Add(time.Minute)
	assert.Contains(t, a.get("/probe/a").Body.String(), alone)
	assert.Equal(t, "200 unknown", a.probe("/a"))
	assert.Contains(t, a.get("/").Body.String(), alone)
	f.Join("vllm", a.source)
	require.NoError(t, watcher.Ready())
	assert.Equal(t, 2, logs.Len())
	require.NoError(t, watcher.NotReady())
}

// On another address than that of the machine itself anybody may read it, unless an authenticator asks who it is.
func TestTheWarningOnAnotherAddress(t *testing.T) {
	auth := map[string]any{"auth": map[string]any{"authenticator": "bearertokenauth"}}
	tcp := func(ip string) net.Addr { return &net.TCPAddr{IP: net.ParseIP(ip), Port: 55690} }
	for name, tc := range map[string]struct {
		address  net.Addr
		settings map[string]any
		warns    int
	}{
		"loopback": {tcp("127.0.0.1"), nil, 0}, "loopback of IPv6": {tcp("::1"), nil, 0}, "a socket": {&net.UnixAddr{Name: "/run/fleet.sock", Net: "unix"}, nil, 0},
		"all": {tcp("0.0.0.0"), nil, 1}, "all of IPv6": {tcp("::"), nil, 1}, "one": {tcp("10.0.0.7"), nil, 1}, "all, with an authenticator": {tcp("::"), auth, 0},
	} {
		t.Run(name, func(t *testing.T) {
			config := createDefaultConfig().(*Config)
			require.NoError(t, confmap.NewFromStringMap(tc.settings).Unmarshal(config))
			with := extensiontest.NewNopSettings(metadata.Type)
			core, logs := observer.New(zap.WarnLevel)
			with.Logger = zap.New(core)
			newServer(config, with).announce(tc.address)
			require.Equal(t, tc.warns, logs.Len())
			if tc.warns > 0 {
				assert.Contains(t, logs.All()[0].Message, "Anybody who reaches this address can read")
				assert.Equal(t, tc.address.String(), logs.All()[0].ContextMap()["address"])
			}
		})
	}
}

func TestTLSAndAnAuthenticator(t *testing.T) {
	of := httptest.NewTLSServer(http.NotFoundHandler())
	defer of.Close()
	key, err := x509.MarshalPKCS8PrivateKey(of.TLS.Certificates[0].PrivateKey)
	require.NoError(t, err)
	files := map[string]any{}
	for name, block := range map[string]*pem.Block{
		"cert_file": {Type: "CERTIFICATE", Bytes: of.Certificate().Raw}, "key_file": {Type: "PRIVATE KEY", Bytes: key},
	} {
		files[name] = filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(files[name].(string), pem.EncodeToMemory(block), 0o600))
	}
	factory := bearertokenauthextension.NewFactory()
	tokens := factory.CreateDefaultConfig().(*bearertokenauthextension.Config)
	tokens.BearerToken = "secret"
	auth, err := factory.Create(t.Context(), extensiontest.NewNopSettings(factory.Type()), tokens)
	require.NoError(t, err)
	require.NoError(t, auth.Start(t.Context(), componenttest.NewNopHost()))
	defer func() { require.NoError(t, auth.Shutdown(t.Context())) }()

	f, address, logs := start(t, extensions{component.MustNewID("bearertokenauth"): auth}, map[string]any{
		"tls": files, "auth": map[string]any{"authenticator": "bearertokenauth"},
	})
	defer stop(t, f)
	assert.Equal(t, 1, logs.Len())
	client := of.Client()
	client.Transport.(*http.Transport).DisableKeepAlives = true
	for _, path := range []string{"/", "/probe/x", "/api/v1/fleet", "/api/v1/schema", "/page.js"} {
		for authorization, want := range map[string]int{"": http.StatusUnauthorized, "Bearer wrong": http.StatusUnauthorized, "Bearer secret": http.StatusOK} {
			r, err := request(t, client, "https://"+address+path, authorization)
			require.NoError(t, err)
			content(t, r)
			assert.Equal(t, want, r.StatusCode, "%s %s", path, authorization)
		}
	}
	r, err := request(t, client, "http://"+address+"/probe/x", "Bearer secret")
	require.NoError(t, err)
	content(t, r)
	assert.Equal(t, http.StatusBadRequest, r.StatusCode, "without TLS")
}

// A port that is in use, and an authenticator that is not there, end the start with nothing left behind.
func TestAStartThatFails(t *testing.T) {
	f, address, _ := start(t, componenttest.NewNopHost(), map[string]any{})
	config := createDefaultConfig().(*Config)
	config.NetAddr.Endpoint = address
	second := newServer(config, extensiontest.NewNopSettings(metadata.Type))
	err := second.Start(t.Context(), componenttest.NewNopHost())
	require.ErrorContains(t, err, "vllm_fleet/"+second.settings.ID.Name()+": endpoint "+address+": ")
	require.ErrorContains(t, err, "address already in use")
	require.NoError(t, second.Shutdown(t.Context()))
	stop(t, f)

	require.NoError(t, confmap.NewFromStringMap(map[string]any{"auth": map[string]any{"authenticator": "bearertokenauth"}}).Unmarshal(config))
	third := newServer(config, extensiontest.NewNopSettings(metadata.Type))
	err = third.Start(t.Context(), componenttest.NewNopHost())
	require.ErrorContains(t, err, third.settings.ID.String())
	require.ErrorContains(t, err, "bearertokenauth")
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
	require.NoError(t, err, "the port is free again")
	require.NoError(t, listener.Close())
	require.NoError(t, third.Shutdown(t.Context()))
}

// A reader that does not read holds up a shutdown for a few seconds only, and no other reader.
func TestASlowReaderAndTheShutdown(t *testing.T) {
	f, address, _ := start(t, componenttest.NewNopHost(), map[string]any{})
	engines := make([]fleet.Engine, 20_000)
	for n := range engines {
		engines[n] = says(strconv.Itoa(n), "healthy")
	}
	f.Join("vllm", &source{engines: engines})
	slow, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	require.NoError(t, err)
	defer slow.Close()
	_, err = fmt.Fprintf(slow, "GET /api/v1/fleet HTTP/1.1\r\nHost: x\r\n\r\n")
	require.NoError(t, err)
	line, err := bufio.NewReaderSize(slow, 16).ReadString('\n')
	require.NoError(t, err)
	assert.Contains(t, line, "200")

	client := lonely(&http.Transport{})
	for range 10 {
		r, err := request(t, client, "http://"+address+"/probe/0", "")
		require.NoError(t, err)
		content(t, r)
		assert.Equal(t, http.StatusOK, r.StatusCode)
	}
	began := time.Now()
	stop(t, f)
	took := time.Since(began)
	assert.GreaterOrEqual(t, took, shutdownPatience, "it did wait")
	assert.Less(t, took, shutdownPatience+10*time.Second)
}

// For the race detector: processors join, tell and leave while others ask.
func TestProcessorsJoinAndLeave(t *testing.T) {
	a := ask(t, says("a", "healthy"))
	var seconds atomic.Int64
	a.now = func() time.Time { return noon.Add(time.Duration(seconds.Add(1)) * fresh) }
	var all sync.WaitGroup
	for n := range 4 {
		all.Go(func() {
			for i := range 50 {
				asked := &source{engines: []fleet.Engine{says(fmt.Sprint(n, i), "stalled")}}
				tell, leave := a.Join(fmt.Sprint("vllm/", n), asked)
				tell([]fleet.Event{{Key: "key", Sentence: "It stands still."}})
				a.handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", http.NoBody))
				a.record(a.view())
				leave()
				asked.mu.Lock()
				before := asked.asked
				asked.mu.Unlock()
				assert.Positive(t, before)
				a.handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/api/v1/events", http.NoBody))
				asked.mu.Lock()
				assert.Equal(t, before, asked.asked, "who has left is not asked")
				asked.mu.Unlock()
			}
		})
	}
	all.Wait()
	assert.Len(t, a.events("", mostEvents), 200)
}
