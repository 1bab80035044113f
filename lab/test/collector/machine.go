package collector

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/captures"
)

// Binary is the path of the built distribution: OTELCOL_VLLM_BIN, or where "make
// build" puts it. Without it the test is skipped, as on a developer's machine, or
// fails where OTELCOL_VLLM_REQUIRED is set.
func Binary(t *testing.T) string {
	t.Helper()
	file := os.Getenv("OTELCOL_VLLM_BIN")
	if file == "" {
		file = filepath.Join(captures.Root(t), "bin", "otelcol-vllm")
	}
	if _, err := os.Stat(file); err != nil {
		if os.Getenv("OTELCOL_VLLM_REQUIRED") != "" {
			require.NoError(t, err, "the built binary is required")
		}
		t.Skip("the distribution is not built; run make build:", err)
	}
	file, err := filepath.Abs(file)
	require.NoError(t, err)
	return file
}

// FreeAddr is a loopback address, host and port, on which nothing listens.
func FreeAddr(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	return listener.Addr().String()
}

// Get returns a page, or nothing while the server does not answer.
func Get(t *testing.T, url string) []byte {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		return nil
	}
	return body
}

// Log is a buffer that a process writes while a test reads it.
type Log struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

// Write adds to the log.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buffer.Write(p)
}

// String is what has been written so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buffer.String()
}
