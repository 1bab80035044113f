package scale

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/fleet"
)

// lifeHeader has the number of the process that scrapes.
const lifeHeader = "X-Life"

// mostLives bounds the numbers of processes of collectors.
const mostLives = 256

// servers are all engines, each on a loopback address of its own.
type servers struct {
	template *template
	engines  []engine
	byIP     map[string]int
	// answers counts by the process that asked; 0 is none that is known.
	answers [mostLives]atomic.Int64
	server  *http.Server
	port    int
}

// startServers listens once for all addresses of the loopback device, and on no other device: thousands of listeners would
// take as many file descriptors.
func startServers(ctx context.Context, t *template, engines []engine) (*servers, error) {
	s := &servers{template: t, engines: engines, byIP: map[string]int{}}
	for i := range engines {
		s.byIP[engines[i].ip] = i
	}
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		if failed := c.Control(func(fd uintptr) { err = syscall.BindToDevice(int(fd), "lo") }); failed != nil {
			return failed
		}
		return err
	}}
	l, err := config.Listen(ctx, "tcp4", "0.0.0.0:0")
	if err != nil {
		return nil, fmt.Errorf("the engines cannot listen: %w", err)
	}
	bound, err := netip.ParseAddrPort(l.Addr().String())
	s.port, s.server = int(bound.Port()), fleet.NewServer(s)
	go func() { _ = s.server.Serve(l) }()
	return s, err
}

var bodies = sync.Pool{New: func() any { b := make([]byte, 0, 128<<10); return &b }}

// answerOf is the number of an answer: when it was given, and to which process.
func answerOf(n int64, life int) int64 { return n*mostLives + int64(life) }

// splitAnswer is its reverse.
func splitAnswer(answer int64) (n int64, life int) {
	return answer / mostLives, int(answer % mostLives)
}

// ServeHTTP answers a scrape of the engine at the address that was connected to.
func (s *servers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/version" {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"version":"0.20.0"}`)
		return
	}
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	host, _, _ := net.SplitHostPort(local.String())
	i, known := s.byIP[host]
	if r.URL.Path != "/metrics" || !known {
		http.NotFound(w, r)
		return
	}
	life, err := strconv.Atoi(strings.TrimPrefix(r.Header.Get(lifeHeader), lifePrefix))
	if err != nil || life <= 0 || life >= mostLives {
		life = 0
	}
	e := &s.engines[i]
	n := s.template.ticksAt(time.Now())
	b, _ := bodies.Get().(*[]byte)
	*b = s.template.render((*b)[:0], e.model, e.kind, n, answerOf(n, life))
	w.Header().Set("Content-Type", s.template.sound.ContentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(*b)))
	if _, err := w.Write(*b); err == nil && http.NewResponseController(w).Flush() == nil {
		s.answers[life].Add(1)
	}
	bodies.Put(b)
}

// answered is how many answers each process of a collector has got.
func (s *servers) answered() map[int]int64 {
	out := map[int]int64{}
	for life := range s.answers {
		if n := s.answers[life].Load(); n > 0 {
			out[life] = n
		}
	}
	return out
}
