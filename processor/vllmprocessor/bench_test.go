package vllmprocessor

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/metadata"
)

// fleet is what a batch brings of some busy servers, in place: next makes it the
// next batch, every so often.
type fleet struct {
	first, metrics pmetric.Metrics
	batches        int
	every          time.Duration
}

func newFleet(tb testing.TB, servers, engines int) *fleet {
	tb.Helper()
	one := scraped(tb, map[int]string{1: "plain", 8: "eight engines"}[engines])[0]
	f := &fleet{first: one, metrics: pmetric.NewMetrics(), every: 15 * time.Second}
	for i := range servers {
		rm := f.metrics.ResourceMetrics().AppendEmpty()
		one.ResourceMetrics().At(0).CopyTo(rm)
		rm.Resource().Attributes().PutStr("service.instance.id", "vllm-"+strconv.Itoa(i)+":8000")
	}
	return f
}

// next takes out what the processor added and lets the servers work until the next
// batch: a 40th of what they had done in the ten minutes before the first batch.
func (f *fleet) next() time.Time {
	f.batches++
	takeAdded(f.metrics)
	at := storyBegin.Add(time.Duration(f.batches) * f.every)
	everyPoint(f.metrics, func(p timed) { p.SetTimestamp(pcommon.NewTimestampFromTime(at)) })
	template := f.first.ResourceMetrics().At(0).ScopeMetrics()
	for _, rm := range f.metrics.ResourceMetrics().All() {
		for i := range template.Len() {
			from, to := template.At(i).Metrics(), rm.ScopeMetrics().At(i).Metrics()
			for k := range from.Len() {
				grow(from.At(k), to.At(k), f.batches)
			}
		}
	}
	return at
}

func grow(from, to pmetric.Metric, batches int) {
	switch from.Type() {
	case pmetric.MetricTypeSum:
		for i, p := range from.Sum().DataPoints().All() {
			q := to.Sum().DataPoints().At(i)
			if p.ValueType() == pmetric.NumberDataPointValueTypeInt {
				q.SetIntValue(p.IntValue() + int64(batches)*(p.IntValue()/40))
			} else {
				q.SetDoubleValue(p.DoubleValue() * (1 + float64(batches)/40))
			}
		}
	case pmetric.MetricTypeHistogram:
		for i, p := range from.Histogram().DataPoints().All() {
			growHistogram(p, to.Histogram().DataPoints().At(i), batches)
		}
	default:
	}
}

func growHistogram(from, to pmetric.HistogramDataPoint, batches int) {
	var count uint64
	counts, bounds, sum := to.BucketCounts(), from.ExplicitBounds(), from.Sum()
	for i, n := range from.BucketCounts().All() {
		more := uint64(batches) * ((n + 39) / 40)
		counts.SetAt(i, n+more)
		count += counts.At(i)
		// Each is as large as the upper bound of its bucket, so that the sum can be true.
		sum += float64(more) * bounds.At(min(i, bounds.Len()-1))
	}
	to.SetCount(count)
	to.SetSum(sum)
}

func benchProcessor(tb testing.TB, changes ...func(*Config)) *vllmProcessor {
	tb.Helper()
	config := createDefaultConfig().(*Config)
	config.MaxSeries = 1_000_000 // a thousand servers of eight engines have more than the default
	for _, change := range changes {
		change(config)
	}
	return create(tb, config, processortest.NewNopSettings(metadata.Type))
}

// pass sends the next batch and returns how long the processor took.
func (f *fleet) pass(tb testing.TB, p *vllmProcessor) time.Duration {
	tb.Helper()
	at := f.next()
	p.now = func() time.Time { return at }
	began := time.Now()
	_, err := p.process(tb.Context(), f.metrics)
	took := time.Since(began)
	require.NoError(tb, err)
	return took
}

// A batch of some servers on a filled window. The ratio to what it takes to
// marshal the same batch, as each exporter does at least once, is the claim; not
// the times.
func BenchmarkBatch(b *testing.B) {
	for _, engines := range []int{1, 8} {
		for _, servers := range []int{1, 100, 1000} {
			b.Run(fmt.Sprintf("engines=%d/servers=%d", engines, servers), func(b *testing.B) {
				p, f := benchProcessor(b), newFleet(b, servers, engines)
				for range 25 { // longer than the long window
					f.pass(b, p)
				}
				input := servers * f.first.DataPointCount()
				b.ReportAllocs()
				var processing, marshalling []time.Duration
				for b.Loop() {
					b.StopTimer()
					at := f.next()
					p.now = func() time.Time { return at }
					b.StartTimer()
					began := time.Now()
					_, err := p.process(b.Context(), f.metrics)
					processing = append(processing, time.Since(began))
					b.StopTimer()
					require.NoError(b, err)
					began = time.Now()
					_, err = new(pmetric.ProtoMarshaler).MarshalMetrics(f.metrics)
					marshalling = append(marshalling, time.Since(began))
					require.NoError(b, err)
					b.StartTimer()
				}
				b.ReportMetric(float64(median(processing))/float64(median(marshalling)), "x-marshal")
				b.ReportMetric(float64(median(processing).Nanoseconds())/1e3/float64(servers), "us/server")
				b.ReportMetric(float64(f.metrics.DataPointCount()-input)/float64(servers), "added/server")
			})
		}
	}
}

// median is what a machine with other work on it disturbs least.
func median(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
}

// collectGarbage also empties the pools of what is reused between batches, which is not
// kept for a server.
func collectGarbage() {
	runtime.GC()
	runtime.GC()
}

// What the processor keeps of a server whose windows are filled.
func BenchmarkState(b *testing.B) {
	for _, engines := range []int{1, 8} {
		for _, every := range []time.Duration{time.Second, 15 * time.Second} {
			b.Run(fmt.Sprintf("engines=%d/every=%s", engines, every), func(b *testing.B) {
				const servers = 20
				p, f := benchProcessor(b), newFleet(b, servers, engines)
				f.every = every
				for b.Loop() {
					for range 6 * time.Minute / every {
						f.pass(b, p)
					}
				}
				reportState(b, p, servers)
				runtime.KeepAlive(f)
			})
		}
	}
}

// What a day costs: the state of a server and the time of a batch after an hour and after a day of scrapes.
func BenchmarkDay(b *testing.B) {
	const servers = 8
	p, f := benchProcessor(b), newFleet(b, servers, 1)
	hour := func() (took time.Duration) {
		for range time.Hour / f.every {
			took += f.pass(b, p)
		}
		return took
	}
	var first, last time.Duration
	for b.Loop() {
		hour()
		first = hour()
		for range 21 {
			hour()
		}
		last = hour()
	}
	b.ReportMetric(last.Seconds()/first.Seconds(), "x-time-of-the-second-hour")
	b.ReportMetric(stateOf(p)/servers, "B/server")
}

// stateOf drops the state of all servers, and returns how many bytes it had.
func stateOf(p *vllmProcessor) float64 {
	var filled, dropped runtime.MemStats
	collectGarbage()
	runtime.ReadMemStats(&filled)
	clear(p.resources)
	collectGarbage()
	runtime.ReadMemStats(&dropped)
	return float64(filled.HeapAlloc - dropped.HeapAlloc)
}

// reportState drops the state of all servers, and reports how large it was.
func reportState(b *testing.B, p *vllmProcessor, servers float64) {
	b.Helper()
	series := float64(p.series.Used())
	state := stateOf(p)
	b.ReportMetric(state/servers, "B/server")
	b.ReportMetric(state/series, "B/series")
	b.ReportMetric(series/servers, "series/server")
}

// What the processor keeps of many resources with few series each, where what each
// resource costs counts more than its series.
func BenchmarkStateOfSmallServers(b *testing.B) {
	for _, inputs := range []int{1, 3} {
		b.Run(fmt.Sprintf("series=%d", inputs), func(b *testing.B) {
			const servers = 2000
			p := benchProcessor(b)
			batch := func(at time.Time, served int) pmetric.Metrics {
				metrics := pmetric.NewMetrics()
				for i := range servers {
					rm := metrics.ResourceMetrics().AppendEmpty()
					rm.Resource().Attributes().PutStr("service.name", "vllm")
					rm.Resource().Attributes().PutStr("service.instance.id", "vllm-"+strconv.Itoa(i)+":8000")
					to := rm.ScopeMetrics().AppendEmpty().Metrics()
					for _, name := range []string{"vllm.num_requests.running", "vllm.generation_tokens", "vllm.prompt_tokens"}[:inputs] {
						metric := to.AppendEmpty()
						metric.SetName(name)
						var point pmetric.NumberDataPoint
						if name == "vllm.num_requests.running" {
							point = metric.SetEmptyGauge().DataPoints().AppendEmpty()
						} else {
							sum := metric.SetEmptySum()
							sum.SetIsMonotonic(true)
							sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
							point = sum.DataPoints().AppendEmpty()
						}
						point.SetDoubleValue(float64(served))
						point.SetTimestamp(pcommon.NewTimestampFromTime(at))
						point.Attributes().PutStr("engine", "0")
						point.Attributes().PutStr("model_name", "m")
					}
				}
				return metrics
			}
			n := 0
			for b.Loop() {
				for range 25 {
					at := storyBegin.Add(time.Duration(n) * 15 * time.Second)
					p.now = func() time.Time { return at }
					_, err := p.process(b.Context(), batch(at, n))
					require.NoError(b, err)
					n++
				}
			}
			reportState(b, p, servers)
		})
	}
}

// What the diagnosis adds to a batch: two processors take the same batches in turns,
// one of them without it. The ratio is the claim.
func BenchmarkDiagnosis(b *testing.B) {
	for _, engines := range []int{1, 8} {
		b.Run(fmt.Sprintf("engines=%d", engines), func(b *testing.B) {
			const servers = 100
			with, without := benchProcessor(b), benchProcessor(b, func(c *Config) { c.Diagnosis.Enabled = false })
			one, other := newFleet(b, servers, engines), newFleet(b, servers, engines)
			for range 25 {
				one.pass(b, with)
				other.pass(b, without)
			}
			var diagnosing, not []time.Duration
			for b.Loop() {
				diagnosing = append(diagnosing, one.pass(b, with))
				not = append(not, other.pass(b, without))
			}
			b.ReportMetric(float64(median(diagnosing))/float64(median(not)), "x-without")
		})
	}
}
