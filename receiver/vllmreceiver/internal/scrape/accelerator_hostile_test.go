package scrape

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/normalize"
)

// What is wrong is the setting, not the server: the log says so. A body of the program that
// the setting names has no such line, also where no container uses a GPU.
func TestTheLogNamesASourceThatTheBodyIsNotFrom(t *testing.T) {
	const server = "# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{model_name=\"m\",engine=\"0\"} 3\n"
	exporter := nvidia(fourGPUs, numberFor)
	for _, test := range []struct {
		source normalize.Source
		body   string
		wrong  bool
	}{
		{normalize.SourceDCGM, server, true},
		{normalize.SourceAMD, server, true},
		{normalize.SourceAMD, exporter, true},
		{normalize.SourceVLLM, exporter, true},
		{normalize.SourceVLLM, server, false},
		{normalize.SourceDCGM, exporter, false},
		{normalize.SourceDCGM, server + exporter, false},
		{normalize.SourceDCGM, energies("", "5"), false},
		{normalize.SourceAuto, energies("", "5"), false},
	} {
		r := newRig(t, func(c *Config) {
			c.Source = test.source
			off := false
			c.Metrics = map[string]MetricConfig{"vllm.accelerator.workloads": {Enabled: &off}}
		})
		r.scrape(test.body)
		if lines := r.logged("warn"); test.wrong {
			assert.Len(t, lines, 1, "%s: %.20s", test.source, test.body)
			assert.Contains(t, lines[0], "The body has no metrics of the program that the setting source names")
		} else {
			assert.Empty(t, lines, "%s: %.20s", test.source, test.body)
		}
	}
}

// The containers that are there stay within limits::series. One that comes takes no place of theirs,
// also where it has the first GPU.
func TestAnExporterKeepsTheContainersThatItHad(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Limits.Series = 3 }) // Each container has two points.
	body := func(pods ...string) string {
		var gpus []gpu
		for _, pod := range pods {
			gpus = append(gpus, gpu{uuid: "GPU-of-" + pod, index: "0", pod: pod})
		}
		return nvidiaEnergies(gpus)
	}
	first := pointsByResource(t, r.scrape(body("old")))
	require.Contains(t, first["old"], energy+"GPU-of-old")
	for range 3 {
		then := pointsByResource(t, r.scrape(body("new", "old")))
		assert.Contains(t, then["old"], energy+"GPU-of-old")
		assert.NotContains(t, then, "new")
	}
	last := pointsByResource(t, r.scrape(body("new")))
	assert.Contains(t, last["new"], energy+"GPU-of-new")
	assert.Contains(t, last["old"], "end of "+energy+"GPU-of-old")
}

// nvidiaEnergies is the energy of GPUs.
func nvidiaEnergies(gpus []gpu) string {
	var lines []string
	for _, line := range strings.Split(nvidia(gpus, numberFor), "\n") {
		if strings.Contains(line, "TOTAL_ENERGY") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

// A backend without resource attributes has one series for each device, whoever uses it. The last
// point of a batch is its value, not the end of the series of the container that has gone.
func TestTheEndOfAContainerThatHasGoneComesFirst(t *testing.T) {
	r := newRig(t)
	for _, pod := range []string{"a", "b", "", "c", "", "a"} {
		ends := energyPoints(r.scrape(energies(pod, "100")))
		require.NotEmpty(t, ends)
		assert.False(t, ends[len(ends)-1], "pod %q", pod)
		assert.LessOrEqual(t, len(ends), 2)
	}
}

// energyPoints are the points of the energy in the order of a batch: whether each is an end.
func energyPoints(metrics pmetric.Metrics) (ends []bool) {
	for _, rm := range metrics.ResourceMetrics().All() {
		for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
			if m.Name() == strings.TrimSpace(energy) {
				for _, p := range m.Sum().DataPoints().All() {
					ends = append(ends, p.Flags().NoRecordedValue())
				}
			}
		}
	}
	return ends
}
