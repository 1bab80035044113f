package live

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/confighttp"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/configfile"
	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver"
)

func planned(t *testing.T, times Times, addresses ...string) (*Plan, error) {
	t.Helper()
	client := confighttp.NewDefaultClientConfig()
	client.Timeout = 10 * time.Second
	return OfAddresses(addresses, &client, times)
}

func TestTheTimesOfAPlan(t *testing.T) {
	plan, err := planned(t, Times{}, "http://a:1", "http://b:1")
	require.NoError(t, err)
	assert.Equal(t, 5*time.Second, plan.Interval)
	assert.Equal(t, 15*time.Second, plan.Window)
	assert.Equal(t, 2, plan.Targets)
	config := plan.Pipelines[0].Receivers[0].Config
	for i := range config.Targets {
		assert.Equal(t, 5*time.Second, config.Targets[i].Client.Timeout, "no longer than the interval")
	}
	plan, err = planned(t, Times{Interval: time.Second, Window: time.Hour}, "http://a:1")
	require.NoError(t, err)
	assert.Equal(t, time.Hour, plan.Window)
	assert.GreaterOrEqual(t, plan.Pipelines[0].Processor.MaxStaleness, 2*time.Hour)
	assert.Zero(t, plan.Pipelines[0].Processor.Diagnosis.StartTimeout, "who names a server expects it to be up")

	for want, times := range map[string]Times{
		"--interval 10ms is too short":           {Interval: 10 * time.Millisecond},
		"--window 9s has fewer than two scrapes": {Window: 9 * time.Second},
	} {
		_, err := planned(t, times, "http://a:1")
		require.ErrorContains(t, err, want)
	}
}

func TestErrorsNameTheAddressAndNoSecret(t *testing.T) {
	_, err := planned(t, Times{}, "http://a:1", "b:8000", "http://user:secret@c:70000", "http://a:1/metrics")
	require.Error(t, err)
	for _, want := range []string{
		"address 2: has no scheme; write http://b:8000 or https://b:8000", "address 3: has a port that does not exist",
		"address 4: the same server as address 1; remove one",
	} {
		assert.ErrorContains(t, err, want)
	}
	assert.NotContains(t, err.Error(), "secret")
	assert.NotContains(t, err.Error(), "targets::")
	many := make([]string, MaxTargets+1)
	for i := range many {
		many[i] = fmt.Sprintf("http://s%d:1", i)
	}
	_, err = planned(t, Times{}, many...)
	require.ErrorContains(t, err, "1001 servers exceed the limit of 1000")
}

// A name that the catalogue lacks would never arrive.
func TestWhatTheViewNeedsIsInTheCatalogue(t *testing.T) {
	for name := range needs {
		metric, known := catalog.ByName(name)
		require.True(t, known, name)
		assert.Equal(t, catalog.KindGauge, metric.Kind, name)
		for _, attribute := range metric.Attributes {
			of := attribute == "engine" || attribute == "model_name" || attribute == "outcome" || attribute == "status_class"
			assert.NotEqual(t, of, own[attribute], "%s of %s", attribute, name)
		}
	}
}

func configured(t *testing.T, text string) *configfile.File {
	t.Helper()
	file := filepath.Join(t.TempDir(), "collector.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	read, err := configfile.Read(t.Context(), file)
	require.NoError(t, err)
	require.Empty(t, read.Problems)
	return read
}

func TestThePlanOfAConfiguration(t *testing.T) {
	const text = `
receivers:
  vllm/a: {endpoint: "http://a:1", collection_interval: 30s, naming: wire, preset: essential, metrics: {vllm.up: {enabled: false}, vllm.healthy: {enabled: false}}}
  vllm/b: {endpoint: "http://b:1", collection_interval: 10s}
  vllm/c: {targets: [{endpoint: "http://c:1"}, {endpoint: "http://d:1"}]}
processors:
  vllm: {window: 2m, diagnosis: {enabled: false}, metrics: {vllm.generation_throughput: {enabled: false}}}
exporters: {debug: {}}
service:
  pipelines:
    metrics/1: {receivers: [vllm/a, vllm/b], processors: [vllm], exporters: [debug]}
    metrics/2: {receivers: [vllm/c], exporters: [debug]}
`
	plan, err := OfFile(configured(t, text), Times{})
	require.NoError(t, err)
	require.Len(t, plan.Pipelines, 2)
	assert.Equal(t, 4, plan.Targets)
	assert.Equal(t, 30*time.Second, plan.Interval)
	assert.Equal(t, 2*time.Minute, plan.Window, "that of the collector, so that the table shows what it reports")
	judging := plan.Pipelines[0].Processor
	assert.True(t, judging.Diagnosis.Enabled)
	for _, name := range []string{"vllm.diagnosis.signal", "vllm.diagnosis.signal_ratio", "vllm.generation_throughput"} {
		assert.True(t, *judging.Metrics[name].Enabled, name)
	}
	assert.NotContains(t, judging.Metrics, "vllm.pool.running", "there are no pools")
	scraping := plan.Pipelines[0].Receivers[0].Config
	assert.Equal(t, vllmreceiver.NamingCanonical, scraping.Naming)
	assert.Equal(t, catalog.Standard, scraping.Preset)
	assert.NotContains(t, scraping.Metrics, "vllm.up")
	assert.Contains(t, scraping.Metrics, "vllm.healthy", "what the view does not need is left as it is")
	assert.Contains(t, plan.Notes[0], "vllm/c has no vllm processor in its pipeline")

	plan, err = OfFile(configured(t, text), Times{Interval: time.Minute})
	require.NoError(t, err)
	assert.Equal(t, time.Minute, plan.Interval)
	assert.Equal(t, 3*time.Minute, plan.Window, "the default window of one minute would have one scrape")
	_, err = OfFile(configured(t, text), Times{Interval: time.Millisecond})
	require.ErrorContains(t, err, "too short")

	_, err = OfFile(configured(t, "receivers: {otlp: {}}\nexporters: {debug: {}}\nservice: {pipelines: {metrics: {receivers: [otlp], exporters: [debug]}}}"), Times{})
	require.ErrorContains(t, err, "no pipeline of the configuration has a vllm receiver")
}
