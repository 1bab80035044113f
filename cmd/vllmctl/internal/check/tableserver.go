package check

// serverCodes are about a server, its metrics, and objectives.
var serverCodes = []Code{
	{
		CodeLogStats, Server, Problem, "The server answers /version as vLLM does, and has no metrics of an engine.",
		"Remove --disable-log-stats from the server. Under Ray Serve the metrics of the engines are at the Ray agent instead (port 8080 unless configured).",
	},
	{
		CodeNotVLLM, Server, Problem, "The body has neither metrics of vLLM nor those of an inference gateway.",
		"Correct the address. If the server is vLLM, remove --disable-log-stats.",
	},
	{
		CodePrefix, Server, Problem, "The families look like those of vLLM under a prefix that is not known.",
		"Add the prefix to prefixes of the receiver.",
	},
	{
		CodeGateway, Server, Info, "The target is a program of an inference gateway: an endpoint picker, a body-based router or the LoRA syncer.",
		"Nothing. Its metrics are emitted as `inference_gateway.*`. Scrape the vLLM servers behind it as well.",
	},
	{
		CodeRouter, Server, Info, "The target is the router of the production stack. It repeats the gauges of the servers behind it.",
		"Scrape the servers themselves as well: the router has no latencies and no cache metrics of them. What it repeats is emitted as `vllm_router.*`, so nothing is counted twice.",
	},
	{
		CodeSimulator, Server, Info, "The target is the inference simulator of llm-d. Its latencies are simulated, and it lacks some metrics of vLLM.",
		"Nothing, if this is a test. Its resource has vllm.server.kind: simulator.",
	},
	{
		CodeAccelerator, Server, Info, "The target is an exporter of GPUs, which has no metrics of vLLM.",
		"Nothing. Its metrics are emitted as `hw.*` and `vllm.accelerator.*`. Scrape the vLLM servers as well.",
	},
	{
		CodeLMCache, Server, Info, "The target is an LMCache server, which has no metrics of vLLM.",
		"Scrape the vLLM servers as well.",
	},
	{
		CodeNotJudged, Server, Info, "The server has neither latency of tokens, so the condition of its engines stays `unknown`.",
		"Scrape the vLLM servers themselves, and remove --disable-log-stats.",
	},
	{
		CodeVersionNone, Server, Warning, "The server does not report its version, so the meaning of names that changed is not known.",
		"Let requests for /version pass through the proxy in front of the server. Credentials of the target are sent with it.",
	},
	{
		CodeVersionWrong, Server, Warning, "The server reports a version that is older than its own metrics, as builds from a checkout without tags do.",
		"Build vLLM with the tags of its repository, or with VLLM_VERSION_OVERRIDE or SETUPTOOLS_SCM_PRETEND_VERSION. Until then the version counts as unknown.",
	},
	{
		CodeVersionDev, Server, Info, "The server is a build before a release, which can lack what the release has.",
		"Nothing; what is said about its version may be off by one release.",
	},
	{
		CodeVersionOld, Server, Info, "The version of the server lacks metrics that the diagnosis uses.",
		"Update vLLM if you need the derived metrics that are missing; docs/reference/versions.md says what each version has.",
	},
	{
		CodeUnhealthy, Server, Problem, "/health does not answer 200 although the metrics do: the engine is dead or does not answer.",
		"Look at the log of the server, and restart it.",
	},
	{
		CodeHang, Server, Info, "A hang that begins between two requests may stay hidden. vLLM changes its gauges at the end of a step, so they stay at 0 then, and /health and /metrics answer 200. Open files show it where each request has a connection of its own, so not behind a proxy, with clients that keep their connections, or with several engines. /load shows it where the server counts its requests; a 0 does not tell whether it does. A hang with requests in the gauges shows in any case.",
		"Start the server with --enable-server-load-tracking, if it has /load, or set `canary: {interval: 15s, timeout: 15s}` in the receiver: it sends a small request of its own, and needs no traffic.",
	},
	{
		CodeClock, Server, Warning, "The clock of the server differs from that of this machine.",
		"Synchronise the clocks (NTP). The receiver corrects start times for it, but logs and traces of the server do not fit the metrics.",
	},
	{
		CodeRestarted, Server, Warning, "The server process was started again between the two scrapes.",
		"Find out why it restarts: look at its log, and at the restarts of its pod.",
	},
	{
		CodeReplicas, Server, Problem, "Several server processes answer at this address in turn, as behind a load balancer or a Service.",
		"List the replicas themselves as targets, or let discovery find their pods. The numbers of one are emitted, and those of the others dropped.",
	},
	{
		CodeFell, Server, Warning, "Counters are lower in the second scrape, and the body does not say when the process started: it was restarted, or several replicas answer at this address.",
		"Run the check again. If counters fall each time, list the replicas themselves as targets.",
	},
	{
		CodeNoStart, Server, Info, "The body does not name the start of the server process, as with several API server processes or the Rust front end.",
		"Nothing. A restart is then recognised by counters that fall.",
	},
	{
		CodeDefects, Server, Info, "Known defects of this version of vLLM concern metrics that the server sends.",
		"Read what they change, in docs/what-vllm-gets-wrong.md, before you trust the raw metrics. The processor corrects or withholds what it derives from them.",
	},
	{
		CodeSecondFailed, Server, Problem, "The first scrape succeeded and the second one failed.",
		"Run the check again. A server that answers only sometimes is overloaded, restarts, or has several replicas of which some are broken.",
	},
	{
		CodePrefill, Server, Info, "The server looks like one for prefill only: its requests end with their first token.",
		"Nothing. It has no latency between tokens; the servers that decode have it.",
	},
	{
		CodeDecode, Server, Info, "The server looks like one for decode only: most of its prompt tokens come from other servers.",
		"Nothing. The time for prefill is at the servers that its KV comes from.",
	},

	{
		CodeMissing, Metrics, Warning, "Families are missing that a server of this version has, and derived metrics need them.",
		"Compare the body with what another server of this version exposes; a proxy, a relabelling agent or a vendor build may remove them.",
	},
	{
		CodeMissingAge, Metrics, Info, "Families are missing because the server is older than they are, or newer than their last version.",
		"Update vLLM if you need them.",
	},
	{
		CodeMissingFlag, Metrics, Info, "Families are missing that need a flag of the server, or a feature that is not in use.",
		"Set the flag if you need them.",
	},
	{
		CodeMissingRole, Metrics, Info, "Families are missing because this kind of server does not have them.",
		"Nothing.",
	},
	{
		CodeMissingIdle, Metrics, Info, "Families have no series yet: they appear with the first request.",
		"Send a request and run the check again.",
	},
	{
		CodeUnknownFamily, Metrics, Info, "The catalogue does not know these families. They are emitted under names that are derived from theirs.",
		"Nothing. Switch them off under metrics if they are too many.",
	},
	{
		CodeNoTraffic, Metrics, Info, "No request moved a counter between the two scrapes, so means and percentiles could not be shown.",
		"Run the check again under traffic, or with a longer `--delay`.",
	},
	{
		CodeDerived, Metrics, Info, "Some derived metrics will not exist.",
		"Each one has its reason; `--verbose` lists them all.",
	},
	{
		CodeSeriesLimit, Metrics, Problem, "The target has more series than limits::series, and the others are dropped.",
		"Raise limits::series, and the memory of the collector, or let the server expose fewer series.",
	},
	{
		CodeSeriesNear, Metrics, Warning, "The target has more than 80 % of the series that limits::series allows.",
		"Raise limits::series before more models, engines or adapters come.",
	},
	{
		CodeAdapters, Metrics, Warning, "The target has more LoRA adapters than limits::adapters, and the others are dropped.",
		"Raise limits::adapters.",
	},
	{
		CodeProcessorFull, Metrics, Warning, "All targets together have more series than the processor keeps state for (max_series), so some derived values will be missing.",
		"Raise max_series of the processor.",
	},

	{
		CodeObjectiveBound, Objectives, Warning, "The threshold of an objective is no bound of the histogram, so observations in its bucket stay undecided.",
		"Use one of the thresholds that the sentence names: they are exact.",
	},
	{
		CodeObjectiveMetric, Objectives, Warning, "The server does not have the histogram that an objective is about.",
		"Choose another metric for this server, switch it on under metrics of the receiver, or see why it is missing under metrics.",
	},
	{
		CodeObjectiveModel, Objectives, Warning, "No target has a model that the patterns of an objective match, so nothing is measured for it.",
		"Write the whole name of the model under models, with * for any characters. Case matters.",
	},
	{
		CodeQuantile, Objectives, Info, "The bucket of a percentile is wide, so the percentile is known only roughly.",
		"Compare the mean as well, or set objectives at bounds, which are exact. New versions of vLLM have --custom-histogram-buckets.",
	},
}
