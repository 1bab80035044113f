package window_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	prometheus "github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/histogram"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
)

// TestIncreasesAndQuantilesAreThoseOfPrometheus compares with Prometheus's own
// engine. Its anchored increase is the one that begins at a sample; the plain one
// extrapolates. Series are present throughout and restart; scrapes jitter.
func TestIncreasesAndQuantilesAreThoseOfPrometheus(t *testing.T) {
	engine := promql.NewEngine(promql.EngineOpts{
		MaxSamples: 1e6, Timeout: time.Minute,
		Parser: parser.NewParser(parser.Options{EnableExtendedRangeSelectors: true}),
	})
	const length = time.Minute
	restarts := 0
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 3))
		resource := window.NewResource(window.Settings{Window: length, MaxStaleness: 5 * time.Minute})
		bounds := []float64{0.1, 0.5, 1, 2.5}
		stored := memory{}
		counter, counts := 0.0, make([]float64, len(bounds)+1)
		now := int64(1_700_000_000_000) // Prometheus counts milliseconds
		for range 40 {
			now += 5000 + r.Int64N(4000)
			if r.IntN(12) == 0 { // a restart, which all numbers show
				counter = 0
				clear(counts)
			} else {
				counter += float64(r.IntN(500)) + 1
			}
			for i := range counts {
				counts[i] += float64(r.IntN(8))
			}
			report := resource.Observe(observation(now*1e6, counter, bounds, counts), math.MaxInt)
			stored.add("counter", "", now, counter)
			below := 0.0
			for i, n := range counts {
				below += n
				le := "+Inf"
				if i < len(bounds) {
					le = fmt.Sprint(bounds[i])
				}
				stored.add("latency_bucket", le, now, below)
			}
			if report.Resets > 0 && !stored.allFell() {
				// Prometheus sees no restart in a bucket whose count is the same before and
				// after it, so it cannot be compared with here.
				break
			}
			restarts += report.Resets
			compareWith(t, engine, stored, resource, now)
		}
	}
	require.Greater(t, restarts, 40)
}

func compareWith(t *testing.T, engine *promql.Engine, stored memory, resource *window.Resource, now int64) {
	t.Helper()
	views := resource.Views(nil, false)
	require.Len(t, views, 1)
	view := &views[0]
	increase, status := view.Increase(input.PromptTokens)
	if status != window.Present {
		return
	}
	ask := func(query string) float64 {
		q, err := engine.NewInstantQuery(t.Context(), stored, nil, query, time.UnixMilli(now))
		require.NoError(t, err)
		defer q.Close()
		result := q.Exec(t.Context())
		require.NoError(t, result.Err)
		vector, err := result.Vector()
		require.NoError(t, err)
		require.Len(t, vector, 1, query)
		return vector[0].F
	}
	require.InDelta(t, ask("increase(counter[1m] anchored)"), increase, 1e-9*increase)
	var h histogram.Histogram
	require.Equal(t, window.Present, view.AddTo(&h, input.TimeToFirstToken))
	for _, q := range []float64{0.01, 0.5, 0.9, 0.99, 1} {
		want := ask(fmt.Sprintf("histogram_quantile(%g, increase(latency_bucket[1m] anchored))", q))
		got, ok := h.Quantile(q)
		require.Equal(t, !math.IsNaN(want), ok)
		if ok {
			require.InDelta(t, want, got, 1e-9*want)
		}
	}
}

func observation(at int64, counter float64, bounds, counts []float64) *input.Batch {
	h := input.Sample{Input: input.TimeToFirstToken, Bounds: bounds, Counts: append([]float64(nil), counts...)}
	for _, n := range counts {
		h.Count += n
	}
	return &input.Batch{
		Time: at, Groups: []input.Group{{Key: "k"}},
		Samples: []input.Sample{{Input: input.PromptTokens, Value: counter}, h},
	}
}

// memory is the storage of Prometheus's engine: samples by series.
type memory map[[2]string][]chunks.Sample

type point struct {
	t int64
	v float64
}

func (p point) T() int64                     { return p.t }
func (point) ST() int64                      { return 0 }
func (p point) F() float64                   { return p.v }
func (point) H() *prometheus.Histogram       { return nil }
func (point) FH() *prometheus.FloatHistogram { return nil }
func (point) Type() chunkenc.ValueType       { return chunkenc.ValFloat }
func (p point) Copy() chunks.Sample          { return p }

func (m memory) add(name, le string, t int64, v float64) {
	m[[2]string{name, le}] = append(m[[2]string{name, le}], point{t: t, v: v})
}

// allFell reports whether every series is lower than it was.
func (m memory) allFell() bool {
	for _, samples := range m {
		if n := len(samples); n > 1 && samples[n-1].F() >= samples[n-2].F() {
			return false
		}
	}
	return true
}

func (m memory) Querier(int64, int64) (storage.Querier, error) { return querier{memory: m}, nil }

type querier struct {
	memory
	storage.LabelQuerier
}

func (querier) Close() error { return nil }

func (q querier) Select(_ context.Context, _ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	var found []storage.Series
	for key, samples := range q.memory {
		if key[0] != matchers[len(matchers)-1].Value && key[0] != matchers[0].Value {
			continue
		}
		set := labels.FromStrings("__name__", key[0])
		if key[1] != "" {
			set = labels.FromStrings("__name__", key[0], "le", key[1])
		}
		found = append(found, storage.NewListSeries(set, samples))
	}
	return &seriesSet{all: found}
}

type seriesSet struct {
	all []storage.Series
	at  int
}

func (s *seriesSet) Next() bool                      { s.at++; return s.at <= len(s.all) }
func (s *seriesSet) At() storage.Series              { return s.all[s.at-1] }
func (*seriesSet) Err() error                        { return nil }
func (*seriesSet) Warnings() annotations.Annotations { return nil }
