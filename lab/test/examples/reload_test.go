//go:build e2e

package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/collector"
)

// The README says what a reload does, and how to find a mistake before it.
func TestAReloadWithABrokenConfigurationEndsTheCollector(t *testing.T) {
	t.Parallel()
	config, folder := filepath.Join(t.TempDir(), "collector.yaml"), t.TempDir()
	write := func(interval string) {
		require.NoError(t, os.WriteFile(config, []byte(`
extensions: {storage_check: , file_storage: {directory: "`+folder+`", recreate: true}}
receivers: {vllm: {endpoint: "http://`+collector.FreeAddr(t)+`", collection_interval: `+interval+`}}
processors: {vllm: {storage: file_storage}}
exporters: {nop: }
service: {extensions: [file_storage, storage_check], pipelines: {metrics: {receivers: [vllm], processors: [vllm], exporters: [nop]}}}
`), 0o600))
	}
	validate := func() error {
		return exec.CommandContext(t.Context(), collector.Binary(t), "validate", "--config", config).Run()
	}
	write("15s")
	require.NoError(t, validate())
	c := collector.Collector(t, nil, config)
	c.WaitFor(t, "the start", c.Ready)
	starts := func() int { return strings.Count(c.Log(), "Everything is ready") }

	write("10s")
	require.NoError(t, validate())
	c.Signal(t, syscall.SIGHUP)
	c.WaitFor(t, "the second start, with the files that the first had", func() bool { return starts() == 2 })

	write("-1s")
	require.Error(t, validate(), "validate finds it")
	c.Signal(t, syscall.SIGHUP)
	c.WaitForFailure(t)
	assert.Equal(t, 2, starts())
}
