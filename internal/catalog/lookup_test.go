package catalog

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestByNameFindsEveryMetricAndNothingElse(t *testing.T) {
	for i := range All() {
		m, found := ByName(All()[i].Name)
		require.True(t, found, All()[i].Name)
		assert.Same(t, &All()[i], m)
	}
	for _, name := range []string{"", "vllm", "vllm:prompt_tokens_total", "vllm.prompt_token", "zz"} {
		_, found := ByName(name)
		assert.False(t, found, name)
	}
}

func TestBySource(t *testing.T) {
	type match struct {
		metric string
		rank   int
	}
	for name, tc := range map[string]struct {
		family string
		want   []match
	}{
		"a family that was never renamed": {"vllm:prompt_tokens_total", []match{{"vllm.prompt_tokens", 0}}},
		"the old name of a gauge":         {"vllm:gpu_cache_usage_perc", []match{{"vllm.kv_cache.utilization", 0}}},
		"the new name of a gauge":         {"vllm:kv_cache_usage_perc", []match{{"vllm.kv_cache.utilization", 1}}},
		"a histogram called total":        {"vllm:iteration_tokens_total", []match{{"vllm.iteration_tokens", 0}}},
		"a family that changed its meaning": {"vllm:gpu_prefix_cache_hits_total", []match{
			{"vllm.gpu_prefix_cache.hits", 0}, {"vllm.prefix_cache.hits", 0},
		}},
		"an info family": {"vllm:lora_requests_info", []match{
			{"vllm.lora.adapter.running", 0}, {"vllm.lora.adapter.waiting", 0}, {"vllm.lora.max_adapters", 0},
		}},
		"a flat family":           {"http_requests_total", []match{{"http_requests", 0}}},
		"LMCache's":               {"lmcache:num_hit_tokens_total", []match{{"lmcache.num_hit_tokens", 0}}},
		"a counter without total": {"vllm:prompt_tokens", nil},
		"another server's":        {"sglang:num_running_reqs", nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []match
			for _, m := range BySource(tc.family) {
				got = append(got, match{m.Metric.Name, m.Rank})
				assert.Equal(t, tc.family, m.Source.Family)
				assert.Same(t, &m.Metric.Sources[m.Rank], m.Source)
			}
			assert.Equal(t, tc.want, got)
		})
	}
}

func TestLookupsDoNotAllocate(t *testing.T) {
	BySource("") // Builds the index.
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		if len(BySource("vllm:lora_requests_info")) != 3 {
			t.Error("lost a match")
		}
		if _, found := ByName("vllm.kv_cache.utilization"); !found {
			t.Error("lost a metric")
		}
	}))
}

// A family with two meanings has them in version ranges that do not overlap, and at most
// one of them counts if the version is unknown.
func TestVersionsDecideBetweenMeanings(t *testing.T) {
	twofold := 0
	for i := range All() {
		for _, s := range All()[i].Sources {
			if s.Since != "" && s.Until != "" {
				assert.Negative(t, compareVersions(t, s.Since, s.Until), "%s: %s", All()[i].Name, s.Family)
			}
			matches := BySource(s.Family)
			if s.Label != "" || len(matches) == 1 {
				assert.False(t, s.Version, "%s: %s has one meaning only", All()[i].Name, s.Family)
				continue
			}
			twofold++
			require.Len(t, matches, 2)
			require.True(t, matches[0].Source.Version && matches[1].Source.Version, s.Family)
			assert.Equal(t, matches[0].Source.Until, matches[1].Source.Since, s.Family)
			assert.NotEqual(t, matches[0].Source.Fallback, matches[1].Source.Fallback, s.Family)
		}
	}
	assert.Equal(t, 4, twofold, "gpu_prefix_cache_queries and _hits, each from both sides")
}

func compareVersions(t *testing.T, a, b string) int {
	t.Helper()
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	require.Len(t, as, 3)
	require.Len(t, bs, 3)
	for i := range as {
		x, err := strconv.Atoi(as[i])
		require.NoError(t, err)
		y, err := strconv.Atoi(bs[i])
		require.NoError(t, err)
		if x != y {
			return x - y
		}
	}
	return 0
}

func TestInfoFamiliesBecomeMetricsThatNameThem(t *testing.T) {
	for _, f := range InfoFamilies {
		labels := map[string]string{}
		for _, n := range f.Numbers {
			labels[n.Label] = n.Metric
		}
		for _, l := range f.Lists {
			labels[l.Label] = l.Metric
			m, found := ByName(l.Metric)
			require.True(t, found, l.Metric)
			assert.Contains(t, m.Attributes, l.Attribute)
		}
		for _, m := range BySource(f.Family) {
			assert.Equal(t, m.Metric.Name, labels[m.Source.Label])
			delete(labels, m.Source.Label)
		}
		assert.Empty(t, labels, "labels of %s that lead nowhere", f.Family)
	}
}
