package normalize

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const cacheInfo = "vllm:cache_config_info"

func TestTheCacheConfigurationBecomesNumbersPerEngine(t *testing.T) {
	runPlanCases(t, []planCase{
		{
			name: "every engine has its own numbers",
			body: gauge(cacheInfo, `block_size="16",engine="0",kv_cache_size_tokens="1600",num_gpu_blocks="100"`, 1) +
				cacheInfo + `{block_size="32",engine="1",kv_cache_size_tokens="3200",num_gpu_blocks="50"} 1` + "\n",
			want: []string{
				"vllm.kv_cache.capacity gauge {token} {engine=0} = 1600", "vllm.kv_cache.capacity gauge {token} {engine=1} = 3200",
				"dropped info 2",
			},
		},
		{
			name: "blocks beside the capacity, switched on", options: Options{Enabled: map[string]bool{"vllm.kv_cache.block_size": true}},
			body: gauge(cacheInfo, `block_size="16",engine="0",kv_cache_size_tokens="1600",num_gpu_blocks="100"`, 1),
			want: []string{
				"vllm.kv_cache.block_size gauge {token} {engine=0} = 16", "vllm.kv_cache.capacity gauge {token} {engine=0} = 1600",
				"dropped info 1",
			},
		},
		{
			name: "None is not set",
			body: gauge(cacheInfo, `block_size="16",cache_dtype="None",engine="0",kv_cache_size_tokens="None",num_gpu_blocks="None"`, 1),
			want: []string{"vllm.kv_cache.block_size gauge {token} {engine=0} = 16", "dropped info 1"},
		},
		{
			name: "labels with similar names are decoys",
			body: gauge(cacheInfo, `_block_size_resolved="1",engine="0",hash_block_size="2",mamba_block_size="3",mamba_page_size_padded="4",num_gpu_blocks_override="5",user_specified_block_size="6",user_specified_mamba_block_size="7"`, 1),
			want: []string{"dropped info 1"},
		},
		{
			name: "text and numbers that are not finite are not used",
			body: gauge(cacheInfo, `block_size="-inf",kv_cache_size_tokens="inf",num_gpu_blocks="nan"`, 1) +
				cacheInfo + `{block_size="big",engine="1"} 1` + "\n",
			want: []string{"dropped info 2"},
		},
		{
			name: "before v0.24 the capacity is absent",
			body: gauge(cacheInfo, `block_size="16",num_gpu_blocks="100",swap_space="4"`, 1),
			want: []string{"vllm.kv_cache.block_size gauge {token} {} = 16", "vllm.kv_cache.num_gpu_blocks gauge {block} {} = 100", "dropped info 1"},
		},
		{
			name: "before v0.24 the capacity is computed if configured", options: Options{CapacityFromBlocks: true},
			body: gauge(cacheInfo, `block_size="16",num_gpu_blocks="100",swap_space="4"`, 1),
			want: []string{
				"vllm.kv_cache.block_size gauge {token} {} = 16", "vllm.kv_cache.num_gpu_blocks gauge {block} {} = 100",
				"vllm.kv_cache.capacity gauge {token} {} = 1600", "dropped info 1",
			},
		},
		{
			name: "the server's own capacity goes first", options: Options{CapacityFromBlocks: true},
			body: gauge(cacheInfo, `block_size="16",kv_cache_size_tokens="900",num_gpu_blocks="100"`, 1),
			want: []string{"vllm.kv_cache.capacity gauge {token} {} = 900", "dropped info 1"},
		},
		{
			name: "without blocks there is nothing to multiply", options: Options{CapacityFromBlocks: true},
			body: gauge(cacheInfo, `block_size="16",num_gpu_blocks="None",swap_space="4"`, 1),
			want: []string{"vllm.kv_cache.block_size gauge {token} {} = 16", "dropped info 1"},
		},
		{
			name: "a V0 server's labels",
			body: gauge(cacheInfo, `block_size="16",cache_dtype="auto",cpu_offload_gb="0",enable_prefix_caching="False",gpu_memory_utilization="0.9",is_attention_free="False",num_cpu_blocks="2048",num_gpu_blocks="1000",num_gpu_blocks_override="None",sliding_window="None",swap_space="4",swap_space_bytes="4294967296"`, 1),
			want: []string{
				"vllm.kv_cache.block_size gauge {token} {} = 16", "vllm.kv_cache.num_gpu_blocks gauge {block} {} = 1000",
				"resource vllm.cache_config.cache_dtype=auto", "resource vllm.cache_config.cpu_offload_gb=0",
				"resource vllm.cache_config.enable_prefix_caching=False", "resource vllm.cache_config.gpu_memory_utilization=0.9",
				"resource vllm.cache_config.swap_space_bytes=4294967296", "dropped info 1",
			},
		},
		{
			name: "the capacity of the simple offload",
			body: gauge("vllm:simple_kv_offload_info", `backend="cpu",capacity_blocks="64",lazy_offload="True",page_cache="False"`, 1),
			want: []string{
				"vllm.simple_kv_offload.capacity_blocks gauge {block} {} = 64",
				"resource vllm.simple_kv_offload.backend=cpu", "resource vllm.simple_kv_offload.lazy_offload=True",
				"resource vllm.simple_kv_offload.page_cache=False", "dropped info 1",
			},
		},
		{
			name: "an SDK's target_info is not passed on",
			body: gauge("target_info", `service_name="lmcache"`, 1), want: []string{"dropped info 1"},
		},
	})
}

func TestTheSameInfoUnderTwoPrefixesIsEmittedOnce(t *testing.T) {
	snapshot := snapshotOf(gauge(cacheInfo, `block_size="16",cache_dtype="auto",engine="0"`, 1) +
		gauge("vllm_cache_config_info", `block_size="16",cache_dtype="auto",engine="0"`, 1))
	plan := Make(snapshot.Layout, Options{})
	checkPlan(t, snapshot.Layout, &Options{}, plan)
	assert.Equal(t, 1, plan.Points)
	assert.Len(t, plan.Resource, 1)
}

// Only the series of the primary tier has the numbers; those of the others leave them empty.
func TestTheSizesOfTheOffloadingTierBecomeNumbersPerEngine(t *testing.T) {
	const sizes = `cpu_blocks_per_chunk="4",cpu_kv_cache_size_bytes="8192",cpu_kv_cache_size_tokens="None",cpu_num_chunks="2",engine="0",model_name="m"`
	const empty = `cpu_blocks_per_chunk="",cpu_kv_cache_size_bytes="",cpu_kv_cache_size_tokens="",cpu_num_chunks="",engine="0",model_name="m"`
	runPlanCases(t, []planCase{{
		name: "two tiers",
		body: gauge("vllm:kv_offload_config_info", empty+`,tier="1:fs"`, 1) + "vllm:kv_offload_config_info{" + sizes + `,tier="0:cpu"} 1` + "\n",
		want: []string{
			"vllm.kv_offload.cpu_blocks_per_chunk gauge {block} {engine=0} = 4", "vllm.kv_offload.cpu_cache_size gauge By {engine=0} = 8192",
			"vllm.kv_offload.cpu_num_chunks gauge {chunk} {engine=0} = 2",
			"dropped info 2",
		},
	}})
}

// Several replicas stand behind one Ray agent, each with an engine 0.
func TestTheCacheConfigurationOfEveryReplicaIsKept(t *testing.T) {
	plan := planOf("# TYPE ray_vllm_cache_config_info gauge\n"+
		`ray_vllm_cache_config_info{ReplicaId="r1",WorkerId="w1",block_size="16",engine="0"} 1`+"\n"+
		`ray_vllm_cache_config_info{ReplicaId="r2",WorkerId="w2",block_size="32",engine="0"} 1`+"\n", Options{})
	require.Len(t, plan.Metrics, 1)
	assert.Len(t, plan.Metrics[0].Points, 2)
}

func TestAResourceAttributeIsEqualOnEveryEngine(t *testing.T) {
	runPlanCases(t, []planCase{
		{
			name: "equal values are kept, different and partly missing ones are not",
			body: gauge(cacheInfo, `cache_dtype="auto",cpu_offload_gb="0",engine="0",sliding_window="None",swap_space_bytes="4"`, 1) +
				cacheInfo + `{cache_dtype="auto",cpu_offload_gb="1",engine="1",sliding_window="None"} 1` + "\n",
			want: []string{"resource vllm.cache_config.cache_dtype=auto", "dropped info 2"},
		},
		{
			name: "a value that only a later engine has is not kept",
			body: gauge(cacheInfo, `engine="0"`, 1) + cacheInfo + `{cache_dtype="auto",engine="1"} 1` + "\n",
			want: []string{"dropped info 2"},
		},
		{
			name: "labels outside the list are left out",
			body: gauge(cacheInfo, `engine="0",secret="x",is_attention_free="False"`, 1), want: []string{"dropped info 1"},
		},
	})
}

const loraInfo = "vllm:lora_requests_info"

func loraSet(running, waiting string, at int) string {
	return fmt.Sprintf("%s{max_lora=\"4\",running_lora_adapters=%q,waiting_lora_adapters=%q} %d\n", loraInfo, running, waiting, at)
}

// adapterSets writes down in which label sets each adapter is.
func adapterSets(plan *Plan) (out []string) {
	for _, m := range plan.Metrics {
		for _, p := range m.Points {
			if p.AdapterSets != nil {
				out = append(out, fmt.Sprintf("%s %s %v", strings.TrimPrefix(m.Name, "vllm.lora.adapter."), p.Attributes[0].Value, slices.Sorted(slices.Values(p.AdapterSets))))
			}
		}
	}
	return out
}

// Old label sets of vllm:lora_requests_info stay in the body for ever; emit
// takes the newest, so the plan must know who is in which.
func TestEveryAdapterKnowsItsLabelSets(t *testing.T) {
	for _, c := range []struct {
		name, body string
		want       []string
	}{
		{name: "one set", body: loraSet("sql,tweet", "chat", 10), want: []string{"running sql [0]", "running tweet [0]", "waiting chat [0]"}},
		{name: "blanks and empty names", body: loraSet(" sql , tweet,,", "", 10), want: []string{"running sql [0]", "running tweet [0]"}},
		{
			name: "stale sets", body: loraSet("sql", "", 10) + loraSet("sql,tweet", "sql", 20) + loraSet("", "", 30),
			want: []string{"running sql [0 1]", "running tweet [1]", "waiting sql [1]"},
		},
		{name: "an idle server", body: loraSet("", "", 10)},
	} {
		t.Run(c.name, func(t *testing.T) {
			snapshot := snapshotOf("# TYPE " + loraInfo + " gauge\n" + c.body)
			options := Options{}
			plan := Make(snapshot.Layout, options)
			checkPlan(t, snapshot.Layout, &options, plan)
			assert.ElementsMatch(t, c.want, adapterSets(plan))
			sets := strings.Count(c.body, "\n")
			assert.Equal(t, sets, plan.Dropped[ReasonInfo])
			if assert.Len(t, plan.Adapters, sets) {
				for i, slot := range plan.Adapters {
					assert.InDelta(t, 10*(i+1), snapshot.Values[slot.Slot], 0, "set %d", i)
				}
			}
		})
	}
}

func TestTheLimitOfAdapters(t *testing.T) {
	runPlanCases(t, []planCase{
		{
			name: "is one number for the server", body: "# TYPE " + loraInfo + " gauge\n" + loraSet("a", "", 10) + loraSet("", "", 20),
			want: []string{
				"vllm.lora.max_adapters gauge {adapter} {} = 4", "vllm.lora.adapter.running gauge {adapter} {adapter_name=a} = 1",
				"dropped info 2",
			},
		},
		{
			name: "is unknown from the Rust frontend", body: gauge(loraInfo, `running_lora_adapters="a",waiting_lora_adapters=""`, 10),
			want: []string{"vllm.lora.adapter.running gauge {adapter} {adapter_name=a} = 1", "dropped info 1"},
		},
	})
}

// Without a single number per label set, the newest set is not known.
func TestAnInfoFamilyThatIsAHistogram(t *testing.T) {
	for _, kind := range []string{"histogram", "gaugehistogram", "summary"} {
		t.Run(kind, func(t *testing.T) {
			snapshot := snapshotOf("# TYPE " + loraInfo + " " + kind + "\n" + strings.TrimPrefix(histogram(loraInfo, `running_lora_adapters="a"`, 1), "# TYPE "+loraInfo+" histogram\n"))
			checkPlan(t, snapshot.Layout, &Options{}, Make(snapshot.Layout, Options{}))
		})
	}
}
