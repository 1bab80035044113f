package check_test

import (
	"context"
	"net"
	"testing"
	"time"
)

// dialTo dials the same address whatever is asked for.
func dialTo(dialer *net.Dialer, address string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, "udp", address)
	}
}

// contextFor returns a context that ends after a time.
func contextFor(tb testing.TB, d time.Duration) (context.Context, context.CancelFunc) {
	tb.Helper()
	return context.WithTimeout(tb.Context(), d)
}
