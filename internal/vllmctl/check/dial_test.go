package check_test

import (
	"context"
	"net"
)

// dialTo dials the same address whatever is asked for.
func dialTo(dialer *net.Dialer, address string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, "udp", address)
	}
}
