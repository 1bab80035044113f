// Package rulestore is the storage, the query engine and the rule engine of a Prometheus
// server within the program: it stores metrics as Prometheus's OTLP endpoint translates
// them and samples as a scrape does, and evaluates rule files in the time of the samples.
package rulestore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/storage/remote/otlptranslator/prometheusremotewrite"
	"github.com/prometheus/prometheus/tsdb"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Promoted are the resource attributes that the storage makes labels of: those that the
// shipped rules and dashboards use.
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
}

// Lookback is Prometheus's default.
const Lookback = 5 * time.Minute

// Memory is a block length for stores that stay in memory.
const Memory = 365 * 24 * time.Hour

// Open returns an empty store whose blocks are in a folder. Samples of the newest block stay
// in memory; Compact writes older ones to the folder and drops those older than keep.
// Without keep nothing is dropped.
func Open(dir string, strategy Strategy, block, keep time.Duration) (*Store, error) {
	options := tsdb.DefaultOptions()
	// There is no log: what is stored can be read again.
	options.WALSegmentSize = -1
	options.MinBlockDuration = block.Milliseconds()
	options.MaxBlockDuration = options.MinBlockDuration
	// Files are reserved in this size.
	options.MaxBlockChunkSegmentSize = 16 << 20
	if keep <= 0 {
		keep = 10 * block
	}
	options.RetentionDuration = keep.Milliseconds()
	db, err := tsdb.Open(dir, slog.New(slog.DiscardHandler), nil, options, tsdb.NewDBStats())
	if err != nil {
		return nil, err
	}
	db.DisableCompactions()
	return &Store{
		Strategy: strategy, DB: db,
		Engine: promql.NewEngine(promql.EngineOpts{
			Logger:     promslog.NewNopLogger(),
			MaxSamples: 5e7, Timeout: time.Minute, LookbackDelta: Lookback, EnableAtModifier: true, EnableNegativeOffset: true,
			Parser: parser.NewParser(parser.Options{}),
		}),
		settings: prometheusremotewrite.Settings{
			AddMetricSuffixes: strategy.Suffixes, AllowUTF8: strategy.UTF8, LookbackDelta: Lookback,
			PromoteResourceAttributes: prometheusremotewrite.NewPromoteResourceAttributes(config.OTLPConfig{PromoteResourceAttributes: Promoted}),
		},
	}, nil
}

// Close closes the store. The folder stays.
func (s *Store) Close() (err error) {
	defer func() { err = refused(recover(), err) }()
	return s.DB.Close()
}

// refused turns a panic of the storage into an error: it panics where it cannot write. Without
// a panic it returns err.
func refused(problem any, err error) error {
	if problem != nil {
		return fmt.Errorf("the storage of the rules cannot be written: %v", problem)
	}
	return err
}

// room is how much a storage needs at least, in bytes: it reserves its files before it writes
// them.
const room = 48 << 20

// HasRoom returns an error if a folder has no room for a store.
func HasRoom(dir string) error {
	file, err := os.CreateTemp(dir, "room-")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	piece := make([]byte, 1<<20)
	for range room / len(piece) {
		if _, err := file.Write(piece); err != nil {
			return errors.Join(fmt.Errorf("the rules need %d MiB in %s: %w", room>>20, dir, err), file.Close())
		}
	}
	return file.Close()
}

// Compact writes what is old enough to the folder, and drops what is too old.
func (s *Store) Compact(ctx context.Context) (err error) {
	defer func() { err = refused(recover(), err) }()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.DB.EnableCompactions()
	defer s.DB.DisableCompactions()
	return s.DB.Compact(ctx)
}

// Take stores metrics as Prometheus's OTLP endpoint does.
func (s *Store) Take(ctx context.Context, metrics pmetric.Metrics) (err error) {
	defer func() { err = refused(recover(), err) }()
	s.mu.Lock()
	defer s.mu.Unlock()
	appender := s.DB.AppenderV2(ctx)
	if _, err := prometheusremotewrite.NewPrometheusConverter(appender).FromMetrics(ctx, metrics, s.settings); err != nil {
		_ = appender.Rollback()
		return err
	}
	return appender.Commit()
}

// Series is a series with its samples in the order of their times, in milliseconds.
type Series struct {
	Labels labels.Labels
	Times  []int64
	Values []float64
}

// Append stores samples as a scrape does. Samples of a series that are not later than those
// that are stored are dropped, as Prometheus drops them; it returns how many.
func (s *Store) Append(ctx context.Context, series []Series) (dropped int, err error) {
	defer func() { err = refused(recover(), err) }()
	s.mu.Lock()
	defer s.mu.Unlock()
	appender := s.DB.AppenderV2(ctx)
	for i := range series {
		one := &series[i]
		var ref storage.SeriesRef
		for j, t := range one.Times {
			known, err := appender.Append(ref, one.Labels, 0, t, one.Values[j], nil, nil, storage.AppendV2Options{})
			switch {
			case err == nil:
				ref = known
			case errors.Is(err, storage.ErrOutOfOrderSample), errors.Is(err, storage.ErrDuplicateSampleForTimestamp), errors.Is(err, storage.ErrOutOfBounds),
				errors.Is(err, storage.ErrTooOldSample):
				dropped++
			default:
				_ = appender.Rollback()
				return dropped, fmt.Errorf("%s: %w", one.Labels, err)
			}
		}
	}
	return dropped, appender.Commit()
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
	matrix, err := q.Exec(ctx).Matrix()
	if err != nil {
		return nil, err
	}
	out := make(promql.Matrix, len(matrix))
	for i, series := range matrix {
		out[i] = promql.Series{Metric: series.Metric, Floats: slices.Clone(series.Floats)}
	}
	return out, nil
}

// Longest returns how far back an expression looks, at least for the lookback.
func Longest(expr parser.Expr) time.Duration {
	longest := time.Duration(0)
	parser.Inspect(expr, func(node parser.Node, path []parser.Node) error {
		back := time.Duration(0)
		for _, n := range append(slices.Clone(path), node) {
			switch n := n.(type) {
			case *parser.SubqueryExpr:
				back += n.Range + n.OriginalOffset
			case *parser.MatrixSelector:
				back += n.Range
			case *parser.VectorSelector:
				back += n.OriginalOffset
			}
		}
		longest = max(longest, back)
		return nil
	})
	return time.Duration(math.Max(float64(longest), 0)) + Lookback
}
