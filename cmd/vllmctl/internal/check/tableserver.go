package check

// serverCodes are about a server, its metrics, and objectives.
var serverCodes = []Code{
	{
		CodeLogStats, Server, Problem, "This is vLLM, but without metrics of an engine.",
		"Remove --disable-log-stats from the server. Under Ray Serve, scrape the Ray agent instead (default port 8080).",
	},
	{
		CodeNotVLLM, Server, Problem, "The body has metrics of neither vLLM nor an inference gateway.",
		"Correct the address. If the server is vLLM, remove --disable-log-stats.",
	},
	{
		CodePrefix, Server, Problem, "The families look like those of vLLM with an unknown prefix.",
		"Add the prefix to prefixes of the receiver.",
	},
	{
		CodeGateway, Server, Info, "The target belongs to an inference gateway: endpoint picker, body-based router, LoRA syncer, Envoy AI Gateway, agentgateway or NVIDIA Dynamo, for example.",
		"Scrape the vLLM servers behind it as well. Its metrics are `inference_gateway.*`, `gen_ai.*`, `agentgateway.*` or `dynamo.*`.",
	},
	{
		CodeRouter, Server, Info, "The target is a router: that of the production stack, which repeats gauges of its servers, or vllm-router.",
		"Scrape the servers as well: the router has no times until the first token. Its metrics are `vllm_router.*`, so nothing counts twice.",
	},
	{
		CodeSimulator, Server, Info, "The target is the inference simulator of llm-d, with simulated latencies.",
		"Nothing, if this is a test. It lacks some metrics of vLLM. Its resource has vllm.server.kind: simulator.",
	},
	{
		CodeAccelerator, Server, Info, "The target is a GPU exporter.",
		"Scrape the vLLM servers as well. Its metrics are `hw.*` and `vllm.accelerator.*`.",
	},
	{
		CodeLMCache, Server, Info, "The target is an LMCache server.",
		"Scrape the vLLM servers as well.",
	},
	{
		CodeNotJudged, Server, Info, "The server has no token latencies, so the condition of its engines stays `unknown`.",
		"Scrape the vLLM servers themselves, and remove --disable-log-stats.",
	},
	{
		CodeVersionNone, Server, Warning, "The server does not report its version, so renamed metrics are ambiguous.",
		"Let requests for /version pass through the proxy in front of the server. Credentials of the target are sent with it.",
	},
	{
		CodeVersionWrong, Server, Warning, "The reported version is older than the server's own metrics.",
		"The version counts as unknown. Build vLLM with the tags of its repository, or with VLLM_VERSION_OVERRIDE or SETUPTOOLS_SCM_PRETEND_VERSION.",
	},
	{
		CodeVersionDev, Server, Info, "The server is a build before a release.",
		"Nothing. It can lack what the release has.",
	},
	{
		CodeVersionOld, Server, Info, "The version lacks metrics that the diagnosis uses.",
		"Update vLLM if you need the missing derived metrics. docs/reference/versions.md has the metrics of each version.",
	},
	{
		CodeUnhealthy, Server, Problem, "/health fails although /metrics works: the engine is dead or hangs.",
		"Look at the log of the server, and restart it.",
	},
	{
		CodeHang, Server, Info, "A hang that starts while the engine is idle may stay hidden.",
		"Set `canary: {interval: 15s, timeout: 15s}` in the receiver: it sends small test requests. Or start the server with --enable-server-load-tracking, if it has /load. Otherwise gauges stay at 0 and /health answers 200 during the hang. Open files show it only with one engine, without a proxy and without reused connections.",
	},
	{
		CodeClock, Server, Warning, "The clock of the server differs from that of this machine.",
		"Synchronise the clocks (NTP). The receiver corrects start times for it, but logs and traces of the server do not fit the metrics.",
	},
	{
		CodeRestarted, Server, Warning, "The server process restarted between the two scrapes.",
		"Find out why: look at its log, and at the restarts of its pod.",
	},
	{
		CodeReplicas, Server, Problem, "Several server processes answer at this address in turn.",
		"List the replicas themselves as targets, or let discovery find their pods. The numbers of one are emitted, and those of the others dropped.",
	},
	{
		CodeFell, Server, Warning, "Counters fell between the scrapes: a restart, or several replicas at this address.",
		"Run the check again. If counters fall each time, list the replicas as targets.",
	},
	{
		CodeNoStart, Server, Info, "The body lacks the start of the server process.",
		"Nothing. The receiver recognises a restart by falling counters. Several API server processes and the Rust front end cause this.",
	},
	{
		CodeDefects, Server, Info, "Metrics of this server have known defects of its vLLM version.",
		"Read docs/what-vllm-gets-wrong.md before you trust the raw metrics. The processor corrects or withholds what it derives from them.",
	},
	{
		CodeSecondFailed, Server, Problem, "The second scrape failed.",
		"Run the check again. A server that answers only sometimes is overloaded, restarts, or has broken replicas.",
	},
	{
		CodePrefill, Server, Info, "The server seems to do prefill only: requests end with their first token.",
		"Nothing. The servers that decode have the latency between tokens.",
	},
	{
		CodeDecode, Server, Info, "The server seems to do decode only: most prompt tokens come from other servers.",
		"Nothing. The servers that prefill have the time for it.",
	},

	{
		CodeMissing, Metrics, Warning, "Families are missing that derived metrics need and this version has.",
		"Compare the body with another server of this version. A proxy, a relabelling agent or a vendor build may remove them.",
	},
	{
		CodeMissingAge, Metrics, Info, "The version of the server does not have these families.",
		"Update vLLM if you need them.",
	},
	{
		CodeMissingFlag, Metrics, Info, "These families need a flag of the server or an unused feature.",
		"Set the flag if you need them.",
	},
	{
		CodeMissingRole, Metrics, Info, "This kind of server does not have these families.",
		"Nothing.",
	},
	{
		CodeMissingIdle, Metrics, Info, "Families have no series before the first request.",
		"Send a request and run the check again.",
	},
	{
		CodeUnknownFamily, Metrics, Info, "The catalogue does not know these families.",
		"Nothing. They are emitted under names derived from theirs. If they are too many, switch them off under metrics.",
	},
	{
		CodeNoTraffic, Metrics, Info, "No counter moved between the two scrapes, so means and percentiles are missing.",
		"Run the check again under traffic, or with a longer `--delay`.",
	},
	{
		CodeDerived, Metrics, Info, "Some derived metrics will not exist.",
		"Read the list with its reasons: `--verbose`.",
	},
	{
		CodeSeriesLimit, Metrics, Problem, "The target exceeds limits::series; further series are dropped.",
		"Raise limits::series and the memory of the collector, or let the server expose fewer series.",
	},
	{
		CodeSeriesNear, Metrics, Warning, "The target has more than 80 % of limits::series.",
		"Raise limits::series before you add models, engines or adapters.",
	},
	{
		CodeAdapters, Metrics, Warning, "The target exceeds limits::adapters; further LoRA adapters are dropped.",
		"Raise limits::adapters.",
	},
	{
		CodeProcessorFull, Metrics, Warning, "All targets together exceed max_series of the processor; some derived values will be missing.",
		"Raise max_series of the processor.",
	},

	{
		CodeObjectiveBound, Objectives, Warning, "The threshold of an objective is not a bucket bound, so its bucket stays undecided.",
		"Use one of the thresholds that the sentence names: they are exact.",
	},
	{
		CodeObjectiveMetric, Objectives, Warning, "The server lacks the histogram of an objective.",
		"Choose another metric for this server, or switch it on under metrics of the receiver.",
	},
	{
		CodeObjectiveModel, Objectives, Warning, "No target has a model that the objective matches.",
		"Write the whole name of the model under models, with * for any characters. Case matters.",
	},
	{
		CodeQuantile, Objectives, Info, "The bucket of a percentile is wide, so the percentile is imprecise.",
		"Compare the mean, or set objectives at bounds, which are exact. New versions of vLLM have --custom-histogram-buckets.",
	},
}
