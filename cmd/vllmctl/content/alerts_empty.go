package content

// discovered is how many targets each receiver keeps, 0 too. It exists only once discovery had an answer, so that it
// tells a namespace without servers from a collector that cannot list them.
const discovered = `otelcol_receiver_vllm_discovered_targets{stage="kept"}`

// The alerts about a model of which no server is left, and what they need to be sure.
const (
	modelDown     = "VLLMModelDown"
	modelWithout  = "VLLMModelWithoutServers"
	serversKnown  = "vllm_namespace:servers_known:group"
	namespaceOnly = "k8s_cluster_name, k8s_namespace_name"
)

// knownRecord is 1 where a collector that works tells which servers a namespace has, and so which it lost: one whose own
// telemetry shows fewer targets than before, or with servers left in the cluster, both while no collector has ended in
// the hour; or, with servers left in the namespace, while none has ended just now. A server without a model was never read: for ten minutes
// it may be the new one of a rollout.
func knownRecord() Record {
	const (
		fewer     = "max_over_time(" + discovered + "[1h]) > " + discovered
		ended     = " unless on () (last_over_time(" + discovered + "[1h]) unless " + discovered + ")"
		justEnded = " unless on () (last_over_time(" + discovered + "[10m]) unless " + discovered + ")"
	)
	return Record{
		Name: serversKnown, Unit: "1",
		Meaning: "1 where it is known which servers of the last hour a namespace still has.",
		Expr: "group by (" + namespaceOnly + ") (last_over_time(vllm_up[1h]) and on () (" + fewer + ")" + ended +
			" or last_over_time(vllm_up[1h]) and on (k8s_cluster_name) vllm_up and on () " + discovered + ended +
			" or vllm_up" + justEnded + ") unless on (" + namespaceOnly + `) (vllm_diagnosis_severity{model_name=""} < 2` +
			` unless vllm_diagnosis_severity{model_name=""} offset 10m)`,
	}
}

// lost is about the models of lived that have no server any more. What fires stays for a day, as nothing else remembers
// the model: until its servers are read again, and while any collector works.
func lost(alert, lived string) string {
	// The ranges outlast a restart of Prometheus or of the collector.
	return "(" + lived + " and on (" + namespaceOnly + ") " + serversKnown +
		" or max by (" + poolLabels + `) (last_over_time(ALERTS_FOR_STATE{alertname="` + alert + `"}[10m])) > time() - 86400` +
		" and on (" + poolLabels + ") last_over_time(" + firing(alert) + "[10m]) and on () (vllm_up or " + discovered + "))" +
		" unless on (" + poolLabels + ") vllm_diagnosis_severity"
}

// withoutServers are a page where users lose a model, and a ticket where it had no requests.
func withoutServers() []Alert {
	down := Alert{
		Name: modelDown, Severity: Page, For: 2 * minute,
		Expr:        lost(modelDown, "max by ("+poolLabels+") (max_over_time(vllm_arrival_rate_per_second{model_name!=\"\"}[1h])) > 0"),
		Summary:     "The model{{ with $labels.model_name }} {{ . }}{{ end }} has requests but no servers",
		Description: "It had servers and requests within the hour before, now it has no servers. Look at its Deployment, the quota and the scheduling.",
		Meaning:     "A model that had servers and requests within the last hour has no servers, and a collector that works says so: it has fewer targets than before, or reports other servers.",
		Impact:      "No server serves the model: all its requests fail.",
		Diagnosis: []Step{
			{Text: "Compare with the Deployment: pods that wait for a GPU are Pending, and a quota can prevent new pods."},
			{Text: "See how many targets the receiver has.", Query: "otelcol_receiver_vllm_targets", Board: "vllm-collector", Panel: "Targets"},
		},
		Mitigation: []string{
			"Start the missing servers.",
			"If it was scaled to 0 or renamed on purpose, silence the alert: it is resolved after a day.",
		},
		LooksTheSame: "Another label or namespace of the pods: discovery does not list them any more. A collector that ended while another one found fewer targets. An autoscaler that scales to 0 sooner than an hour after the last request, or a canary's requests.",
		NotConclude:  "Servers that cannot be read still count: they have their own alerts.",
		CannotFire:   "It had no requests for an hour (`VLLMModelWithoutServers`), the collector is down, its own telemetry (port 8888) is not scraped and no other server of the namespace is left, or a server of the namespace has been starting for less than ten minutes.",
		NoMonitor:    "A query cannot find the models of an hour ago.",
		FiresIn:      map[string][]string{"model lost": nil},
	}
	without := down
	without.Name, without.Severity = modelWithout, Ticket
	without.Expr = lost(modelWithout, "max by ("+poolLabels+") (max_over_time(vllm_diagnosis_severity{model_name!=\"\"}[1h]))"+
		` unless on (`+poolLabels+`) ALERTS{alertname="`+modelDown+`"}`)
	without.Summary = "The model{{ with $labels.model_name }} {{ . }}{{ end }} has no servers any more"
	without.Description = "It had servers within the hour before, and no requests. If it was not scaled to 0 on purpose, look at its Deployment, the quota and the scheduling."
	without.Meaning = "A model that had servers but no requests within the last hour has no servers, and a collector that works says so: it has fewer targets than before, or reports other servers."
	without.Impact = "None so far. The next request for the model fails, unless something starts a server for it."
	without.LooksTheSame = "Another label or namespace of the pods: discovery does not list them any more. A collector that ended while another one found fewer targets."
	without.CannotFire = "It had requests (`VLLMModelDown`); else as that alert."
	without.FiresIn = map[string][]string{"model scaled to 0": nil}
	return []Alert{down, without}
}
