package vllmreceiver

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configauth"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/otelcol-vllm/otelcol-vllm/internal/ending"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/metadata"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/scrape"
)

// The service sets no deadline, and an exporter may have none either.
func TestShutdownEndsWithoutADeadline(t *testing.T) {
	for name, heeds := range map[string]bool{"the consumer heeds its context": true, "it does not": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			entered, leave := make(chan struct{}, 100), make(chan struct{})
			next, err := consumer.NewMetrics(func(ctx context.Context, _ pmetric.Metrics) error {
				entered <- struct{}{}
				if heeds {
					<-ctx.Done()
				} else {
					<-leave
				}
				return ctx.Err()
			})
			require.NoError(t, err)
			cfg := scrape.DefaultConfig()
			cfg.Client.Endpoint = metricsServer(t, quick)
			cfg.Controller.InitialDelay = 0
			r, err := newReceiver(cfg, receivertest.NewNopSettings(metadata.Type), next)
			require.NoError(t, err)
			require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
			<-entered
			ended := make(chan error, 1)
			go func() { ended <- r.Shutdown(context.Background()) }()
			select {
			case err := <-ended:
				assert.NoError(t, err)
			case <-time.After(2*ending.Wait + within):
				t.Error("Shutdown hangs")
			}
			close(leave)
		})
	}
}

// An authenticator wraps the transport. The connections of a target that is removed close all the same.
func TestTheConnectionsOfARemovedTargetWithAnAuthenticatorClose(t *testing.T) {
	t.Parallel()
	closed := make(chan struct{}, 10)
	server := httptest.NewUnstartedServer(http.HandlerFunc(quick))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			closed <- struct{}{}
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	id := component.MustNewID("auth")
	host := hostWith{componenttest.NewNopHost(), map[component.ID]component.Component{id: authenticator{}}}
	cfg := scrape.DefaultConfig()
	cfg.Client.Endpoint = server.URL
	cfg.Client.Auth = configoptional.Some(configauth.Config{AuthenticatorID: id})
	cfg.Client.IdleConnTimeout = 0
	cfg.Controller.InitialDelay = 0
	sink := new(consumertest.MetricsSink)
	r, err := newReceiver(cfg, receivertest.NewNopSettings(metadata.Type), sink)
	require.NoError(t, err)
	require.NoError(t, r.Start(t.Context(), host))
	t.Cleanup(func() { assert.NoError(t, r.Shutdown(context.Background())) })
	assert.Eventually(t, func() bool { return len(sink.AllMetrics()) > 0 }, within, 5*time.Millisecond)
	address, err := scrape.ParseEndpoint(server.URL)
	require.NoError(t, err)
	require.NoError(t, r.Remove(t.Context(), address))
	select {
	case <-closed:
	case <-time.After(within):
		t.Error("the connection stays open")
	}
}

// authenticator hides the transport, as most do.
type authenticator struct{}

func (authenticator) Start(context.Context, component.Host) error { return nil }
func (authenticator) Shutdown(context.Context) error              { return nil }
func (authenticator) RoundTripper(base http.RoundTripper) (http.RoundTripper, error) {
	return hidden{base}, nil
}

type hidden struct{ http.RoundTripper }

// hostWith has one extension.
type hostWith struct {
	component.Host
	extensions map[component.ID]component.Component
}

func (h hostWith) GetExtensions() map[component.ID]component.Component { return h.extensions }
