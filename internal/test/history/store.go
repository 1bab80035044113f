package history

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/storage/remote/otlptranslator/prometheusremotewrite"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Promoted are the resource attributes that the storage makes labels of: those that the
// rules and dashboards use.
var Promoted = []string{
	"k8s.cluster.name", "k8s.namespace.name", "k8s.pod.name", "k8s.node.name",
	"service.version", "vllm.server.kind", "otelcol.component.id", "inference_gateway.pool.name",
}

// Strategy is how Prometheus translates the names of OTLP.
type Strategy struct {
	Name           string
	Suffixes, UTF8 bool
}

// The strategies of Prometheus, named as the spellings of the shipped content.
var (
	Suffixed   = Strategy{"suffixed", true, false}
	Unsuffixed = Strategy{"unsuffixed", false, false}
	Dotted     = Strategy{"dotted", false, true}
)

// Store is the storage and the query engine of a Prometheus server.
type Store struct {
	Strategy Strategy
	DB       *tsdb.DB
	Engine   *promql.Engine

	settings prometheusremotewrite.Settings
	mu       sync.Mutex
	known    map[string]labels.Labels
}

// lookback is Prometheus's default.
const lookback = 5 * time.Minute

// NewStore returns an empty storage, which is closed at the end of the test.
func NewStore(tb testing.TB, strategy Strategy) *Store {
	tb.Helper()
	options := tsdb.DefaultOptions()
	// All stays in memory: there is no log, and the head is never cut.
	options.WALSegmentSize = -1
	options.MinBlockDuration = int64(365 * 24 * time.Hour / time.Millisecond)
	options.MaxBlockDuration = options.MinBlockDuration
	options.RetentionDuration = 10 * options.MinBlockDuration
	db, err := tsdb.Open(tb.TempDir(), nil, nil, options, tsdb.NewDBStats())
	require.NoError(tb, err)
	db.DisableCompactions()
	tb.Cleanup(func() { require.NoError(tb, db.Close()) })
	return &Store{
		Strategy: strategy, DB: db, known: map[string]labels.Labels{},
		Engine: promql.NewEngine(promql.EngineOpts{
			MaxSamples: 5e7, Timeout: time.Minute, LookbackDelta: lookback, EnableAtModifier: true, EnableNegativeOffset: true,
			Parser: parser.NewParser(parser.Options{}),
		}),
		settings: prometheusremotewrite.Settings{
			AddMetricSuffixes: strategy.Suffixes, AllowUTF8: strategy.UTF8, LookbackDelta: lookback,
			PromoteResourceAttributes: prometheusremotewrite.NewPromoteResourceAttributes(config.OTLPConfig{PromoteResourceAttributes: Promoted}),
		},
	}
}

// Take stores metrics as Prometheus's OTLP endpoint does.
func (s *Store) Take(ctx context.Context, metrics pmetric.Metrics) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	appender := s.DB.AppenderV2(ctx)
	if _, err := prometheusremotewrite.NewPrometheusConverter(appender).FromMetrics(ctx, metrics, s.settings); err != nil {
		_ = appender.Rollback()
		return err
	}
	return appender.Commit()
}

// Sample is one value of a series, which is written as Prometheus writes it.
type Sample struct {
	Series string
	Value  float64
}

// Write stores samples as a scrape does.
func (s *Store) Write(ctx context.Context, at time.Time, samples []Sample) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	appender := s.DB.AppenderV2(ctx)
	for _, sample := range samples {
		series, known := s.known[sample.Series]
		if !known {
			var err error
			if series, err = parser.NewParser(parser.Options{}).ParseMetric(sample.Series); err != nil {
				_ = appender.Rollback()
				return fmt.Errorf("%s: %w", sample.Series, err)
			}
			s.known[sample.Series] = series
		}
		if _, err := appender.Append(0, series, 0, at.UnixMilli(), sample.Value, nil, nil, storage.AppendV2Options{}); err != nil {
			_ = appender.Rollback()
			return fmt.Errorf("%s: %w", sample.Series, err)
		}
	}
	return appender.Commit()
}

// Instant evaluates a query at a time.
func (s *Store) Instant(ctx context.Context, query string, at time.Time) (promql.Vector, error) {
	q, err := s.Engine.NewInstantQuery(ctx, s.DB, nil, query, at)
	if err != nil {
		return nil, err
	}
	defer q.Close()
	result := q.Exec(ctx)
	if result.Err != nil {
		return nil, result.Err
	}
	switch v := result.Value.(type) {
	case promql.Vector:
		return append(promql.Vector{}, v...), nil
	case promql.Scalar:
		return promql.Vector{{T: v.T, F: v.V}}, nil
	default:
		return nil, fmt.Errorf("%s has the type %s", query, v.Type())
	}
}

// Range evaluates a query from one time to another.
func (s *Store) Range(ctx context.Context, query string, from, to time.Time, step time.Duration) (promql.Matrix, error) {
	q, err := s.Engine.NewRangeQuery(ctx, s.DB, nil, query, from, to, step)
	if err != nil {
		return nil, err
	}
	defer q.Close()
	result := q.Exec(ctx)
	if result.Err != nil {
		return nil, result.Err
	}
	matrix, err := result.Matrix()
	if err != nil {
		return nil, err
	}
	out := make(promql.Matrix, len(matrix))
	for i, series := range matrix {
		out[i] = promql.Series{Metric: series.Metric, Floats: append([]promql.FPoint{}, series.Floats...)}
	}
	return out, nil
}
