package rulefile

// inhibitRule is a rule of Alertmanager: while an alert of the source fires, those of the target
// with the same labels are muted.
type inhibitRule struct {
	Source []string `yaml:"source_matchers,flow"`
	Target []string `yaml:"target_matchers,flow"`
	Equal  []string `yaml:"equal,flow,omitempty"`
}

// AlertmanagerFiles returns an example of Alertmanager's configuration.
func AlertmanagerFiles() (map[string][]byte, error) {
	data, err := document(struct {
		Rules []inhibitRule `yaml:"inhibit_rules"`
	}{inhibitRules()})
	return map[string][]byte{"content/alertmanager/inhibition.yaml": data}, err
}

func inhibitRules() []inhibitRule {
	const unknown = `alertname=~"VLLM(ServerVanished|ModelDown|ModelWithoutServers|TooFewServers|DiagnosisMissing)"`
	var rules []inhibitRule
	// A pool over its servers: its text names them. One that is only degraded is not over a replica that does not
	// serve, whose alert says more. Which labels a pool has depends on the processor's group_by, so there
	// is one rule for each: with equal labels only, a pool without a namespace would
	// mute no server that has one.
	for _, pool := range []struct{ source, equal []string }{
		{[]string{`k8s_namespace_name=""`, `k8s_cluster_name=""`}, []string{"model_name"}},
		{[]string{`k8s_namespace_name!=""`, `k8s_cluster_name=""`}, []string{"k8s_namespace_name", "model_name"}},
		{[]string{`k8s_namespace_name=""`, `k8s_cluster_name!=""`}, []string{"k8s_cluster_name", "model_name"}},
		{[]string{`k8s_namespace_name!=""`, `k8s_cluster_name!=""`}, []string{"k8s_cluster_name", "k8s_namespace_name", "model_name"}},
	} {
		rules = append(rules, inhibitRule{
			Source: append([]string{`alertname=~"VLLMPoolNotServing|VLLMPoolDegraded"`}, pool.source...),
			Target: []string{`alertname="VLLMServerDegraded"`}, Equal: pool.equal,
		}, inhibitRule{
			Source: append([]string{`alertname="VLLMPoolNotServing"`}, pool.source...),
			Target: []string{`alertname=~"VLLMReplica(NotServing|HarmsUsers)"`}, Equal: pool.equal,
		})
	}
	poolLabels := []string{"k8s_cluster_name", "k8s_namespace_name", "model_name"}
	server := []string{"k8s_cluster_name", "k8s_namespace_name", "k8s_pod_name", "job", "instance", "model_name"}
	objective := []string{"k8s_cluster_name", "k8s_namespace_name", "job", "model_name", "objective"}
	return append(rules,
		// The lesser alert stays a while when things get worse, and that on a GPU says more.
		inhibitRule{[]string{`alertname="VLLMPoolNotServing"`}, []string{`alertname="VLLMPoolDegraded"`}, poolLabels},
		inhibitRule{[]string{`alertname=~"VLLMServerNotServing|VLLMReplica(NotServing|HarmsUsers)|VLLMGPUSlowsServer"`}, []string{`alertname="VLLMServerDegraded"`}, server},
		inhibitRule{[]string{`alertname="VLLMReplicaHarmsUsers"`}, []string{`alertname="VLLMReplicaNotServing"`}, server},
		inhibitRule{[]string{`alertname=~"VLLMModel(Down|WithoutServers)"`}, []string{`alertname="VLLMServerVanished"`}, poolLabels},
		// A page that says what is wrong over one that says that an objective is missed. When it ends, the other is heard.
		inhibitRule{[]string{`alertname=~"VLLMServerNotServing|VLLMReplicaHarmsUsers|VLLMPoolNotServing|VLLMModelDown"`}, []string{`alertname=~"VLLMBudgetBurn(Fast|Medium)"`}, poolLabels},
		// The faster burn over the slower ones.
		inhibitRule{[]string{`alertname="VLLMBudgetBurnFast"`}, []string{`alertname=~"VLLMBudgetBurn(Medium|Slow|Leak)"`}, objective},
		inhibitRule{[]string{`alertname="VLLMBudgetBurnMedium"`}, []string{`alertname=~"VLLMBudgetBurn(Slow|Leak)"`}, objective},
		inhibitRule{[]string{`alertname="VLLMBudgetBurnSlow"`}, []string{`alertname="VLLMBudgetBurnLeak"`}, objective},
		// Without a collector nothing is known about servers.
		inhibitRule{[]string{`alertname="VLLMCollectorSilent"`, `k8s_cluster_name=""`}, []string{unknown}, nil},
		inhibitRule{[]string{`alertname="VLLMCollectorSilent"`, `k8s_cluster_name!=""`}, []string{unknown}, []string{"k8s_cluster_name"}},
	)
}
