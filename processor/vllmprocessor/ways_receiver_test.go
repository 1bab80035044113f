package vllmprocessor

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/probe"
)

// received is what our receiver makes of the scrapes of a server. It has no version: what does not
// come from our receiver has none either.
func received(t *testing.T, scrapes []answer, naming vllmreceiver.Naming) []pmetric.Metrics {
	t.Helper()
	read := receiving(t, "", func(config *vllmreceiver.Config) { config.Naming, config.CapacityFromBlocks = naming, true })
	out := make([]pmetric.Metrics, 0, len(scrapes))
	for _, s := range scrapes {
		out = append(out, read(s))
	}
	return out
}

// receiving returns what our receiver makes of each next scrape of a server of a version.
func receiving(tb testing.TB, version string, change ...func(*vllmreceiver.Config)) func(answer) pmetric.Metrics {
	tb.Helper()
	config := vllmreceiver.NewFactory().CreateDefaultConfig().(*vllmreceiver.Config)
	for _, c := range change {
		c(config)
	}
	replays, err := probe.NewReplays(config)
	require.NoError(tb, err)
	server, err := replays.Target("http://127.0.0.1:8000", nil)
	require.NoError(tb, err)
	tb.Cleanup(server.Close)
	return func(s answer) pmetric.Metrics { return server.Scrape(s.at, s.body, version) }
}
