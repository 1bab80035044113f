package vllmsim

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Listen opens one socket per server, on consecutive loopback addresses and the
// same port: 127.0.0.1:18000, 127.0.0.2:18000 and so on. Port 0 takes a port
// that is free on the first address. An address that is not on loopback is
// refused: these servers have no protection of any kind.
func Listen(ctx context.Context, address string, servers int) ([]net.Listener, error) {
	first, err := loopback(address)
	if err != nil {
		return nil, err
	}
	var listeners []net.Listener
	config := net.ListenConfig{}
	next := first
	for range servers {
		if !next.Addr().IsLoopback() {
			closeAll(listeners)
			return nil, fmt.Errorf("no room for %d servers from %s on: loopback addresses end before that", servers, first.Addr())
		}
		l, err := config.Listen(ctx, "tcp", next.String())
		if err != nil {
			closeAll(listeners)
			return nil, fmt.Errorf("cannot listen on %s: %w", next, err)
		}
		listeners = append(listeners, l)
		if bound, ok := l.Addr().(*net.TCPAddr); ok {
			next = netip.AddrPortFrom(next.Addr().Next(), bound.AddrPort().Port())
		}
	}
	return listeners, nil
}

// loopback reads host:port and insists on loopback.
func loopback(address string) (netip.AddrPort, error) {
	host, portText, err := net.SplitHostPort(address)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("listen address %q: want host:port, for example 127.0.0.1:18000", address)
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("listen address %q: port %q is not a number up to 65535", address, portText)
	}
	if host == "localhost" {
		host = "127.0.0.1"
	}
	ip, err := netip.ParseAddr(host)
	if err != nil || !ip.IsLoopback() {
		return netip.AddrPort{}, fmt.Errorf(
			"listen address %q is not on loopback: this stand-in has no authentication and serves 127.x.x.x or ::1 only", address)
	}
	return netip.AddrPortFrom(ip, uint16(port)), nil
}

// Serve answers on the listeners, the handler of the same index on each, until
// ctx ends. It closes the listeners.
func Serve(ctx context.Context, listeners []net.Listener, handlers []http.Handler) error {
	if len(listeners) != len(handlers) {
		closeAll(listeners)
		return fmt.Errorf("%d listeners for %d handlers", len(listeners), len(handlers))
	}
	var group sync.WaitGroup
	errs := make([]error, len(listeners))
	servers := make([]*http.Server, len(listeners))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for i, l := range listeners {
		servers[i] = &http.Server{Handler: handlers[i], ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 2 * time.Minute}
		group.Go(func() {
			if err := servers[i].Serve(l); !errors.Is(err, http.ErrServerClosed) {
				errs[i] = err
				cancel()
			}
		})
	}
	<-ctx.Done()
	grace, done := context.WithTimeout(context.Background(), 2*time.Second)
	defer done()
	for _, s := range servers {
		if s.Shutdown(grace) != nil {
			_ = s.Close()
		}
	}
	group.Wait()
	return errors.Join(errs...)
}

// Serve listens at the given loopback address, passes the URLs to announce, and answers
// until ctx ends.
func (s *Server) Serve(ctx context.Context, address string, announce func(urls []string)) error {
	listeners, err := Listen(ctx, address, len(s.targets))
	if err != nil {
		return err
	}
	announce(URLs(listeners))
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	var handlers []http.Handler
	for _, t := range s.targets {
		handlers = append(handlers, t)
		group.Go(func() {
			ticker := time.NewTicker(time.Second)
			defer ticker.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-ticker.C:
					t.tick()
				}
			}
		})
	}
	return Serve(ctx, listeners, handlers)
}

// URLs returns the base URL of each listener.
func URLs(listeners []net.Listener) []string {
	var urls []string
	for _, l := range listeners {
		urls = append(urls, "http://"+l.Addr().String())
	}
	return urls
}

// Where writes URLs for a terminal line.
func Where(urls []string) string {
	if len(urls) <= 3 {
		return strings.Join(urls, " ")
	}
	return fmt.Sprintf("%s … %s (%d servers)", urls[0], urls[len(urls)-1], len(urls))
}

func closeAll(listeners []net.Listener) {
	for _, l := range listeners {
		_ = l.Close() // Nothing was served; only the first error matters.
	}
}
