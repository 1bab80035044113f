package history

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/rulestore"
)

// Promoted are the resource attributes that the storage makes labels of.
var Promoted = rulestore.Promoted

// Strategy is how Prometheus translates the names of OTLP.
type Strategy = rulestore.Strategy

// The strategies of Prometheus, named as the spellings of the shipped content.
var (
	Suffixed   = rulestore.Suffixed
	Unsuffixed = rulestore.Unsuffixed
	Dotted     = rulestore.Dotted
)

// Store is the storage and the query engine of a Prometheus server.
type Store struct {
	*rulestore.Store

	mu    sync.Mutex
	known map[string]labels.Labels
}

const lookback = rulestore.Lookback

// NewStore returns an empty storage, which is closed at the end of the test. All stays in
// memory.
func NewStore(tb testing.TB, strategy Strategy) *Store {
	tb.Helper()
	store, err := rulestore.Open(tb.TempDir(), strategy, rulestore.Memory, 0)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, store.Close()) })
	return &Store{Store: store, known: map[string]labels.Labels{}}
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
	all := make([]rulestore.Series, len(samples))
	for i, sample := range samples {
		series, known := s.known[sample.Series]
		if !known {
			var err error
			if series, err = parser.NewParser(parser.Options{}).ParseMetric(sample.Series); err != nil {
				return fmt.Errorf("%s: %w", sample.Series, err)
			}
			s.known[sample.Series] = series
		}
		all[i] = rulestore.Series{Labels: series, Times: []int64{at.UnixMilli()}, Values: []float64{sample.Value}}
	}
	dropped, err := s.Append(ctx, all)
	if err == nil && dropped > 0 {
		err = fmt.Errorf("%d samples at %s are not in the order of their times", dropped, at)
	}
	return err
}
