package rulefile_test

import (
	"testing"

	amlabels "github.com/prometheus/alertmanager/pkg/labels"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/rulefile"
)

type inhibitRule struct {
	Source []string `yaml:"source_matchers"`
	Target []string `yaml:"target_matchers"`
	Equal  []string `yaml:"equal"`
}

// muted evaluates the rules as Alertmanager documents it, with Alertmanager's own
// matchers: an alert is muted while one fires that matches the source, if both have the same
// values of the equal labels. A label that is missing is empty, and an alert that matches both
// sides does not mute another that does.
func muted(t *testing.T, target model.LabelSet, firing ...model.LabelSet) bool {
	t.Helper()
	var file struct {
		Rules []inhibitRule `yaml:"inhibit_rules"`
	}
	built, err := rulefile.AlertmanagerFiles()
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(built["content/alertmanager/inhibition.yaml"], &file))
	require.NotEmpty(t, file.Rules)
	matches := func(matchers []string, set model.LabelSet) bool {
		for _, text := range matchers {
			m, err := amlabels.ParseMatcher(text)
			require.NoError(t, err, text)
			if !m.Matches(string(set[model.LabelName(m.Name)])) {
				return false
			}
		}
		return true
	}
	for _, rule := range file.Rules {
		for _, source := range firing {
			same := matches(rule.Target, target) && matches(rule.Source, source) &&
				(!matches(rule.Source, target) || !matches(rule.Target, source))
			for _, name := range rule.Equal {
				same = same && source[model.LabelName(name)] == target[model.LabelName(name)]
			}
			if same {
				return true
			}
		}
	}
	return false
}

func TestAnAlertOfAPoolMutesItsServersAndNoOthers(t *testing.T) {
	server := func(name, ns, of string) model.LabelSet {
		return model.LabelSet{"alertname": model.LabelValue(name), "instance": "a", "job": "vllm", "k8s_namespace_name": model.LabelValue(ns), "model_name": model.LabelValue(of)}
	}
	pool := func(name string, more model.LabelSet) model.LabelSet {
		return model.LabelSet{"alertname": model.LabelValue(name), "model_name": "m"}.Merge(more)
	}
	byModel, blue := pool("VLLMPoolNotServing", nil), pool("VLLMPoolDegraded", model.LabelSet{"k8s_namespace_name": "blue"})
	const target = "VLLMServerDegraded"
	assert.False(t, muted(t, server(target, "blue", "m")), "no pool fires")
	assert.True(t, muted(t, server(target, "blue", "m"), byModel))
	assert.True(t, muted(t, server(target, "", "m"), byModel))
	assert.False(t, muted(t, server(target, "blue", "other"), byModel))
	assert.True(t, muted(t, server(target, "blue", "m"), blue))
	assert.False(t, muted(t, server(target, "red", "m"), blue), "another namespace is another pool")
	assert.False(t, muted(t, server(target, "blue", "other"), blue))
	east := pool("VLLMPoolNotServing", model.LabelSet{"k8s_namespace_name": "blue", "k8s_cluster_name": "east"})
	assert.True(t, muted(t, server(target, "blue", "m").Merge(model.LabelSet{"k8s_cluster_name": "east"}), east))
	assert.False(t, muted(t, server(target, "blue", "m").Merge(model.LabelSet{"k8s_cluster_name": "west"}), east))
	// A pool by model and cluster.
	west := pool("VLLMPoolDegraded", model.LabelSet{"k8s_cluster_name": "west"})
	assert.True(t, muted(t, server("VLLMServerDegraded", "blue", "m").Merge(model.LabelSet{"k8s_cluster_name": "west"}), west))
	assert.False(t, muted(t, server("VLLMServerDegraded", "blue", "m").Merge(model.LabelSet{"k8s_cluster_name": "east"}), west))
	// A server that is in no pool pages whatever a pool does.
	assert.False(t, muted(t, server("VLLMServerNotServing", "blue", "m"), byModel))
	// A pool of which half is lost has one page, with the servers in its text. A degraded one leaves the replica
	// that is lost its alert.
	for _, replica := range []string{"VLLMReplicaNotServing", "VLLMReplicaHarmsUsers"} {
		assert.True(t, muted(t, server(replica, "blue", "m"), byModel))
		assert.False(t, muted(t, server(replica, "blue", "other"), byModel))
		assert.False(t, muted(t, server(replica, "blue", "m"), blue))
		assert.False(t, muted(t, blue, server(replica, "blue", "m")), "nor the pool its servers: the pool names others")
	}
	assert.False(t, muted(t, byModel, server(target, "blue", "m")), "never the other way")
}

func TestTheFasterBurnMutesTheSlowerOfItsObjective(t *testing.T) {
	burn := func(name, objective string) model.LabelSet {
		return model.LabelSet{"alertname": model.LabelValue("VLLMBudgetBurn" + name), "job": "vllm", "model_name": "m", "objective": model.LabelValue(objective)}
	}
	order := []string{"Fast", "Medium", "Slow", "Leak"}
	for i, name := range order {
		for j, other := range order {
			fires := burn(name, "ttft")
			assert.Equal(t, i < j, muted(t, burn(other, "ttft"), fires), "%s mutes %s", name, other)
			for _, label := range []model.LabelName{"objective", "model_name", "job", "k8s_namespace_name", "k8s_cluster_name"} {
				assert.False(t, muted(t, burn(other, "ttft").Merge(model.LabelSet{label: "another"}), fires), "%s, %s: another %s", name, other, label)
			}
		}
	}
}

// The lesser alert stays for a while when things get worse.
func TestTheWorseConditionMutesTheLesserOfTheSame(t *testing.T) {
	on := func(name, instance string) model.LabelSet {
		return model.LabelSet{"alertname": model.LabelValue(name), "job": "vllm", "instance": model.LabelValue(instance), "model_name": "m"}
	}
	assert.True(t, muted(t, on("VLLMReplicaNotServing", "a"), on("VLLMReplicaHarmsUsers", "a")))
	assert.False(t, muted(t, on("VLLMReplicaNotServing", "b"), on("VLLMReplicaHarmsUsers", "a")))
	for _, worse := range []string{"VLLMServerNotServing", "VLLMReplicaNotServing", "VLLMReplicaHarmsUsers", "VLLMGPUSlowsServer"} {
		assert.True(t, muted(t, on("VLLMServerDegraded", "a"), on(worse, "a")))
		assert.False(t, muted(t, on("VLLMServerDegraded", "b"), on(worse, "a")), "another server")
		assert.False(t, muted(t, on(worse, "a"), on("VLLMServerDegraded", "a")))
	}
	of := func(name, of string) model.LabelSet {
		return model.LabelSet{"alertname": model.LabelValue(name), "model_name": model.LabelValue(of)}
	}
	assert.True(t, muted(t, of("VLLMPoolDegraded", "m"), of("VLLMPoolNotServing", "m")))
	assert.False(t, muted(t, of("VLLMPoolDegraded", "other"), of("VLLMPoolNotServing", "m")))
	assert.False(t, muted(t, of("VLLMPoolNotServing", "m"), of("VLLMPoolDegraded", "m")))
	for _, lost := range []string{"VLLMModelDown", "VLLMModelWithoutServers"} {
		assert.True(t, muted(t, of("VLLMServerVanished", "m"), of(lost, "m")))
		assert.False(t, muted(t, of("VLLMServerVanished", "other"), of(lost, "m")))
		assert.True(t, muted(t, of(lost, "m"), model.LabelSet{"alertname": "VLLMCollectorSilent"}))
	}
	for _, page := range []string{"VLLMServerNotServing", "VLLMReplicaHarmsUsers", "VLLMPoolNotServing", "VLLMModelDown"} {
		assert.True(t, muted(t, of("VLLMBudgetBurnFast", "m"), of(page, "m")), page)
		assert.False(t, muted(t, of("VLLMBudgetBurnFast", "other"), of(page, "m")), page)
		assert.False(t, muted(t, of("VLLMBudgetBurnSlow", "m"), of(page, "m")), "a ticket stays")
		assert.False(t, muted(t, of(page, "m"), of("VLLMBudgetBurnFast", "m")), "it names the server")
	}
}

func TestASilentCollectorMutesWhatFollowsFromIt(t *testing.T) {
	silent := model.LabelSet{"alertname": "VLLMCollectorSilent"}
	vanished := model.LabelSet{"alertname": "VLLMServerVanished", "instance": "a", "k8s_cluster_name": "east"}
	assert.True(t, muted(t, vanished, silent))
	assert.True(t, muted(t, vanished, silent.Merge(model.LabelSet{"k8s_cluster_name": "east"})))
	assert.False(t, muted(t, vanished, silent.Merge(model.LabelSet{"k8s_cluster_name": "west"})))
	assert.False(t, muted(t, model.LabelSet{"alertname": "VLLMPoolNotServing", "model_name": "m"}, silent))
}
