package vllmprocessor

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/metadata"
)

func TestAWindowOfTwoScrapesThatJitterIsEnough(t *testing.T) {
	r := newRig(t, noDiagnosis)
	at := 0.0
	for i := range 20 {
		r.send(fmt.Sprintf("at %g\ncounter vllm.generation_tokens{0} %d\n", at, i))
		at += 30.008
	}
	assert.Empty(t, r.messages())
}

// One batch is 280 s ahead. The third one after it is derived from again.
func TestABatchThatIsAheadDoesNotSilenceItsServer(t *testing.T) {
	r := newRig(t, noDiagnosis)
	rates := map[int]bool{}
	for at := 0; at <= 150; at += 15 {
		time := at
		if at == 60 {
			time = at + 280
		}
		call := readStory(t, fmt.Sprintf("at %d\ncounter vllm.generation_tokens{0} %d\n", time, at)).calls[0]
		now := storyBegin.Add(seconds(at))
		r.processor.now = clock(now)
		_, err := r.processor.process(t.Context(), call.input)
		require.NoError(t, err)
		for _, value := range points(t, takeAdded(call.input)) {
			rates[at] = true
			if at > 60 {
				assert.InDelta(t, 1, value, 1e-9)
			}
		}
	}
	assert.False(t, rates[75])
	for at := 105; at <= 150; at += 15 {
		assert.True(t, rates[at], at)
	}
	require.Len(t, r.messages(), 1)
	assert.Contains(t, r.messages()[0], "points of a server were 4m10s ahead of this machine's clock, and later ones were not")
}

// A server whose clock is always ahead is served, also when an old batch is sent again.
func TestAServerThatIsAlwaysAheadIsServed(t *testing.T) {
	r := newRig(t, noDiagnosis)
	send := func(at, ago int) int {
		call := readStory(t, fmt.Sprintf("at %d\ncounter vllm.generation_tokens{0} %d\n", at-ago+60, at-ago)).calls[0]
		r.processor.now = clock(storyBegin.Add(seconds(at)))
		_, err := r.processor.process(t.Context(), call.input)
		require.NoError(t, err)
		return len(points(t, takeAdded(call.input)))
	}
	for at := 0; at <= 300; at += 15 {
		n := send(at, 0)
		assert.Equal(t, at > 0, n > 0, at)
		if at > 100 {
			send(at, 45)
			send(at, 60)
		}
	}
	assert.Empty(t, r.messages())
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

func clock(at time.Time) func() time.Time { return func() time.Time { return at } }

// Two in a row derive once: the points of both are those of the first alone.
func TestTwoProcessorsDeriveOnce(t *testing.T) {
	for name, configs := range map[string][2]string{
		"derived": {noDiagnosis, noDiagnosis}, "with a diagnosis": {"", ""},
		"objectives": {
			"objectives: [{name: o, metric: vllm.time_to_first_token, threshold: 1s, target: 0.9}]",
			"objectives: [{name: o, metric: vllm.time_to_first_token, threshold: 1s, target: 0.9}]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			first, second := newRig(t, configs[0]), newRig(t, configs[1])
			for i := range 12 {
				text := cacheBody(i*15, i*30) + fmt.Sprintf("gauge vllm.num_requests.running{0} 1\nhistogram vllm.time_to_first_token{0} 1:%d inf:0 sum:%d\n", i, i)
				if i > 7 {
					text = fmt.Sprintf("at %d\n", i*15) + exact + cacheEngine(1, i*30)
				}
				call := readStory(t, text).calls[0]
				for _, r := range []*rig{first, second} {
					r.processor.now = clock(call.at)
				}
				_, err := first.processor.process(t.Context(), call.input)
				require.NoError(t, err)
				want := pmetric.NewMetrics()
				call.input.CopyTo(want)
				_, err = second.processor.process(t.Context(), call.input)
				require.NoError(t, err)
				got := points(t, takeAdded(call.input))
				if i > 0 { // before the first one has derived anything the second does not know
					assert.Equal(t, fmt.Sprint(points(t, takeAdded(want))), fmt.Sprint(got), i)
				}
			}
			logged := strings.Join(second.messages(), "\n")
			assert.Equal(t, 1, strings.Count(logged, "another vllm processor, in this pipeline or in the sending collector, has already derived metrics of the same servers"))
			assert.NotContains(t, strings.Join(first.messages(), "\n"), "another vllm processor")
		})
	}
}

// Only objectives are configured here, and the one before has none.
func TestWhatTheProcessorBeforeDoesNotDeriveIsDerivedHere(t *testing.T) {
	first := newRig(t, noDiagnosis)
	second := newRig(t, "{diagnosis: {enabled: false}, objectives: [{name: o, metric: vllm.time_to_first_token, threshold: 1s, target: 0.9}]}")
	slo := 0
	for i := range 6 {
		call := readStory(t, cacheBody(i*15, i*30)+fmt.Sprintf("histogram vllm.time_to_first_token{0} 1:%d inf:0 sum:%d\n", i, i)).calls[0]
		for _, r := range []*rig{first, second} {
			r.processor.now = clock(call.at)
			_, err := r.processor.process(t.Context(), call.input)
			require.NoError(t, err)
		}
		for key := range points(t, takeAdded(call.input)) { // fails where one is there twice
			if strings.Contains(key, "vllm.slo.valid") {
				slo++
			}
		}
	}
	assert.Equal(t, 6, slo)
}

// 50,000 model names in one gauge, others in each scrape, together with ten servers that do
// well: these lose nothing, the cost does not grow, and the shutdown is quick.
func TestAServerWithMadeUpModelsHarmsNoOther(t *testing.T) {
	settings := processortest.NewNopSettings(metadata.Type)
	p := create(t, configured(t, "pool: {}"), settings)
	pipeline, err := p.component(t.Context(), settings, consumertest.NewNop())
	require.NoError(t, err)
	require.NoError(t, pipeline.Start(t.Context(), componenttest.NewNopHost()))
	const models = 50_000
	hostile := func(scrape int) pmetric.Metrics {
		metrics := readStory(t, fmt.Sprintf("at %d\nserver hostile\n", 15*scrape)).calls[0].input
		to := metrics.ResourceMetrics().At(1).ScopeMetrics().At(0).Metrics().AppendEmpty()
		to.SetName("vllm.num_requests.running")
		points := to.SetEmptyGauge().DataPoints()
		for i := range models {
			point := points.AppendEmpty()
			point.SetTimestamp(timestamp(15 * scrape))
			point.Attributes().PutStr("engine", "0")
			point.Attributes().PutStr("model_name", fmt.Sprint(scrape, "-", i))
		}
		return metrics
	}
	var first, last time.Duration
	for scrape := range 8 {
		p.now = clock(storyBegin.Add(seconds(15 * scrape)))
		began := time.Now()
		require.NoError(t, pipeline.ConsumeMetrics(t.Context(), hostile(scrape)))
		last = time.Since(began)
		if scrape == 1 {
			first = last
		}
		for server := range 10 {
			text := strings.Replace(cacheBody(15*scrape, 30*scrape), "\n", fmt.Sprintf("\nserver good-%d\n", server), 1)
			input := readStory(t, text).calls[0].input
			_, err := p.process(t.Context(), input)
			require.NoError(t, err)
			if derived := points(t, takeAdded(input)); scrape > 0 {
				assert.InDelta(t, 2, derived[fmt.Sprintf("good-%d %ds vllm.generation_throughput{engine=0,model_name=m}", server, 15*scrape)], 1e-9)
			}
		}
	}
	assert.Less(t, last, 4*first+2*time.Second)
	began := time.Now()
	p.pools().Collect(t.Context(), nil)
	require.NoError(t, pipeline.Shutdown(t.Context()))
	assert.Less(t, time.Since(began), 5*time.Second)
	t.Logf("a scrape of the hostile server took %s, later %s; the shutdown %s", first, last, time.Since(began))
}

func timestamp(at int) pcommon.Timestamp {
	return pcommon.NewTimestampFromTime(storyBegin.Add(seconds(at)))
}

// A payload of 20,000 engines at one time and one engine at 3000 others: the cost is
// that of its points.
func TestManyTimesAfterManyEnginesCostInProportion(t *testing.T) {
	p := create(t, configured(t, ""), processortest.NewNopSettings(metadata.Type))
	p.now = clock(storyBegin.Add(time.Hour))
	metrics := readStory(t, "at 0\n").calls[0].input
	to := metrics.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().AppendEmpty()
	to.SetName("vllm.num_requests.running")
	points := to.SetEmptyGauge().DataPoints()
	add := func(engine, at int) {
		point := points.AppendEmpty()
		point.SetTimestamp(timestamp(at))
		point.Attributes().PutStr("engine", fmt.Sprint(engine))
		point.Attributes().PutStr("model_name", "m")
	}
	for engine := range 20_000 {
		add(engine, 0)
	}
	for at := range 3000 {
		add(0, at+1)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	_, err := p.process(t.Context(), metrics)
	require.NoError(t, err)
	took := time.Since(began)
	runtime.ReadMemStats(&after)
	t.Logf("%s, %d MB allocated in all", took, (after.TotalAlloc-before.TotalAlloc)>>20)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(400<<20))
	assert.Less(t, took, 20*time.Second)
}
