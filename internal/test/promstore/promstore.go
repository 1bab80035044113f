// Package promstore is a storage in memory for Prometheus's own engine, the oracle of what is derived.
// Prometheus's own test storage would bring the requirements of its remote read, which are those of
// three clouds.
package promstore

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

// Stale is the value that ends a series.
var Stale = math.Float64frombits(value.StaleNaN)

// Store has the samples of each series in the order of their times.
type Store map[string]*series

type series struct {
	labels  labels.Labels
	samples []chunks.Sample
}

// Add adds a sample. labels are pairs of names and values, with "__name__".
func (s Store) Add(at time.Time, v float64, pairs ...string) {
	set := labels.FromStrings(pairs...)
	one := s[set.String()]
	if one == nil {
		one = &series{labels: set}
		s[set.String()] = one
	}
	one.samples = append(one.samples, sample{at.UnixMilli(), v})
}

// AllFell reports whether each series is lower than before.
func (s Store) AllFell() bool {
	for _, one := range s {
		if n := len(one.samples); n > 1 && one.samples[n-1].F() >= one.samples[n-2].F() {
			return false
		}
	}
	return true
}

// Ask evaluates an expression that has one value, with the extended selectors (anchored).
func (s Store) Ask(tb testing.TB, expression string, at time.Time) float64 {
	tb.Helper()
	engine := promql.NewEngine(promql.EngineOpts{
		MaxSamples: 1e6, Timeout: time.Minute,
		Parser: parser.NewParser(parser.Options{EnableExtendedRangeSelectors: true}),
	})
	defer engine.Close()
	query, err := engine.NewInstantQuery(tb.Context(), s, nil, expression, at)
	if err != nil {
		tb.Fatalf("%s: %v", expression, err)
	}
	defer query.Close()
	vector, err := query.Exec(tb.Context()).Vector()
	if err != nil || len(vector) != 1 {
		tb.Fatalf("%s: %v, %v; want one value of\n%v", expression, vector, err, s)
	}
	return vector[0].F
}

// Querier implements storage.Queryable.
func (s Store) Querier(int64, int64) (storage.Querier, error) { return querier{Store: s}, nil }

type querier struct {
	Store
	storage.LabelQuerier
}

func (querier) Close() error { return nil }

func (q querier) Select(_ context.Context, _ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	var found []storage.Series
next:
	for _, one := range q.Store {
		for _, m := range matchers {
			if !m.Matches(one.labels.Get(m.Name)) {
				continue next
			}
		}
		found = append(found, storage.NewListSeries(one.labels, one.samples))
	}
	return &set{all: found}
}

type set struct {
	all []storage.Series
	at  int
}

func (s *set) Next() bool                      { s.at++; return s.at <= len(s.all) }
func (s *set) At() storage.Series              { return s.all[s.at-1] }
func (*set) Err() error                        { return nil }
func (*set) Warnings() annotations.Annotations { return nil }

type sample struct {
	t int64
	v float64
}

func (s sample) T() int64                    { return s.t }
func (sample) ST() int64                     { return 0 }
func (s sample) F() float64                  { return s.v }
func (sample) H() *histogram.Histogram       { return nil }
func (sample) FH() *histogram.FloatHistogram { return nil }
func (sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample         { return s }
func (s sample) String() string              { return fmt.Sprintf("%v@%d", s.v, s.t) }
