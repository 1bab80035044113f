package discover

import (
	"crypto/md5"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"github.com/prometheus/prometheus/model/relabel"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/kubeapi"
)

// shardOf is the shard of a key, computed without Prometheus: the last eight bytes of its MD5
// sum as a number, modulo the number of shards.
func shardOf(key string, shards uint64) uint64 {
	sum := md5.Sum([]byte(key))
	return binary.BigEndian.Uint64(sum[8:]) % shards
}

// shardRules are the rules that the documentation shows: the pool if the target has the
// label, else the address.
func shardRules(label string, number int, shards uint64) string {
	return fmt.Sprintf(`
relabel_configs:
- {source_labels: [__address__], target_label: __tmp_shard_key}
- {source_labels: [%s], regex: (.+), target_label: __tmp_shard_key}
- {source_labels: [__tmp_shard_key], modulus: %d, target_label: __tmp_shard, action: hashmod}
- {source_labels: [__tmp_shard], regex: %d, action: keep}
`, label, shards, number)
}

func rulesOf(t *testing.T, text string) []*relabel.Config {
	t.Helper()
	return parse(t, "static_configs: [{targets: [a]}]"+text).RelabelConfigs
}

// Of 10,000 targets, 9000 are in 600 pools and the others have none.
func TestEachTargetBelongsToOneShardAndPoolsAreWhole(t *testing.T) {
	t.Parallel()
	var groups []*targetgroup.Group
	keys := map[string]string{}
	for i := range 10_000 {
		address := model.LabelValue(fmt.Sprintf("10.0.%d.%d:8000", i/250, i%250))
		labels := model.LabelSet{"__address__": address}
		key := string(address)
		if i < 9000 {
			key = fmt.Sprintf("pool-%d", i%600)
			labels["__meta_pool"] = model.LabelValue(key)
		}
		keys["http://"+string(address)+"/metrics"] = key
		groups = append(groups, &targetgroup.Group{Targets: []model.LabelSet{labels}})
	}
	moved := map[string]int{}
	shards := map[uint64]map[string]int{}
	for _, of := range []uint64{4, 5, 6, 8} {
		shards[of] = map[string]int{}
		for number := range int(of) {
			rules := rulesOf(t, shardRules("__meta_pool", number, of))
			found := defaults.resolve([]source{{groups: groups, chains: [][]*relabel.Config{rules}}}, shardingOf(rules))
			require.Empty(t, found.unusable)
			assert.Equal(t, 10_000, found.tally.Found)
			assert.Equal(t, 10_000, found.tally.Shared)
			assert.Equal(t, len(found.targets), found.tally.Kept)
			assert.Equal(t, 15, found.tally.together, "the pools have 15 targets each")
			for i := range found.targets {
				address := found.targets[i].URL.String()
				_, twice := shards[of][address]
				require.False(t, twice, "%s has two shards", address)
				shards[of][address] = number
				require.Equal(t, shardOf(keys[address], of), uint64(number), address)
				assert.Empty(t, found.targets[i].Attributes, "nothing of the rules becomes an attribute")
			}
		}
		require.Len(t, shards[of], 10_000, "all are scraped")
		for address, number := range shards[of] {
			if shards[4][address] != number {
				moved[fmt.Sprintf("4 to %d", of)]++
			}
		}
	}
	// On average over all keys, a number stays the same for min(m, n) of lcm(m, n) remainders.
	for change, want := range map[string]float64{"4 to 5": 1 - 4./20, "4 to 6": 1 - 4./12, "4 to 8": 1 - 4./8} {
		t.Logf("%s shards: %d of 10000 targets move", change, moved[change])
		assert.InDelta(t, want, float64(moved[change])/10_000, 0.04, change)
	}
}

// The short forms set the address first, so that the containers and ports of a pod have the
// key that the rules of the user make of it.
func TestShardsOfTheShortForms(t *testing.T) {
	t.Parallel()
	api := kubeapi.New(t, kubeapi.Pools)
	api.Apply(kubeapi.Pools, kubeapi.Pool("inference", "llama", map[string]string{"model": "m0"}, 8000, 8001))
	pods := map[string]string{}
	for i := range 12 {
		ip, name := fmt.Sprintf("10.0.0.%d", 10+i), fmt.Sprintf("m%d", i%5)
		labels := map[string]string{"app": "vllm", "model": name}
		if i == 11 {
			delete(labels, "model")
			name = ip + ":8000"
		}
		pods[ip] = name
		api.Apply(kubeapi.Pods, vllmPod(fmt.Sprint("p", i), ip, func(p *kubeapi.Pod) {
			p.Labels = labels
			p.Containers = []kubeapi.Container{{Name: "vllm", Port: 8000}, {Name: "proxy", Port: 9000}, {Name: "logs"}}
		}))
	}
	for number := range 3 {
		var kubernetes, ofPool []string
		for ip, key := range pods {
			if shardOf(key, 3) == uint64(number) {
				kubernetes = append(kubernetes, "http://"+ip+":8000/metrics")
			}
			if key == "m0" && shardOf("inference;llama", 3) == uint64(number) {
				ofPool = append(ofPool, "http://"+ip+":8000/metrics", "http://"+ip+":8001/metrics")
			}
		}
		slices.Sort(kubernetes)
		slices.Sort(ofPool)
		r := run(t, 100, fmt.Sprintf("kubernetes: {namespaces: [inference], selector: app=vllm, api_server: %s}", api.URL)+
			shardRules("__meta_kubernetes_pod_label_model", number, 3))
		r.waitFor("the form kubernetes", kubernetes...)
		r.waitForLog(fmt.Sprintf("info Discovery: relabelling keeps %d of 12 discovered targets for shard %d of 3 (numbers begin with 0); an even share is 4", len(kubernetes), number))
		r = run(t, 100, poolSection(api)+shardRules("__meta_inference_pool_namespace, __meta_inference_pool_name", number, 3))
		if len(ofPool) > 0 {
			r.waitFor("the form inference_pool", ofPool...)
			r.waitForLog(fmt.Sprintf("info Discovery: relabelling keeps %d of 6 discovered targets for shard %d of 3", len(ofPool), number))
			assert.Equal(t, "llama", r.attributes(ofPool[0])[PoolAttribute])
		} else {
			r.waitForLog(fmt.Sprintf("info Discovery: relabelling keeps none of 6 discovered targets for shard %d of 3; all of them belong to one other shard", number))
			r.waitFor("another shard has the pool")
		}
		for _, line := range r.lines() {
			assert.False(t, strings.HasPrefix(line, "warn"), line)
		}
	}
}

func TestWhichRulesDivideTheTargets(t *testing.T) {
	t.Parallel()
	const hash = "\n- {source_labels: [__address__], modulus: 4, target_label: __tmp, action: hashmod}"
	for name, tt := range map[string]struct {
		rules string
		want  bool
		// number is the shard.
		number int64
	}{
		"none":                    {"", false, 0},
		"hashmod only":            {hash, false, 0},
		"keep of another label":   {hash + "\n- {source_labels: [x], regex: 1, action: keep}", false, 0},
		"keep of two labels":      {hash + "\n- {source_labels: [__tmp, x], regex: 1, action: keep}", false, 0},
		"keep before hashmod":     {"\n- {source_labels: [__tmp], regex: 1, action: keep}" + hash, false, 0},
		"drop":                    {hash + "\n- {source_labels: [__tmp], regex: 1, action: drop}", false, 0},
		"a shard":                 {hash + "\n- {source_labels: [x], regex: y, action: drop}\n- {source_labels: [__tmp], regex: 3, action: keep}", true, 3},
		"a zero before":           {hash + "\n- {source_labels: [__tmp], regex: '02', action: keep}", true, -1},
		"two numbers":             {hash + "\n- {source_labels: [__tmp], regex: 1|2, action: keep}", true, -1},
		"the rule that is second": {hash + hash + "\n- {source_labels: [__tmp], regex: 2, action: keep}", true, 2},
	} {
		rules := ""
		if tt.rules != "" {
			rules = "\nrelabel_configs:" + tt.rules
		}
		got := shardingOf(rulesOf(t, rules))
		require.Equal(t, tt.want, got != nil, name)
		if got != nil {
			assert.Equal(t, tt.number, got.number, name)
		}
	}
	twice := rulesOf(t, "\nrelabel_configs:"+hash+hash+"\n- {source_labels: [__tmp], regex: 2, action: keep}")
	assert.Same(t, twice[1], shardingOf(twice).hash, "the last hash counts, because it overwrites the first")
}

// Rules of the user before and after those that choose the shard.
func TestOtherRulesAreCountedApart(t *testing.T) {
	t.Parallel()
	const drop = "- {source_labels: [team], regex: %s, action: drop}\n"
	choose := strings.TrimPrefix(shardRules("pool", 0, 1), "\nrelabel_configs:\n")
	for name, tt := range map[string]struct {
		rules string
		want  tally
	}{
		"before": {fmt.Sprintf(drop, "a") + choose, tally{Counts: Counts{Found: 3, Shared: 1, Kept: 1}, chosen: 1, key: "q", largest: "q", together: 1}},
		"after":  {choose + fmt.Sprintf(drop, "a"), tally{Counts: Counts{Found: 3, Shared: 3, Kept: 1}, chosen: 3, several: true, largest: "q", together: 1}},
		"all":    {choose + fmt.Sprintf(drop, ".+"), tally{Counts: Counts{Found: 3, Shared: 3}, chosen: 3, several: true}},
	} {
		rules := rulesOf(t, "\nrelabel_configs:\n"+tt.rules)
		found := defaults.resolve([]source{{chains: [][]*relabel.Config{rules}, groups: []*targetgroup.Group{{Targets: []model.LabelSet{
			{"__address__": "a:1", "pool": "p", "team": "a"}, {"__address__": "b:1", "pool": "p", "team": "a"}, {"__address__": "c:1", "pool": "q", "team": "c"},
		}}}}}, shardingOf(rules))
		assert.Equal(t, tt.want, found.tally, name)
	}
}

// With a variable that is not set, the servers of a shard would not be scraped.
func TestAnEmptyShardNumberIsAMistake(t *testing.T) {
	t.Parallel()
	const is = "is empty; is the environment variable that it comes from set?"
	for name, tt := range map[string]struct{ rule, key, want string }{
		"no number":        {"{source_labels: [__tmp], regex: , action: keep}", "relabel_configs::1::regex: ", is},
		"an empty text":    {"{source_labels: [__tmp], regex: '', action: Keep}", "relabel_configs::1::regex: ", is},
		"no modulus":       {"{source_labels: [x], modulus: , target_label: y, action: hashmod}", "relabel_configs::1::modulus: ", is},
		"an empty modulus": {"{source_labels: [x], modulus: '', target_label: y, action: hashmod}", "relabel_configs::1", "cannot unmarshal"},
		"another label":    {"{source_labels: [team], regex: '', action: keep}", "", ""},
		"a usual drop":     {"{source_labels: [__tmp], regex: '', action: drop}", "", ""},
		"not a text":       {"{source_labels: [{a: b}], regex: '', action: keep}", "relabel_configs::1", ""},
		"a number":         {"{source_labels: [__tmp], regex: 0, action: keep}", "", ""},
	} {
		_, mistakes := Parse(section(t, "static_configs: [{targets: [a]}]\nrelabel_configs:\n"+
			"- {source_labels: [__address__], modulus: 4, target_label: __tmp, action: hashmod}\n- "+tt.rule))
		if tt.key == "" {
			assert.Empty(t, mistakes, name)
			continue
		}
		require.NotEmpty(t, mistakes, name)
		assert.True(t, strings.HasPrefix(mistakes[0].Error(), tt.key), "%s: %v", name, mistakes[0])
		assert.ErrorContains(t, mistakes[0], tt.want, name)
	}
}
