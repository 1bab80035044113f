package vllmreceiver

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// What is wrong is the setting, not the server: the log says so. A body of the program that
// the setting names has no such line, also where no container uses a GPU.
func TestTheLogNamesASourceThatTheBodyIsNotFrom(t *testing.T) {
	const server = "# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{model_name=\"m\",engine=\"0\"} 3\n"
	exporter := nvidia(fourGPUs, numberFor)
	for _, test := range []struct {
		source Source
		body   string
		wrong  bool
	}{
		{SourceDCGM, server, true},
		{SourceAMD, server, true},
		{SourceAMD, exporter, true},
		{SourceVLLM, exporter, true},
		{SourceVLLM, server, false},
		{SourceDCGM, exporter, false},
		{SourceDCGM, server + exporter, false},
		{SourceDCGM, energies("", "5"), false},
		{SourceAuto, energies("", "5"), false},
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
