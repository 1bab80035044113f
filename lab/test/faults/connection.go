package faults

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/fleet"
)

// connectionFaults are servers that do not answer, not in time, or not to the end.
func connectionFaults() []Fault {
	page := body(1700000000, 7)
	declared := func(length int, content string) func(*World) (Given, error) {
		return raw(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s", text, length, content))
	}
	late := says("did not answer within the timeout")
	closed := says("closed before the whole answer")
	large := says("larger than|too large")
	return []Fault{
		{Name: "refused", What: "nothing listens at the port", Says: says("connection refused"), Begin: func(w *World) (Given, error) {
			return target(w.FreeAddr())
		}},
		{Name: "reset", What: "the connection is reset after the request", Says: closed, Begin: func(w *World) (Given, error) {
			return target(w.Raw(func(_ context.Context, c net.Conn, _ int) { fleet.Reset(c) }))
		}},
		{Name: "reset in the body", What: "the connection is reset after half of the body", Says: closed, Begin: func(w *World) (Given, error) {
			return target(w.Raw(func(ctx context.Context, c net.Conn, _ int) {
				_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s", text, len(page), page[:len(page)/2])
				_ = fleet.Sleep(ctx, 50*time.Millisecond)
				fleet.Reset(c)
			}))
		}},
		{Name: "silent", What: "the connection is accepted and nothing is sent", Says: late, Begin: func(w *World) (Given, error) {
			return target(w.Raw(func(ctx context.Context, _ net.Conn, _ int) { <-ctx.Done() }))
		}},
		{Name: "late", What: "the whole answer comes after the timeout", Says: late, Begin: func(w *World) (Given, error) {
			return target(w.Raw(func(ctx context.Context, c net.Conn, _ int) {
				_ = fleet.Sleep(ctx, 4*time.Second)
				_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s", text, len(page), page)
			}))
		}},
		{Name: "drip", What: "one byte of the body every 50 ms", Says: late, Begin: func(w *World) (Given, error) {
			return target(w.Raw(func(ctx context.Context, c net.Conn, _ int) {
				_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: %s\r\n\r\n", text)
				for i := range len(page) {
					if _, err := c.Write([]byte{page[i]}); err != nil || fleet.Sleep(ctx, 50*time.Millisecond) != nil {
						return
					}
				}
			}))
		}},
		{Name: "drip of headers", What: "one header every 50 ms, without end", Says: late, Begin: func(w *World) (Given, error) {
			return target(w.Raw(func(ctx context.Context, c net.Conn, _ int) {
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n")
				for n := 0; fleet.Sleep(ctx, 50*time.Millisecond) == nil; n++ {
					if _, err := fmt.Fprintf(c, "X-%d: 1\r\n", n); err != nil {
						return
					}
				}
			}))
		}},
		{Name: "endless headers", What: "headers as fast as the connection takes them", Says: says("header"), Begin: func(w *World) (Given, error) {
			return target(w.Raw(func(_ context.Context, c net.Conn, _ int) {
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n")
				flood(c, "X-Header: "+strings.Repeat("x", 1000)+"\r\n")
			}))
		}},
		{Name: "long Content-Length", What: "the declared length is longer than the body", Says: closed, Begin: declared(len(page)+100, page)},
		{Name: "chunk without end", What: "a chunked body that ends without its last chunk", Says: closed, Begin: raw(
			fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: %s\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", text, len(page), page))},
		{Name: "endless body", What: "a valid body as fast as the connection takes it, without end", Says: large, Begin: func(w *World) (Given, error) {
			return target(w.Raw(func(_ context.Context, c net.Conn, _ int) {
				_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: %s\r\n\r\n", text)
				flood(c, page)
			}))
		}},
		{Name: "endless line", What: "one line without end", Says: large, Begin: func(w *World) (Given, error) {
			return target(w.Raw(func(_ context.Context, c net.Conn, _ int) {
				_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: %s\r\n\r\n", text)
				flood(c, strings.Repeat("a", 1<<16))
			}))
		}},
		{Name: "gzip bomb", What: "some hundred KB of gzip that unpack to 256 MB", Says: large, Begin: gzipped(func() []byte {
			// Members of a gzip stream follow each other: one is compressed, not 256.
			return bytes.Repeat(zip(strings.NewReader(strings.Repeat("a{b=\"c\"} 1\n", 1<<20/11))), 256)
		})},
		{Name: "half of a gzip stream", What: "a compressed body that ends too early", Says: says("closed before|gzip|malformed"), Begin: gzipped(func() []byte {
			whole := zip(strings.NewReader(strings.Repeat(page, 50)))
			return whole[:len(whole)/2]
		})},
		{Name: "gzip by name only", What: "Content-Encoding: gzip on a plain body", Says: says("gzip|compress|malformed"), Begin: gzipped(func() []byte { return []byte(page) })},
	}
}

// raw answers every request with the same bytes and closes the connection.
func raw(answer string) func(*World) (Given, error) {
	return func(w *World) (Given, error) {
		return target(w.Raw(func(_ context.Context, c net.Conn, _ int) { _, _ = io.WriteString(c, answer) }))
	}
}

// flood writes the same bytes until the other side has had enough.
func flood(c net.Conn, chunk string) {
	content := []byte(chunk)
	for {
		if _, err := c.Write(content); err != nil {
			return
		}
	}
}

// gzipped answers with bytes that are declared to be gzip. They are made once.
func gzipped(content func() []byte) func(*World) (Given, error) {
	return func(w *World) (Given, error) {
		made := content()
		return target(w.HTTP(func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Type", text)
			rw.Header().Set("Content-Encoding", "gzip")
			_, _ = rw.Write(made)
		}))
	}
}

func zip(content io.Reader) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = io.Copy(z, content)
	_ = z.Close()
	return out.Bytes()
}
