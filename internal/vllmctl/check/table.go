package check

// codes has what each code means and what to do. It is also the documentation.
var codes = []Code{
	{
		CodeDNS, Connection, Problem, "The host name of the target does not resolve.",
		"Check the spelling, and whether the name resolves where the collector runs: inside a cluster a Service has another name than outside.",
	},
	{
		CodeSeveralAddresses, Connection, Warning, "The host name resolves to several addresses, so each scrape can reach another server.",
		"List each server as a target of its own, or let discovery find them: the counters of several servers cannot be read as those of one.",
	},
	{
		CodeRefused, Connection, Problem, "Nothing listens at the address.",
		"Start the server, wait until it has loaded the model, or correct the port: vLLM listens on 8000 unless --port says otherwise. A server that listens on 127.0.0.1 only cannot be reached from another machine.",
	},
	{
		CodeReset, Connection, Problem, "The connection was closed before the whole answer had arrived.",
		"Look at the log of the server and of each proxy in between: one of them ends connections, or an answer is longer than it allows.",
	},
	{
		CodeTimeout, Connection, Problem, "The server did not answer within the timeout.",
		"Check that a firewall or a network policy does not drop the connection. If the server is overloaded, raise timeout (`--timeout` here) up to the collection interval.",
	},
	{
		CodeSlow, Connection, Warning, "The answer took more than half of the timeout, so a busier server can miss it.",
		"Find what is slow: the network, a proxy, or the API server process, which also answers requests. Raise timeout up to the collection interval.",
	},
	{
		CodeRequestFailed, Connection, Problem, "The request failed in a way that has no code of its own.",
		"Read the sentence, and try the address with curl from the machine where the collector runs.",
	},
	{
		CodeTLSAuthority, Connection, Problem, "The certificate of the server is signed by an authority that is not trusted here.",
		"Set tls::ca_file (`--ca-file` here) to the certificate of that authority.",
	},
	{
		CodeTLSExpired, Connection, Problem, "The certificate of the server, or of one of its authorities, has expired.",
		"Renew it, and restart the server if it does not read the new one by itself.",
	},
	{
		CodeTLSNotYet, Connection, Problem, "The certificate of the server, or of one of its authorities, is not valid yet.",
		"Check the clocks of this machine and of the authority that issued it.",
	},
	{
		CodeTLSHost, Connection, Problem, "The certificate of the server is for another host.",
		"Write a name of the certificate in the address, or set tls::server_name_override (`--server-name` here) to it.",
	},
	{
		CodeTLSPlain, Connection, Problem, "The address begins with https, and the server speaks plain HTTP.",
		"Write http:// in the address, or give the server a certificate (--ssl-certfile and --ssl-keyfile of vLLM).",
	},
	{
		CodeTLSNeeded, Connection, Problem, "The address begins with http, and the server speaks TLS.",
		"Write https:// in the address.",
	},
	{
		CodeTLSClient, Connection, Problem, "The server ended the TLS handshake, as one does that wants a client certificate.",
		"Set tls::cert_file and tls::key_file (`--cert-file` and `--key-file` here).",
	},
	{
		CodeTLSFailed, Connection, Problem, "The TLS handshake failed in a way that has no code of its own.",
		"Read the sentence, and compare with `openssl s_client -connect HOST:PORT`.",
	},
	{
		CodeTLSSoon, Connection, Warning, "The certificate of the server ends within 14 days.",
		"Renew it. After its end every scrape fails.",
	},
	{
		CodeTLSUnverified, Connection, Warning, "The certificate of the server is not verified, so another machine can answer and read the credentials.",
		"Remove insecure_skip_verify, and set tls::ca_file to the authority of the server.",
	},
	{
		CodePlainCredentials, Connection, Warning, "Credentials go to this target over plain HTTP, where anyone on the network path can read and use them.",
		"Write https in the address, or use a sidecar on the loopback address or an encrypting mesh.",
	},
	{
		CodeAuthMissing, Connection, Problem, "The server wants credentials, and none are configured.",
		"Set auth or headers for this target (`--token-file` or `--header` here). An endpoint picker wants the token of a service account: use a bearertokenauth extension with filename.",
	},
	{
		CodeAuthRejected, Connection, Problem, "The server does not accept the configured credentials.",
		"Check that they are current and of the right kind, and that the header has the form that the server expects, such as `Authorization: Bearer ...`.",
	},
	{
		CodeAuthToken, Connection, Problem, "The endpoint picker could not verify the token and answered 500.",
		"Use a current token of this cluster: a bearertokenauth extension with filename reads a renewed token again (`--token-file` here). If the token is right, the picker cannot reach the Kubernetes API.",
	},
	{
		CodeAuthForbidden, Connection, Problem, "The server knows the credentials, and they may not read this path.",
		"For an endpoint picker, bind a ClusterRole with nonResourceURLs: [/metrics], verbs: [get] to the service account of the token. See examples/kubernetes/base/gateway/rbac.yaml.",
	},
	{
		CodeNotFound, Connection, Problem, "There is nothing at this path.",
		"Correct the path: vLLM serves its metrics at /metrics of its API port, and a Ray agent at its own port (8080 unless configured).",
	},
	{
		CodeServerError, Connection, Problem, "The server answered with an error of its own.",
		"Look at the log of the server, or of the proxy in front of it.",
	},
	{
		CodeStatus, Connection, Problem, "The server answered with another status than 200.",
		"Check that this address serves metrics; 429 means that something limits how often it may be asked.",
	},
	{
		CodeRedirect, Connection, Problem, "The server redirects, and the redirect is not followed.",
		"Write the final address. A redirect to another host or away from TLS is not followed, because credentials would go there.",
	},
	{
		CodeRedirected, Connection, Info, "The server redirects within itself, which costs a request at each scrape.",
		"Write the final address in the endpoint, for example with a slash at the end.",
	},

	{
		CodeEmpty, Body, Problem, "The body has no metrics.",
		"Remove --disable-log-stats from the server. With several API server processes, check that PROMETHEUS_MULTIPROC_DIR is writable.",
	},
	{
		CodeHTML, Body, Problem, "The answer is a web page and not metrics.",
		"Correct the port and the path. A page with status 200 is often that of a proxy, a login or a load balancer.",
	},
	{
		CodeNotText, Body, Problem, "The answer is not Prometheus text.",
		"Correct the port and the path: vLLM serves its metrics at /metrics of its API port.",
	},
	{
		CodeGzip, Body, Problem, "The body is not the gzip that its Content-Encoding declares, or is compressed by a method that was not asked for.",
		"Look at the proxy in front of the server: it changes the body or the header.",
	},
	{
		CodeTooLarge, Body, Problem, "The body is larger than the limit and was dropped.",
		"Raise limits::body_size, and the memory of the collector, if this server really is that large; otherwise find what it exposes.",
	},
	{
		CodeHeaders, Body, Problem, "The headers of the answer are larger than any server of metrics sends.",
		"Check that this is the right address.",
	},
	{
		CodeNearLimit, Body, Warning, "The body has more than 70 % of limits::body_size. Above the limit the whole body is dropped.",
		"Raise limits::body_size before more models, engines or adapters come.",
	},
	{
		CodeCut, Body, Warning, "The end of the body is missing: the last line is not complete, or OpenMetrics has no # EOF. Series may be missing.",
		"Look for a proxy that cuts answers.",
	},
	{
		CodeBadLines, Body, Warning, "Lines of the body cannot be read and are dropped; all others are delivered.",
		"Look at these lines with curl. Lines beyond limits::name_length, label_name_length or label_value_length can be allowed there.",
	},
	{
		CodeDuplicates, Body, Warning, "The body has the same series more than once; only the first sample of each counts.",
		"If a proxy joins the answers of several servers, list the servers themselves as targets.",
	},
	{
		CodeInconsistent, Body, Warning, "Series are dropped because their numbers do not add up, such as a histogram whose buckets decrease.",
		"Look at these series with curl. A program that only imitates vLLM, or a proxy that adds up servers, writes such numbers.",
	},
	{
		CodeConflict, Body, Warning, "Families have another type than vLLM gives them, so they are not emitted as vLLM's metrics.",
		"Find out what writes them: a program that imitates vLLM, or a vendor build.",
	},

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
		CodeLMCache, Server, Info, "The target is an LMCache server, which has no metrics of vLLM.",
		"Scrape the vLLM servers as well.",
	},
	{
		CodeVersionNone, Server, Warning, "The server does not report its version, so names that changed their meaning cannot be told apart.",
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
		"Choose another metric for this server, or see why it is missing under metrics.",
	},
	{
		CodeQuantile, Objectives, Info, "The bucket of a percentile is wide, so the percentile is known only roughly.",
		"Compare the mean as well, or set objectives at bounds, which are exact. New versions of vLLM have --custom-histogram-buckets.",
	},

	{
		CodeConfigInvalid, Configuration, Problem, "The collector would not start with this configuration.",
		"Correct the setting that the sentence names.",
	},
	{
		CodeConfigWarning, Configuration, Warning, "The collector starts with this configuration, and something in it has no effect or is not set.",
		"Correct or remove it.",
	},
	{
		CodeNoReceiver, Configuration, Problem, "No pipeline has a receiver of the type vllm.",
		"Add the receiver vllm to receivers and to a pipeline of metrics.",
	},
	{
		CodeTargetTwice, Configuration, Warning, "The same server is a target of two receivers, so its metrics are sent twice.",
		"Remove it from one of them.",
	},
	{
		CodeNoProcessor, Configuration, Warning, "The pipeline has no processor vllm, so there are no derived metrics and no diagnosis.",
		"Add the processor vllm to processors and to this pipeline.",
	},
	{
		CodeBatchFirst, Configuration, Problem, "A batch processor is before the processor vllm. It can split a scrape, and what is derived from parts is wrong or missing.",
		"Move batch behind vllm in this pipeline.",
	},
	{
		CodeDeltaFirst, Configuration, Warning, "cumulative_to_delta is before the processor vllm, so a batch that is lost is an increase that is lost.",
		"Move it behind vllm in this pipeline.",
	},
	{
		CodeDiscoveryNone, Configuration, Warning, "The discovery has found no targets within a few seconds.",
		"Check the selector, the list or the file, and the relabelling rules. Pods that were never ready are left out unless ready_only is false.",
	},
	{
		CodeDiscoveryError, Configuration, Problem, "The discovery cannot work here.",
		"Run the check where the collector runs, or set kubeconfig_file for a collector outside of the cluster.",
	},
	{
		CodeDiscoveryWarn, Configuration, Warning, "The discovery reports an obstacle.",
		"Remove the obstacle that the sentence names.",
	},
	{
		CodeDiscoveryOver, Configuration, Warning, "The discovery has found more targets than limits::targets, and the others are not scraped.",
		"Raise limits::targets, or find fewer targets.",
	},

	{
		CodeExporterDNS, Exporters, Problem, "The host name of the exporter's endpoint does not resolve.",
		"Check the spelling, and whether the name resolves where the collector runs.",
	},
	{
		CodeExporterRefused, Exporters, Problem, "Nothing accepts connections at the exporter's endpoint.",
		"Start the backend, or correct the host and the port. For OTLP, gRPC uses 4317 and HTTP 4318.",
	},
	{
		CodeExporterTimeout, Exporters, Problem, "The backend did not answer within the timeout.",
		"Check that a firewall, a network policy or a missing proxy does not drop the connection.",
	},
	{
		CodeExporterTLS, Exporters, Problem, "The TLS handshake with the backend failed.",
		"Set tls::ca_file of the exporter to the authority of the backend. For a backend without TLS set tls::insecure, or write http:// in the endpoint.",
	},
	{
		CodeExporterAuth, Exporters, Problem, "The backend does not accept the credentials of the exporter.",
		"Check headers or auth of the exporter, and that the environment variable with the key is set.",
	},
	{
		CodeExporterRejected, Exporters, Problem, "The backend refuses an empty request of the exporter's kind.",
		"Check the path of the endpoint and the kind of the exporter: 404 means another path, UNIMPLEMENTED that no service for OTLP metrics is there.",
	},
	{
		CodeExporterFailed, Exporters, Problem, "The backend answers with an error of its own, or the connection failed in another way.",
		"Look at the log of the backend.",
	},
	{
		CodeExporterEmpty, Exporters, Info, "The backend can be reached and says something else than success to an empty write. Whether it accepts data could not be seen.",
		"Start the collector and look at its log.",
	},
	{
		CodeExporterSettings, Exporters, Problem, "The settings of the exporter cannot be used.",
		"Correct the setting that the sentence names.",
	},
	{
		CodeExporterUnchecked, Exporters, Info, "This kind of exporter is not checked.",
		"Start the collector and look at its log.",
	},
	{
		CodePortTaken, Exporters, Problem, "The address of the exporter cannot be listened at.",
		"End the program that has the port, or choose another endpoint. An address must be one of this machine; 0.0.0.0 is all of them.",
	},
	{
		CodePortCollector, Exporters, Info, "The port of the exporter is taken by a program that serves Prometheus metrics, as a collector does that runs already.",
		"Nothing, if that is the collector with this configuration.",
	},
	{
		CodeQueueMemory, Queue, Info, "The queue of the exporter is in memory, so a restart of the collector loses what was not sent.",
		"Set sending_queue::storage to a file_storage extension to keep it.",
	},
	{
		CodeQueueStorage, Queue, Problem, "An exporter (sending_queue::storage) or the processor (storage) names an extension that does not run, so the collector does not start.",
		"Configure it under extensions, and list it under service::extensions.",
	},
	{
		CodeQueueDirectory, Queue, Problem, "The directory of file_storage does not exist.",
		"Create it, or set create_directory: true. In a container it must be a volume.",
	},
	{
		CodeQueueWrite, Queue, Problem, "The directory of file_storage cannot be written to.",
		"Give it to the user of the collector. In Kubernetes set securityContext::fsGroup. Run the check as that user.",
	},
	{
		CodeQueueSpace, Queue, Warning, "The file system of the queue has less free space than the queue may need.",
		"Make the volume larger or the queue smaller: a full disk loses data and can keep the collector from starting.",
	},
	{
		CodeKubeDenied, Kubernetes, Problem, "Kubernetes does not allow what the discovery needs.",
		"Add the rule to the role of the collector's service account; examples/kubernetes/base has complete ones. The answer is about the account that asked: use the kubeconfig of the collector's account.",
	},
	{
		CodeKubeUnknown, Kubernetes, Warning, "Kubernetes could not be asked whether the discovery is allowed.",
		"Run the check in a pod with the collector's service account, or pass its credentials with `--kubeconfig`.",
	},
}
