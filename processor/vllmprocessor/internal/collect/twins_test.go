package collect

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/identity"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// eachOrder calls check with the additions in each order of them.
func eachOrder(t *testing.T, check func(*request), additions ...func(*request)) {
	t.Helper()
	order := make([]int, len(additions))
	for i := range order {
		order[i] = i
	}
	var permute func(int)
	permute = func(n int) {
		if n == len(order) {
			in := newInput()
			for _, i := range order {
				additions[i](in)
			}
			check(in)
			return
		}
		for i := n; i < len(order); i++ {
			order[n], order[i] = order[i], order[n]
			permute(n + 1)
			order[n], order[i] = order[i], order[n]
		}
	}
	permute(0)
}

func TestTheNewestNameCountsInAnyOrder(t *testing.T) {
	canonical := func(in *request) { in.gauge("vllm.kv_cache.utilization", 0.3, "engine", "0") }
	newer := func(in *request) { in.gauge("vllm:kv_cache_usage_perc", 0.2, "engine", "0") }
	older := func(in *request) { in.gauge("vllm:gpu_cache_usage_perc", 0.1, "engine", "0") }
	another := func(in *request) { in.gauge("vllm:gpu_cache_usage_perc", 0.7, "engine", "1") }
	eachOrder(t, func(in *request) {
		lines, report := in.reported(t)
		assert.Equal(t, []string{"100 vllm.kv_cache.utilization{engine=0} 0.2", "100 vllm.kv_cache.utilization{engine=1} 0.7"}, sorted(lines))
		assert.Equal(t, count(OlderName, 1), report)
	}, newer, older, another)
	eachOrder(t, func(in *request) {
		lines, report := in.reported(t)
		assert.Equal(t, []string{"100 vllm.kv_cache.utilization{engine=0} 0.3"}, lines)
		assert.Equal(t, count(OlderName, 2), report)
	}, canonical, newer, older)
}

func TestTheOldNameOfTheCacheCountsOnlyAlone(t *testing.T) {
	eachOrder(t, func(in *request) {
		lines, report := in.reported(t)
		assert.Equal(t, []string{"100 vllm.prefix_cache.hits{} 5", "100 vllm.prefix_cache.queries{} 3"}, sorted(lines))
		assert.Equal(t, count(OlderName, 1), report)
	},
		func(in *request) { in.counter("vllm:prefix_cache_hits_total", 5) },
		func(in *request) { in.counter("vllm:gpu_prefix_cache_hits_total", 80) },
		func(in *request) { in.counter("vllm:gpu_prefix_cache_queries_total", 3) },
	)
	in := newInput()
	in.counter("vllm.gpu_prefix_cache.hits", 2)
	in.counter("vllm.gpu_prefix_cache.queries", 4)
	assert.Equal(t, []string{"100 vllm.prefix_cache.hits{} 2", "100 vllm.prefix_cache.queries{} 4"}, in.read(t))
}

// A server that was updated ends the series of the old name.
func TestAValueWinsOverTheEndOfAnotherName(t *testing.T) {
	value := func(name string) func(*request) { return func(in *request) { in.counter(name, 5) } }
	gone := func(name string) func(*request) { return func(in *request) { end(in.counter(name, 0)) } }
	for _, names := range [][2]string{
		{"vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total"},
		{"vllm:gpu_prefix_cache_hits_total", "vllm:prefix_cache_hits_total"},
	} {
		eachOrder(t, func(in *request) {
			lines, _ := in.reported(t)
			assert.Equal(t, []string{"100 vllm.prefix_cache.hits{} 5"}, lines)
		}, value(names[0]), gone(names[1]))
	}
}

func TestTwinsAreFoundWhenAResourceIsSplit(t *testing.T) {
	for _, names := range [][]string{
		{"vllm:kv_cache_usage_perc", "vllm.kv_cache.utilization"},
		{"vllm.kv_cache.utilization", "vllm:kv_cache_usage_perc"},
	} {
		in := newInput("service.instance.id", "a")
		in.gauge(names[0], 0.5)
		in.resource("service.instance.id", "a")
		in.gauge(names[1], 0.5)
		lines, report := in.reported(t)
		assert.Len(t, lines, 1)
		assert.Equal(t, count(OlderName, 1), report)
	}
}

// In multi-process mode some versions report a gauge once for each API server.
func TestAGaugeOfOneProcessIsTheEngines(t *testing.T) {
	in := newInput()
	in.gauge("vllm:kv_cache_usage_perc", 0.1, "engine", "0", "pid", "71")
	in.gauge("vllm:kv_cache_usage_perc", 0.2, "engine", "1", "pid", "72")
	assert.Equal(t, []string{"100 vllm.kv_cache.utilization{engine=0} 0.1", "100 vllm.kv_cache.utilization{engine=1} 0.2"}, in.read(t))
}

func TestAGaugeOfSeveralProcessesIsNotUsed(t *testing.T) {
	of := func(value float64, pid string) func(*request) {
		return func(in *request) { in.gauge("vllm.kv_cache.utilization", value, "engine", "0", "pid", pid) }
	}
	eachOrder(t, func(in *request) {
		lines, report := in.reported(t)
		assert.Equal(t, []string{"100 vllm.kv_cache.utilization{engine=1} 0.5"}, lines)
		assert.Equal(t, count(SeveralProcesses, 3), report)
	},
		of(0.1, "71"), of(0.2, "72"), of(0.3, "73"),
		func(in *request) { in.gauge("vllm.kv_cache.utilization", 0.5, "engine", "1", "pid", "71") },
	)
}

// The current value is one of them.
func TestAGaugeOfWhichAllProcessesReportTheSameIsUsed(t *testing.T) {
	of := func(value float64, pid string) func(*request) {
		return func(in *request) { in.gauge("vllm.kv_cache.utilization", value, "engine", "0", "pid", pid) }
	}
	eachOrder(t, func(in *request) {
		lines, report := in.reported(t)
		assert.Equal(t, []string{"100 vllm.kv_cache.utilization{engine=0} 0.1"}, lines)
		assert.Equal(t, Report{}, report)
	}, of(0.1, "71"), of(0.1, "72"), of(0.1, "73"))
	eachOrder(t, func(in *request) {
		lines, _ := in.reported(t)
		assert.Empty(t, lines)
		batches, _ := Read(in.metrics)
		require.Len(t, batches[0].Contradicted, 1)
		assert.Equal(t, input.KVCacheUtilization, batches[0].Contradicted[0].Input)
	}, of(0.1, "71"), of(0.1, "72"), of(0.3, "73"))
}

func TestTheGaugeWithoutAProcessIsRight(t *testing.T) {
	eachOrder(t, func(in *request) {
		lines, report := in.reported(t)
		assert.Equal(t, []string{"100 vllm.kv_cache.utilization{} 0.4"}, lines)
		assert.Positive(t, report[SeveralProcesses])
	},
		func(in *request) { in.gauge("vllm:kv_cache_usage_perc", 0.4) },
		func(in *request) { in.gauge("vllm:kv_cache_usage_perc", 0.1, "pid", "71") },
		func(in *request) { in.gauge("vllm:kv_cache_usage_perc", 0.2, "pid", "72") },
	)
}

// The previous process ends in the same batch in which the next one begins.
func TestAProcessThatEndedDoesNotContradictTheNext(t *testing.T) {
	eachOrder(t, func(in *request) {
		assert.Equal(t, []string{"100 vllm.kv_cache.utilization{} 0.4"}, in.read(t))
	},
		func(in *request) { in.gauge("vllm:kv_cache_usage_perc", 0.4, "pid", "72") },
		func(in *request) { end(in.gauge("vllm:kv_cache_usage_perc", 0, "pid", "71")) },
	)
}

func TestTheCacheConfigurationIsReadFromItsLabels(t *testing.T) {
	in := newInput()
	in.gauge("vllm:cache_config_info", 1, "engine", "1", "block_size", "16", "num_gpu_blocks", "2560", "kv_cache_size_tokens", "40960", "cache_dtype", "auto")
	in.gauge("vllm:cache_config_info", 1, "block_size", "32", "num_gpu_blocks", "None")
	in.gauge("ray_vllm_cache_config_info", 1, "engine", "2", "block_size", "many", "num_gpu_blocks", "-1", "kv_cache_size_tokens", "NaN")
	both := in.metric("vllm:cache_config_info").SetEmptyGauge().DataPoints()
	end(in.number(both.AppendEmpty(), 0, []string{"engine", "3", "block_size", "16"}))
	in.number(both.AppendEmpty(), 1, []string{"engine", "5", "block_size", "64"})
	in.metric("vllm:cache_config_info").SetEmptyHistogram().DataPoints().AppendEmpty()
	in.number(in.metric("vllm:cache_config").SetEmptySum().DataPoints().AppendEmpty(), 1, []string{"engine", "4", "block_size", "8"})
	assert.Equal(t, []string{
		"100 vllm.kv_cache.block_size{engine=1} 16", "100 vllm.kv_cache.num_gpu_blocks{engine=1} 2560", "100 tokens{engine=1} 40960",
		"100 vllm.kv_cache.block_size{} 32", "100 vllm.kv_cache.block_size{engine=5} 64", "100 vllm.kv_cache.block_size{engine=4} 8",
	}, in.read(t))
}

func TestBatchesAreByResourceAndTimeOldestFirst(t *testing.T) {
	in := newInput("service.instance.id", "a")
	in.time(115).counter("vllm.prompt_tokens", 4)
	in.time(100).counter("vllm.prompt_tokens", 3)
	in.resource("service.instance.id", "b").time(130).counter("vllm.prompt_tokens", 9)
	in.resource("service.instance.id", "a", "vllm.version", "late").time(100).counter("vllm.generation_tokens", 5)
	batches, report := Read(in.metrics)
	assert.Equal(t, Report{}, report)
	a, b := identity.Of(in.metrics.ResourceMetrics().At(0).Resource().Attributes()), identity.Of(in.metrics.ResourceMetrics().At(1).Resource().Attributes())
	type is struct {
		resource string
		time     int64
		samples  int
		source   int
	}
	var got []is
	for _, batch := range batches {
		got = append(got, is{batch.Resource, batch.Time / 1e9, len(batch.Samples), batch.Source})
	}
	assert.Equal(t, []is{{a, 100, 2, 2}, {a, 115, 1, 0}, {b, 130, 1, 1}}, got)
}

func TestWhatMakesAResourceTheSame(t *testing.T) {
	identity := func(attributes ...string) string {
		in := newInput(attributes...)
		return identity.Of(in.metrics.ResourceMetrics().At(0).Resource().Attributes())
	}
	full := []string{"service.name", "vllm", "service.instance.id", "a:8000", "k8s.pod.uid", "1"}
	same := slices.Concat(full, []string{"vllm.version", "0.20.0"})
	assert.Equal(t, identity(full...), identity(same...), "what arrives late")
	assert.Equal(t, identity(full[:4]...), identity(full[2], full[3], full[0], full[1]), "the order")
	assert.Equal(t, identity("service.instance.id", "a"), identity("service.instance.id", "a", "service.name", ""), "an empty name is ignored")
	others := [][]string{
		full, full[:4], full[2:4], full[2:], full[:2],
		{},
		{"service.instance.id", "", "service.name", "vllm"},
		{"service.name", "vllm", "host.name", "h"},
		{"service.name", "vllm", "host.name", "i"},
		{"service.name", "", "service.instance.id", "vllm"},
		{"service.name", "vllma:8000", "service.instance.id", "1"},
		{"host.name", "service.name", "service.name", "host.name"},
	}
	seen := map[string][]string{}
	for _, attributes := range others {
		key := identity(attributes...)
		assert.NotContains(t, seen, key, "%v", attributes)
		seen[key] = attributes
	}
}
