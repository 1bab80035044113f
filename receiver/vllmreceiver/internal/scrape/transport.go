package scrape

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configauth"
	"go.opentelemetry.io/collector/config/configcompression"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configoptional"
)

// requestBytes is the size of the buffer for requests, which have no body. Go's own has 4 KiB,
// for each connection. A longer request is sent in parts.
const requestBytes = 512

// answerBytes is the size of the buffer for the headers of an answer. The body is read past it.
const answerBytes = 2 << 10

// maxHeaderBytes limits the headers of an answer.
const maxHeaderBytes = 256 << 10

// httpClient returns the client of the target, whose transport may be that of other targets.
func (s *Target) httpClient(build func() (*http.Client, error)) (*http.Client, error) {
	if s.recorder != nil || !s.shared.sharesTransport(*s.client, s.identity.address) {
		return build()
	}
	host := hostOf(s.identity.address)
	transport, err := s.shared.transport.join(host, func() (*http.Transport, error) {
		client, err := build()
		if err != nil {
			return nil, err
		}
		transport := client.Transport.(*http.Transport)
		limitEach(transport)
		return transport, nil
	})
	if err != nil {
		return nil, err
	}
	if transport == nil {
		return build()
	}
	s.joined = host
	return &http.Client{Transport: transport}, nil
}

// hostOf returns the server of an address, by which a transport distinguishes connections.
func hostOf(address *url.URL) string {
	return address.Scheme + "://" + net.JoinHostPort(address.Hostname(), port(address))
}

// newHTTPClient returns a client for the bodies of metrics.
func newHTTPClient(ctx context.Context, config confighttp.ClientConfig, host component.Host, settings component.TelemetrySettings) (*http.Client, error) {
	config.Headers = nil
	if config.WriteBufferSize == 0 {
		config.WriteBufferSize = requestBytes
	}
	if config.ReadBufferSize == 0 {
		config.ReadBufferSize = answerBytes
	}
	// This would compress the bodies of requests, and a scrape has none.
	config.Compression, config.CompressionParams = "", configcompression.CompressionParams{}
	auth := config.Auth
	if len(config.Middlewares) == 0 {
		// The transport of an authenticator hides the connections.
		config.Auth = configoptional.None[configauth.Config]()
	}
	client, err := config.ToClient(ctx, host.GetExtensions(), settings)
	if err != nil {
		return nil, err
	}
	transport, ok := client.Transport.(*http.Transport)
	if !ok {
		// With a middleware, Go's own limit of headers applies, which is 10 MiB.
		return client, nil
	}
	transport.MaxResponseHeaderBytes = maxHeaderBytes
	if !auth.HasValue() {
		return client, nil
	}
	authenticator, err := auth.Get().GetHTTPClientAuthenticator(ctx, host.GetExtensions())
	if err != nil {
		return nil, err
	}
	authenticated, err := authenticator.RoundTripper(transport)
	client.Transport = authenticatedTransport{authenticated, transport}
	return client, err
}

// authenticatedTransport sends through an authenticator, and closes the connections below it.
type authenticatedTransport struct {
	http.RoundTripper
	below *http.Transport
}

// CloseIdleConnections is what http.Client looks for.
func (t authenticatedTransport) CloseIdleConnections() { t.below.CloseIdleConnections() }

// sharedTransport has the connections of all targets with the HTTP settings of the receiver.
// With a transport of its own, the heap of each of 1000 targets is 25 KB and not 20 KB between
// two scrapes (two runs of bench-peers).
type sharedTransport struct {
	mu        sync.Mutex
	transport *http.Transport
	// hosts are the servers of the targets that have joined.
	hosts map[string]struct{}
}

// join returns the transport for the target of a server, and builds it for the first one. It
// returns nil where another target of the same server has joined, for example another path of
// a gateway: the limits of connections to a server would be for both together.
func (s *sharedTransport) join(host string, build func() (*http.Transport, error)) (*http.Transport, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, joined := s.hosts[host]; joined {
		return nil, nil
	}
	if s.transport == nil {
		transport, err := build()
		if err != nil {
			return nil, err
		}
		s.transport, s.hosts = transport, map[string]struct{}{}
	}
	s.hosts[host] = struct{}{}
	return s.transport, nil
}

// leave is called when the target of a server that joined ends. The last one closes the
// connections that are idle. Those of an earlier one close when its server ends, or after
// idle_conn_timeout.
func (s *sharedTransport) leave(host string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.hosts, host)
	if len(s.hosts) == 0 {
		s.transport.CloseIdleConnections()
		s.transport, s.hosts = nil, nil
	}
}

// sharesTransport reports whether a target with these settings can use the shared transport:
// they are those of the receiver, and nothing but the transport takes part in its requests.
// With a proxy all targets would share the few idle connections to it. Files with certificates
// are read when a transport is built, and a target that is discovered after they have changed
// needs the new ones. Without idle_conn_timeout, the connections of a target that is removed
// would stay open for as long as its server lives.
func (s *Group) sharesTransport(client confighttp.ClientConfig, address *url.URL) bool {
	if client.TLS.CAFile != "" || client.TLS.CertFile != "" || client.TLS.KeyFile != "" || client.IdleConnTimeout <= 0 {
		return false
	}
	if client.Auth.HasValue() || client.Cookies.HasValue() || len(client.Middlewares) > 0 || client.ProxyURL != "" {
		return false
	}
	if proxy, err := http.ProxyFromEnvironment(&http.Request{URL: address}); proxy != nil || err != nil {
		return false
	}
	return reflect.DeepEqual(ofTransport(client), ofTransport(s.Config.Client))
}

// ofTransport returns the settings of a client that its transport has.
func ofTransport(client confighttp.ClientConfig) confighttp.ClientConfig {
	plain := confighttp.NewDefaultClientConfig()
	client.Endpoint, client.Timeout, client.Headers = plain.Endpoint, plain.Timeout, plain.Headers
	client.Compression, client.CompressionParams = plain.Compression, plain.CompressionParams
	return client
}

// limitEach gives each server of a shared transport the idle connections that it would have
// with a transport of its own.
func limitEach(transport *http.Transport) {
	each := transport.MaxIdleConnsPerHost
	if each == 0 {
		each = http.DefaultMaxIdleConnsPerHost
	}
	if all := transport.MaxIdleConns; all > 0 {
		each = min(each, all)
	}
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = 0, each
}
