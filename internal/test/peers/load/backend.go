package load

import (
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
)

// backend receives the batches of a collector over OTLP/HTTP on a loopback address.
type backend struct {
	server   *http.Server
	listener net.Listener
}

// newBackend calls take with each batch and the time at which it came, from several goroutines.
func newBackend(take func(metrics pmetric.Metrics, at time.Time)) (*backend, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	handler := func(w http.ResponseWriter, r *http.Request) {
		at := time.Now()
		text, err := io.ReadAll(r.Body)
		request := pmetricotlp.NewExportRequest()
		if err = errors.Join(err, request.UnmarshalProto(text)); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
		take(request.Metrics(), at)
	}
	b := &backend{listener: listener, server: &http.Server{Handler: http.HandlerFunc(handler), ReadHeaderTimeout: 10 * time.Second}}
	go func() { _ = b.server.Serve(listener) }()
	return b, nil
}

// Address is host and port.
func (b *backend) Address() string { return b.listener.Addr().String() }

// Close ends it.
func (b *backend) Close() error { return b.server.Close() }
