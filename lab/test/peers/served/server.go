// Package served is the side of the servers in the comparison with the peers: bodies that grow as those of a busy vLLM server.
package served

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/fleet"
)

// Body is what a server shows.
type Body struct {
	Template *fleet.Template
	Engines  int
	Model    string
}

// Append appends the body as it is after so many steps.
func (b *Body) Append(to []byte, steps int) []byte {
	return b.Template.Append(to, fleet.State{Engines: b.Engines, Model: b.Model, Steps: float64(steps)})
}

// Server is one loopback address.
type Server struct {
	Address string
	body    *Body

	// steps counts the bodies, and requests the answers that were written completely.
	steps, requests atomic.Int64
	// first and last are when such an answer was completely written, in nanoseconds since 1970.
	first, last atomic.Int64
}

// Fleet is a number of servers.
type Fleet struct {
	*fleet.Hosts
	Servers []*Server
}

// NewFleet makes so many servers. bodies has the body of each server.
func NewFleet(ctx context.Context, count int, bodies func(i int) *Body) (*Fleet, error) {
	byIP := map[string]http.Handler{}
	hosts, err := fleet.NewHosts(ctx, func(ip string) http.Handler { return byIP[ip] })
	if err != nil {
		return nil, err
	}
	f := &Fleet{Hosts: hosts}
	for i := range count {
		ip := fleet.IP(10, i)
		s := &Server{Address: net.JoinHostPort(ip, strconv.Itoa(hosts.Port)), body: bodies(i)}
		byIP[ip] = s
		f.Servers = append(f.Servers, s)
	}
	return f, nil
}

// Requests is how many answers of /metrics all servers have written.
func (f *Fleet) Requests() int64 {
	sum := int64(0)
	for _, s := range f.Servers {
		sum += s.requests.Load()
	}
	return sum
}

// Asked is how many servers have answered at least so often.
func (f *Fleet) Asked(times int64) int {
	n := 0
	for _, s := range f.Servers {
		if s.requests.Load() >= times {
			n++
		}
	}
	return n
}

// FirstAnswers returns when the first and the last server gave their first answers; zero for
// servers without one are left out.
func (f *Fleet) FirstAnswers() (first, last time.Time) {
	for _, s := range f.Servers {
		at := s.first.Load()
		if at == 0 {
			continue
		}
		t := time.Unix(0, at)
		if first.IsZero() || t.Before(first) {
			first = t
		}
		if t.After(last) {
			last = t
		}
	}
	return first, last
}

// Last is when the last answer was written.
func (s *Server) Last() time.Time { return time.Unix(0, s.last.Load()) }

var buffers = sync.Pool{New: func() any { b := make([]byte, 0, 128<<10); return &b }}

// ServeHTTP answers a scrape.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/metrics" {
		http.NotFound(w, r)
		return
	}
	buffer := buffers.Get().(*[]byte)
	defer buffers.Put(buffer)
	*buffer = s.body.Append((*buffer)[:0], int(s.steps.Add(1)-1))
	body := *buffer
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	w.Header().Set("Server", "uvicorn")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	if _, err := w.Write(body); err != nil || http.NewResponseController(w).Flush() != nil {
		return
	}
	now := time.Now().UnixNano()
	s.first.CompareAndSwap(0, now)
	s.last.Store(now)
	s.requests.Add(1)
}
