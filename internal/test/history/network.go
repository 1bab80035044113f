package history

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

// network answers the requests of receivers in this process: real connections would stop
// virtual time. Receivers reach it as a middleware of their HTTP clients.
type network struct {
	component.StartFunc
	component.ShutdownFunc

	mu    sync.Mutex
	hosts map[string]http.Handler
}

var (
	_ extensionmiddleware.HTTPClient = (*network)(nil)
	// networkID is the name of the middleware in the configuration of receivers.
	networkID = component.MustNewID("simulated_network")
)

func newNetwork() *network { return &network{hosts: map[string]http.Handler{}} }

func (n *network) put(host string, handler http.Handler) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hosts[host] = handler
}

// GetExtensions makes the network the host of the receivers.
func (n *network) GetExtensions() map[component.ID]component.Component {
	return map[component.ID]component.Component{networkID: n}
}

// GetHTTPRoundTripper replaces the connection of a client.
func (n *network) GetHTTPRoundTripper(context.Context) (extensionmiddleware.WrapHTTPRoundTripperFunc, error) {
	return func(context.Context, http.RoundTripper) (http.RoundTripper, error) { return n, nil }, nil
}

// RoundTrip answers a request. A host that does not exist refuses the connection; a
// handler that aborts closes it.
func (n *network) RoundTrip(request *http.Request) (response *http.Response, err error) {
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
