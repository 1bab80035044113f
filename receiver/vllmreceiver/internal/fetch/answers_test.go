package fetch

import (
	"bytes"
	"compress/gzip"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheMessageForAnUnreadableAnswer(t *testing.T) {
	var cut bytes.Buffer
	zip := gzip.NewWriter(&cut)
	_, err := io.WriteString(zip, strings.Repeat("vllm:x 1\n", 1000))
	require.NoError(t, err)
	require.NoError(t, zip.Close())
	damaged := bytes.Clone(cut.Bytes())
	for i := 20; i < len(damaged)-8; i++ {
		damaged[i] ^= 0xff
	}
	packed := func(body []byte) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(body)
		}
	}
	for name, tt := range map[string]struct {
		handler http.HandlerFunc
		want    Outcome
		words   string
	}{
		"no gzip":      {packed([]byte("vllm:num_requests_running 1\n")), OutcomeNotPrometheus, "not the gzip that its Content-Encoding declares"},
		"damaged gzip": {packed(damaged), OutcomeNotPrometheus, "not the gzip that its Content-Encoding declares"},
		"endless headers": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Long", strings.Repeat("x", 11<<20))
			_, _ = io.WriteString(w, body)
		}, OutcomeTooLarge, "the headers of the answer are larger"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := client(t, serve(t, tt.handler)).Metrics(t.Context(), new(bytes.Buffer), false)
			require.Error(t, err)
			assert.Equal(t, tt.want, AsError(err).Outcome, "%v", err)
			assert.Contains(t, err.Error(), tt.words)
		})
	}
}

// A server that greets first is recognized, whether its greeting arrives before the
// request is sent or after it.
func TestAnotherProtocolOnThePort(t *testing.T) {
	for name, greetsFirst := range map[string]bool{"the greeting arrives first": true, "the request is sent first": false} {
		t.Run(name, func(t *testing.T) { anotherProtocol(t, greetsFirst) })
	}
}

func anotherProtocol(t *testing.T, greetsFirst bool) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			if !greetsFirst {
				_, _ = conn.Read(make([]byte, 1024))
			}
			_, _ = io.WriteString(conn, "SSH-2.0-OpenSSH_9.6\r\n")
			if greetsFirst {
				_, _ = conn.Read(make([]byte, 1024))
			}
			_ = conn.Close()
		}
	}()
	c := client(t, "http://"+listener.Addr().String()+"/metrics")
	ctx := t.Context()
	if greetsFirst {
		// The pause is in the client, between the connection and the request.
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { time.Sleep(50 * time.Millisecond) }})
	}
	_, err = c.Metrics(ctx, new(bytes.Buffer), false)
	require.Error(t, err)
	assert.Equal(t, OutcomeNotPrometheus, AsError(err).Outcome, "%v", err)
	assert.Contains(t, err.Error(), "the answer is not HTTP; is this the right port?")
	assert.NotContains(t, err.Error(), "SSH")
}
