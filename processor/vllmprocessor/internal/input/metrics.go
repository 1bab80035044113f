// Package input has the metrics that derived metrics are computed from, and their points
// as all steps after collect know them, without pdata.
package input

// Metric is a metric that a derived metric is computed from.
type Metric uint8

// The inputs. Their names and kinds are in the table below.
const (
	PromptTokens Metric = iota
	PromptTokensCached
	PromptTokensBySource
	PromptTokensCachedBySource
	GenerationTokens
	RequestSuccess
	Preemptions
	// Dropped are the requests that a server refused or dropped.
	Dropped
	PrefixCacheHits
	PrefixCacheQueries
	ExternalPrefixCacheHits
	ExternalPrefixCacheQueries
	MMCacheHits
	MMCacheQueries
	DraftTokens
	AcceptedTokens
	AcceptedTokensPerPosition
	Drafts
	EstimatedFLOPs
	EstimatedReadBytes
	EstimatedWriteBytes
	HTTPRequests
	CorruptedRequests
	FailedTransfers

	// Up and Healthy belong to the server, not to an engine.
	Up
	Healthy
	// ScrapeFailure is 1 for the way in which the last scrape of the server failed.
	ScrapeFailure
	// OpenFiles are those of the server's process.
	OpenFiles
	// ServerLoad are the requests that the server says it works on.
	ServerLoad
	// CanaryDuration and CanaryUnanswered are what the receiver counts of its canary requests.
	CanaryDuration
	CanaryUnanswered
	PodReady
	PodTerminating
	SleepState
	// SleepOperations belong to the server.
	SleepOperations
	// GatewayQueue belongs to an inference gateway.
	GatewayQueue
	Running
	Waiting
	WaitingByReason
	KVFetches
	KVCacheUtilization
	KVCacheCapacity
	KVCacheBlockSize
	KVCacheBlocks
	// CacheConfigTokens is the capacity from a label of vLLM's cache configuration, in
	// input that is not from our receiver.
	CacheConfigTokens
	// CacheConfigHybrid is 1 where labels of the cache configuration show a model with
	// layers of several kinds, in input that is not from our receiver.
	CacheConfigHybrid

	TimeToFirstToken
	InterTokenLatency
	E2ERequestLatency
	TimePerOutputToken
	QueueTime
	PrefillTime
	DecodeTime
	InferenceTime
	RequestPromptTokens
	RequestGenerationTokens
	IterationTokens
	KVBlockIdle
	KVBlockReuseGap

	// These belong to the endpoint picker of an inference gateway.
	PickerRequests
	PickerErrors
	PickerDuration
	PickerTimeToFirstToken
	PickerInputTokens
	PickerOutputTokens
	PickerQueueTime

	// These belong to the requests of another gateway: see Summed.
	GatewayDuration
	GatewayTimeToFirstToken
	GatewayRequests

	// NumInputs is the number of inputs, for arrays over them.
	NumMetrics
)

// Kind is the kind of an input.
type Kind uint8

// The kinds of inputs.
const (
	// Counter grows until its process restarts.
	Counter Kind = iota
	// Gauge can rise and fall.
	Gauge
	// Distribution is a histogram with explicit bounds.
	Distribution
)

// Definition describes an input.
type Definition struct {
	// Name is the name of the metric in the catalogue; empty for an input that is not in
	// it.
	Name string
	// Kind is the kind of its points. Others are counted as a type conflict.
	Kind Kind
	// Labels are the attributes that distinguish its series within one engine and model.
	// All other attributes belong to the identity of the engine.
	Labels []string
	// Summed are attributes over whose values the points are summed when they are read.
	// Clients choose the values, so no state is stored for each, or there is one value only, or
	// no formula asks for it.
	Summed []string
	// Older are catalogue names of older servers that can replace the input in every
	// formula.
	Older []string
	// Level is the catalogue name of the same count from a server that exposes it as a
	// gauge. It is used only where a batch has no counter of the input, and not in place of
	// a counter that sends deltas: one that is not sent has not changed.
	Level string
}

// MaxLabels is the most labels of an input.
const MaxLabels = 3

// failed is the label of the inputs of a gateway that is not an endpoint picker: "true" for
// requests that the gateway marks as failed. All its other attributes but the model are summed.
var failed = []string{"failed"}

// byClient is the attribute whose values the clients of an inference gateway choose.
var byClient = []string{"fairness_id"}

var definitions = [NumMetrics]Definition{
	PromptTokens:               {Name: "vllm.prompt_tokens"},
	PromptTokensCached:         {Name: "vllm.prompt_tokens_cached"},
	PromptTokensBySource:       {Name: "vllm.prompt_tokens_by_source", Labels: []string{"source"}},
	PromptTokensCachedBySource: {Name: "vllm.prompt_tokens_cached_by_source", Labels: []string{"source"}},
	GenerationTokens:           {Name: "vllm.generation_tokens"},
	RequestSuccess:             {Name: "vllm.request.success", Labels: []string{"finished_reason"}},
	Preemptions:                {Name: "vllm.num_preemptions", Level: "vllm.num_preemptions_gauge"},
	Dropped:                    {Name: "vllm.admission_rejections", Labels: []string{"reason"}, Older: []string{"vllm.num_dropped_counter"}, Level: "vllm.num_dropped"},
	PrefixCacheHits:            {Name: "vllm.prefix_cache.hits", Older: []string{"vllm.gpu_prefix_cache.hits"}},
	PrefixCacheQueries:         {Name: "vllm.prefix_cache.queries", Older: []string{"vllm.gpu_prefix_cache.queries"}},
	ExternalPrefixCacheHits:    {Name: "vllm.external_prefix_cache.hits"},
	ExternalPrefixCacheQueries: {Name: "vllm.external_prefix_cache.queries"},
	MMCacheHits:                {Name: "vllm.mm_cache.hits"},
	MMCacheQueries:             {Name: "vllm.mm_cache.queries"},
	DraftTokens:                {Name: "vllm.spec_decode.num_draft_tokens"},
	AcceptedTokens:             {Name: "vllm.spec_decode.num_accepted_tokens"},
	AcceptedTokensPerPosition:  {Name: "vllm.spec_decode.num_accepted_tokens_per_pos", Labels: []string{"position"}},
	Drafts:                     {Name: "vllm.spec_decode.num_drafts"},
	EstimatedFLOPs:             {Name: "vllm.estimated_flops_per_gpu"},
	EstimatedReadBytes:         {Name: "vllm.estimated_read_bytes_per_gpu"},
	EstimatedWriteBytes:        {Name: "vllm.estimated_write_bytes_per_gpu"},
	HTTPRequests:               {Name: "http_requests", Labels: []string{"status", "handler", "method"}},

	CorruptedRequests: {Name: "vllm.corrupted_requests"},
	FailedTransfers:   {Name: "vllm.nixl.num_failed_transfers"},

	Up:             {Name: "vllm.up", Kind: Gauge},
	Healthy:        {Name: "vllm.healthy", Kind: Gauge},
	ScrapeFailure:  {Name: "vllm.scrape.failure", Kind: Gauge, Labels: []string{"outcome"}},
	OpenFiles:      {Name: "process_open_fds", Kind: Gauge},
	ServerLoad:     {Name: "vllm.server_load", Kind: Gauge},
	PodReady:       {Name: "vllm.pod.ready", Kind: Gauge},
	PodTerminating: {Name: "vllm.pod.terminating", Kind: Gauge},

	CanaryDuration:   {Name: "vllm.canary.duration", Kind: Distribution},
	CanaryUnanswered: {Name: "vllm.canary.unanswered", Kind: Gauge},

	SleepState:         {Name: "vllm.engine.sleep_state", Kind: Gauge, Labels: []string{"sleep_state"}},
	SleepOperations:    {Name: "vllm.sleep_mode_operations_in_flight", Kind: Gauge, Summed: []string{"operation"}},
	GatewayQueue:       {Name: "inference_gateway.epp.flow_control.queue.size", Kind: Gauge, Labels: []string{"priority", "target_model_name"}, Summed: byClient},
	Running:            {Name: "vllm.num_requests.running", Kind: Gauge},
	Waiting:            {Name: "vllm.num_requests.waiting", Kind: Gauge},
	WaitingByReason:    {Name: "vllm.num_requests.waiting_by_reason", Kind: Gauge, Labels: []string{"reason"}},
	KVFetches:          {Name: "vllm.num_requests.kv_fetch_by_stage", Kind: Gauge, Labels: []string{"stage"}},
	KVCacheUtilization: {Name: "vllm.kv_cache.utilization", Kind: Gauge},
	KVCacheCapacity:    {Name: "vllm.kv_cache.capacity", Kind: Gauge},
	KVCacheBlockSize:   {Name: "vllm.kv_cache.block_size", Kind: Gauge},
	KVCacheBlocks:      {Name: "vllm.kv_cache.num_gpu_blocks", Kind: Gauge},
	CacheConfigTokens:  {Kind: Gauge},
	CacheConfigHybrid:  {Kind: Gauge},

	TimeToFirstToken:        {Name: "vllm.time_to_first_token", Kind: Distribution},
	InterTokenLatency:       {Name: "vllm.inter_token_latency", Kind: Distribution},
	E2ERequestLatency:       {Name: "vllm.e2e_request_latency", Kind: Distribution},
	TimePerOutputToken:      {Name: "vllm.request.time_per_output_token", Kind: Distribution},
	QueueTime:               {Name: "vllm.request.queue_time", Kind: Distribution},
	PrefillTime:             {Name: "vllm.request.prefill_time", Kind: Distribution},
	DecodeTime:              {Name: "vllm.request.decode_time", Kind: Distribution},
	InferenceTime:           {Name: "vllm.request.inference_time", Kind: Distribution},
	RequestPromptTokens:     {Name: "vllm.request.prompt_tokens", Kind: Distribution},
	RequestGenerationTokens: {Name: "vllm.request.generation_tokens", Kind: Distribution},
	IterationTokens:         {Name: "vllm.iteration_tokens", Kind: Distribution},
	KVBlockIdle:             {Name: "vllm.kv_block.idle_before_evict", Kind: Distribution},
	KVBlockReuseGap:         {Name: "vllm.kv_block.reuse_gap", Kind: Distribution},

	PickerRequests:         {Name: "inference_gateway.epp.requests", Labels: []string{"priority"}, Summed: byClient},
	PickerErrors:           {Name: "inference_gateway.epp.request.errors", Labels: []string{"error_code", "priority"}, Summed: byClient},
	PickerDuration:         {Name: "inference_gateway.epp.request.duration", Kind: Distribution, Labels: []string{"priority"}, Summed: byClient},
	PickerTimeToFirstToken: {Name: "inference_gateway.epp.request.time_to_first_token", Kind: Distribution, Labels: []string{"streaming", "priority"}, Summed: byClient},
	PickerInputTokens:      {Name: "inference_gateway.epp.request.input_tokens", Kind: Distribution, Labels: []string{"priority"}, Summed: byClient},
	PickerOutputTokens:     {Name: "inference_gateway.epp.request.output_tokens", Kind: Distribution, Labels: []string{"priority"}, Summed: byClient},
	PickerQueueTime: {
		Name: "inference_gateway.epp.flow_control.queue.duration", Kind: Distribution,
		// A picker has one pool. inference_pool is its label on the wire.
		Labels: []string{"outcome", "priority"}, Summed: append([]string{"pool", "inference_pool"}, byClient...),
	},

	GatewayDuration: {
		Name: "gen_ai.server.request.duration", Kind: Distribution, Labels: failed,
		Older: []string{"dynamo.frontend.request_duration", "vllm_router.request.latency", ClientDuration},
	},
	GatewayTimeToFirstToken: {
		Name: "gen_ai.server.time_to_first_token", Kind: Distribution, Labels: failed, Older: []string{"dynamo.frontend.time_to_first_token"},
	},
	GatewayRequests: {Name: "dynamo.frontend.requests", Labels: failed},
}

// ClientDuration is the catalogue name of what applications measure, too.
const ClientDuration = "gen_ai.client.operation.duration"

// ByModel reports whether an input belongs to the requests of an inference gateway, which has
// them by model.
func (in Metric) ByModel() bool { return in >= PickerRequests && in <= GatewayRequests }

// Summed reports whether an input belongs to a gateway that is no endpoint picker: all
// attributes but the model are summed.
func (in Metric) Summed() bool { return in >= GatewayDuration && in <= GatewayRequests }

// OfReceiver reports whether an input has values without an answer of the server.
func (in Metric) OfReceiver() bool {
	return in == Up || in == Healthy || in == CanaryDuration || in == CanaryUnanswered
}

// OfGateway reports whether an input belongs to an inference gateway.
func (in Metric) OfGateway() bool { return in == GatewayQueue || in.ByModel() }

// Define returns the definition of an input.
func (in Metric) Define() *Definition { return &definitions[in] }

// String is the input's name in the catalogue.
func (in Metric) String() string { return definitions[in].Name }

// ByName returns the input with a name of the catalogue.
func ByName(name string) (Metric, bool) {
	for in := range NumMetrics {
		if name != "" && definitions[in].Name == name {
			return in, true
		}
	}
	return 0, false
}
