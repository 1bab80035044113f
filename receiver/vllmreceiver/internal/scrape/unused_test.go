package scrape

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// cacheBody is a body of a server that has looked up and found so many items.
func cacheBody(queries, hits int, others ...string) string {
	return fmt.Sprintf("# TYPE vllm:mm_cache_queries_total counter\nvllm:mm_cache_queries_total{engine=\"0\"} %d\n"+
		"# TYPE vllm:mm_cache_hits_total counter\nvllm:mm_cache_hits_total{engine=\"0\"} %d\n"+
		"# TYPE vllm:prompt_tokens counter\nvllm:prompt_tokens_total{engine=\"0\"} %d\n", queries, hits, 100+queries) + strings.Join(others, "")
}

// seen has the points of a metric, without what all of them have.
func seen(metrics pmetric.Metrics, name string) string {
	return strings.ReplaceAll(strings.Join(points(metrics, name), ", "), "2027-01-01T00:00:", "")
}

// A counter of what the server does not use is not a series, and no increase is lost when it becomes one: its first value
// is an increase since the scrape before, also where the server says when it began. Then a ratio of 0 has both its counters.
func TestWhatTheServerDoesNotUseIsNotEmitted(t *testing.T) {
	const queries, hits = "vllm.mm_cache.queries", "vllm.mm_cache.hits"
	for name, extra := range map[string]string{
		"plain":   "",
		"created": "# TYPE vllm:mm_cache_queries_created gauge\nvllm:mm_cache_queries_created{engine=\"0\"} 1.7e9\n",
		"process": process(unix(-100)),
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			for range 2 {
				out := r.scrape(cacheBody(0, 0, extra))
				assert.Empty(t, seen(out, queries)+seen(out, hits))
				assert.NotEmpty(t, seen(out, "vllm.prompt_tokens"))
			}
			out := r.scrape(cacheBody(5, 0, extra))
			assert.Equal(t, `counter {item} {engine="0"} from 15.000000 @30 5`, seen(out, queries))
			assert.Equal(t, `counter {item} {engine="0"} from 15.000000 @30 0`, seen(out, hits))
			out = r.scrape(cacheBody(9, 2, extra))
			assert.Equal(t, `counter {item} {engine="0"} from 15.000000 @45 9`, seen(out, queries))
			assert.Equal(t, `counter {item} {engine="0"} from 15.000000 @45 2`, seen(out, hits))
		})
	}
}

func TestARestartEndsWhatIsNotUsedAnyMore(t *testing.T) {
	r := newRig(t)
	r.scrape(cacheBody(9, 2))
	out := r.scrape(cacheBody(0, 0))
	for _, name := range []string{"vllm.mm_cache.queries", "vllm.mm_cache.hits"} {
		assert.Equal(t, `counter {item} {engine="0"} from 00.000000 @15 end`, seen(out, name))
	}
	out = r.scrape(cacheBody(0, 0))
	assert.Empty(t, seen(out, "vllm.mm_cache.queries"), "it ends once")
	out = r.scrape(cacheBody(12, 3))
	assert.Equal(t, `counter {item} {engine="0"} from 30.000000 @45 12`, seen(out, "vllm.mm_cache.queries"))
}

func TestUnusedMetricsCanBeSwitchedOn(t *testing.T) {
	r := newRig(t, func(cfg *Config) {
		cfg.Metrics = map[string]MetricConfig{"vllm.mm_cache.hits": {Enabled: new(true)}}
	})
	out := r.scrape(cacheBody(0, 0))
	assert.NotEmpty(t, seen(out, "vllm.mm_cache.hits"))
	assert.Empty(t, seen(out, "vllm.mm_cache.queries"))
	// vLLM's own names have vLLM's own series.
	r = newRig(t, func(cfg *Config) { cfg.Naming = NamingWire })
	out = r.scrape(cacheBody(0, 0, "# TYPE http_request_size_bytes summary\nhttp_request_size_bytes_count 1\nhttp_request_size_bytes_sum 1\n"))
	assert.NotEmpty(t, seen(out, "vllm:mm_cache_hits_total"))
	assert.NotEmpty(t, seen(out, "http_request_size_bytes"))
}

// "awake" says both that the engine serves and that it sleeps. The levels of sleep are series while it is in them.
func TestOnlyTheLevelOfSleepThatAnEngineIsInIsASeries(t *testing.T) {
	r := newRig(t)
	scrape := func(awake, offloaded int) string {
		return seen(r.scrape(fmt.Sprintf("# TYPE vllm:engine_sleep_state gauge\nvllm:engine_sleep_state{sleep_state=\"awake\"} %d\n"+
			"vllm:engine_sleep_state{sleep_state=\"weights_offloaded\"} %d\nvllm:engine_sleep_state{sleep_state=\"discard_all\"} 0\n", awake, offloaded)),
			"vllm.engine.sleep_state")
	}
	assert.Equal(t, `gauge {state} {sleep_state="awake"} @0 1`, scrape(1, 0))
	assert.Equal(t, `gauge {state} {sleep_state="awake"} @15 0, gauge {state} {sleep_state="weights_offloaded"} @15 1`, scrape(0, 1))
	assert.Equal(t, `gauge {state} {sleep_state="awake"} @30 1, gauge {state} {sleep_state="weights_offloaded"} @30 end`, scrape(1, 0))
}
