// Package served is the side of the servers in the comparison with the peers: bodies that grow as those of a busy vLLM server, in
// the forms in which uvicorn and proxies send them.
package served

import (
	"bytes"
	"compress/gzip"
	"context"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/fleet"
)

// Form is how an answer is sent.
type Form string

// The forms of an answer.
const (
	// Length declares the length of the body.
	Length Form = "length"
	// Chunked sends the body as one chunk, as uvicorn does for prometheus_client.
	Chunked Form = "chunked"
	// Small sends it in chunks of 2 KiB, each written alone, as a proxy may.
	Small Form = "small"
)

// smallChunk is the size of a chunk of the form Small, in bytes.
const smallChunk = 2 << 10

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
	form    Form
	gzip    bool

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

// NewFleet makes so many servers. bodies has the body of
// each server. A form is how all answer; with gzip, a client that asks for it gets it.
func NewFleet(ctx context.Context, count int, bodies func(i int) *Body, form Form, compress bool) (*Fleet, error) {
	byIP := map[string]http.Handler{}
	hosts, err := fleet.NewHosts(ctx, func(ip string) http.Handler { return byIP[ip] })
	if err != nil {
		return nil, err
	}
	f := &Fleet{Hosts: hosts}
	for i := range count {
		ip := fleet.IP(10, i)
		s := &Server{Address: net.JoinHostPort(ip, strconv.Itoa(hosts.Port)), body: bodies(i), form: form, gzip: compress}
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
	if s.gzip && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		body = compressed(body)
	}
	size, to := len(body), http.NewResponseController(w)
	switch s.form {
	case Length:
		w.Header().Set("Content-Length", strconv.Itoa(size))
	case Small:
		size = smallChunk
	}
	for len(body) > 0 {
		n := min(size, len(body))
		if _, err := w.Write(body[:n]); err != nil || to.Flush() != nil {
			return
		}
		body = body[n:]
	}
	now := time.Now().UnixNano()
	s.first.CompareAndSwap(0, now)
	s.last.Store(now)
	s.requests.Add(1)
}

var writers = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}

func compressed(body []byte) []byte {
	var out bytes.Buffer
	w := writers.Get().(*gzip.Writer)
	w.Reset(&out)
	_, _ = w.Write(body)
	_ = w.Close()
	writers.Put(w)
	return out.Bytes()
}
