// Package served is the side of the servers in the comparison with the peers: a small HTTP server that answers as uvicorn with
// prometheus_client does. It serves thousands of loopback addresses from one process and costs
// little, so that the collectors have the machine.
package served

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/fleet"
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
	body     *Body
	form     Form
	gzip     bool
	listener net.Listener

	// steps counts the bodies, and requests the answers that were written completely.
	steps, requests atomic.Int64
	// first and last are when such an answer was completely written, in nanoseconds since 1970.
	first, last atomic.Int64
}

// Fleet is a number of servers.
type Fleet struct {
	Servers []*Server
	wg      sync.WaitGroup
}

// NewFleet listens on so many addresses of 127.0.0.0/8 at one port. bodies has the body of
// each server. A form is how all answer; with gzip, a client that asks for it gets it.
func NewFleet(count int, bodies func(i int) *Body, form Form, compress bool) (*Fleet, error) {
	f := &Fleet{}
	port := 0
	for i := range count {
		address := fmt.Sprintf("127.%d.%d.%d:%d", 10+i/62500, i/250%250, 1+i%250, port)
		listener, err := net.Listen("tcp4", address)
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		port = listener.Addr().(*net.TCPAddr).Port
		s := &Server{body: bodies(i), form: form, gzip: compress, listener: listener}
		f.Servers = append(f.Servers, s)
		f.wg.Go(s.run)
	}
	return f, nil
}

// Close ends the servers. Their connections end with the clients.
func (f *Fleet) Close() error {
	var all error
	for _, s := range f.Servers {
		all = errors.Join(all, s.listener.Close())
	}
	f.wg.Wait()
	return all
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

// Address is host and port.
func (s *Server) Address() string { return s.listener.Addr().String() }

// Last is when the last answer was written.
func (s *Server) Last() time.Time { return time.Unix(0, s.last.Load()) }

func (s *Server) run() {
	for {
		connection, err := s.listener.Accept()
		if err != nil {
			return
		}
		go s.serve(connection)
	}
}

// serve answers the requests of one connection. It understands GET without a body.
func (s *Server) serve(connection net.Conn) {
	defer connection.Close()
	request := make([]byte, 0, 4096)
	for {
		end := bytes.Index(request, []byte("\r\n\r\n"))
		if end < 0 {
			if len(request) == cap(request) {
				return
			}
			n, err := connection.Read(request[len(request):cap(request)])
			if err != nil {
				return
			}
			request = request[:len(request)+n]
			continue
		}
		err := s.answer(connection, request[:end])
		request = request[:copy(request, request[end+4:])]
		if err != nil {
			return
		}
	}
}

var buffers = sync.Pool{New: func() any { b := make([]byte, 0, 128<<10); return &b }}

func (s *Server) answer(to io.Writer, request []byte) error {
	date := time.Now().UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT")
	if !bytes.HasPrefix(request, []byte("GET /metrics")) {
		text := "HTTP/1.1 404 Not Found\r\ndate: " + date + "\r\nserver: uvicorn\r\ncontent-length: 9\r\ncontent-type: text/plain; charset=utf-8\r\n\r\nNot Found"
		_, err := io.WriteString(to, text)
		return err
	}
	buffer := buffers.Get().(*[]byte)
	body := s.body.Append((*buffer)[:0], int(s.steps.Add(1)-1))
	out := buffers.Get().(*[]byte)
	head := "HTTP/1.1 200 OK\r\ndate: " + date + "\r\nserver: uvicorn\r\ncontent-type: text/plain; version=0.0.4; charset=utf-8\r\n"
	if s.gzip && bytes.Contains(bytes.ToLower(request), []byte("accept-encoding: gzip")) {
		head += "content-encoding: gzip\r\n"
		body = compressed(body)
	}
	answer := (*out)[:0]
	answer = append(answer, head...)
	var err error
	switch s.form {
	case Length:
		answer = append(answer, "content-length: "+strconv.Itoa(len(body))+"\r\n\r\n"...)
		answer = append(answer, body...)
		_, err = to.Write(answer)
	case Chunked:
		answer = append(answer, "transfer-encoding: chunked\r\n\r\n"+strconv.FormatInt(int64(len(body)), 16)+"\r\n"...)
		answer = append(append(answer, body...), "\r\n0\r\n\r\n"...)
		_, err = to.Write(answer)
	case Small:
		answer = append(answer, "transfer-encoding: chunked\r\n\r\n"...)
		_, err = to.Write(answer)
		for rest := body; err == nil && len(rest) > 0; {
			n := min(smallChunk, len(rest))
			answer = append(answer[:0], strconv.FormatInt(int64(n), 16)+"\r\n"...)
			answer = append(append(answer, rest[:n]...), "\r\n"...)
			rest = rest[n:]
			_, err = to.Write(answer)
		}
		if err == nil {
			_, err = io.WriteString(to, "0\r\n\r\n")
		}
	}
	*buffer, *out = body[:0], answer[:0]
	buffers.Put(buffer)
	buffers.Put(out)
	if err == nil {
		now := time.Now().UnixNano()
		s.first.CompareAndSwap(0, now)
		s.last.Store(now)
		s.requests.Add(1)
	}
	return err
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
