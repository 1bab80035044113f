package beside

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/backtest/promapi"
)

func client(tb testing.TB, address string) *promapi.Client {
	tb.Helper()
	u, err := url.Parse(address)
	require.NoError(tb, err)
	c := &http.Client{Transport: &http.Transport{}}
	tb.Cleanup(c.CloseIdleConnections)
	return promapi.New(promapi.Settings{HTTP: c, URL: *u, Deadline: time.Minute})
}
