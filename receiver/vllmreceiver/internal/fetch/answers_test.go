package fetch

import (
	"bytes"
	"compress/gzip"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

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
			_, err := client(t, serve(t, tt.handler)).Metrics(t.Context(), new(bytes.Buffer))
			require.Error(t, err)
			assert.Equal(t, tt.want, AsError(err).Outcome, "%v", err)
			assert.Contains(t, err.Error(), tt.words)
		})
	}
}

func TestAnotherProtocolOnThePort(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, "SSH-2.0-OpenSSH_9.6\r\n")
			_, _ = conn.Read(make([]byte, 1024))
			_ = conn.Close()
		}
	}()
	_, err = client(t, "http://"+listener.Addr().String()+"/metrics").Metrics(t.Context(), new(bytes.Buffer))
	require.Error(t, err)
	assert.Equal(t, OutcomeNotPrometheus, AsError(err).Outcome)
	assert.Contains(t, err.Error(), "the answer is not HTTP; is this the right port?")
	assert.NotContains(t, err.Error(), "SSH")
}
