package fleet

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"syscall"
)

// Hosts are servers on many loopback addresses, all at one port.
type Hosts struct {
	Port   int
	server *http.Server
}

// NewHosts listens once for all addresses of the loopback device, and on no other device: thousands of listeners would take as
// many file descriptors. at is the server of an address, nil without one.
func NewHosts(ctx context.Context, at func(ip string) http.Handler) (*Hosts, error) {
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		if failed := c.Control(func(fd uintptr) { err = syscall.BindToDevice(int(fd), "lo") }); failed != nil {
			return failed
		}
		return err
	}}
	l, err := config.Listen(ctx, "tcp4", "0.0.0.0:0")
	if err != nil {
		return nil, fmt.Errorf("no server can listen: %w", err)
	}
	h := &Hosts{server: NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
		ip, _, _ := net.SplitHostPort(local.String())
		if handler := at(ip); handler != nil {
			handler.ServeHTTP(w, r)
			return
		}
		http.NotFound(w, r)
	}))}
	bound, err := netip.ParseAddrPort(l.Addr().String())
	h.Port = int(bound.Port())
	go func() { _ = h.server.Serve(l) }()
	return h, err
}

// IP is the address of the number of a host, below another one for each first. There are 250 for each third byte, so that none
// ends with 0 or 255.
func IP(first, i int) string { return fmt.Sprintf("127.%d.%d.%d", first+i/62500, i/250%250, 1+i%250) }

// Close ends all of them and their connections.
func (h *Hosts) Close() { _ = h.server.Close() }
