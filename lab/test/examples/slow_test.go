//go:build e2e

package examples

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/collector"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/scenario"
)

// From end to end: the memory of a simulated engine becomes slow for a while, and the built
// collector runs with the example. Its backends receive an event by OTLP at the beginning
// and one at the end, and the condition for Prometheus. Windows are four seconds long, as
// in "make run".
func TestASlowEngineIsReportedAsSlowAndThenAsHealthy(t *testing.T) {
	t.Parallel()
	const (
		// The server has run for two minutes when the collector first scrapes it. The
		// collector then has 36 s to learn.
		uptime = 120.0
		slow   = uptime + 36
		over   = slow + 16
	)
	story, err := scenario.Load("../../../examples/scenarios/one-minute.yaml")
	require.NoError(t, err)
	config := story.Config
	config.Start, config.Clock = time.Now().Add(-uptime*time.Second), time.Now
	config.Changes = []engine.Change{
		{At: slow, Parameter: engine.ParamBandwidth, Value: 0.3}, {At: over, Parameter: engine.ParamBandwidth, Value: 1},
	}
	sim, err := vllmsim.New(config)
	require.NoError(t, err)
	server := httptest.NewServer(sim.Targets()[0])
	t.Cleanup(server.Close)
	began := func(at float64) time.Time { return config.Start.Add(time.Duration(at * float64(time.Second))) }

	vendor := &backend{header: "api-key", value: "secret-key"}
	vendor.serve(t)
	addr := collector.FreeAddr(t)
	c := startExample(t, example("diagnosis.yaml"), map[string]string{
		"VLLM_ENDPOINT": server.URL, "OTLP_ENDPOINT": vendor.url, "OTLP_API_KEY": "secret-key",
	}, soon, "processors::vllm::window: 4s", "exporters::prometheus::endpoint: "+addr,
		"service::pipelines::metrics::exporters: [otlp_http, vllm_diagnosis, prometheus]")
	c.WaitFor(t, "the start of all components", c.Ready)

	received := func(condition string) int {
		n := 0
		for _, r := range vendor.records() {
			if v, _ := r.Attributes().Get("vllm.diagnosis.condition"); v.AsString() == condition {
				n++
			}
		}
		return n
	}
	shows := func(condition, value string) bool {
		for line := range strings.Lines(string(collector.Get(t, "http://"+addr+"/metrics"))) {
			if strings.HasPrefix(line, "vllm_diagnosis_condition{") && strings.Contains(line, fmt.Sprintf("condition=%q", condition)) {
				return strings.HasSuffix(strings.TrimSpace(line), "} "+value)
			}
		}
		return false
	}
	c.WaitFor(t, "that the engine is healthy", func() bool { return received("healthy") == 1 && shows("healthy", "1") })
	// A window and the hold of two windows, with a margin for a busy machine.
	time.Sleep(time.Until(began(slow)))
	c.WaitFor(t, "that the engine is slow", func() bool { return received("degraded") > 0 })
	c.WaitFor(t, "the same for Prometheus", func() bool { return shows("degraded", "1") && shows("healthy", "0") })
	assert.NotContains(t, string(collector.Get(t, "http://"+addr+"/metrics")), "Users wait", "what is said makes no series")
	time.Sleep(time.Until(began(over)))
	c.WaitFor(t, "that the engine is healthy again", func() bool { return received("healthy") > 1 })
	c.WaitFor(t, "the same for Prometheus", func() bool { return shows("healthy", "1") && shows("degraded", "0") })
	c.Stop(t)

	var harm, recovery *plog.LogRecord
	for _, r := range vendor.records() {
		condition, _ := r.Attributes().Get("vllm.diagnosis.condition")
		switch {
		case condition.AsString() == "degraded":
			assert.True(t, r.Timestamp().AsTime().After(began(slow)), "not before there is harm")
			if harm == nil {
				// At the end the evidence of the cause can be gone a window before that of the harm.
				harm = &r
			}
		case harm != nil && condition.AsString() == "healthy":
			recovery = &r
		}
	}
	require.NotNil(t, harm)
	require.NotNil(t, recovery)
	attributes := harm.Attributes().AsRaw()
	assert.Equal(t, plog.SeverityNumberWarn, harm.SeverityNumber())
	assert.Equal(t, "slow_steps", attributes["vllm.diagnosis.cause"])
	assert.Contains(t, harm.Body().AsString(), "The engine itself is slower")
	assert.NotEmpty(t, attributes["vllm.diagnosis.evidence"])
	assert.NotEmpty(t, attributes["vllm.diagnosis.next_steps"])
	compared := 0
	for name := range attributes {
		if strings.HasPrefix(name, "vllm.diagnosis.signal_usual.") {
			compared++
		}
	}
	assert.GreaterOrEqual(t, compared, 2, "numbers with what is usual, by default: %v", attributes["vllm.diagnosis.evidence"])
	since, err := time.Parse(time.RFC3339, fmt.Sprint(attributes["vllm.diagnosis.since"]))
	require.NoError(t, err)
	assert.WithinRange(t, since, began(slow).Truncate(time.Second), harm.Timestamp().AsTime())
	assert.Equal(t, "degraded", recovery.Attributes().AsRaw()["vllm.diagnosis.previous_condition"])
	assert.True(t, recovery.Timestamp().AsTime().After(began(over)), "not before it is over")
	assert.Empty(t, vendor.errors())
	assert.Contains(t, c.Log(), "diagnosis: Users wait longer than they should")
	assert.Empty(t, c.Complaints("diagnosis: "), "but for what the processor finds")
}
