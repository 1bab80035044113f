package served

import (
	"compress/gzip"
	"io"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/fleet"
)

func original(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile("../../../../testdata/v1-0.20.0/metrics.txt")
	require.NoError(t, err)
	return text
}

// Whatever its form, an answer has the body of that time, and gzip only where it was asked for.
func TestAnswersHaveTheBody(t *testing.T) {
	tmpl, err := fleet.Growing(string(original(t)), 1.0/36)
	require.NoError(t, err)
	body := &Body{Template: tmpl}
	for _, form := range []Form{Length, Chunked, Small} {
		for _, compress := range []bool{false, true} {
			servers, err := NewFleet(t.Context(), 2, func(int) *Body { return body }, form, compress)
			require.NoError(t, err)
			for step := range 3 {
				request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+servers.Servers[1].Address+"/metrics", http.NoBody)
				require.NoError(t, err)
				request.Header.Set("Accept-Encoding", map[bool]string{true: "gzip", false: "identity"}[compress])
				client := &http.Client{Transport: &http.Transport{}}
				response, err := client.Do(request)
				require.NoError(t, err)
				var from io.Reader = response.Body
				if compress {
					require.Equal(t, "gzip", response.Header.Get("Content-Encoding"))
					from, err = gzip.NewReader(response.Body)
					require.NoError(t, err)
				}
				got, err := io.ReadAll(from)
				require.NoError(t, err)
				require.NoError(t, response.Body.Close())
				client.CloseIdleConnections()
				assert.Equal(t, string(body.Append(nil, step)), string(got))
			}
			assert.Eventually(t, func() bool { return servers.Requests() == 3 && servers.Asked(3) == 1 }, time.Minute, time.Millisecond)
			servers.Close()
		}
	}
}
