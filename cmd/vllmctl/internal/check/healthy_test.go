package check_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/check"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim"
)

// servers are healthy servers of every dialect, and of the versions at which something
// changes.
func servers() []vllmsim.Config {
	var out []vllmsim.Config
	for dialect, versions := range map[string][]string{
		"v0":           {"0.5.0", "0.5.5", "0.6.3", "0.6.6", "0.8.5", "0.9.0", "0.10.0"},
		"v1":           {"0.8.0", "0.8.5", "0.9.0", "0.9.2", "0.10.2", "0.11.1", "0.12.0", "0.13.0", "0.15.0", "0.16.0", "0.19.0", "0.20.0", "0.24.0", "0.28.0", "0.30.0"},
		"v1-multiproc": {"0.8.3", "0.10.2", "0.12.0", "0.20.0", "0.24.0"},
		"ray-old":      {"0.6.3"},
		"ray-new":      {"0.12.0", "0.20.0"},
		"rust":         {"0.22.0", "0.24.0"},
	} {
		for _, version := range versions {
			out = append(out, vllmsim.Config{Dialect: dialect, Version: version})
		}
	}
	return append(out,
		vllmsim.Config{Engines: 2, LoRA: true, SpecDecode: true, FlopsCounters: true, Version: "0.24.0"},
		vllmsim.Config{Hybrid: true}, vllmsim.Config{NaNCounter: true, FollowBlocks: 0.01},
	)
}

func TestHealthyServersHaveNoProblemAndNoWarning(t *testing.T) {
	for _, cfg := range servers() {
		t.Run(fmt.Sprintf("%s %s %d", cfg.Dialect, cfg.Version, cfg.Engines), func(t *testing.T) {
			t.Parallel()
			report := checked(t, configuration(t, "endpoint: "+serve(t, newSimulated(t, cfg)), ""))
			assert.Empty(t, codesOf(report, check.Problem, check.Warning))
			assert.Zero(t, report.Status)
			require.Len(t, report.Targets, 1)
			assert.Equal(t, "vllm", report.Targets[0].Kind)
			assert.NotContains(t, codesOf(report, check.Info), check.CodeNoTraffic)
		})
	}
}
