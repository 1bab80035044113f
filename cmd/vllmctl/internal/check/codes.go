package check

// The codes of findings. They are stable: scripts and links rely on them.
const (
	CodeDNS              = "dns"
	CodeSeveralAddresses = "several-addresses"
	CodeRefused          = "connection-refused"
	CodeReset            = "connection-reset"
	CodeTimeout          = "timeout"
	CodeSlow             = "slow-answer"
	CodeRequestFailed    = "request-failed"
	CodeTLSAuthority     = "tls-unknown-authority"
	CodeTLSExpired       = "tls-expired"
	CodeTLSNotYet        = "tls-not-yet-valid"
	CodeTLSHost          = "tls-other-host"
	CodeTLSPlain         = "tls-plain-http"
	CodeTLSNeeded        = "tls-needed"
	CodeTLSClient        = "tls-client-certificate"
	CodeTLSFailed        = "tls-failed"
	CodeTLSSoon          = "tls-expires-soon"
	CodeTLSUnverified    = "tls-not-verified"
	CodePlainCredentials = "plain-credentials"
	CodeAuthMissing      = "auth-missing"
	CodeAuthRejected     = "auth-rejected"
	CodeAuthToken        = "auth-token-not-verified"
	CodeAuthForbidden    = "auth-forbidden"
	CodeAuthUnchecked    = "auth-not-checked"
	CodeNotFound         = "not-found"
	CodeServerError      = "server-error"
	CodeStatus           = "unexpected-status"
	CodeRedirect         = "redirect-refused"
	CodeRedirected       = "redirected"

	CodeEmpty        = "body-empty"
	CodeHTML         = "body-html"
	CodeNotText      = "body-not-prometheus"
	CodeGzip         = "body-gzip"
	CodeTooLarge     = "body-too-large"
	CodeHeaders      = "headers-too-large"
	CodeNearLimit    = "body-near-limit"
	CodeCut          = "body-cut"
	CodeBadLines     = "bad-lines"
	CodeDuplicates   = "duplicates"
	CodeInconsistent = "inconsistent-series"
	CodeImpossible   = "impossible-value"
	CodeConflict     = "type-conflict"

	CodeLogStats      = "log-stats-disabled"
	CodeNotVLLM       = "not-vllm"
	CodePrefix        = "unknown-prefix"
	CodeGateway       = "server-gateway"
	CodeRouter        = "server-router"
	CodeSimulator     = "server-simulator"
	CodeAccelerator   = "server-gpu-exporter"
	CodeLMCache       = "server-lmcache"
	CodeNotJudged     = "not-judged"
	CodeVersionNone   = "version-unknown"
	CodeVersionWrong  = "version-implausible"
	CodeVersionDev    = "version-unreleased"
	CodeVersionOld    = "version-old"
	CodeUnhealthy     = "unhealthy"
	CodeHang          = "hang-may-be-hidden"
	CodeClock         = "clock-skew"
	CodeRestarted     = "process-restarted"
	CodeReplicas      = "replicas"
	CodeFell          = "counters-fell"
	CodeNoStart       = "process-start-unknown"
	CodeDefects       = "known-defects"
	CodeSecondFailed  = "second-scrape-failed"
	CodePrefill       = "role-prefill"
	CodeDecode        = "role-decode"
	CodeMissing       = "family-missing"
	CodeMissingAge    = "family-of-other-version"
	CodeMissingFlag   = "family-needs-flag"
	CodeMissingRole   = "family-of-other-server"
	CodeMissingIdle   = "family-without-traffic"
	CodeUnknownFamily = "family-unknown"
	CodeNoTraffic     = "no-traffic"
	CodeDerived       = "derived-missing"
	CodeSeriesLimit   = "series-limit"
	CodeSeriesNear    = "series-near-limit"
	CodeAdapters      = "adapter-limit"
	CodeProcessorFull = "processor-series-limit"

	CodeObjectiveBound  = "objective-not-a-bound"
	CodeObjectiveMetric = "objective-without-metric"
	CodeObjectiveModel  = "objective-without-model"
	CodeQuantile        = "quantile-coarse"

	CodeConfigInvalid  = "config-invalid"
	CodeConfigWarning  = "config-warning"
	CodeNoReceiver     = "config-without-receiver"
	CodeTargetTwice    = "target-twice"
	CodeNoProcessor    = "config-without-processor"
	CodeBatchFirst     = "batch-before-processor"
	CodeDeltaFirst     = "delta-before-processor"
	CodeWindow         = "window-too-short"
	CodePreset         = "preset-mismatch"
	CodeNoDiagnosis    = "connector-without-diagnosis"
	CodePoolAttribute  = "pool-without-attribute"
	CodeDiscoveryNone  = "discovery-empty"
	CodeDiscoveryError = "discovery-failed"
	CodeDiscoveryWarn  = "discovery-warning"
	CodeDiscoveryOver  = "discovery-over-limit"

	CodeExporterDNS       = "exporter-dns"
	CodeExporterRefused   = "exporter-refused"
	CodeExporterTimeout   = "exporter-timeout"
	CodeExporterTLS       = "exporter-tls"
	CodeExporterAuth      = "exporter-auth"
	CodeExporterRejected  = "exporter-rejected"
	CodeExporterFailed    = "exporter-failed"
	CodeExporterEmpty     = "exporter-refuses-empty"
	CodeExporterSettings  = "exporter-settings"
	CodeExporterUnchecked = "exporter-not-checked"
	CodePortTaken         = "exporter-port-taken"
	CodePortCollector     = "exporter-port-in-use"
	CodeQueueMemory       = "queue-in-memory"
	CodeQueueStorage      = "queue-storage-missing"
	CodeQueueDirectory    = "queue-directory-missing"
	CodeQueueWrite        = "queue-not-writable"
	CodeQueueSpace        = "queue-space"
	CodeKubeDenied        = "kubernetes-denied"
	CodeKubeUnknown       = "kubernetes-not-asked"
)

// The severities. A problem means that data are missing or wrong, a warning that they can
// become so or mislead, and an info that an operator may want to know it.
const (
	Problem = "problem"
	Warning = "warning"
	Info    = "info"
)

// The categories, in the order of the output.
const (
	Connection    = "connection"
	Body          = "body"
	Server        = "server"
	Metrics       = "metrics"
	Objectives    = "objectives"
	Configuration = "configuration"
	Exporters     = "exporters"
	Queue         = "queue"
	Kubernetes    = "kubernetes"
)

// Categories returns all categories in the order of the output.
func Categories() []string {
	return []string{Connection, Body, Server, Metrics, Objectives, Configuration, Exporters, Queue, Kubernetes}
}

// Code describes a code for the documentation.
type Code struct {
	Name, Category, Severity string
	// Finds is what it means, and Do what to do: whole sentences.
	Finds, Do string
}

// Codes returns all codes in the order of the documentation.
func Codes() []Code { return codes }

// codeOf returns the description of a code. Each code that the package uses is in the table.
func codeOf(name string) *Code {
	for i := range codes {
		if codes[i].Name == name {
			return &codes[i]
		}
	}
	panic("there is no code " + name) // A mistake in this package.
}
