package check

// configurationCodes are about the configuration of a collector.
var configurationCodes = []Code{
	{
		CodeConfigInvalid, Configuration, Problem, "The collector would not start with this configuration.",
		"Correct the setting that the sentence names.",
	},
	{
		CodeConfigWarning, Configuration, Warning, "A setting has no effect or is missing; the collector starts.",
		"Correct or remove it, or set the variable.",
	},
	{
		CodeNoReceiver, Configuration, Problem, "No pipeline has a vllm receiver.",
		"Add the receiver vllm to receivers and to a pipeline of metrics.",
	},
	{
		CodeTargetTwice, Configuration, Warning, "Two receivers scrape the same server, so its metrics are sent twice.",
		"Remove it from one of them.",
	},
	{
		CodeNoProcessor, Configuration, Warning, "The pipeline has no vllm processor: derived metrics and diagnosis are missing.",
		"Add the processor vllm to processors and to this pipeline.",
	},
	{
		CodeBatchFirst, Configuration, Problem, "A batch processor before vllm can split scrapes, which makes derived values wrong.",
		"Move batch behind vllm in this pipeline.",
	},
	{
		CodeDeltaFirst, Configuration, Warning, "cumulative_to_delta is before vllm, so a lost batch is a lost increase.",
		"Move it behind vllm in this pipeline.",
	},
	{
		CodeWindow, Configuration, Warning, "The window of the processor is shorter than two intervals of a receiver.",
		"A single missed scrape leaves nothing to derive. Raise window of the processor, or lower collection_interval of the receiver.",
	},
	{
		CodePreset, Configuration, Warning, "The metrics of a receiver and of the processor after it do not fit: a preset or a switch has no effect.",
		"Set the same preset in both. Switch a metric of the receiver on in the processor, too.",
	},
	{
		CodeNoDiagnosis, Configuration, Warning, "The vllm_diagnosis connector emits nothing, because the diagnosis is off.",
		"Remove diagnosis::enabled from the processor, or the connector from the pipelines.",
	},
	{
		CodePoolAttribute, Configuration, Warning, "No target has an attribute of pool::group_by.",
		"Write an attribute of points or of resources, for example model_name, or add it before the processor vllm.",
	},
	{
		CodeDiscoveryNone, Configuration, Warning, "The discovery found no targets within a few seconds.",
		"Check that the source answers. Check the selector, the list or the file, and the relabelling rules. Pods that were never ready need ready_only: false.",
	},
	{
		CodeDiscoveryError, Configuration, Problem, "The discovery cannot work here, or its InferencePool is missing.",
		"Run the check where the collector runs, or set kubeconfig_file for a collector outside of the cluster. `kubectl get inferencepools -A` lists the pools that exist.",
	},
	{
		CodeDiscoveryWarn, Configuration, Warning, "The discovery reports an obstacle.",
		"Remove the obstacle that the sentence names.",
	},
	{
		CodeDiscoveryOver, Configuration, Warning, "The discovery found more targets than limits::targets; the others are not scraped.",
		"Raise limits::targets, or find fewer targets.",
	},

	{
		CodeExporterDNS, Exporters, Problem, "The host name of the endpoint does not resolve.",
		"Check the spelling, and whether the name resolves where the collector runs.",
	},
	{
		CodeExporterRefused, Exporters, Problem, "Nothing listens at the endpoint.",
		"Start the backend, or correct the host and the port. For OTLP, gRPC uses 4317 and HTTP 4318.",
	},
	{
		CodeExporterTimeout, Exporters, Problem, "The backend did not answer within the timeout.",
		"Check firewalls, network policies and the proxy.",
	},
	{
		CodeExporterTLS, Exporters, Problem, "The TLS handshake with the backend failed.",
		"Set tls::ca_file of the exporter to the authority of the backend. For a backend without TLS, set tls::insecure or write http:// in the endpoint. If it requires a client certificate, set tls::cert_file and tls::key_file.",
	},
	{
		CodeExporterAuth, Exporters, Problem, "The backend rejects the credentials.",
		"Check headers or auth of the exporter, and that the environment variable with the key is set. Check the address: some backends have one for each region, and reject keys of other regions.",
	},
	{
		CodeExporterRejected, Exporters, Problem, "The backend rejects an empty request.",
		"Check the path of the endpoint and the kind of the exporter. 404 means another path, a redirect another address, UNIMPLEMENTED no service for OTLP metrics.",
	},
	{
		CodeExporterFailed, Exporters, Problem, "The backend answers with an error, or the connection failed in another way.",
		"Look at the log of the backend.",
	},
	{
		CodeExporterEmpty, Exporters, Info, "The backend answers, but not with success to an empty write.",
		"Start the collector and look at its log: only real data shows whether the backend accepts it.",
	},
	{
		CodeExporterSettings, Exporters, Problem, "The settings of the exporter cannot be used.",
		"Correct the setting that the sentence names.",
	},
	{
		CodeExporterUnchecked, Exporters, Info, "The check does not know this exporter, endpoint or authenticator.",
		"Start the collector and look at its log.",
	},
	{
		CodePortTaken, Exporters, Problem, "The collector cannot listen at an address of its configuration.",
		"Stop the program that has the port, or choose another endpoint. The address must belong to this machine; 0.0.0.0 means all of them.",
	},
	{
		CodePortCollector, Exporters, Info, "A program with Prometheus metrics has the port, probably a running collector.",
		"Nothing, if that is the collector with this configuration.",
	},
	{
		CodeQueueMemory, Queue, Info, "The queue is in memory: a restart of the collector loses unsent data.",
		"Set sending_queue::storage to a file_storage extension to keep it.",
	},
	{
		CodeQueueStorage, Queue, Problem, "A storage is named that does not run or is another kind of extension.",
		"The collector does not start. Configure a storage, for example file_storage, under extensions, and list it under service::extensions.",
	},
	{
		CodeQueueDirectory, Queue, Problem, "The directory of file_storage does not exist, or is a file.",
		"Create it, or set create_directory: true. In a container it must be a volume. Remove the file, or name another directory.",
	},
	{
		CodeQueueWrite, Queue, Problem, "The directory of file_storage is not writable.",
		"Give it to the user of the collector; in Kubernetes, set securityContext::fsGroup. Run the check as that user.",
	},
	{
		CodeQueueSpace, Queue, Warning, "The file system has less free space than the queue may need.",
		"Enlarge the volume or shrink the queue. A full disk loses data and can keep the collector from starting.",
	},
	{
		CodeKubeDenied, Kubernetes, Problem, "Kubernetes does not allow what the discovery needs.",
		"Add the rule to the role of the collector's service account; examples/kubernetes/base has complete ones. Run the check with the kubeconfig of the collector's account.",
	},
	{
		CodeKubeUnknown, Kubernetes, Warning, "Kubernetes did not answer whether it allows the discovery.",
		"Run the check in a pod with the collector's service account, or pass its credentials with `--kubeconfig`.",
	},
}
