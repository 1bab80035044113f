package run

import (
	"archive/tar"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// archive writes an archive of parts.
func archive(to io.Writer, parts [][2]string) error {
	w := tar.NewWriter(to)
	for _, p := range parts {
		if err := w.WriteHeader(&tar.Header{Name: p[0], Mode: 0o644, Size: int64(len(p[1]))}); err != nil {
			return err
		}
		if _, err := io.WriteString(w, p[1]); err != nil {
			return err
		}
	}
	return w.Close()
}

// The server answers the first look, and breaks off the second. Looks are at multiples of 5 s. The
// third one is broken off by the end of the story, and is none.
func TestALookHasWhatTheServerShowed(t *testing.T) {
	before := goleak.IgnoreCurrent()
	var looks atomic.Int64
	ctx, cancel := context.WithCancel(t.Context())
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/metrics":
			switch looks.Add(1) {
			case 2:
				panic(http.ErrAbortHandler)
			case 3:
				cancel()
				return
			}
			_, _ = io.WriteString(w, "a 1\n")
		case "/health":
			w.WriteHeader(http.StatusServiceUnavailable)
		case "/load":
			_, _ = io.WriteString(w, "{\"server_load\":3}\n")
		}
	}))
	// The story began 4 s ago, so that the second look is a second from now.
	began := time.Now().Add(-4 * time.Second)
	got := Watch(ctx, s.URL, began)
	s.Close()
	goleak.VerifyNone(t, before)
	require.Len(t, got, 2)
	assert.GreaterOrEqual(t, got[0].At, 4.0)
	assert.GreaterOrEqual(t, got[1].At, 5.0)
	got[0].At, got[1].At = 0, 0
	assert.Equal(t, []Scrape{{Status: 200, Body: []byte("a 1\n"), Load: `{"server_load":3}`, Health: 503}, {Failure: "reset"}}, got)
}

// The names are those of the receiver's attribute of vllm.scrape.failure.
func TestALookThatFailsSaysWhy(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	_, err = net.Dial("tcp", address)
	assert.Equal(t, "refused", failure(err))
	assert.Equal(t, "timeout", failure(&url.Error{Err: context.DeadlineExceeded}))
	assert.Equal(t, "reset", failure(io.ErrUnexpectedEOF))
}
