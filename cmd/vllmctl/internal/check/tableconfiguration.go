package check

// configurationCodes are about the configuration of a collector.
var configurationCodes = []Code{
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
		CodeWindow, Configuration, Warning, "The window of the processor is shorter than two intervals of a receiver, so a single missed scrape leaves nothing to derive.",
		"Raise window of the processor, or lower collection_interval of the receiver.",
	},
	{
		CodeNoDiagnosis, Configuration, Warning, "The connector vllm_diagnosis emits nothing, because the processor makes no diagnosis.",
		"Remove diagnosis::enabled from the processor, or the connector from the pipelines.",
	},
	{
		CodePoolAttribute, Configuration, Warning, "No target has an attribute that pool::group_by names, so it separates nothing.",
		"Write an attribute of points or of resources, for example model_name, or add it before the processor vllm.",
	},
	{
		CodeDiscoveryNone, Configuration, Warning, "The discovery has found no targets within a few seconds.",
		"Check that the source of the targets answers, the selector, the list or the file, and the relabelling rules. Pods that were never ready are left out unless ready_only is false.",
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
		"Set tls::ca_file of the exporter to the authority of the backend. For a backend without TLS set tls::insecure, or write http:// in the endpoint. For one that requires a certificate set tls::cert_file and tls::key_file.",
	},
	{
		CodeExporterAuth, Exporters, Problem, "The backend does not accept the credentials of the exporter.",
		"Check headers or auth of the exporter, that the environment variable with the key is set, and that the address is that of your account: some backends have one for each region or site, and refuse the keys of the others.",
	},
	{
		CodeExporterRejected, Exporters, Problem, "The backend refuses an empty request of the exporter's kind.",
		"Check the path of the endpoint and the kind of the exporter: 404 means another path, a redirect that the final address must be written, and UNIMPLEMENTED that no service for OTLP metrics is there.",
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
		CodeExporterUnchecked, Exporters, Info, "This kind of exporter, of its endpoint or of its authenticator is not checked.",
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
		CodeQueueStorage, Queue, Problem, "An exporter (sending_queue::storage) or the processor (storage) names an extension that does not run or is no storage, so the collector does not start.",
		"Name a storage, for example file_storage. Configure it under extensions, and list it under service::extensions.",
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
