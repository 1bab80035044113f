package normalize

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// engineBlocks is the cache configuration of one engine with blocks of 16 tokens.
func engineBlocks(engine, blocks string, more ...string) string {
	return fmt.Sprintf("%s{%sblock_size=\"16\",engine=%q,num_gpu_blocks=%q} 1\n", cacheInfo, strings.Join(more, ""), engine, blocks)
}

// vLLM since 0.9 writes the blocks of all engines of a front end under each of them. What
// is expected here follows from the truth of such servers: 2 engines with 100 blocks of 16
// tokens each hold 1600 tokens each.
func TestTheCapacityFromBlocksIsThatOfOneEngine(t *testing.T) {
	const head = "# TYPE " + cacheInfo + " gauge\n"
	for _, tt := range []struct {
		name, version, body string
		want                map[string]float64
	}{
		{
			name: "equal blocks are those of all engines", version: "0.10.0",
			body: engineBlocks("0", "200") + engineBlocks("1", "200"),
			want: map[string]float64{"0": 1600, "1": 1600},
		},
		{
			name: "an unknown version counts as affected",
			body: engineBlocks("0", "300") + engineBlocks("1", "300") + engineBlocks("2", "300"),
			want: map[string]float64{"0": 1600, "1": 1600, "2": 1600},
		},
		{
			name: "before 0.9 each engine has its own", version: "0.8.5",
			body: engineBlocks("0", "100") + engineBlocks("1", "100"),
			want: map[string]float64{"0": 1600, "1": 1600},
		},
		{
			name: "different blocks are those of each engine", version: "0.10.0",
			body: engineBlocks("0", "100") + engineBlocks("1", "101"),
			want: map[string]float64{"0": 1600, "1": 1616},
		},
		{
			name: "of three engines one differs", version: "0.10.0",
			body: engineBlocks("0", "100") + engineBlocks("1", "100") + engineBlocks("2", "90"),
			want: map[string]float64{"0": 1600, "1": 1600, "2": 1440},
		},
		{
			name: "one engine", version: "0.10.0", body: engineBlocks("0", "100"),
			want: map[string]float64{"0": 1600},
		},
		{
			name: "an engine with an outside balancer is alone under its own number", version: "0.10.0",
			body: engineBlocks("3", "100"), want: map[string]float64{"3": 1600},
		},
		{
			name: "before 0.10 it is the last of several that are not reported", version: "0.9.2",
			body: engineBlocks("3", "400"), want: map[string]float64{},
		},
		{
			name: "a series that repeats an engine is not a further engine", version: "0.10.0",
			body: engineBlocks("0", "200", `cache_dtype="auto",`) + engineBlocks("0", "200", `cache_dtype="fp8",`) + engineBlocks("1", "200"),
			want: map[string]float64{"0": 1600, "1": 1600},
		},
		{
			name: "an engine without a number is not counted", version: "0.10.0",
			body: engineBlocks("0", "200") + engineBlocks("1", "200") + engineBlocks("2", "None"),
			want: map[string]float64{"0": 1600, "1": 1600},
		},
		{
			name: "API servers that do not know the blocks", version: "0.19.1",
			body: engineBlocks("0", "None") + engineBlocks("1", "None"), want: map[string]float64{},
		},
		{
			name: "blocks of a hybrid model have several sizes", version: "0.19.1",
			body: engineBlocks("0", "100", `mamba_block_size="528",`), want: map[string]float64{},
		},
		{
			name: "so do those with padded pages", version: "0.10.0",
			body: engineBlocks("0", "100", `mamba_page_size_padded="4096",`), want: map[string]float64{},
		},
		{
			name: "labels of a hybrid model that are not set", version: "0.19.1",
			body: engineBlocks("0", "100", `mamba_block_size="None",mamba_page_size_padded="None",`), want: map[string]float64{"0": 1600},
		},
		{
			name: "a size of 0 is not a layer with a state", version: "0.10.0",
			body: engineBlocks("0", "100", `mamba_page_size_padded="0",`), want: map[string]float64{"0": 1600},
		},
		{
			name: "the server's own capacity is that of one engine and stays", version: "0.24.0",
			body: engineBlocks("0", "200", `kv_cache_size_tokens="1500",`) + engineBlocks("1", "200", `kv_cache_size_tokens="1500",`),
			want: map[string]float64{"0": 1500, "1": 1500},
		},
		{
			name: "the server's own capacity of a hybrid model stays", version: "0.24.0",
			body: engineBlocks("0", "200", `kv_cache_size_tokens="1500",mamba_block_size="528",`), want: map[string]float64{"0": 1500},
		},
		{
			name: "a product that is not a number", version: "0.10.0",
			body: engineBlocks("0", "1e+308"), want: map[string]float64{},
		},
		{
			name: "a block size that is not a number", version: "0.10.0",
			body: cacheInfo + `{block_size="NaN",engine="0",num_gpu_blocks="100"} 1` + "\n", want: map[string]float64{},
		},
		{
			name: "a negative number of blocks", version: "0.10.0",
			body: engineBlocks("0", "-100"), want: map[string]float64{},
		},
		{
			name: "no blocks are unknown blocks", version: "0.10.0",
			body: engineBlocks("0", "0") + engineBlocks("1", "0"), want: map[string]float64{},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			options := Options{CapacityFromBlocks: true, Version: tt.version}
			snapshot := snapshotOf(head + tt.body)
			plan := Make(snapshot.Layout, options)
			checkPlan(t, snapshot.Layout, &options, plan)
			got := map[string]float64{}
			blocks := 0
			for _, m := range plan.Metrics {
				for _, p := range m.Points {
					switch m.Name {
					case capacityMetric:
						got[p.Attributes[0].Value] = p.Constant
					case "vllm.kv_cache.num_gpu_blocks":
						blocks++
						assert.Contains(t, tt.body, fmt.Sprintf(`engine=%q,num_gpu_blocks="%v"`, p.Attributes[0].Value, p.Constant), "the raw number is unchanged")
					}
				}
			}
			assert.Equal(t, tt.want, got)
		})
	}
}

// Replicas behind one Ray agent have front ends of their own, which happen to be equal.
func TestEqualBlocksOfReplicasAreNotDivided(t *testing.T) {
	plan := planOf("# TYPE ray_vllm_cache_config_info gauge\n"+
		`ray_vllm_cache_config_info{ReplicaId="r1",WorkerId="w1",block_size="16",engine="0",num_gpu_blocks="100"} 1`+"\n"+
		`ray_vllm_cache_config_info{ReplicaId="r2",WorkerId="w2",block_size="16",engine="0",num_gpu_blocks="100"} 1`+"\n", Options{CapacityFromBlocks: true})
	points := 0
	for _, m := range plan.Metrics {
		if m.Name == capacityMetric {
			for _, p := range m.Points {
				points++
				assert.InDelta(t, 1600, p.Constant, 0)
			}
		}
	}
	assert.Equal(t, 2, points)
}

// A plan that depends on a version belongs to a class of versions with the same plan.
func TestVersionsWithOtherCapacitiesHaveOtherClasses(t *testing.T) {
	assert.NotEqual(t, VersionClass("0.8.5"), VersionClass("0.9.0"))
	assert.NotEqual(t, VersionClass("0.9.2"), VersionClass("0.10.0"))
	assert.NotEqual(t, VersionClass("0.6.0"), VersionClass(""), "an unknown version counts as affected")
}
