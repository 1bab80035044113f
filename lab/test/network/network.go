// Package network answers the HTTP requests of receivers within the process, so that tests
// can run in virtual time: real connections would stop it.
package network

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"syscall"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/extensionmiddleware"
)

// Network has hosts by their names. Receivers reach it as a middleware of their HTTP
// clients; it is also their host.
type Network struct {
	component.StartFunc
	component.ShutdownFunc

	mu    sync.Mutex
	hosts map[string]http.Handler
}

var (
	_ extensionmiddleware.HTTPClient = (*Network)(nil)
	// ID is the name of the middleware in the configuration of receivers.
	ID = component.MustNewID("simulated_network")
)

// New returns a network without hosts.
func New() *Network { return &Network{hosts: map[string]http.Handler{}} }

// Put adds a host, with its port.
func (n *Network) Put(host string, handler http.Handler) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hosts[host] = handler
}

// GetExtensions makes the network the host of the receivers.
func (n *Network) GetExtensions() map[component.ID]component.Component {
	return map[component.ID]component.Component{ID: n}
}

// GetHTTPRoundTripper replaces the connection of a client.
func (n *Network) GetHTTPRoundTripper(context.Context) (extensionmiddleware.WrapHTTPRoundTripperFunc, error) {
	return func(context.Context, http.RoundTripper) (http.RoundTripper, error) { return n, nil }, nil
}

// RoundTrip answers a request. A host that does not exist refuses the connection; a
// handler that aborts closes it.
func (n *Network) RoundTrip(request *http.Request) (response *http.Response, err error) {
	n.mu.Lock()
	handler := n.hosts[request.URL.Host]
	n.mu.Unlock()
	if handler == nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	recorder := httptest.NewRecorder()
	defer func() {
		switch cause := recover(); cause {
		case nil:
		case http.ErrAbortHandler:
			response, err = nil, io.ErrUnexpectedEOF
		default:
			panic(cause)
		}
	}()
	handler.ServeHTTP(recorder, request)
	response = recorder.Result()
	response.Request = request
	return response, nil
}
