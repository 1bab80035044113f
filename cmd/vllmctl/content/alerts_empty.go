package content

// discovered is how many targets each receiver keeps, 0 too. It exists only once discovery had an answer, so that it
// tells a namespace without servers from a collector that cannot list them.
const discovered = `otelcol_receiver_vllm_discovered_targets{stage="kept"}`

// withoutServers is about a model of which no server is left. That is seen from what a collector that works does not
// report: one whose own telemetry shows fewer targets than before or, with servers left in the namespace, while no
// collector has just ended. A server without a model was never read: it may be the new one of a rollout.
func withoutServers() Alert {
	const (
		fewer = "max_over_time(" + discovered + "[1h]) > " + discovered
		ended = "last_over_time(" + discovered + "[10m]) unless " + discovered
	)
	return Alert{
		Name: "VLLMModelWithoutServers", Severity: Ticket, For: 2 * minute,
		Expr: "max by (" + poolLabels + ") (max_over_time(vllm_diagnosis_severity{model_name!=\"\"}[1h]))" +
			" unless on (" + poolLabels + ") vllm_diagnosis_severity" +
			" unless on (k8s_cluster_name, k8s_namespace_name) vllm_diagnosis_severity{model_name=\"\"}" +
			" and on (k8s_cluster_name, k8s_namespace_name) (last_over_time(vllm_up[1h]) and on () (" + fewer + ") or vllm_up unless on () (" + ended + "))",
		Summary:     "The model{{ with $labels.model_name }} {{ . }}{{ end }} has no servers any more",
		Description: "It had servers within the last hour. If it was scaled to 0 on purpose, the alert is resolved within an hour; else look at its Deployment, the quota and the scheduling.",
		Meaning:     "A model that had servers within the last hour has none, and a collector that works says so: it has fewer targets than before, or reports other servers of the namespace.",
		Impact:      "Nobody serves the model.",
		Diagnosis: []Step{
			{Text: "Compare with the Deployment: pods that wait for a GPU are Pending, and a quota lets none be made."},
			{Text: "See how many targets the receiver has.", Query: "otelcol_receiver_vllm_targets", Board: "vllm-collector", Panel: "Targets"},
		},
		Mitigation: []string{
			"If it was scaled to 0 on purpose, or renamed, nothing: the alert is resolved within an hour.",
			"Start the missing servers.",
		},
		LooksTheSame: "Another label or namespace of the pods: discovery does not list them any more. A collector that ended while another one found fewer targets.",
		NotConclude:  "Servers that cannot be read still count: they have their own alerts.",
		CannotFire:   "The collector is down, its own telemetry (port 8888) is not scraped and no other server is left, or a server of the namespace was never read.",
		NoMonitor:    "A query cannot find the models of an hour ago.",
		FiresIn:      map[string][]string{"model scaled to 0": nil},
	}
}
