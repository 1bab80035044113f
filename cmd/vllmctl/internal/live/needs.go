package live

// Field is one number of a row.
type Field int

// The numbers of a row. All but running, waiting and the KV cache are over the window.
const (
	// Running and Waiting are requests.
	Running Field = iota
	Waiting
	// KVCache is the share of the KV cache in use, from 0 to 1.
	KVCache
	// TTFT and ITL are the mean time to the first token and between two tokens, in seconds.
	TTFT
	ITL
	// Tokens are generated tokens per second, Requests those that ended per second.
	Tokens
	Requests
	// Arrivals are requests that arrived per second, and Prompts prompt tokens per second.
	Arrivals
	Prompts
	// Hits is the share of the looked-up prompt tokens that the prefix cache found.
	Hits
	// E2E is the mean latency of a request, and Queue the mean time in the queue, in seconds.
	E2E
	Queue
	// Errors is the share of HTTP responses with a status 5xx. It belongs to the whole server.
	Errors
	numFields
)

// need is what the view takes from a metric.
type need struct {
	// into is what happens with its points.
	into destination
	// field is for intoField.
	field Field
	// latency is for intoQuantile.
	latency Latency
}

// destination is a part of a row.
type destination int

const (
	intoField destination = iota
	intoQuantile
	intoCondition
	intoSeverity
	intoCause
	intoShare
	intoSignal
	intoRatio
	// The others are about a server as a whole.
	intoUp
	intoFailure
	intoErrors
	intoReplicas
)

// Latency is a latency with quantiles.
type Latency int

// The latencies with quantiles.
const (
	QuantilesTTFT Latency = iota
	QuantilesITL
	QuantilesE2E
	numLatencies
)

// needs are the metrics that the view takes, by their names.
var needs = map[string]need{
	"vllm.up":                           {into: intoUp},
	"vllm.scrape.failure":               {into: intoFailure},
	"vllm.num_requests.running":         {field: Running},
	"vllm.num_requests.waiting":         {field: Waiting},
	"vllm.kv_cache.utilization":         {field: KVCache},
	"vllm.time_to_first_token_mean":     {field: TTFT},
	"vllm.inter_token_latency_mean":     {field: ITL},
	"vllm.e2e_request_latency_mean":     {field: E2E},
	"vllm.request.queue_time_mean":      {field: Queue},
	"vllm.generation_throughput":        {field: Tokens},
	"vllm.prompt_throughput":            {field: Prompts},
	"vllm.request_throughput":           {field: Requests},
	"vllm.arrival_rate":                 {field: Arrivals},
	"vllm.prefix_cache.hit_ratio":       {field: Hits},
	"vllm.http.error_ratio":             {into: intoErrors},
	"vllm.time_to_first_token_quantile": {into: intoQuantile, latency: QuantilesTTFT},
	"vllm.inter_token_latency_quantile": {into: intoQuantile, latency: QuantilesITL},
	"vllm.e2e_request_latency_quantile": {into: intoQuantile, latency: QuantilesE2E},
	"vllm.diagnosis.condition":          {into: intoCondition},
	"vllm.diagnosis.severity":           {into: intoSeverity},
	"vllm.diagnosis.cause":              {into: intoCause},
	"vllm.diagnosis.cause_share":        {into: intoShare},
	"vllm.diagnosis.signal":             {into: intoSignal},
	"vllm.diagnosis.signal_ratio":       {into: intoRatio},

	"vllm.pool.replicas":                     {into: intoReplicas},
	"vllm.pool.running":                      {field: Running},
	"vllm.pool.waiting":                      {field: Waiting},
	"vllm.pool.kv_cache.utilization_max":     {field: KVCache},
	"vllm.pool.time_to_first_token_mean":     {field: TTFT},
	"vllm.pool.inter_token_latency_mean":     {field: ITL},
	"vllm.pool.e2e_request_latency_mean":     {field: E2E},
	"vllm.pool.generation_throughput":        {field: Tokens},
	"vllm.pool.prompt_throughput":            {field: Prompts},
	"vllm.pool.request_throughput":           {field: Requests},
	"vllm.pool.arrival_rate":                 {field: Arrivals},
	"vllm.pool.prefix_cache.hit_ratio":       {field: Hits},
	"vllm.pool.time_to_first_token_quantile": {into: intoQuantile, latency: QuantilesTTFT},
	"vllm.pool.inter_token_latency_quantile": {into: intoQuantile, latency: QuantilesITL},
	"vllm.pool.e2e_request_latency_quantile": {into: intoQuantile, latency: QuantilesE2E},
	"vllm.pool.diagnosis.condition":          {into: intoCondition},
	"vllm.pool.diagnosis.severity":           {into: intoSeverity},
	"vllm.pool.diagnosis.cause":              {into: intoCause},
	"vllm.pool.diagnosis.cause_share":        {into: intoShare},
}

// poolPrefix begins the names of the metrics of pools.
const poolPrefix = "vllm.pool."

// own are the attributes that a metric has besides those of its engine or pool.
var own = map[string]bool{
	"condition": true, "cause": true, "detail": true, "role": true, "quantile": true, "signal": true,
}
