package vllmprocessor

import (
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-vllm/otelcol-vllm/connector/vllmdiagnosisconnector"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/archive"
)

// emittedRecords passes metrics through the connector with its default configuration, over OTLP in between, and returns
// its records.
func emittedRecords(t *testing.T, batches ...pmetric.Metrics) (records []plog.LogRecord) {
	t.Helper()
	sink := new(consumertest.LogsSink)
	factory := vllmdiagnosisconnector.NewFactory()
	c, err := factory.CreateMetricsToLogs(t.Context(), connectortest.NewNopSettings(factory.Type()), factory.CreateDefaultConfig(), sink)
	require.NoError(t, err)
	require.NoError(t, c.Start(t.Context(), componenttest.NewNopHost()))
	for _, metrics := range batches {
		body, err := (&pmetric.ProtoMarshaler{}).MarshalMetrics(metrics)
		require.NoError(t, err)
		metrics, err = (&pmetric.ProtoUnmarshaler{}).UnmarshalMetrics(body)
		require.NoError(t, err)
		require.NoError(t, c.ConsumeMetrics(t.Context(), metrics))
	}
	require.NoError(t, c.Shutdown(t.Context()))
	for _, logs := range sink.AllLogs() {
		for _, resource := range logs.ResourceLogs().All() {
			for _, record := range resource.ScopeLogs().At(0).LogRecords().All() {
				records = append(records, record)
			}
		}
	}
	return records
}

// assertSays checks that a record says what a line of the log does.
func assertSays(t *testing.T, line observer.LoggedEntry, record plog.LogRecord) {
	t.Helper()
	fields, attributes := line.ContextMap(), record.Attributes().AsRaw()
	assert.Equal(t, strings.TrimPrefix(line.Message, "diagnosis: "), record.Body().Str())
	for field, attribute := range map[string]string{"evidence": "evidence", "next": "next_steps", "runbook": "runbook", "board": "board", "condition": "condition", "cause": "cause", "detail": "detail"} {
		assert.Equal(t, fields[field], attributes["vllm.diagnosis."+attribute], field)
	}
	assert.Equal(t, fields["since"].(time.Time).Truncate(time.Second).Format(time.RFC3339), attributes["vllm.diagnosis.since"])
}

// A record is as useful as the line in the log of the processor: it has the same words, numbers with what is usual
// for them, since when it has been so, and the addresses of the settings. It takes no series.
func TestARecordSaysWhatTheLogSays(t *testing.T) {
	config := createDefaultConfig().(*Config)
	config.Diagnosis.Runbooks, config.Diagnosis.Boards = "https://wiki.example.com/vllm", "https://grafana.example.com/team/"
	require.NoError(t, config.Validate())
	p := newInstance(t, config, &archive.Shared{})
	p.begin(componenttest.NewNopHost())
	defer p.end()
	server := steady("one:8000", noon)
	var batches []pmetric.Metrics
	said := 0
	play := func(minutes int) {
		for range 4 * minutes {
			metrics := server.scrape()
			p.at = server.at
			metrics, err := p.process(t.Context(), metrics)
			require.NoError(t, err)
			batches = append(batches, metrics)
			for _, scope := range metrics.ResourceMetrics().At(0).ScopeMetrics().All() {
				for _, metric := range scope.Metrics().All() {
					if metric.Metadata().Len() > 0 {
						assert.Equal(t, "vllm.diagnosis.severity", metric.Name())
						said++
					}
				}
			}
		}
	}
	play(8)
	harmed := server.at
	server.firstToken = 3
	play(5)
	server.firstToken = 0.1
	play(5)

	lines, records := p.changes(), emittedRecords(t, batches...)
	require.Equal(t, 1+len(records), said, "only the batch of a change has words; a first state has no record")
	records = records[1:] // That it has turned out to be healthy is not news, so it has no line.
	require.Len(t, records, len(lines))
	for i := range lines {
		assertSays(t, lines[i], records[i])
	}
	first := records[0].Attributes().AsRaw()
	assert.Equal(t, "degraded", first["vllm.diagnosis.condition"])
	assert.InDelta(t, 3, first["vllm.diagnosis.signal.time_to_first_token_mean"], 1e-9)
	assert.InDelta(t, 0.1, first["vllm.diagnosis.signal_usual.time_to_first_token_mean"], 1e-3)
	usual := 0
	for name := range first {
		if strings.HasPrefix(name, "vllm.diagnosis.signal_usual.") {
			usual++
		}
	}
	assert.GreaterOrEqual(t, usual, 2)
	assert.Regexp(t, `^https://wiki\.example\.com/vllm/[a-z_]+\.md$`, first["vllm.diagnosis.runbook"])
	since, err := time.Parse(time.RFC3339, first["vllm.diagnosis.since"].(string))
	require.NoError(t, err)
	assert.WithinRange(t, since, harmed, harmed.Add(2*time.Minute))
	board, err := url.Parse(first["vllm.diagnosis.board"].(string))
	require.NoError(t, err)
	assert.Equal(t, "/team/d/vllm-engine", board.Path)
	assert.Equal(t, "one:8000", board.Query().Get("var-instance"))
	assert.Equal(t, "m", board.Query().Get("var-model"))
	assert.False(t, board.Query().Has("var-namespace"), "the server has none")
	at, err := strconv.ParseInt(board.Query().Get("from"), 10, 64)
	require.NoError(t, err)
	assert.True(t, time.UnixMilli(at).Before(harmed), "it shows what was before")
}

// The line and the record of a pool name it, have numbers of the pool as a whole, and name only what a pool has.
func TestARecordOfAPoolSaysWhatTheLogSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := new(consumertest.MetricsSink)
		core, logs := observer.New(zap.InfoLevel)
		p := pooled(t, sink, withDiagnosis, func(c *Config, s *processor.Settings) {
			s.Logger = zap.New(core)
			s.Resource.Attributes().PutStr("service.instance.id", "the-collector")
			c.Pool.Get().GroupBy = []string{"model_name", "k8s.namespace.name"}
			c.Diagnosis.Boards = "https://grafana.example.com"
		})
		require.NoError(t, p.Start(t.Context(), host()))
		a, b := steady("a:8000", time.Now()), steady("b:8000", time.Now())
		read := func(minutes int, of ...*load) {
			for range 4 * minutes {
				for _, server := range of {
					metrics := server.scrape()
					metrics.ResourceMetrics().At(0).Resource().Attributes().PutStr("k8s.namespace.name", "chat")
					require.NoError(t, p.ConsumeMetrics(t.Context(), metrics))
				}
				time.Sleep(15 * time.Second)
			}
		}
		read(8, a, b)
		a.firstToken = 3
		read(4, a, b)
		synctest.Wait()
		require.NoError(t, p.Shutdown(t.Context()))

		lines := logs.FilterMessageSnippet("diagnosis: Pool ").All()
		var records []plog.LogRecord
		for _, record := range emittedRecords(t, sink.AllMetrics()...) {
			if record.EventName() == "vllm.pool.diagnosis.changed" && record.SeverityNumber() >= plog.SeverityNumberWarn {
				records = append(records, record)
			}
		}
		require.Len(t, lines, 1)
		require.Len(t, records, 1)
		assertSays(t, lines[0], records[0])
		assert.True(t, strings.HasPrefix(records[0].Body().Str(), "Pool model_name=m, k8s.namespace.name=chat: some of its users wait longer than they should"), records[0].Body().Str())
		attributes := records[0].Attributes().AsRaw()
		assert.Equal(t, "m", attributes["model_name"])
		// Both servers get as many requests, so the mean is that of 3 s and 0.1 s.
		assert.InDelta(t, (3+0.1)/2, attributes["vllm.diagnosis.signal.time_to_first_token_mean"], 1e-6)
		assert.InDelta(t, 0.1, attributes["vllm.diagnosis.signal_usual.time_to_first_token_mean"], 1e-3)
		steps := attributes["vllm.diagnosis.next_steps"].([]any)
		assert.Contains(t, steps[0], "which of its servers")
		for _, step := range steps {
			assert.NotContains(t, step, "`vllm.diagnosis.cause`", "a pool has another metric for it")
		}
		assert.Contains(t, attributes["vllm.diagnosis.board"], "https://grafana.example.com/d/vllm-pool?")
		assert.Contains(t, attributes["vllm.diagnosis.board"], "&var-namespace=chat&var-model=m")
		assert.NotContains(t, lines[0].ContextMap(), "service.instance.id", "that of the collector is not a server")
	})
}
