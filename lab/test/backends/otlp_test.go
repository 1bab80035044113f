//go:build e2e

package backends

import (
	"compress/gzip"
	"io"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	remotewrite "github.com/open-telemetry/opentelemetry-collector-contrib/pkg/translator/prometheusremotewrite"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage/remote/otlptranslator/prometheusremotewrite"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
)

// otlpPrometheus receives OTLP as Prometheus does: its own translation, its storage and its
// query engine, of the version in go.mod. Debian's package is older than the OTLP endpoint.
// Contrib's translator for remote write reads the same metrics.
type otlpPrometheus struct {
	url    string
	db     *tsdb.DB
	engine *promql.Engine

	mu sync.Mutex
	// last is the newest sample of each series of contrib's translator.
	last map[string]newest
}

// newest is the newest sample of a series.
type newest struct {
	labels labels.Labels
	at     int64
	value  float64
}

func startOTLP(t *testing.T) *otlpPrometheus {
	t.Helper()
	db, err := tsdb.Open(t.TempDir(), nil, nil, tsdb.DefaultOptions(), tsdb.NewDBStats())
	require.NoError(t, err)
	p := &otlpPrometheus{db: db, last: map[string]newest{}, engine: promql.NewEngine(promql.EngineOpts{
		MaxSamples: 1e7, Timeout: time.Minute, LookbackDelta: 5 * time.Minute, Parser: parser.NewParser(parser.Options{}),
	})}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := p.take(r); err != nil {
			assert.NoError(t, err)
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(func() {
		server.Close()
		assert.NoError(t, db.Close())
	})
	p.url = server.URL
	return p
}

func (p *otlpPrometheus) take(r *http.Request) error {
	var body io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		unzipped, err := gzip.NewReader(body)
		if err != nil {
			return err
		}
		body = unzipped
	}
	content, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	request := pmetricotlp.NewExportRequest()
	if err := request.UnmarshalProto(content); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.translate(request.Metrics()); err != nil {
		return err
	}
	appender := p.db.AppenderV2(r.Context())
	converter := prometheusremotewrite.NewPrometheusConverter(appender)
	if _, err := converter.FromMetrics(r.Context(), request.Metrics(), prometheusremotewrite.Settings{
		AddMetricSuffixes: true, DisableTargetInfo: true, LookbackDelta: 5 * time.Minute,
	}); err != nil {
		_ = appender.Rollback()
		return err
	}
	return appender.Commit()
}

// translate stores what contrib's exporter for remote write would write.
func (p *otlpPrometheus) translate(md pmetric.Metrics) error {
	all, err := remotewrite.FromMetrics(md, remotewrite.Settings{AddMetricSuffixes: true, DisableTargetInfo: true})
	if err != nil {
		return err
	}
	for _, series := range all {
		builder := labels.NewScratchBuilder(len(series.Labels))
		for _, l := range series.Labels {
			builder.Add(l.Name, l.Value)
		}
		builder.Sort()
		set := builder.Labels()
		for _, s := range series.Samples {
			if key := set.String(); s.Timestamp >= p.last[key].at {
				p.last[key] = newest{set, s.Timestamp, s.Value}
			}
		}
	}
	return nil
}

// ask returns the samples that a query finds at a time.
func (p *otlpPrometheus) ask(t *testing.T, query string, at time.Time) promql.Vector {
	t.Helper()
	q, err := p.engine.NewInstantQuery(t.Context(), p.db, nil, query, at)
	require.NoError(t, err)
	defer q.Close()
	result := q.Exec(t.Context())
	require.NoError(t, result.Err)
	vector, err := result.Vector()
	require.NoError(t, err)
	return slices.Clone(vector)
}

// names returns the names of the metrics that a query finds at a time.
func (p *otlpPrometheus) names(t *testing.T, query string, at time.Time) []string {
	t.Helper()
	found := map[string]bool{}
	for _, sample := range p.ask(t, query, at) {
		found[sample.Metric.Get(model.MetricNameLabel)] = true
	}
	return sorted(found)
}

// translated returns the names of the metrics whose newest sample is not a staleness
// marker, for a query that is only a selector.
func (p *otlpPrometheus) translated(query string) []string {
	matchers, err := parser.NewParser(parser.Options{}).ParseMetricSelector(query)
	if err != nil {
		return []string{err.Error()}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	found := map[string]bool{}
	for _, series := range p.last {
		if math.Float64bits(series.value) == value.StaleNaN {
			continue
		}
		if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(series.labels.Get(m.Name)) }) {
			found[strings.Clone(series.labels.Get(model.MetricNameLabel))] = true
		}
	}
	return sorted(found)
}

func sorted(names map[string]bool) []string { return slices.Sorted(maps.Keys(names)) }
