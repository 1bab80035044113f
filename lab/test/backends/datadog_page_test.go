//go:build e2e

package backends

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/collector"
)

// logIntake passes metrics on to the recorder and keeps logs.
type logIntake struct {
	metrics *recorder
	mu      sync.Mutex
	logs    []plog.LogRecord
	keys    []string
	err     error
}

func (i *logIntake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/v1/logs" {
		i.metrics.ServeHTTP(w, r)
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	content, err := io.ReadAll(r.Body)
	if err == nil {
		content, err = gunzip(content)
	}
	export := plogotlp.NewExportRequest()
	if err == nil {
		err = export.UnmarshalProto(content)
	}
	if err != nil {
		i.err = err
		return
	}
	i.keys = append(i.keys, r.Header.Get("dd-api-key"))
	for _, resource := range export.Logs().ResourceLogs().All() {
		for _, scope := range resource.ScopeLogs().All() {
			for _, record := range scope.LogRecords().All() {
				i.logs = append(i.logs, record)
			}
		}
	}
}

// records returns the attributes of the logs and the keys that they came with.
func (i *logIntake) records() (attributes []pcommon.Map, keys []string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, record := range i.logs {
		attributes = append(attributes, record.Attributes())
	}
	return attributes, i.keys
}

// fragment writes the block of the page that has a text into a file.
func fragment(t *testing.T, text string) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, "docs", "start", "datadog.md"))
	require.NoError(t, err)
	for _, block := range regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$").FindAllStringSubmatch(string(page), -1) { //nolint:gocritic // with (?m), ^ is the start of a line
		if strings.Contains(block[1], text) {
			file := filepath.Join(t.TempDir(), "fragment.yaml")
			require.NoError(t, os.WriteFile(file, []byte(block[1]), 0o600))
			return file
		}
	}
	require.Fail(t, "no block of the page has "+text)
	return ""
}

// The two fragments of the page on Datadog, behind the example: the diagnosis arrives as logs
// with the key, histograms do not arrive, and their percentiles do. The key is in the former
// variable, which is still read.
func TestTheFragmentsOfThePageOnDatadogDoWhatItSays(t *testing.T) {
	t.Parallel()
	vllm := collector.Busy(t, 1, betweenScrapes)
	intake := &logIntake{metrics: newRecorder(t)}
	server := httptest.NewServer(intake)
	t.Cleanup(server.Close)

	c := collector.Collector(t, map[string]string{
		"DATADOG_OTLP_ENDPOINT": server.URL, "DATADOG_API_KEY": "former", "VLLM_ENDPOINT": vllm, "QUEUE_DIR": t.TempDir(),
	},
		filepath.Join(root, "examples", "backends", "datadog.yaml"), fragment(t, "filter/cost"), fragment(t, "vllm_diagnosis"),
		"yaml:receivers::vllm::collection_interval: 1s", "yaml:receivers::vllm::timeout: 900ms", "yaml:processors::vllm::window: 4s",
		"yaml:exporters::otlp_http::sending_queue::batch::flush_timeout: 500ms")
	c.WaitFor(t, "percentiles and a log", func() bool {
		logs, _ := intake.records()
		return len(logs) > 0 && len(sentByName(intake.metrics.points())["vllm.time_to_first_token_quantile"]) > 0
	})
	c.Stop(t)

	for _, p := range intake.metrics.points() {
		assert.NotEqual(t, pmetric.MetricTypeHistogram, p.kind, p.name)
	}
	logs, keys := intake.records()
	for _, attributes := range logs {
		_, has := attributes.Get("vllm.diagnosis.condition")
		assert.True(t, has)
	}
	for _, key := range keys {
		assert.Equal(t, "former", key)
	}
	for _, r := range intake.metrics.received().requests {
		require.Equal(t, "former", r.header.Get("dd-api-key"))
	}
	assert.NoError(t, intake.err)
	assert.Empty(t, intake.metrics.errs)
	assert.Empty(t, c.Complaints())
}

// DD_SITE alone makes the address, so that the variables of the Agent are enough. The
// configuration is not run, because the address is that of the real intake.
func TestTheSiteOfDatadogMakesTheAddress(t *testing.T) {
	t.Parallel()
	file := filepath.Join(root, "examples", "backends", "datadog.yaml")
	for env, address := range map[string]string{
		"DD_SITE=us5.datadoghq.com": "https://otlp.us5.datadoghq.com",
		"DD_SITE=":                  "https://otlp.datadoghq.com",
		"DATADOG_OTLP_ENDPOINT=http://127.0.0.1:4318": "http://127.0.0.1:4318",
	} {
		name, value, _ := strings.Cut(env, "=")
		variables := map[string]string{"DD_API_KEY": "secret"}
		if value != "" {
			variables[name] = value
		}
		p := collector.Start(t, variables, collector.Binary(t), "print-config", "--config", file)
		require.Eventually(t, func() bool { return p.Ended() != nil }, 20*time.Second, 50*time.Millisecond)
		assert.Contains(t, p.Log(), "endpoint: "+address+"\n")
	}
}
