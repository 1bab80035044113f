package content

import "strings"

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

// firing is 1 for what one of some alerts fires at, as the evaluation before has written.
func firing(alerts ...string) string {
	return `ALERTS{alertname=~"` + strings.Join(alerts, "|") + `",alertstate="firing"}`
}

// lone is the only server of a scenario.
var lone = []string{"vllm-0:8000"}

func diagnosisGroup(p parameters) Group {
	before := servers("vllm_diagnosis_severity offset 1h")
	share, withoutServers := byServerModel("vllm_diagnosis_user_share_ratio"), withoutServers()
	return Group{
		Name: "vllm-diagnosis", Set: Stable,
		Records: append(severityRecords(), serversExpected(p), knownRecord()),
		Alerts: []Alert{
			{
				Name: "VLLMPoolNotServing", Severity: Page, For: minute,
				Expr:        "max by (" + poolLabels + ") (vllm_pool_diagnosis_severity) >= 3",
				Summary:     "The pool{{ with $labels.model_name }} of {{ . }}{{ end }} does not serve its users, or serves them far too late",
				Description: "Half or more of the servers of this pool do not serve their users, or serve them far too late. The worst servers come first.",
				Meaning:     "Half or more of the pool's engines are `critical`, `failing`, `stalled` or `unreachable`. Starting, asleep and draining servers do not count.",
				Impact:      "Most requests for the model fail or wait many times longer than usual. Servers that still serve get all the traffic and become slow.",
				Diagnosis: []Step{
					{Text: "See since when. A change in all servers at one time is a release, a configuration, the network or the model storage.", Query: "vllm_pool_diagnosis_severity", Board: "vllm-overview", Panel: "Condition by pool"},
					{Text: "Compare with the gateway, which sees what users get.", Query: "vllm_gateway:error_ratio:rate5m", Board: "vllm-pool", Panel: "Gateway error ratio"},
					{Text: "See which condition most servers have: its page has the next steps.", Query: conditionNow, Board: "vllm-pool", Panel: "Condition"},
					{Text: "See whether the servers can be read at all, and why not.", Query: "vllm_scrape_failure == 1", Board: "vllm-engine", Panel: "Scrape failures"},
				},
				Mitigation: []string{
					"Undo the newest change of the servers' image, flags or model if it started with it. Loading a model takes minutes.",
					"Restart servers that are `stalled` one at a time, after you have saved what that page asks for.",
					"Send the traffic to another pool, or answer with an error at the gateway.",
				},
				LooksTheSame: "A network policy, a certificate or a token that keeps the collector out: all servers are `unreachable`, but the gateway has no errors.",
				NotConclude:  "Up to half of the servers may be well.",
				CannotFire:   "The processor has no `pool`, its diagnosis is off, or the collector is silent (`VLLMCollectorSilent`).",
				Monitor: &Monitor{
					Query:   "min(last_2m):max:vllm.pool.diagnosis.severity{*} by {model_name} >= 3",
					Text:    "The pool of {{model_name.name}} does not serve its users.",
					Differs: "Pools of one model in several namespaces are one group.",
				},
				FiresIn: map[string][]string{"whole pool down": nil},
			},
			{
				Name: "VLLMPoolDegraded", Severity: Ticket, For: 5 * minute,
				Expr: "max by (" + poolLabels + ") (vllm_pool_diagnosis_severity) >= 2" +
					" unless max by (" + poolLabels + ") (min_over_time(vllm_pool_diagnosis_severity[2m])) >= 3" +
					// Each of these servers has an alert with its name.
					" unless max by (" + poolLabels + `) (vllm_pool_diagnosis_cause{cause="servers_lost", role="primary"}) == 1`,
				Summary:     "The pool{{ with $labels.model_name }} of {{ . }}{{ end }} serves some of its users badly",
				Description: "A part of the requests of this pool fails or waits too long.",
				Meaning:     "A fifth of the pool's requests is on engines that harm them, or requests wait at the gateway while servers have room.",
				Impact:      "Some users wait longer than usual or get errors, depending on the server that they are routed to.",
				Diagnosis: []Step{
					{Text: "Read the causes of the pool; the page of the primary one has the next steps.", Query: "vllm_pool_diagnosis_cause == 1", Board: "vllm-pool", Panel: "Causes"},
					{Text: "See which servers are not healthy.", Query: "vllm_diagnosis_severity >= 2", Board: "vllm-overview", Panel: "Condition by engine"},
					{Text: "See whether one server gets more work than the others.", Query: "vllm_pool_imbalance_max_ratio", Board: "vllm-pool", Panel: "Imbalance: busiest server over the mean"},
				},
				Mitigation: []string{
					"Follow the page of the primary cause.",
					"Without a cause: take a server that is worse than the others out of rotation, and follow the page of its condition.",
					"If none is worse, add servers. That helps against `demand_exceeds_capacity`, not against `slow_steps` or `kv_pressure` of one server.",
				},
				LooksTheSame: "A pool with one lost server of many has the cause `servers_lost`: the alert of that server says more.",
				NotConclude:  "Not all servers are slow: one busy server can have a fifth of the requests.",
				CannotFire:   "As `VLLMPoolNotServing`. It is silent while the primary cause is `servers_lost`, and after severity 3 for two minutes.",
				Monitor: &Monitor{
					Query: "min(last_5m):max:vllm.pool.diagnosis.severity{*} by {model_name} == 2",
					Text:  "The pool of {{model_name.name}} serves some of its users badly.",
				},
				FiresIn: map[string][]string{
					"engine-imbalance": nil, "gateway holds requests back": nil, "lockstep": nil,
					"one of three replicas slow": nil, "replica-imbalance": nil,
				},
			},
			{
				Name: "VLLMServerNotServing", Severity: Page, For: minute,
				// One incident is one page: it stays for five minutes while users are still harmed, though less, or a
				// scrape fails. What lasts is a ticket.
				Expr: "(" + serverSeverity + " >= 3 or last_over_time(" + serverSeverity + "[2m]) >= 2 and max_over_time(" + serverSeverity + "[5m]) >= 3" +
					" and on (" + serverModelLabels + ") " + firing("VLLMServerNotServing") + ") unless " + pooledSeverity,
				Summary:     "{{ $labels.instance }} does not serve " + model("its model") + ", or serves it far too late",
				Description: "Its users get no answer or errors, or wait many times longer than usual.",
				Meaning:     "An engine of the server is `critical`, `failing`, `stalled` or `unreachable`, and no pool has its model.",
				Impact:      "Requests to this server fail, wait many times longer than usual, or get no answer.",
				Diagnosis: []Step{
					{Text: "Send one request of your own. No answer proves an outage. A quick answer proves little while others wait: compare it with their wait for the first token.", Query: "vllm_time_to_first_token_quantile_seconds"},
					{Text: "See which condition it is; its page has the next steps.", Query: conditionNow, Board: "vllm-engine", Panel: "Condition"},
					{Text: "If it is unreachable, see whether its pod runs, what changed, and why the scrape fails.", Query: "vllm_scrape_failure == 1", Board: "vllm-engine", Panel: "Scrape failures"},
					{Text: "Read the end of the server's log and of the process before."},
				},
				Mitigation: []string{
					"Follow the page of the condition. If only the scrape fails and users are served, repair the scrape.",
					"If it is `stalled`, save what its page asks for within five minutes, then restart it. Loading the model takes minutes.",
					"If the process ends again and again, [the reason is in its log](README.md#why-a-process-ended). If that started with a release, roll it back.",
					"Route the users to another server.",
				},
				LooksTheSame: "A busy API server whose scrape times out while requests succeed: the condition is `unreachable`, the outcome timeout.",
				NotConclude:  "An `unreachable` engine is not always dead: only its metrics cannot be read.",
				CannotFire:   "A pool has the model: then see `VLLMReplicaHarmsUsers` or `VLLMReplicaNotServing`. A server that discovery removed: see `VLLMServerVanished`. A pool without the cluster in `group_by` silences servers of the same model in all clusters: add `k8s.cluster.name`.",
				Monitor: &Monitor{
					Query:   "min(last_2m):max:vllm.diagnosis.severity{*} by {service.instance.id,model_name} >= 3",
					Text:    "{{[service.instance.id].name}} does not serve {{model_name.name}}.",
					Differs: "It pages for servers of a pool, too: with pools, do not send it to a pager.",
				},
				FiresIn: map[string][]string{
					"admission-deferred": lone, "overload": lone,
					"cold-cache": lone, "erroring": lone, "lone server down": {"chat-a-0:8000"}, "restart": lone,
					"retry-storm": lone, "stalled": lone, "unreachable": lone,
				},
			},
			{
				Name: "VLLMReplicaHarmsUsers", Severity: Page, For: minute,
				// A share around the limit is one page, too. Where the harm is less, the share is 0.
				Expr: share + " >= " + p.number("replicaShare") + " and " + pooledSeverity + " >= 3" +
					" or (" + share + " >= 0.5 * " + p.number("replicaShare") + " and " + pooledSeverity + " >= 3 or " + share + " and " + pooledSeverity + " == 2 and max_over_time(" + pooledSeverity + "[5m]) >= 3)" +
					" and on (" + serverModelLabels + ") " + firing("VLLMReplicaHarmsUsers"),
				Summary:     "{{ $labels.instance }} in a pool does not serve " + model("its model") + ", or serves it far too late{{ if $value }}: the router still sends {{ $value | humanizePercentage }} of the pool's users to it{{ end }}",
				Description: "Users who are routed to it get no answer or errors, or wait many times longer than usual.",
				Meaning:     "An engine of the server is `critical`, `failing` or `stalled`, and has 5 % or more of the requests of its pool.",
				Impact:      "Users whose requests are routed to the server wait in vain or get errors, although the rest of the pool is well.",
				Diagnosis: []Step{
					{Text: "See whether the others have room, and take it out of rotation: they serve its users.", Query: "vllm_pool_request_queue_wait_estimate_seconds", Board: "vllm-pool", Panel: "Estimated queue wait"},
					{Text: "See which condition it is; its page has the next steps.", Query: conditionNow, Board: "vllm-engine", Panel: "Condition"},
					{Text: "See what is still sent to it.", Query: "vllm_diagnosis_user_share_ratio > 0"},
				},
				Mitigation: []string{
					"Take the server out of rotation. The alert is resolved within two minutes of its last request; if the server stays as it is, `VLLMReplicaNotServing` follows.",
					"If it is `stalled`, save what its page asks for before you restart it. If it is `critical` because the router sends it more than the others, correct the routing.",
				},
				LooksTheSame: "Clients that know the address of the server and do not use the router.",
				NotConclude:  "Its health check may succeed: a server that hangs can still answer it.",
				CannotFire:   "No pool has the model: then `VLLMServerNotServing` pages. What is sent to an `unreachable` server is not known: `VLLMReplicaNotServing`. A hang needs gauges, `/load` or open files that show requests.",
				NoMonitor:    "Datadog cannot join a server with its pool.",
				FiresIn: map[string][]string{
					"one of three replicas hangs": {"chat-b-0:8000"}, "one of four replicas fails": {"chat-b-0:8000"},
					"engine-imbalance": lone, "replica-imbalance": lone,
				},
			},
			{
				Name: "VLLMReplicaNotServing", Severity: Ticket, For: 2 * minute,
				Expr:        pooledSeverity + " >= 3 unless on (" + serverModelLabels + ") " + firing("VLLMReplicaHarmsUsers"),
				Summary:     "{{ $labels.instance }} in a pool does not serve " + model("its model") + ", or serves it far too late",
				Description: "One server of a pool does not serve. As far as is known, it gets few or no users. The pool has less capacity.",
				Meaning:     "An engine of the server is `critical`, `failing`, `stalled` or `unreachable`, and has less than 5 % of the users of its pool.",
				Impact:      "The pool has less capacity. Requests that are still routed to the server fail or wait.",
				Diagnosis: []Step{
					{Text: "See whether the others have room.", Query: "vllm_pool_request_queue_wait_estimate_seconds", Board: "vllm-pool", Panel: "Estimated queue wait"},
					{Text: "See which condition it is; its page has the next steps.", Query: conditionNow, Board: "vllm-engine", Panel: "Condition"},
					{Text: "If it is unreachable, see why the scrape fails, and at the gateway whether requests to it fail.", Query: "vllm_scrape_failure == 1", Board: "vllm-engine", Panel: "Scrape failures"},
				},
				Mitigation: []string{
					"Take the server out of rotation. If it is `stalled`, save what its page asks for: a restart destroys it.",
					"Restart the server, or delete its pod. Loading the model takes minutes.",
					"If it ends again on the same node, keep it away from the node until the GPU was tested.",
				},
				LooksTheSame: "A server that was stopped on purpose without a deletion of its pod. A deleted pod is `draining` and has no alert.",
				NotConclude:  "Users may not notice: otherwise `VLLMReplicaHarmsUsers` or the alerts of the pool or the objectives page.",
				CannotFire:   "No pool has the model: then `VLLMServerNotServing` pages. With more users at it, `VLLMReplicaHarmsUsers` pages.",
				NoMonitor:    "Datadog cannot join a server with its pool.",
				FiresIn: map[string][]string{
					"a hung replica out of rotation": {"chat-b-0:8000"}, "one of three replicas down": {"chat-b-0:8000"},
					"whole pool down": {"chat-a-0:8000", "chat-b-0:8000", "chat-c-0:8000"},
				},
			},
			{
				Name: "VLLMServerDegraded", Severity: Ticket, For: 5 * minute,
				Expr:        serverSeverity + " >= 2 unless on (" + serverModelLabels + ") " + firing("VLLMServerNotServing", "VLLMReplicaHarmsUsers", "VLLMReplicaNotServing"),
				Summary:     "{{ $labels.instance }} serves " + model("its model") + " badly",
				Description: "Users of this server wait longer than usual or get errors, or it is unknown whether it has stalled.",
				Meaning:     "An engine of the server has severity 2. It misses an objective, is slower itself, has too little KV cache, fails or drops requests, or lets users wait five times longer than usual; or it is `unknown` whether it has stalled.",
				Impact:      "Users of this server wait longer than they should for their first token, or between tokens.",
				Diagnosis: []Step{
					{Text: "Compare with the other servers of the model: one slow server is hardware or routing, all of them are load or software.", Query: "vllm_diagnosis_severity", Board: "vllm-overview", Panel: "Condition by engine"},
					{Text: "Read the primary cause; its page has the next steps. Without a series the cause is not known, or the condition is `unknown`: then send one request of your own. Without an answer, the engine has stalled.", Query: `vllm_diagnosis_cause{role="primary"} == 1`, Board: "vllm-engine", Panel: "Causes"},
					{Text: "See how long the first token takes.", Query: `vllm_time_to_first_token_quantile_seconds{quantile="0.95"}`, Board: "vllm-engine", Panel: "Time to first token, p95"},
					{Text: "See how long a step takes.", Query: `vllm_inter_token_latency_quantile_seconds{quantile="0.95"}`, Board: "vllm-engine", Panel: "Inter-token latency, p95"},
				},
				Mitigation:   []string{"Follow the page of the primary cause: what helps against one cause harms with another."},
				LooksTheSame: "Slow software, a throttled GPU and a busy host look the same: `slow_steps`. A change of the requests is the notice `workload_shift`.",
				NotConclude:  "More servers help if requests wait. They do not if each step is slow.",
				CannotFire:   "What users ask for is the only cause, and they wait less than five times the usual. A latency that grows slowly becomes the baseline: set objectives. A server that restarts every four minutes and is back within one has no alert.",
				Monitor: &Monitor{
					Query: "min(last_5m):max:vllm.diagnosis.severity{*} by {service.instance.id,model_name} == 2",
					Text:  "{{[service.instance.id].name}} serves {{model_name.name}} badly.",
				},
				FiresIn: map[string][]string{
					"bandwidth-loss": lone, "closed-loop": lone,
					"fewer-kv-blocks": lone, "front-end-starved": lone, "gpu-amd": lone,
					"gpu-clean": lone, "gpu-clocks-low": lone, "gpu-exporter-restarts": lone, "gpu-hot": lone,
					"gpu-link-errors": lone, "gpu-memory-errors": lone, "gpu-no-counters": lone, "gpu-partition": lone,
					"gpu-power-cap": lone, "gpu-shared": lone, "gpu-throttled-before": lone, "kv-transfer-failing": lone,
					"lockstep": lone, "longer-outputs": lone,
					"one of three replicas slow": {"chat-b-0:8000"},
					"slow-steps":                 lone, "speculation-useless": lone, "two-causes": lone,
				},
			},
			withoutServers[0],
			withoutServers[1],
			{
				Name: "VLLMServerVanished", Severity: Ticket, For: 10 * minute,
				Expr: "min by (" + serverModelLabels + ") (min_over_time(vllm_diagnosis_severity{model_name!=\"\"}[1h])) < 3" +
					" unless on (" + serverLabels + ") vllm_diagnosis_severity" +
					" unless on (" + serverLabels + ") max_over_time(vllm_diagnosis_condition{condition=\"draining\"}[1h]) == 1" +
					" and on (" + jobLabels + ") (" + before + " > (" + servers("vllm_diagnosis_severity") + " or " + before + " * 0))" +
					" and on (k8s_cluster_name) vllm_up",
				Summary:     "{{ $labels.instance }} is not reported any more",
				Description: "It served within the last hour, now no collector reports it, and its service ({{ $labels.job }}) has fewer servers than an hour ago.",
				Meaning:     "A server that served within the last hour has no series any more. It was not draining, and its service has fewer servers than an hour ago.",
				Impact:      "The capacity is smaller. No other alert reports a server that discovery does not list.",
				Diagnosis: []Step{
					{Text: "See how many servers each service has.", Query: "count by (k8s_cluster_name, k8s_namespace_name, job) (vllm_up)", Board: "vllm-overview", Panel: "Servers up"},
					{Text: "See whether the pod exists, and which event ended it. A pod without IP or with another label is not a target, nor is any without the permission to list pods."},
					{Text: "See whether the receiver has fewer targets, or more than its limit.", Query: "otelcol_receiver_vllm_targets", Board: "vllm-collector", Panel: "Targets"},
				},
				Mitigation: []string{
					"If the server was removed on purpose, nothing: the alert is resolved an hour after it left.",
					"Correct the discovery: labels, namespace, port, the permission to list pods.",
					"Start the missing servers.",
				},
				LooksTheSame: "A scale-down that the collector did not see. A lost collector of several: its servers vanish together.",
				NotConclude:  "The process may run: series also disappear if discovery loses the server.",
				CannotFire:   "Nothing is left in the cluster (`VLLMModelWithoutServers`), another server of the service came in the same hour, or the collector saw the deletion. It is resolved after an hour: `vllm_config:servers:expected` gives an alert that stays.",
				NoMonitor:    "A query cannot compare the servers with those of an hour ago. Use VLLMTooFewServers.",
				FiresIn: map[string][]string{
					"server lost with its collector": {"chat-b-0:8000"}, "server removed": {"chat-b-0:8000"},
				},
			},
			{
				Name: "VLLMTooFewServers", Severity: Page, For: 10 * minute,
				Expr: "(count(" + byServer("vllm_diagnosis_severity or vllm_num_requests_running") + ") or vector(0))" +
					" < on () max(vllm_config:servers:expected) and on () vllm_up",
				Summary:     "Only {{ $value }} of the expected servers are reported",
				Description: "The number of servers that are reported is below vllm_config:servers:expected.",
				Meaning:     "Fewer servers are reported than `vllm_config:servers:expected` says. Its default is 1. A server that is down counts as reported.",
				Impact:      "The capacity is smaller than planned; with no server at all, nothing is served.",
				Diagnosis: []Step{
					{Text: "See which servers are reported.", Query: "count by (k8s_cluster_name, k8s_namespace_name, job) (vllm_up)", Board: "vllm-overview", Panel: "Servers up"},
					{Text: "See how many targets the receiver has.", Query: "otelcol_receiver_vllm_targets", Board: "vllm-collector", Panel: "Targets"},
					{Text: "Compare with the Deployment: pods that wait for a GPU are Pending. Without the permission to list pods the collector knows none."},
				},
				Mitigation: []string{
					"Start the missing servers, or correct the discovery.",
					"If the number was changed on purpose, change the rule, or `serversExpected` of the mixin.",
				},
				LooksTheSame: "Discovery without permission to list pods: the servers run, and the collector does not know them.",
				NotConclude:  "Servers that are down are counted: they have their own alerts.",
				CannotFire:   "Nothing at all is reported (`VLLMCollectorSilent`, `VLLMModelWithoutServers`), or the number in the rule was never set to yours.",
				Monitor: &Monitor{
					FiresWithoutData: true,
					Parameter:        "serversExpected",
					Query:            "max(last_10m):count_not_null(max:vllm.diagnosis.severity{*} by {service.instance.id}) < PARAMETER",
					Text:             "{{value}} servers are reported, fewer than there should be.",
					Differs:          "Set the number in the query and in the threshold. It counts servers with a diagnosis.",
				},
				ShownBy: "TestFewerServersThanExpectedPage",
			},
			{
				Name: "VLLMDiagnosisMissing", Severity: Ticket, For: 15 * minute,
				Expr:        byServer("vllm_num_requests_running") + " unless on (" + serverLabels + ") vllm_diagnosis_severity",
				Summary:     "{{ $labels.instance }} is scraped, but has no diagnosis",
				Description: "Metrics of this server arrive, but the processor does not diagnose it.",
				Meaning:     "A server reports its running requests, but has no severity.",
				Impact:      "No alert of the diagnosis can fire for this server.",
				Diagnosis: []Step{
					{Text: "See in the configuration of the collector whether the processor is in the pipeline that reads this server, and whether `diagnosis::enabled` is false."},
					{Text: "See how many servers the processor holds, and whether it drops points.", Query: "otelcol_processor_vllm_resources", Board: "vllm-collector", Panel: "Series in memory"},
					{Text: "Read the log of the collector: the processor says once which metrics are missing."},
				},
				Mitigation: []string{
					"Put the processor `vllm` into the pipeline, before any batch processor.",
					"Raise `max_series` if the processor had to leave out servers.",
				},
				LooksTheSame: "Two pipelines of which only one has the processor.",
				NotConclude:  "The server may be harmed although it has no other alert.",
				CannotFire:   "With `naming: wire` this rule does not see the server's names.",
				NoMonitor:    "A query cannot leave out the servers of another one.",
				FiresIn:      map[string][]string{"processor missing": {"chat-a-0:8000"}},
			},
		},
	}
}

// servers is the number of servers of each service.
func servers(metric string) string { return "count by (" + jobLabels + ") (" + byServer(metric) + ")" }

// byServer is the highest value of each server.
func byServer(metric string) string { return "max by (" + serverLabels + ") (" + metric + ")" }

// byServerModel is the highest value of each model on a server.
func byServerModel(metric string) string {
	return "max by (" + serverModelLabels + ") (" + metric + ")"
}

const conditionNow = "vllm_diagnosis_condition == 1"
