package content

// The pools that a server belongs to. A pool has the labels that the processor groups by: the
// model by default, the namespace and the cluster where "group_by" says so.
const (
	poolSeverity  = "vllm_pool_diagnosis_severity"
	poolNamespace = poolSeverity + `{k8s_cluster_name=""}`
	poolCluster   = poolSeverity + `{k8s_namespace_name=""}`
	poolModel     = poolSeverity + `{k8s_cluster_name="", k8s_namespace_name=""}`
)

// The worst severity of the engines of a model on a server, and the same of servers in a pool.
const (
	serverSeverity = "vllm_server:severity:max"
	pooledSeverity = "vllm_server:severity_in_pool:max"
)

// severityRecords are what the alerts on servers compare.
func severityRecords() []Record {
	return []Record{
		{
			Name: serverSeverity, Unit: "{level}",
			Meaning: "The worst severity of the engines of a model on a server.",
			Expr:    "max by (" + serverModelLabels + ") (vllm_diagnosis_severity)",
		},
		{
			Name: pooledSeverity, Unit: "{level}",
			Meaning: "The same, of the servers whose model has a pool.",
			Expr: serverSeverity + " and on (" + poolLabels + ") " + poolSeverity +
				" or " + serverSeverity + " and on (k8s_namespace_name, model_name) " + poolNamespace +
				" or " + serverSeverity + " and on (k8s_cluster_name, model_name) " + poolCluster +
				" or " + serverSeverity + " and on (model_name) " + poolModel,
		},
	}
}

func diagnosisGroup(p parameters) Group {
	before := servers("vllm_diagnosis_severity offset 1h")
	return Group{
		Name: "vllm-diagnosis", Set: Stable,
		Records: append(severityRecords(), serversExpected(p)),
		Alerts: []Alert{
			{
				Name: "VLLMPoolNotServing", Severity: Page, For: minute, KeepFiringFor: 5 * minute,
				Expr:    "max by (" + poolLabels + ") (vllm_pool_diagnosis_severity) >= 3",
				Summary: "The pool{{ with $labels.model_name }} of {{ . }}{{ end }} does not serve its users, or far too late",
			},
			{
				Name: "VLLMPoolDegraded", Severity: Ticket, For: 5 * minute, KeepFiringFor: 15 * minute,
				Expr: "max by (" + poolLabels + ") (vllm_pool_diagnosis_severity) >= 2" +
					" unless max by (" + poolLabels + ") (min_over_time(vllm_pool_diagnosis_severity[2m])) >= 3",
				Summary: "The pool{{ with $labels.model_name }} of {{ . }}{{ end }} serves some of its users badly",
			},
			{
				Name: "VLLMServerNotServing", Severity: Page, For: minute, KeepFiringFor: 5 * minute,
				Expr:    serverSeverity + " >= 3 unless " + pooledSeverity,
				Summary: "{{ $labels.instance }} does not serve " + model("its model") + ", or far too late",
			},
			{
				Name: "VLLMReplicaNotServing", Severity: Ticket, For: 2 * minute, KeepFiringFor: 2 * minute,
				Expr:    pooledSeverity + " >= 3",
				Summary: "{{ $labels.instance }}, of a pool, does not serve " + model("its model") + ", or far too late",
			},
			{
				Name: "VLLMServerDegraded", Severity: Ticket, For: 5 * minute, KeepFiringFor: 15 * minute,
				// A severity that alternates between 2 and 3 is not silent.
				Expr:    serverSeverity + " >= 2 unless min_over_time(" + serverSeverity + "[2m]) >= 3",
				Summary: "{{ $labels.instance }} serves " + model("its model") + " badly",
			},
			{
				Name: "VLLMServerVanished", Severity: Ticket, For: 10 * minute,
				Expr: "min by (" + serverLabels + ") (min_over_time(vllm_diagnosis_severity[1h])) < 3" +
					" unless on (" + serverLabels + ") vllm_diagnosis_severity" +
					" unless on (" + serverLabels + ") max_over_time(vllm_diagnosis_condition{condition=\"draining\"}[1h]) == 1" +
					" and on (" + jobLabels + ") (" + before + " > (" + servers("vllm_diagnosis_severity") + " or " + before + " * 0))" +
					" and on (k8s_cluster_name) vllm_up",
				Summary: "{{ $labels.instance }} is not reported any more",
			},
			{
				Name: "VLLMTooFewServers", Severity: Page, For: 10 * minute,
				Expr: "(count(" + byServer("vllm_diagnosis_severity or vllm_num_requests_running") + ") or vector(0))" +
					" < on () max(vllm_config:servers:expected) and on () vllm_up",
				Summary: "Only {{ $value }} of the expected servers are reported",
			},
			{
				Name: "VLLMDiagnosisMissing", Severity: Ticket, For: 15 * minute,
				Expr:    byServer("vllm_num_requests_running") + " unless on (" + serverLabels + ") vllm_diagnosis_severity",
				Summary: "{{ $labels.instance }} is read, but not diagnosed",
			},
		},
	}
}

// servers is the number of servers of each service.
func servers(metric string) string { return "count by (" + jobLabels + ") (" + byServer(metric) + ")" }

// byServer is the highest value of each server.
func byServer(metric string) string { return "max by (" + serverLabels + ") (" + metric + ")" }
