package vllmprocessor

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/race"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/quota"
)

// A server with labels that its clients choose has taken all series. Others that come
// later have their share at once, and it never harms them.
func TestANoisyServerTakesNothingFromOthers(t *testing.T) {
	r := newRig(t, "{max_series: 400, diagnosis: {enabled: false}}")
	for scrape := range 40 {
		var b strings.Builder
		fmt.Fprintf(&b, "at %d\nserver noisy\n", 15*scrape)
		for i := range 600 {
			fmt.Fprintf(&b, "counter http_requests{handler=/%d,status=2xx,method=GET} 1\n", scrape/5*600+i)
		}
		if scrape >= 5 {
			for server := range 10 {
				fmt.Fprintf(&b, "server good-%d\n%s", server, exact)
				for engine := range 3 {
					b.WriteString(cacheEngine(engine, 30*scrape))
				}
			}
		}
		for _, heard := range r.heard(b.String()) {
			for server := range 10 {
				for engine := range 3 {
					key := fmt.Sprintf("good-%d %ds vllm.prefix_cache.hit_ratio{engine=%d,model_name=m}", server, 15*scrape, engine)
					if scrape > 5 {
						require.Contains(t, heard, key)
					}
				}
			}
		}
		// For one scrape, until it gives back what the others need.
		if scrape > 5 {
			assert.LessOrEqual(t, r.processor.series.Used(), 400)
		}
	}
}

// Most resources are servers of which one series is known. What they leave free is
// for the servers that need more than the limit divided by all, not for the noisy one.
func TestServersThatHoldLittleLeaveTheRestToOthersThanTheNoisyOne(t *testing.T) {
	r := newRig(t, "{max_series: 2000, diagnosis: {enabled: false}}")
	for scrape := range 12 {
		var b strings.Builder
		fmt.Fprintf(&b, "at %d\nserver noisy\n", 15*scrape)
		for i := range 4000 {
			fmt.Fprintf(&b, "counter http_requests{handler=/%d,status=2xx,method=GET} 1\n", i)
		}
		for server := range 150 {
			fmt.Fprintf(&b, "server down-%d\ngauge vllm.up{-} 0\n", server)
		}
		for server := range 10 {
			fmt.Fprintf(&b, "server good-%d\n%s", server, exact)
			for engine := range 7 {
				b.WriteString(cacheEngine(engine, 30*scrape))
			}
		}
		for _, heard := range r.heard(b.String()) {
			for server := range 10 {
				for engine := range 7 {
					if scrape > 3 {
						require.Contains(t, heard, fmt.Sprintf("good-%d %ds vllm.prefix_cache.hit_ratio{engine=%d,model_name=m}", server, 15*scrape, engine))
					}
				}
			}
		}
	}
	assert.Equal(t, 2000, r.processor.series.Used(), "the noisy one has the rest")
}

// A server with many models has all trackers, until others appear.
func TestAServerWithManyModelsTakesNoTrackersFromOthers(t *testing.T) {
	p := run(t, within(promise("ttft", firstToken, 2500*time.Millisecond, 0.9)))
	p.objectives().Trackers = quota.New(8)
	engines := map[string]*engineLog{"0": {born: noon}}
	both := func(others int) (counted int) {
		p.at = p.at.Add(30 * time.Second)
		noisy := pmetric.NewMetrics()
		for model := range 20 {
			body("noisy:8000", fmt.Sprint("m", model), p.at, []string{firstToken}, engines).ResourceMetrics().MoveAndAppendTo(noisy.ResourceMetrics())
		}
		p.take(noisy)
		for i := range others {
			if _, is := p.take(body(fmt.Sprint("good", i), "m", p.at, []string{firstToken}, engines)).values[valid]; is {
				counted++
			}
		}
		return counted
	}
	for range 3 {
		both(0)
	}
	assert.Equal(t, 8, p.objectives().Trackers.Used())
	both(3) // the first batch is only a baseline
	for range 4 {
		assert.Equal(t, 3, both(3))
	}
	assert.Equal(t, 8, p.objectives().Trackers.Used())
}

// 15,000 servers that a sender makes up, with a series each, and the default limits.
func TestServersThatAreMadeUpTakeBoundedMemory(t *testing.T) {
	race.SkipSequential(t)
	r := newRig(t, "")
	payload := func(scrape, from, to int) pmetric.Metrics {
		metrics := pmetric.NewMetrics()
		for i := from; i < to; i++ {
			rm := metrics.ResourceMetrics().AppendEmpty()
			rm.Resource().Attributes().PutStr("service.instance.id", fmt.Sprint("made-up-", i))
			metric := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
			metric.SetName("vllm.num_requests.running")
			point := metric.SetEmptyGauge().DataPoints().AppendEmpty()
			point.SetTimestamp(timestamp(15 * scrape))
			point.Attributes().PutStr("engine", "0")
		}
		return metrics
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for scrape := range 3 {
		r.processor.now = clock(storyBegin.Add(seconds(15 * scrape)))
		for part := range 15 {
			_, err := r.processor.process(t.Context(), payload(scrape, 1000*part, 1000*part+1000))
			require.NoError(t, err)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	assert.Len(t, r.processor.resources, 12_500)
	t.Logf("%d MB", (after.HeapAlloc-before.HeapAlloc)>>20)
	assert.Less(t, after.HeapAlloc-before.HeapAlloc, uint64(250<<20))
	assert.Contains(t, strings.Join(r.messages(), "\n"), "more engines and models than the limits, 1000 for one server and 12500 for all")
}
