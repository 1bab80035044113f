package check_test

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/check"
)

// page is a body of an engine with a gauge for each of some models, and more.
func page(models int, more string) string {
	body := "# TYPE vllm:num_requests_running gauge\n"
	for i := range models {
		body += fmt.Sprintf("vllm:num_requests_running{engine=\"0\",model_name=\"m%d\"} 1\n", i)
	}
	return body + more
}

// eight are the lines of one histogram: what Prometheus would store of it.
const eight = "# TYPE vllm:time_to_first_token_seconds histogram\n" +
	`vllm:time_to_first_token_seconds_bucket{engine="0",model_name="m0",le="0.1"} 1` + "\n" +
	`vllm:time_to_first_token_seconds_bucket{engine="0",model_name="m0",le="0.5"} 1` + "\n" +
	`vllm:time_to_first_token_seconds_bucket{engine="0",model_name="m0",le="1"} 1` + "\n" +
	`vllm:time_to_first_token_seconds_bucket{engine="0",model_name="m0",le="5"} 1` + "\n" +
	`vllm:time_to_first_token_seconds_bucket{engine="0",model_name="m0",le="10"} 1` + "\n" +
	`vllm:time_to_first_token_seconds_bucket{engine="0",model_name="m0",le="+Inf"} 1` + "\n" +
	`vllm:time_to_first_token_seconds_sum{engine="0",model_name="m0"} 0.05` + "\n" +
	`vllm:time_to_first_token_seconds_count{engine="0",model_name="m0"} 1` + "\n"

// sent checks a configuration with servers that answer with these bodies, and returns what is sent by exporter.
func sent(t *testing.T, receiver, pipeline string, bodies ...string) (map[string]check.Sent, string) {
	t.Helper()
	var targets []string
	for _, body := range bodies {
		targets = append(targets, "{endpoint: "+answers(t, http.StatusOK, "text/plain; version=0.0.4", body)+"}")
	}
	to := backend(t, http.StatusOK)
	report := checked(t, written(t, "receivers:\n  vllm: {targets: ["+strings.Join(targets, ", ")+"], "+receiver+"}\n  otlp/outbox: {protocols: {http: {endpoint: 127.0.0.1:14318}}}\n"+
		"processors: {vllm: {pool: {group_by: [model_name], interval: 30s}}, vllm/alone: {}, vllm/small: {preset: essential}, filter: {}}\nconnectors: {forward: {}}\n"+
		"exporters:\n  otlp_http: {endpoint: "+to+", sending_queue: {enabled: false}}\n  otlp_http/plain: {endpoint: "+to+", compression: none, sending_queue: {enabled: false}}\n"+
		"  prometheus: {endpoint: 127.0.0.1:0}\n  otlp_http/outbox: {endpoint: \"http://localhost:14318\", sending_queue: {enabled: false}}\n"+
		"  prometheus_remote_write: {endpoint: "+to+", remote_write_queue: {enabled: false}}\nservice: {pipelines: {"+pipeline+"}}\n"))
	out := map[string]check.Sent{}
	for _, s := range report.Sent {
		out[s.Exporter] = s
	}
	assert.NotContains(t, codesOf(report, check.Problem, check.Info), check.CodeExporterRefused, "the outbox is a receiver of the same configuration")
	assert.NotContains(t, codesOf(report, check.Info), check.CodeQueueMemory, "no queue is in memory")
	return out, shown(t, report)
}

const slow = "collection_interval: 30s, timeout: 30s"

// A histogram more is one series, two points a minute at 30 s, and eight series of Prometheus.
func TestWhatWillBeSent(t *testing.T) {
	t.Parallel()
	const pipeline = "metrics: {receivers: [vllm], exporters: [otlp_http, otlp_http/plain, prometheus]}"
	before, _ := sent(t, slow, pipeline, page(1, ""))
	with, text := sent(t, slow, pipeline, page(1, eight))
	twice, _ := sent(t, "collection_interval: 15s, timeout: 15s", pipeline, page(1, eight), page(1, eight))
	for _, name := range []string{"otlp_http", "otlp_http/plain", "prometheus"} {
		assert.Equal(t, before[name].Series+1, with[name].Series, name)
		assert.Equal(t, before[name].PrometheusSeries+8, with[name].PrometheusSeries, name)
		assert.Equal(t, 2*with[name].Series, twice[name].Series, name)
		assert.Equal(t, 4*with[name].PointsPerMinute, twice[name].PointsPerMinute, "twice the servers, twice as often")
		assert.Equal(t, 2, twice[name].Targets, name)
	}
	assert.Equal(t, 2*with["otlp_http"].Series, with["otlp_http"].PointsPerMinute)
	assert.Zero(t, with["prometheus"].PointsPerMinute, "its interval is that of the Prometheus")
	assert.Less(t, with["otlp_http"].BytesPerDay, with["otlp_http/plain"].BytesPerDay, "gzip is the default")
	assert.Greater(t, with["otlp_http/plain"].BytesPerDay, int64(before["otlp_http/plain"].Series*2880*20), "a point has 20 bytes at least")
	assert.Contains(t, text, "\nwhat will be sent, for 1 server\n  otlp_http ")
	assert.Contains(t, text, fmt.Sprintf("%d series, %d points a minute, about ", with["otlp_http"].Series, with["otlp_http"].PointsPerMinute))
}

// Two servers of one model have its pool once, and one of another model a second one.
func TestWhatWillBeSentHasEachPoolOnce(t *testing.T) {
	t.Parallel()
	series := func(processor string, bodies ...string) int {
		s, _ := sent(t, slow, "metrics: {receivers: [vllm], processors: ["+processor+"], exporters: [otlp_http]}", bodies...)
		assert.Equal(t, len(bodies), s["otlp_http"].Targets)
		return s["otlp_http"].Series
	}
	one, other := page(1, eight), strings.ReplaceAll(page(1, eight), "m0", "other")
	pool := series("vllm", one) - series("vllm/alone", one)
	assert.Positive(t, pool)
	assert.Equal(t, pool, series("vllm", one, one)-series("vllm/alone", one, one))
	assert.Equal(t, 2*pool, series("vllm", one, other)-series("vllm/alone", one, other))
}

// A collector scrapes once and sends few series to a backend that bills by series, and all to Prometheus.
func TestWhatWillBeSentIsThatOfEachPipeline(t *testing.T) {
	t.Parallel()
	const large, small, raw = "metrics/1: {receivers: [vllm], processors: [vllm/alone], exporters: [prometheus]}",
		"metrics/2: {receivers: [vllm], processors: [vllm/small], exporters: [otlp_http]}", "metrics/3: {receivers: [vllm], exporters: [otlp_http/plain]}"
	want := map[string]check.Sent{}
	for _, pipeline := range []string{large, small, raw} {
		alone, _ := sent(t, slow, pipeline, page(1, eight), page(1, eight))
		maps.Copy(want, alone)
	}
	got, _ := sent(t, slow, large+", "+small+", "+raw, page(1, eight), page(1, eight))
	chained, _ := sent(t, slow, "metrics/1: {receivers: [vllm], processors: [vllm/alone], exporters: [prometheus, forward]}, "+
		"metrics/2: {receivers: [forward], processors: [vllm/small], exporters: [otlp_http]}, "+raw, page(1, eight), page(1, eight))
	for _, all := range []map[string]check.Sent{want, got, chained} {
		for name, of := range all {
			of.BytesPerDay = 0 // Compressed times vary.
			all[name] = of
		}
		assert.Equal(t, want, all)
	}
	assert.Less(t, got["otlp_http"].PrometheusSeries, got["otlp_http/plain"].PrometheusSeries)
	assert.Less(t, got["otlp_http/plain"].PrometheusSeries, got["prometheus"].PrometheusSeries)
}

// What goes through a queue of its own, or a connector, is counted at the last exporter.
func TestWhatWillBeSentBehindAnOutbox(t *testing.T) {
	t.Parallel()
	direct, _ := sent(t, slow, "metrics: {receivers: [vllm], exporters: [prometheus_remote_write]}", page(3, eight))
	through, text := sent(t, slow, "metrics: {receivers: [vllm], exporters: [forward]}, metrics/2: {receivers: [forward], processors: [filter], exporters: [otlp_http/outbox]}, "+
		"metrics/3: {receivers: [otlp/outbox], exporters: [prometheus_remote_write]}", page(3, eight))
	want := direct["prometheus_remote_write"]
	require.Len(t, through, 1)
	assert.Equal(t, want.PointsPerMinute, 2*want.PrometheusSeries, "samples")
	want.Before = []string{"filter"}
	assert.Equal(t, want, through["prometheus_remote_write"])
	assert.Contains(t, text, "; less behind filter\n")
}

func TestWhatWillBeSentIsNotKnownWithoutAServer(t *testing.T) {
	t.Parallel()
	s, text := sent(t, slow, "metrics: {receivers: [vllm], exporters: [otlp_http]}", page(1, ""), "")
	assert.Equal(t, 1, s["otlp_http"].Targets)
	assert.Contains(t, text, "  1 of them: ")
	s, text = sent(t, slow, "metrics: {receivers: [vllm], exporters: [otlp_http]}", "")
	assert.Empty(t, s)
	assert.Contains(t, text, "What will be sent is not known")
}
