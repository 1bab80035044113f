package faults

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/fleet"
)

// World starts servers on loopback and ends all of them with Close.
type World struct {
	// Dir is a folder for certificates and lists of targets.
	Dir string
	// Testdata is the folder of the bodies that the project made.
	Testdata string
	// BodyLimit is the receiver's default limit of a body, which some faults fill.
	BodyLimit int

	ctx    context.Context
	cancel context.CancelFunc
	mu     sync.Mutex
	closed bool
	open   []interface{ Close() error }
	wg     sync.WaitGroup
}

// newWorld returns a world without servers. Everything in it ends after lifetime
// at the latest.
func newWorld(dir, testdata string, lifetime time.Duration, bodyLimit int) *World {
	w := &World{Dir: dir, Testdata: testdata, BodyLimit: bodyLimit}
	w.ctx, w.cancel = context.WithTimeout(context.Background(), lifetime)
	return w
}

// Close ends all servers and their connections and waits for them.
func (w *World) Close() {
	w.cancel()
	w.mu.Lock()
	w.closed = true
	for _, c := range w.open {
		_ = c.Close()
	}
	w.mu.Unlock()
	w.wg.Wait()
}

// keep registers c for Close; it closes c at once if the world is already closed.
func (w *World) keep(c interface{ Close() error }) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		_ = c.Close()
		return
	}
	w.open = append(w.open, c)
}

// Listen returns a listener on loopback.
func (w *World) Listen() (net.Listener, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen on loopback: %w", err)
	}
	w.keep(l)
	return l, nil
}

// HTTP serves a handler and returns host and port.
func (w *World) HTTP(h http.HandlerFunc) (string, error) {
	l, err := w.Listen()
	if err != nil {
		return "", err
	}
	w.serve(l, h)
	return l.Addr().String(), nil
}

func (w *World) serve(l net.Listener, h http.Handler) {
	server := fleet.NewServer(h)
	server.BaseContext = func(net.Listener) context.Context { return w.ctx }
	w.keep(server)
	w.wg.Go(func() { _ = server.Serve(l) })
}

// Raw lets a function answer each connection, whose request has been read. number
// counts the connections from 1.
func (w *World) Raw(answer func(ctx context.Context, c net.Conn, number int)) (string, error) {
	l, err := w.Listen()
	if err != nil {
		return "", err
	}
	w.wg.Go(func() {
		for number := 1; ; number++ {
			c, err := l.Accept()
			if errors.Is(err, net.ErrClosed) || w.ctx.Err() != nil {
				return
			}
			if err != nil {
				continue
			}
			w.keep(c)
			w.wg.Go(func() {
				defer c.Close()
				if readRequest(c) {
					answer(w.ctx, c, number)
				}
			})
		}
	})
	return l.Addr().String(), nil
}

// readRequest reads up to the empty line that ends a request.
func readRequest(c net.Conn) bool {
	var last [4]byte
	one := make([]byte, 1)
	for string(last[:]) != "\r\n\r\n" {
		if n, err := c.Read(one); err != nil || n == 0 {
			return false
		}
		copy(last[:], last[1:])
		last[3] = one[0]
	}
	return true
}

// File writes a file into the world's folder and returns its path.
func (w *World) File(name string, content []byte) (string, error) {
	path := filepath.Join(w.Dir, name)
	return path, os.WriteFile(path, content, 0o600)
}

// FreeAddr is an address on loopback where nothing listens as long as the world is there. A
// socket that is bound and does not listen holds the port: one that were only closed again
// could become that of another server of the same collector.
func (w *World) FreeAddr() (string, error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		return "", os.NewSyscallError("socket", err)
	}
	w.keep(os.NewFile(uintptr(fd), "a port where nothing listens"))
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return "", os.NewSyscallError("bind", err)
	}
	bound, err := syscall.Getsockname(fd)
	if err != nil {
		return "", os.NewSyscallError("getsockname", err)
	}
	v4, ok := bound.(*syscall.SockaddrInet4)
	if !ok {
		return "", fmt.Errorf("the socket is bound to a %T", bound)
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(v4.Port)), nil
}
