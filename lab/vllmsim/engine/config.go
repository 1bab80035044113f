package engine

import (
	"cmp"
	"errors"
	"fmt"
	"math"
)

// Config describes a server, its workload, and the changes to both.
type Config struct {
	// Seed makes the run; equal seeds give equal runs.
	Seed  uint64
	Model Model
	// Engines is the number of data parallel engines, 1 if it is 0.
	Engines int
	// Router is how requests are spread over engines; Weights are for RouteWeights.
	Router  Router
	Weights []float64

	// Blocks is the number of KV blocks with the null block; 0 takes the model's.
	Blocks int
	// BlockSize is in tokens; 0 means 16.
	BlockSize int
	// MaxSeqs, MaxBatchedTokens and MaxModelLen are vLLM's max_num_seqs,
	// max_num_batched_tokens and max_model_len; 0 takes the model's, which are vLLM's
	// defaults for its GPU, and for the length 16384, which users set, or what traffic needs,
	// see Traffic.ModelLen.
	MaxSeqs, MaxBatchedTokens, MaxModelLen int
	// NoPrefixCaching switches prefix caching off.
	NoPrefixCaching bool
	Speculation     Speculation
	// MaxLoRAs is the number of adapters that one step can use; 0 means no LoRA.
	MaxLoRAs int
	FrontEnd FrontEnd
	Transfer Transfer
	// FlopsCounters fills the estimates of operations and memory traffic, Estimates is by
	// what they differ from what is done.
	FlopsCounters bool
	Estimates     Estimates

	Workload Workload
	// Changes are changes of the server and its workload, in the order of their times.
	Changes []Change

	// Lockstep lets all engines begin their steps together, as the data parallel ranks of a
	// mixture-of-experts model do: the slowest one decides, and ranks without requests take
	// part while any has one.
	Lockstep bool

	// Device has the GPUs of each engine simulated: as many as the model is spread over.
	Device *Device

	// FollowBlocks is the share of KV blocks whose residency is observed, as with
	// vLLM's --kv-cache-metrics-sample; 0 is none.
	FollowBlocks float64

	// HostUptime is for how many seconds the host had been up at the start, on whose
	// clock the engine takes its times.
	HostUptime float64

	// Journal receives each event, in the order in which they count.
	Journal func(Event)
	// Tokens receives each part of an answer when the front end passes it on: the number of the
	// client's request, how many tokens it has, and when. Each of several choices gets its own.
	Tokens func(id, tokens int, at float64)
	// KeepOutcomes keeps what Outcomes returns.
	KeepOutcomes bool
	// MostUnderway is how many requests can be under way before the server stops, see
	// Server.Overfull; 0 is any number. It needs KeepOutcomes.
	MostUnderway int
	Semantics    Semantics
}

// Speculation is speculative decoding.
type Speculation struct {
	// Acceptance is, per drafted token of a step, the chance that it is accepted
	// if all before it were. Its length is the number of drafted tokens; none
	// switches speculation off.
	Acceptance []float64
	// Seconds is the time that drafting adds to each step.
	Seconds float64
}

// FrontEnd is what the API server's processor time costs, and by what it delays a request
// without being busy. Requests and batches of outputs are processed in the order of their
// arrival.
type FrontEnd struct {
	// DelaySeconds pass between the end of the work on a request and the moment at which
	// the engine has it: the hand-over between processes and threads. Other requests are
	// worked on meanwhile, so that the delay takes no capacity. ParamFrontEnd does not act
	// on it: waiting for a hand-over is no work that a busy processor would do more slowly,
	// and what a starved front end adds to a latency is its queue.
	//
	// vLLM stamps the arrival of a request before the delay in all versions, and its queue
	// begins after it. So the time to the first token contains it, and the queue time does
	// not.
	DelaySeconds float64
	// RequestSeconds and PromptTokenSeconds are spent on a request before the
	// engine gets it: parsing and turning text into tokens.
	RequestSeconds, PromptTokenSeconds float64
	// BatchSeconds and TokenSeconds are spent on what a step gives: turning tokens
	// into text and sending them.
	BatchSeconds, TokenSeconds float64
	// Processes is the number of API servers, 1 if it is 0.
	Processes int
}

// DefaultFrontEnd is one API server process as it was measured from outside. Published
// benchmarks of small models, whose GPU work is short, show what it takes:
//
//   - Delay: a lone request to a 0.5B model on an L4 waits 27 ms for its first token, and
//     requests to Qwen3-0.6B on an H100 at 16 per second 39 ms. Steps and processor time
//     explain 7 to 10 ms of these; 17 and 29 ms are left.
//   - Request: 32 requests at once to the 0.5B model wait 135 ms in the mean, 62 ms longer
//     than with requests that cost 0.5 ms. In the mean 16 requests are ahead, so that one
//     costs some 4 ms, with its prompt.
//   - Token: Qwen3-0.6B without a limit of the rate completes 95 requests per second, where
//     12 us per token would have allowed 169.
func DefaultFrontEnd() FrontEnd {
	return FrontEnd{
		DelaySeconds: 20e-3, RequestSeconds: 3.5e-3, PromptTokenSeconds: 2e-6, BatchSeconds: 0.2e-3, TokenSeconds: 25e-6,
	}
}

// Transfer is reading the KV cache of a prompt from another server that has
// computed it.
type Transfer struct {
	// Share of the requests with such a prompt.
	Share float64
	// Latency is in seconds, BytesPerSecond the rate for one transfer.
	Latency, BytesPerSecond float64
}

// Estimates are factors by which vLLM's estimates of a model's work are wrong. The zero
// value means that they are right.
type Estimates struct {
	// Flops is of operations, Weights and KV of bytes.
	Flops, Weights, KV float64
}

// Router is how a server spreads requests over its engines.
type Router int

// The routers.
const (
	// RouteLeastLoad takes the engine with the least of 4 x waiting + running,
	// as vLLM's own load balancing does, here with present numbers.
	RouteLeastLoad Router = iota
	// RouteRoundRobin takes one after the other.
	RouteRoundRobin
	// RouteWeights takes engines at random, by Config.Weights.
	RouteWeights
)

// maxEngines is the greatest number of engines of a server.
const maxEngines = 64

// ErrSmallCache is in the error about a KV cache that is too small for the longest request.
var ErrSmallCache = errors.New("cannot hold one request")

// withDefaults completes the configuration and checks it.
func (c Config) withDefaults() (Config, error) {
	for _, n := range []struct {
		field  *int
		preset int
	}{
		{&c.Engines, 1},
		{&c.BlockSize, 16},
		{&c.MaxSeqs, cmp.Or(c.Model.MaxSeqs, 1024)},
		{&c.MaxBatchedTokens, cmp.Or(c.Model.MaxBatchedTokens, 8192)},
		{&c.Blocks, c.Model.Blocks},
		{&c.FrontEnd.Processes, 1},
	} {
		if *n.field == 0 {
			*n.field = n.preset
		}
		if *n.field < 0 {
			return c, fmt.Errorf("a limit is %d, below 0", *n.field)
		}
	}
	if c.Model.Tables == nil && (c.Model.Bandwidth <= 0 || c.Model.Compute <= 0 || c.Model.GPUs <= 0 || c.Model.WeightEfficiency <= 0 ||
		c.Model.ComputeEfficiency <= 0 || c.Model.KVEfficiency <= 0 || c.Model.AttentionEfficiency <= 0) {
		return c, fmt.Errorf("model %q: rates, efficiencies and GPUs must be above 0", c.Model.Name)
	}
	if c.Estimates == (Estimates{}) {
		c.Estimates = Estimates{1, 1, 1}
	}
	if c.MaxModelLen == 0 {
		c.MaxModelLen = c.Workload.Traffic.ModelLen((c.Blocks-1)*c.BlockSize - len(c.Speculation.Acceptance))
	}
	for _, cost := range []float64{
		c.FrontEnd.DelaySeconds, c.FrontEnd.RequestSeconds, c.FrontEnd.PromptTokenSeconds, c.FrontEnd.BatchSeconds, c.FrontEnd.TokenSeconds,
	} {
		if !(cost >= 0 && !math.IsInf(cost, 1)) {
			return c, fmt.Errorf("front end: a time of %v s is below 0 or infinite", cost)
		}
	}
	perDecode := 1 + len(c.Speculation.Acceptance)
	switch {
	case c.Engines > maxEngines:
		return c, fmt.Errorf("engines: %d is above %d", c.Engines, maxEngines)
	case perDecode > 1+maxDraft:
		return c, fmt.Errorf("speculation: %d drafted tokens are more than %d", perDecode-1, maxDraft)
	case c.MaxBatchedTokens < perDecode:
		return c, fmt.Errorf("batched tokens %d are fewer than one sequence takes in a step, %d", c.MaxBatchedTokens, perDecode)
	case c.MaxModelLen < 16:
		return c, fmt.Errorf("model length %d is below 16", c.MaxModelLen)
	case c.Blocks <= c.longest():
		return c, fmt.Errorf("a KV cache of %d blocks of %d tokens %w of %d tokens", c.Blocks, c.BlockSize, ErrSmallCache, c.MaxModelLen)
	case !(c.HostUptime >= 0 && !math.IsInf(c.HostUptime, 1)):
		return c, fmt.Errorf("uptime of the host %v s is below 0 or infinite", c.HostUptime)
	case !(c.FollowBlocks >= 0 && c.FollowBlocks <= 1):
		return c, fmt.Errorf("share of KV blocks to follow %v is not between 0 and 1", c.FollowBlocks)
	case c.MaxLoRAs < 0 || c.MaxLoRAs > maxAdapters:
		return c, fmt.Errorf("LoRA slots: %d is not between 0 and %d", c.MaxLoRAs, maxAdapters)
	case c.Transfer.Share > 0 && (c.Transfer.BytesPerSecond <= 0 || c.Transfer.Latency < 0):
		return c, errors.New("transfers need a rate above 0 and no negative latency")
	case c.Router == RouteWeights && len(c.Weights) != c.Engines:
		return c, fmt.Errorf("%d weights for %d engines", len(c.Weights), c.Engines)
	}
	for _, p := range c.Speculation.Acceptance {
		if !(p >= 0 && p <= 1) {
			return c, fmt.Errorf("acceptance %v is not between 0 and 1", p)
		}
	}
	if err := c.Workload.check(); err != nil {
		return c, err
	}
	last, engines := 0.0, float64(c.Engines)
	for _, change := range c.Changes {
		if err := change.check(c.Engines); err != nil {
			return c, err
		}
		if !(change.At >= last) || math.IsInf(change.At, 1) {
			return c, fmt.Errorf("change of %s at %v s: changes must stand in the order of their times", change.Parameter, change.At)
		}
		last = change.At
		if change.Parameter.OfDevice() && c.Device == nil {
			return c, fmt.Errorf("change of %s at %v s: it acts on GPUs, and this server has none that are simulated", change.Parameter, change.At)
		}
		if change.Parameter == ParamScaleUp {
			engines += change.Value
		}
	}
	if engines > maxEngines {
		return c, fmt.Errorf("engines: %v with those of scale_up is above %d", engines, maxEngines)
	}
	return c, nil
}

// longest is the number of blocks that the longest possible request needs,
// with the tokens drafted beyond its end.
func (c Config) longest() int {
	return (c.MaxModelLen + len(c.Speculation.Acceptance) + c.BlockSize - 1) / c.BlockSize
}
