// Package observed holds what a vLLM server observes about its engines: the
// counters, gauges and histograms behind its metrics, whatever version and
// dialect they are shown in. Package engine fills it, and package surface turns it
// into families.
package observed

// Reason is why a request finished.
type Reason int

// The reasons in the order in which vLLM creates their series.
const (
	ReasonStop Reason = iota
	ReasonLength
	ReasonAbort
	ReasonError
	ReasonRepetition
	reasonCount
)

// String returns the value of the finished_reason label.
func (r Reason) String() string {
	return [...]string{"stop", "length", "abort", "error", "repetition"}[r]
}

// Stats has all numbers that an engine reports. All counters and histograms count since the
// engine's start; times in it are seconds since that start.
type Stats struct {
	// Running, WaitingCapacity and WaitingDeferred are numbers of requests as of
	// the last step, since an engine reports only when it steps.
	Running, WaitingCapacity, WaitingDeferred int
	// LastStep is when the last step ended.
	LastStep float64
	// KVUsage is the share of KV blocks in use, 0 to 1.
	KVUsage float64
	// ProcessUsage is the same as each of several API servers was told it last; nil with
	// one.
	ProcessUsage []float64
	// PromptRate and GenerationRate are tokens per second over the last ten
	// seconds, which is how the V0 engine reported throughput.
	PromptRate, GenerationRate float64

	// PrefixQueries and PrefixHits are in tokens, PrefixQueryBlocks and
	// PrefixHitBlocks the same in full blocks, the unit before v0.9.0.
	PrefixQueries, PrefixHits          float64
	PrefixQueryBlocks, PrefixHitBlocks float64
	// PromptTokens counts prompts at their first token, PromptCached the part
	// that was not computed, PromptExternal the part of that from other servers.
	PromptTokens, PromptCached, PromptExternal float64
	// ExternalQueries and ExternalHits are tokens looked up and found at other
	// servers, TransferFailures transfers from there that failed.
	ExternalQueries, ExternalHits, TransferFailures float64
	GenerationTokens, Preemptions                   float64
	// MediaQueries and MediaHits are items looked up and found in the multi-modal cache.
	MediaQueries, MediaHits float64
	// Finished counts requests by reason; Corrupted those among them whose logits
	// were not numbers.
	Finished  [reasonCount]float64
	Corrupted float64
	// SleepLevel is 0 while awake, 1 with weights moved out, 2 with all discarded.
	SleepLevel                          int
	Drafts, DraftTokens, AcceptedTokens float64
	// AcceptedPerPosition has an entry per drafted token of a step.
	AcceptedPerPosition            []float64
	Flops, ReadBytes, WriteBytes   float64
	PromptLength, GenerationLength *Histogram
	// LongestGeneration is of the longest of several choices.
	LongestGeneration                   *Histogram
	IterationTokens                     *Histogram
	ParamsN, ParamsMaxTokens            *Histogram
	FirstToken, InterToken, TokenMean   *Histogram
	EndToEnd, Queue, Inference          *Histogram
	Prefill, Decode                     *Histogram
	PrefillComputed, RequestPreemptions *Histogram
	// Of KV blocks whose content was thrown out: how long it was there, how long
	// without use at the end, and how long between uses.
	BlockLifetime, BlockIdle, BlockReuseGap *Histogram

	// Adapters are the sets of LoRA adapters seen so far, oldest first.
	Adapters []AdapterSet
	// HTTP is what the front end saw, one entry per handler in use.
	HTTP []*Handler
	// HTTPFine are the durations of all requests whatever their handler.
	HTTPFine *Histogram
}

// Waiting is the number of requests that wait for whatever reason.
func (s *Stats) Waiting() int { return s.WaitingCapacity + s.WaitingDeferred }

// AdapterSet is one combination of running and waiting LoRA adapters.
type AdapterSet struct {
	// Running and Waiting are adapter names in order, joined by commas.
	Running, Waiting string
	// First and Last are when the engine was first and last in this state.
	First, Last float64
}

// Handler holds what the HTTP front end counts for one path.
type Handler struct {
	Path string
	// ByStatus counts requests by status group: "2xx", "4xx", "5xx".
	ByStatus map[string]float64
	// Since is when the path was first answered, StatusSince the same by status.
	Since       float64
	StatusSince map[string]float64
	// RequestBytes and ResponseBytes are content lengths summed.
	RequestBytes, ResponseBytes float64
	Duration                    *Histogram
}

// Requests is the number of requests of any status.
func (h *Handler) Requests() float64 {
	total := 0.0
	for _, n := range h.ByStatus {
		total += n
	}
	return total
}

// NewStats returns the numbers of an engine that has not done anything yet and
// drafts so many tokens per step.
func NewStats(draft int) *Stats {
	return &Stats{
		AcceptedPerPosition: make([]float64, draft),
		PromptLength:        NewHistogram(tokenBounds),
		GenerationLength:    NewHistogram(tokenBounds),
		LongestGeneration:   NewHistogram(tokenBounds),
		IterationTokens:     NewHistogram(iterationBounds),
		ParamsN:             NewHistogram(smallBounds),
		ParamsMaxTokens:     NewHistogram(tokenBounds),
		FirstToken:          NewHistogram(firstTokenBounds),
		InterToken:          NewHistogram(tokenTimeBounds),
		TokenMean:           NewHistogram(tokenTimeBounds),
		EndToEnd:            NewHistogram(latencyBounds),
		Queue:               NewHistogram(latencyBounds),
		Inference:           NewHistogram(latencyBounds),
		Prefill:             NewHistogram(latencyBounds),
		Decode:              NewHistogram(latencyBounds),
		PrefillComputed:     NewHistogram(tokenBounds),
		RequestPreemptions:  NewHistogram(smallBounds),
		BlockLifetime:       NewHistogram(residencyBounds),
		BlockIdle:           NewHistogram(residencyBounds),
		BlockReuseGap:       NewHistogram(residencyBounds),
		HTTPFine:            NewHistogram(httpFineBounds),
	}
}

// Answered records one answered HTTP request.
func (s *Stats) Answered(now float64, path, status string, seconds float64, requestBytes, responseBytes int) {
	var handler *Handler
	for _, h := range s.HTTP {
		if h.Path == path {
			handler = h
		}
	}
	if handler == nil {
		handler = &Handler{
			Path: path, Since: now,
			ByStatus: map[string]float64{}, StatusSince: map[string]float64{},
			Duration: NewHistogram(httpCoarseBounds),
		}
		s.HTTP = append(s.HTTP, handler)
	}
	if _, seen := handler.ByStatus[status]; !seen {
		handler.StatusSince[status] = now
	}
	handler.ByStatus[status]++
	handler.RequestBytes += float64(requestBytes)
	handler.ResponseBytes += float64(responseBytes)
	handler.Duration.Observe(seconds)
	s.HTTPFine.Observe(seconds)
}
