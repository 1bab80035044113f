package live

import (
	"math"
	"slices"
	"strings"
	"time"
)

// Document is the state of all servers at a moment.
type Document struct {
	// Version is the version of this format. It changes when a key is renamed or removed.
	Version int `json:"version"`
	// Time is when the document was made.
	Time time.Time `json:"time"`
	// IntervalSeconds is the time between two scrapes of a server; with --from, between two questions.
	IntervalSeconds float64 `json:"interval_seconds"`
	// WindowSeconds is the time that rates and means are taken over; 0 with --from, where only the collector knows it.
	WindowSeconds float64 `json:"window_seconds"`
	// Servers are the servers that were scraped, by their addresses.
	Servers []ServerDocument `json:"servers"`
	// Engines are the engines of all servers, the worst first. A server of which no engine is
	// known has one entry without `engine`.
	Engines []EngineDocument `json:"engines"`
	// Pools are the pools, if the configuration has them.
	Pools []EngineDocument `json:"pools,omitempty"`
	// NotJudged is the number of engines of readable servers with no condition, or `unknown`.
	NotJudged int `json:"not_judged"`
	// LeftOut is how many engines, pools and servers are missing because there are too many.
	LeftOut int `json:"left_out,omitempty"`
}

// ServerDocument is a server.
type ServerDocument struct {
	// Address is the host and the port, with the path if that is not `/metrics`.
	Address string `json:"address"`
	// Namespace is the namespace in Kubernetes, from discovery.
	Namespace string `json:"namespace,omitempty"`
	// Pod is the pod in Kubernetes, from discovery.
	Pod string `json:"pod,omitempty"`
	// Version is the version of vLLM.
	Version string `json:"version,omitempty"`
	// Kind is the kind of a server other than vLLM, for example `gateway`.
	Kind string `json:"kind,omitempty"`
	// Readable reports whether the last scrape succeeded.
	Readable bool `json:"readable"`
	// Failure is why the last scrape failed.
	Failure *FailureDocument `json:"failure,omitempty"`
}

// FailureDocument is why a server cannot be read.
type FailureDocument struct {
	// Kind is a value of the attribute `outcome` of `vllm.scrape.failure`.
	Kind string `json:"kind"`
	// Reason is a sentence.
	Reason string `json:"reason"`
	// Since is the start of the failures in this session; with --from, that of the condition if it says so.
	Since time.Time `json:"since"`
}

// EngineDocument is an engine or a pool. A number that is not known is absent, never 0.
type EngineDocument struct {
	// Server is the address of the server; absent for a pool.
	Server string `json:"server,omitempty"`
	// Model is the label `model_name`.
	Model string `json:"model,omitempty"`
	// Engine is the label `engine`.
	Engine string `json:"engine,omitempty"`
	// Pool is the name of a pool, made of the attributes that it is grouped by.
	Pool string `json:"pool,omitempty"`
	// Replicas is the number of servers of a pool.
	Replicas int `json:"replicas,omitempty"`
	// Condition is one of docs/diagnosis.md; empty where none is reported.
	Condition string `json:"condition"`
	// Severity is 0 for nothing to do, 1 for a look, 2 for a warning and 3 for a page.
	Severity int `json:"severity"`
	// Cause is the primary cause, one of docs/diagnosis.md.
	Cause string `json:"cause,omitempty"`
	// Detail is the kind of the cause.
	Detail string `json:"detail,omitempty"`
	// Contributing are further causes, the largest share of the harm first.
	Contributing []ShareDocument `json:"contributing,omitempty"`
	// Notices are for information only.
	Notices []string `json:"notices,omitempty"`
	// Early is true until the watch is long enough to report a problem. Until then, severity 0 or 1 can be
	// wrong.
	Early bool `json:"early,omitempty"`
	// Since is when the condition was first reported in this session; with --from, when the readings first showed it.
	Since *time.Time `json:"since,omitempty"`
	// Sentence is what was found.
	Sentence string `json:"sentence,omitempty"`
	// Evidence are the signals with their usual values, the deciding one first; with --from, all of them only of the worst 20.
	Evidence []string `json:"evidence,omitempty"`
	// Next are the steps to take.
	Next []string `json:"next,omitempty"`
	// Runbook is the address of the page about it.
	Runbook string `json:"runbook,omitempty"`
	// Signals are all signals of the diagnosis, by the names of docs/diagnosis.md; with --from, the two latencies.
	Signals map[string]SignalDocument `json:"signals,omitempty"`

	// Running is the number of running requests.
	Running *float64 `json:"running,omitempty"`
	// Waiting is the number of waiting requests.
	Waiting *float64 `json:"waiting,omitempty"`
	// KVCache is the share of the KV cache in use, from 0 to 1.
	KVCache *float64 `json:"kv_cache_utilization,omitempty"`
	// TTFT is the mean time to the first token over the window, in seconds.
	TTFT *float64 `json:"time_to_first_token_mean_seconds,omitempty"`
	// ITL is the mean time between two tokens over the window, in seconds.
	ITL *float64 `json:"inter_token_latency_mean_seconds,omitempty"`
	// E2E is the mean latency of a request over the window, in seconds.
	E2E *float64 `json:"e2e_request_latency_mean_seconds,omitempty"`
	// Queue is the mean time in the queue over the window, in seconds.
	Queue *float64 `json:"queue_time_mean_seconds,omitempty"`
	// Tokens are generated tokens per second over the window.
	Tokens *float64 `json:"generation_tokens_per_second,omitempty"`
	// Prompts are prompt tokens per second over the window.
	Prompts *float64 `json:"prompt_tokens_per_second,omitempty"`
	// Requests are requests that ended per second over the window.
	Requests *float64 `json:"ended_requests_per_second,omitempty"`
	// Arrivals are requests that arrived per second over the window.
	Arrivals *float64 `json:"arrived_requests_per_second,omitempty"`
	// Hits is the share of the looked-up prompt tokens that the prefix cache found.
	Hits *float64 `json:"prefix_cache_hit_ratio,omitempty"`
	// Errors is the share of HTTP responses with a status 5xx, of the whole server.
	Errors *float64 `json:"http_5xx_ratio,omitempty"`
	// TTFTQuantiles are quantiles of the time to the first token.
	TTFTQuantiles []QuantileDocument `json:"time_to_first_token_quantiles,omitempty"`
	// ITLQuantiles are quantiles of the time between two tokens.
	ITLQuantiles []QuantileDocument `json:"inter_token_latency_quantiles,omitempty"`
	// E2EQuantiles are quantiles of the latency of a request.
	E2EQuantiles []QuantileDocument `json:"e2e_request_latency_quantiles,omitempty"`
	// KnownDefects are the defects of docs/what-vllm-gets-wrong.md that the metrics of the
	// server have.
	KnownDefects []string `json:"known_defects,omitempty"`
	// PossibleDefects are defects that only some models, requests or deployments have.
	PossibleDefects []string `json:"possible_defects,omitempty"`
}

// ShareDocument is a cause with its share.
type ShareDocument struct {
	// Cause is one of docs/diagnosis.md.
	Cause string `json:"cause"`
	// Share is how much of the harm it explains, from 0 to 1.
	Share float64 `json:"share"`
}

// SignalDocument is a signal of the diagnosis.
type SignalDocument struct {
	// Value is in the unit of the signal.
	Value float64 `json:"value"`
	// Usual is what is usual for it, where that is known.
	Usual *float64 `json:"usual,omitempty"`
}

// QuantileDocument is a quantile of a latency.
type QuantileDocument struct {
	// Quantile is from 0 to 1.
	Quantile float64 `json:"quantile"`
	// Seconds is the latency.
	Seconds float64 `json:"seconds"`
}

// Document returns a table with details as a document.
func (t *Table) Document() *Document {
	Sort(t.Rows, Order{})
	unknown, _ := t.notJudged()
	d := &Document{
		Version: 1, Time: t.At.UTC(), IntervalSeconds: t.Interval.Seconds(), WindowSeconds: t.Window.Seconds(), NotJudged: unknown, LeftOut: t.LeftOut,
		Servers: []ServerDocument{}, Engines: []EngineDocument{},
	}
	seen := map[string]bool{}
	for i := range t.Rows {
		r := &t.Rows[i]
		if r.Pool != "" {
			d.Pools = append(d.Pools, r.document())
			continue
		}
		d.Engines = append(d.Engines, r.document())
		if seen[r.ServerKey] {
			continue
		}
		seen[r.ServerKey] = true
		server := ServerDocument{
			Address: r.Address, Namespace: r.Namespace, Pod: r.Pod, Version: r.Version, Kind: r.Kind, Readable: r.Unread == "",
		}
		if r.Unread != "" {
			server.Failure = &FailureDocument{r.UnreadKind, r.Unread, r.UnreadSince.UTC()}
		}
		d.Servers = append(d.Servers, server)
	}
	slices.SortStableFunc(d.Servers, func(a, b ServerDocument) int { return strings.Compare(a.Address, b.Address) })
	return d
}

func (r *Row) document() EngineDocument {
	known := func(field Field) *float64 { return finite(r.Values[field]) }
	e := EngineDocument{
		Server: r.Address, Model: r.Model, Engine: r.Engine, Pool: r.Pool, Replicas: r.Replicas,
		Condition: r.Condition, Severity: r.Severity, Cause: r.Cause, Detail: r.Detail, Notices: r.Notices, Early: r.Early > 0 || r.notYet(),
		Running: known(Running), Waiting: known(Waiting), KVCache: known(KVCache),
		TTFT: known(TTFT), ITL: known(ITL), E2E: known(E2E), Queue: known(Queue),
		Tokens: known(Tokens), Prompts: known(Prompts), Requests: known(Requests), Arrivals: known(Arrivals),
		Hits: known(Hits), Errors: known(Errors),
	}
	for _, also := range r.Also {
		e.Contributing = append(e.Contributing, ShareDocument{also.Cause, also.Share})
	}
	if r.Condition != "" {
		since := r.Since.UTC()
		words, evidence := r.said()
		e.Since, e.Sentence, e.Next, e.Runbook, e.Evidence = &since, words.Sentence, words.Next, words.Runbook, evidence
	}
	for name, m := range r.Signals {
		if value := finite(m.Value); value != nil {
			if e.Signals == nil {
				e.Signals = map[string]SignalDocument{}
			}
			e.Signals[name] = SignalDocument{*value, finite(m.Usual)}
		}
	}
	if r.Details != nil {
		e.TTFTQuantiles = quantileDocuments(r.Details.Quantiles[QuantilesTTFT])
		e.ITLQuantiles = quantileDocuments(r.Details.Quantiles[QuantilesITL])
		e.E2EQuantiles = quantileDocuments(r.Details.Quantiles[QuantilesE2E])
		e.KnownDefects, e.PossibleDefects = r.Details.Defects.Sure, r.Details.Defects.Possible
	}
	return e
}

// finite returns nil for a number that JSON cannot have.
func finite(value float64) *float64 {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return nil
	}
	return &value
}

func quantileDocuments(all []Quantile) (out []QuantileDocument) {
	for _, q := range all {
		if !math.IsInf(q.Seconds, 0) {
			out = append(out, QuantileDocument(q))
		}
	}
	return out
}
