package scrape

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/emit"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/exposition"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/normalize"
)

// pair is two bodies of one server, the second 15 seconds after the first.
func pair(tb testing.TB, folder string) [2][]byte {
	tb.Helper()
	var out [2][]byte
	for i, name := range []string{"metrics.txt", "metrics-2.txt"} {
		content, err := os.ReadFile(bodies + "/" + folder + "/" + name)
		require.NoError(tb, err)
		out[i] = content
	}
	return out
}

// pipeline is everything between a body and its points.
type pipeline struct {
	plans   *plans
	reader  *exposition.Reader
	emitter *emit.Target
	now     time.Time
}

func newPipeline(memory *exposition.Memory, plans *plans) *pipeline {
	cfg := DefaultConfig()
	return &pipeline{
		plans: plans, reader: exposition.NewReader(memory), now: firstScrape,
		emitter: emit.New(emit.Settings{ScopeName: "bench", MaxSeries: cfg.Limits.Series, Own: ownMetrics(cfg)}),
	}
}

func (p *pipeline) scrape(body []byte) pmetric.Metrics {
	out := pmetric.NewMetrics()
	snapshot := p.reader.Read(body, exposition.DialectText)
	defer p.reader.Done()
	scrape := emit.Scrape{Time: p.now, Plan: p.plans.get(snapshot.Layout, ""), Snapshot: snapshot}
	p.emitter.Restarted(scrape)
	p.emitter.Emit(scrape, emit.Own{Up: true, Samples: snapshot.Samples}, out)
	p.now = p.now.Add(15 * time.Second)
	return out
}

func benchPlans() *plans {
	return newPlans(planOptions(DefaultConfig()), func(*normalize.Plan) {})
}

// A whole scrape, from the body to the points, next to what expfmt alone takes
// for the body. The ratio of the two is the claim, not the times.
func BenchmarkScrape(b *testing.B) {
	for _, folder := range []string{"v1-0.20.0", "v1-0.24.0", "v0-0.6.6"} {
		two := pair(b, folder)
		var expfmtTime float64
		b.Run(folder+"/expfmt", func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(two[0])))
			for i := 0; b.Loop(); i++ {
				parser := expfmt.NewTextParser(model.UTF8Validation)
				_, err := parser.TextToMetricFamilies(bytes.NewReader(two[i%2]))
				require.NoError(b, err)
			}
			expfmtTime = float64(b.Elapsed()) / float64(b.N)
		})
		b.Run(folder+"/scrape", func(b *testing.B) {
			p := newPipeline(exposition.NewMemory(maxRememberedBlocks), benchPlans())
			p.scrape(two[0])
			b.ReportAllocs()
			b.SetBytes(int64(len(two[0])))
			// To go back to the first body would be a restart at every other scrape.
			for b.Loop() {
				p.scrape(two[1])
			}
			b.ReportMetric(expfmtTime/(float64(b.Elapsed())/float64(b.N)), "x-expfmt")
		})
	}
}

// What replicas of one model keep in memory: they share their layout and plan.
func BenchmarkTargets(b *testing.B) {
	two := pair(b, "v1-0.20.0")
	for _, n := range []int{1, 10, 100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			memory, plans := exposition.NewMemory(maxRememberedBlocks), benchPlans()
			targets := make([]*pipeline, n)
			for i := range targets {
				targets[i] = newPipeline(memory, plans)
				targets[i].scrape(two[0])
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			for b.Loop() {
				for _, target := range targets {
					target.scrape(two[1])
				}
			}
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(n), "B/target")
			runtime.KeepAlive(targets)
		})
	}
}
