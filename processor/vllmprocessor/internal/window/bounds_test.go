package window_test

import (
	"fmt"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
)

// heap is the memory in use after everything is collected that can be.
func heap() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// limited is a resource whose series are limited as a processor's are.
type limited struct {
	*window.Resource
	left int
}

func (l *limited) observe(b *input.Batch) window.Report {
	before := l.Units()
	report := l.Observe(b, l.left)
	l.left -= l.Units() - before
	return report
}

func TestEnginesThatAreMadeUpFillNoMemoryBeyondTheLimit(t *testing.T) {
	r := limited{window.NewResource(window.Settings{Window: time.Minute, MaxStaleness: 5 * time.Minute}), 100}
	made := func(i int) *input.Batch {
		b := &input.Batch{Time: int64(i+1) * 1e10}
		for n := range 100 {
			name := fmt.Sprintf("%d-%d", i, n)
			b.Groups = append(b.Groups, input.Group{Key: name, Attributes: []input.Attribute{
				{Name: "engine", Value: name}, {Name: "model_name", Value: name},
			}})
			b.Samples = append(b.Samples, input.Sample{Input: input.PromptTokens, Group: n, Value: 1})
		}
		return b
	}
	for i := range 50 {
		r.observe(made(i))
	}
	before := heap()
	refused := 0
	for i := range 200 {
		refused += r.observe(made(50 + i)).Ignored[window.SeriesLimit]
		assert.LessOrEqual(t, r.Series(), 100)
	}
	assert.Equal(t, 10_000, refused, "those of the previous batch may still come, older ones give way")
	assert.Less(t, heap()-before, int64(1<<20), "20000 engines have come")
	runtime.KeepAlive(r)
}

func TestManyLabelsInAnyOrderAreFoundQuickly(t *testing.T) {
	r := window.NewResource(window.Settings{Window: time.Minute, MaxStaleness: 5 * time.Minute})
	const labels = 50_000
	made := func(at int64, step int, value float64) *input.Batch {
		b := &input.Batch{Time: at, Groups: []input.Group{{Key: "k"}}}
		for i := range labels {
			b.Samples = append(b.Samples, input.Sample{Input: input.HTTPRequests, Label: input.NewLabel(fmt.Sprint(i * step % labels)), Value: value})
		}
		return b
	}
	begin := time.Now()
	r.Observe(made(1e10, 1, 1), math.MaxInt)
	r.Observe(made(2e10, 48_611, 3), math.MaxInt)
	assert.Less(t, time.Since(begin), 5*time.Second)
	views := r.Views(nil, false)
	increase, _ := views[0].Increase(input.HTTPRequests)
	assert.Equal(t, 2.0*labels, increase)
}

func TestFrequentBatchesFillNoMemory(t *testing.T) {
	r := window.NewResource(window.Settings{Window: time.Second, MaxStaleness: 5 * time.Minute})
	before := heap()
	bounds := make([]float64, 20)
	for i := range bounds {
		bounds[i] = float64(i)
	}
	for i := range 400_000 { // an hour of one every nine milliseconds
		r.Observe(&input.Batch{Time: int64(i+1) * 9e6, Groups: []input.Group{{Key: "k"}}, Samples: []input.Sample{
			{Input: input.TimeToFirstToken, Bounds: bounds, Counts: make([]float64, 21), HasSum: true},
		}}, math.MaxInt)
	}
	assert.Less(t, heap()-before, int64(1<<20))
	runtime.KeepAlive(r)
}

func TestADistributionWithMadeUpBucketsIsRefused(t *testing.T) {
	r := window.NewResource(window.Settings{Window: time.Minute, MaxStaleness: 5 * time.Minute})
	bounds := make([]float64, 5000)
	for i := range bounds {
		bounds[i] = float64(i)
	}
	report := r.Observe(&input.Batch{Time: 1, Groups: []input.Group{{Key: "k"}}, Samples: []input.Sample{
		{Input: input.TimeToFirstToken, Bounds: bounds, Counts: make([]float64, 5001)},
	}}, math.MaxInt)
	assert.Equal(t, 1, report.Ignored[window.TooManyBuckets])
	assert.Zero(t, r.Series())
}

// FuzzNoHistoryBreaksTheWindow reads a script of batches: any order of times,
// engines, labels, buckets, ends and kinds of points. What hits count never
// exceeds what queries count.
func FuzzNoHistoryBreaksTheWindow(f *testing.F) {
	f.Add([]byte("a plain script that does this and that"))
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 250, 251, 252, 253, 254, 255, 0, 0, 0, 17, 34, 51, 68, 85, 102})
	f.Add([]byte("\x01\x10\x20\x30\x41\xff\x01\x10\x00\x00\x00\x00\x02\x80\x81\x82\x83\x84\x85\x86\x87"))
	settings := &derive.Settings{
		Quantiles: []derive.Quantile{derive.NewQuantile(0.5)}, PerEngineQuantiles: true, CapacityFromBlocks: true,
		Peak: derive.Peak{FLOPS: 1, Bandwidth: 1},
	}
	for range derive.Rows() {
		settings.Enabled = append(settings.Enabled, true)
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		next := func() (b byte) {
			if len(script) > 0 {
				b, script = script[0], script[1:]
			}
			return b
		}
		r := limited{window.NewResource(window.Settings{Window: time.Minute, MaxStaleness: 5 * time.Minute}), 60}
		var evaluator derive.Evaluator
		now := int64(1e12)
		hits, queries := 0.0, 0.0
		for len(script) > 0 {
			b := batch(next, &now, &hits, &queries)
			report := r.observe(b)
			if next()%16 == 0 {
				r.Trim()
			}
			require.LessOrEqual(t, r.Series(), 60)
			if !report.Changed {
				continue
			}
			for _, v := range evaluator.Evaluate(settings, r.Resource) {
				if v.Pending {
					continue
				}
				require.False(t, math.IsNaN(v.Number) || math.IsInf(v.Number, 0))
				if v.Row.Metric == "vllm.prefix_cache.hit_ratio" {
					require.GreaterOrEqual(t, v.Number, 0.0)
					require.LessOrEqual(t, v.Number, 1.0)
				}
			}
		}
	})
}

// batch is the next batch of a script.
func batch(next func() byte, now *int64, hits, queries *float64) *input.Batch {
	*now += []int64{0, 1e6, 1e9, 1e10, 1e10, 1e10, 7e10, 13e10, 4e11, -1e9, 1e8, 5e9}[next()%12]
	b := &input.Batch{Time: *now}
	for engine := range byte(3) {
		g := input.Group{Key: string('0' + rune(engine))}
		if engine > 0 {
			g.Attributes = []input.Attribute{{Name: "engine", Value: g.Key}, {Name: "model_name", Value: "m"}}
		}
		b.Groups = append(b.Groups, g)
	}
	switch op := next(); {
	case op < 100:
		*queries += float64(op)
		*hits += float64(op % 7 * op / 7)
	case op < 140:
		*hits, *queries = 0, float64(op%2)
	}
	// Hits and queries come together and restart together.
	for in, value := range map[input.Metric]float64{input.PrefixCacheHits: *hits, input.PrefixCacheQueries: *queries} {
		b.Samples = append(b.Samples, input.Sample{Input: in, Group: 1, Value: value})
	}
	for range next() % 24 {
		in := input.Metric(next()) % input.NumMetrics
		if in == input.PrefixCacheHits || in == input.PrefixCacheQueries {
			continue
		}
		how := next()
		s := input.Sample{
			Input: in, Group: int(how % 3), Delta: how&64 != 0 && in.Define().Kind != input.Gauge, Gone: how&0x30 == 0x30,
			Value: float64(next()), Start: []int64{0, *now, *now - 1e10, 1e11}[how>>2&3],
		}
		if len(in.Define().Labels) > 0 {
			s.Label = input.NewLabel(string('a' + rune(next()%8)))
		}
		if in.Define().Kind == input.Distribution && !s.Gone {
			s.Value, s.HasSum = 0, how&128 != 0
			for i := range next() % 6 {
				s.Bounds = append(s.Bounds, float64(i)+float64(how%2))
			}
			for range len(s.Bounds) + 1 {
				s.Counts = append(s.Counts, float64(next()))
				s.Count += s.Counts[len(s.Counts)-1]
			}
			s.Sum = float64(next())
		}
		b.Samples = append(b.Samples, s)
	}
	return b
}
