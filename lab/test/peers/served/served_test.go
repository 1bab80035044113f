package served

import (
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

func TestAnAnswerHasTheBodyOfItsStep(t *testing.T) {
	tmpl, err := fleet.Growing(string(original(t)), 1.0/36)
	require.NoError(t, err)
	body := &Body{Template: tmpl}
	servers, err := NewFleet(t.Context(), 2, func(int) *Body { return body })
	require.NoError(t, err)
	defer servers.Close()
	for step := range 3 {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+servers.Servers[1].Address+"/metrics", http.NoBody)
		require.NoError(t, err)
		client := &http.Client{Transport: &http.Transport{}}
		response, err := client.Do(request)
		require.NoError(t, err)
		got, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		client.CloseIdleConnections()
		assert.Equal(t, string(body.Append(nil, step)), string(got))
	}
	assert.Eventually(t, func() bool { return servers.Requests() == 3 && servers.Asked(3) == 1 }, time.Minute, time.Millisecond)
}
