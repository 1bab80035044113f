package scrape

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/emit"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/exposition"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/fetch"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/metadatatest"
)

// One body with a bit of everything, read twice, and one failure.
func TestSelfTelemetryCounts(t *testing.T) {
	recorded := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, recorded.Shutdown(context.Background())) })
	cfg := DefaultConfig()
	cfg.Client.Endpoint = "http://127.0.0.1:1"
	cfg.Limits.Series = 5
	group, err := NewGroup(cfg, metadatatest.NewSettings(recorded))
	require.NoError(t, err)
	scraper := group.NewTarget(Configured(cfg)[0])
	require.NoError(t, scraper.Start(t.Context(), componenttest.NewNopHost()))

	body := gauge("1") + "vllm:num_requests_running{engine=\"0\"} 2\n" + // a duplicate
		"vllm:num_requests_running{engine=\"1\"} two\n" + // a bad value
		"vllm:num_requests_running{engine=\"2\" 1\n" + // bad labels
		counter("5") +
		"# TYPE vllm:brand_new gauge\nvllm:brand_new 1\n" + // unknown
		"# TYPE ray_vllm_num_preemptions_total counter\nray_vllm_num_preemptions_total NaN\n" + // a counter without a number
		"# TYPE ray_vllm_num_preemptions gauge\nray_vllm_num_preemptions 5\n" + // and Ray's gauge twin of it
		"# TYPE python_info gauge\npython_info 1\n" + // off by default
		"# TYPE http_requests_total counter\nhttp_requests_total{status=\"2xx\"} 1\n" +
		"http_requests_total{status=\"4xx\"} 1\n" // beyond the limit
	for range 2 {
		scrapeBody(t, scraper, body)
	}
	_, err = scrapeOnce(t.Context(), scraper)
	require.Error(t, err)

	by := func(name, value string, n int64) metricdata.DataPoint[int64] {
		return metricdata.DataPoint[int64]{Value: n, Attributes: attribute.NewSet(attribute.String(name, value))}
	}
	plain := func(n int64) []metricdata.DataPoint[int64] { return []metricdata.DataPoint[int64]{{Value: n}} }
	ignore := metricdatatest.IgnoreTimestamp()
	metadatatest.AssertEqualReceiverVllmScrapes(t, recorded, []metricdata.DataPoint[int64]{
		by("outcome", "ok", 2), by("outcome", "refused", 1),
	}, ignore)
	metadatatest.AssertEqualReceiverVllmBadLines(t, recorded, []metricdata.DataPoint[int64]{
		by("reason", "bad_value", 2), by("reason", "bad_labels", 2),
	}, ignore)
	metadatatest.AssertEqualReceiverVllmDuplicateSamples(t, recorded, plain(2), ignore)
	metadatatest.AssertEqualReceiverVllmDroppedPoints(t, recorded, []metricdata.DataPoint[int64]{
		by("reason", "counter_nan", 2), by("reason", "series_limit", 2),
	}, ignore)
	metadatatest.AssertEqualReceiverVllmOmittedPoints(t, recorded, []metricdata.DataPoint[int64]{
		by("reason", "type_conflict", 2), by("reason", "disabled", 2),
	}, ignore)
	metadatatest.AssertEqualReceiverVllmUnknownFamilies(t, recorded, plain(2), ignore)
	metadatatest.AssertEqualReceiverVllmTypeConflicts(t, recorded, plain(2), ignore)
	sizes, err := recorded.GetMetric("otelcol_receiver_vllm_body_size")
	require.NoError(t, err)
	size := sizes.Data.(metricdata.Histogram[int64]).DataPoints[0]
	assert.EqualValues(t, 2, size.Count)
	assert.EqualValues(t, 2*len(body), size.Sum)

	scraper.Close()
	group.Shutdown()
}

// scrapeBody does what a successful fetch does.
func scrapeBody(t *testing.T, s *Target, body string) {
	t.Helper()
	snapshot := s.reader.Read([]byte(body), exposition.DialectText)
	scrape, err := s.plan(t.Context(), emit.Scrape{Time: time.Now(), Snapshot: snapshot}, false, pmetric.NewMetrics())
	require.NoError(t, err)
	report := s.emitter.Emit(scrape, emit.Own{Up: true}, pmetric.NewMetrics())
	s.shared.telemetry.scraped(fetch.OutcomeOK)
	s.shared.telemetry.read(t.Context(), snapshot, scrape.Plan, &report, len(body), time.Millisecond)
}

// What is off by choice must not look like a loss.
func TestNothingIsDroppedOfAHealthyServer(t *testing.T) {
	files, err := filepath.Glob("../../../../testdata/*/*.txt")
	require.NoError(t, err)
	files = slices.DeleteFunc(files, func(file string) bool { return strings.Contains(file, "/odd/") })
	require.NotEmpty(t, files)
	omitted := 0
	for _, file := range files {
		recorded := componenttest.NewTelemetry()
		cfg := DefaultConfig()
		cfg.Client.Endpoint = "http://127.0.0.1:1"
		group, err := NewGroup(cfg, metadatatest.NewSettings(recorded))
		require.NoError(t, err)
		scraper := group.NewTarget(Configured(cfg)[0])
		require.NoError(t, scraper.Start(t.Context(), componenttest.NewNopHost()))
		body, err := os.ReadFile(file)
		require.NoError(t, err)
		for range 2 {
			scrapeBody(t, scraper, string(body))
		}
		lost, err := recorded.GetMetric("otelcol_receiver_vllm_dropped_points")
		if err == nil {
			assert.Fail(t, "lost", "%s: %v", file, lost.Data)
		}
		if _, err := recorded.GetMetric("otelcol_receiver_vllm_omitted_points"); err == nil {
			omitted++
		}
		scraper.Close()
		group.Shutdown()
		require.NoError(t, recorded.Shutdown(t.Context()))
	}
	assert.Positive(t, omitted, "what is left out on purpose is counted elsewhere")
}
