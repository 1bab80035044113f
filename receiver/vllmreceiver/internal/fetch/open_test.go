package fetch

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/configopaque"
)

// raw answers with these bytes and closes the connection.
func raw(t *testing.T, answer string) http.HandlerFunc {
	t.Helper()
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if !assert.NoError(t, err) {
			return
		}
		defer func() { _ = conn.Close() }()
		_, _ = buffered.WriteString(answer)
		_ = buffered.Flush()
	}
}

func zipped(t *testing.T, text string) string {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := io.WriteString(w, text)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return out.String()
}

// A truncated body is an error where its end was declared. Otherwise it cannot be
// recognised, and the answer is open.
func TestWhichBodiesAreOpen(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nConnection: close\r\n"
	whole := zipped(t, body)
	for _, tt := range []struct {
		name, answer string
		open, cut    bool
	}{
		{"Content-Length", head + "Content-Length: 19\r\n\r\n# TYPE a gauge\na 12\n", false, false},
		{"Content-Length, cut", head + "Content-Length: 19\r\n\r\n# TYPE a gauge\na 1", false, true},
		{"chunks", head + "Transfer-Encoding: chunked\r\n\r\n3\r\na 1\r\n0\r\n\r\n", false, false},
		{"chunks, cut in one", head + "Transfer-Encoding: chunked\r\n\r\n9\r\na 1", false, true},
		{"chunks, cut between two", head + "Transfer-Encoding: chunked\r\n\r\n3\r\na 1\r\n", false, true},
		{"gzip", head + "Content-Encoding: gzip\r\n\r\n" + whole, false, false},
		{"gzip, cut in its trailer", head + "Content-Encoding: gzip\r\n\r\n" + whole[:len(whole)-1], false, true},
		{"only the end of the connection", head + "\r\na 1\n", true, false},
		{"HTTP/1.0", "HTTP/1.0 200 OK\r\n\r\na 1\n", true, false},
		{"HTTP/1.0 with Content-Length", "HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\na 1\n", false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			answer, err := client(t, serve(t, raw(t, tt.answer))).Metrics(t.Context(), new(bytes.Buffer), false)
			if tt.cut {
				require.Error(t, err)
				assert.Equal(t, OutcomeReset, AsError(err).Outcome)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tt.open, answer.Open)
		})
	}
}

// The names of encodings have no case, and x-gzip is gzip (RFC 9110, 8.4.1).
func TestEveryNameOfGzipIsUnderstood(t *testing.T) {
	for _, name := range []string{"gzip", "GZIP", "Gzip", "x-gzip", "X-Gzip"} {
		var got bytes.Buffer
		// Only the end of the connection ends the answer, and the trailer declares it.
		answer := "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Encoding: " + name + "\r\n\r\n" + zipped(t, body)
		what, err := client(t, serve(t, raw(t, answer))).Metrics(t.Context(), &got, false)
		require.NoError(t, err, name)
		assert.Equal(t, body, got.String(), name)
		assert.False(t, what.Open, name)
	}
	for _, name := range []string{"identity", "Identity"} {
		var got bytes.Buffer
		answer := "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Encoding: " + name + "\r\n\r\n" + body
		what, err := client(t, serve(t, raw(t, answer))).Metrics(t.Context(), &got, false)
		require.NoError(t, err, name)
		assert.Equal(t, body, got.String(), name)
		assert.True(t, what.Open, name)
	}
}

// With the configured header "Accept-Encoding:" Go's transport asks for gzip and unpacks the
// answer by itself, and the answer then has no length any more.
func TestAnAnswerThatTheTransportUnpackedIsNotOpen(t *testing.T) {
	packed := zipped(t, body)
	answer := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\nContent-Encoding: gzip\r\n\r\n%s", len(packed), packed)
	var got bytes.Buffer
	what, err := client(t, serve(t, raw(t, answer)), func(s *Settings) {
		s.Headers = configopaque.MapList{{Name: "Accept-Encoding", Value: ""}}
	}).Metrics(t.Context(), &got, false)
	require.NoError(t, err)
	assert.Equal(t, body, got.String())
	assert.False(t, what.Open)
}
