package traffic

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// kind is a kind of generated traffic.
type kind struct {
	// trace is the published one to which it is fitted, about what it is.
	trace, about string
	// rate is that of the trace, in requests per second.
	rate float64
	make func(seed uint64, rate, seconds float64) *engine.Traffic
}

// kinds are all by name. fitted_generated.go has their constants and where they come from.
var kinds = map[string]kind{
	"conversation": {
		trace: "azure-2023-conv", about: "a chat service as one stream",
		rate: conversationFit.rate, make: conversationFit.generate,
	},
	"long-context": {
		trace: "mooncake-conversation", about: "chats of several turns with long prompts, which share their beginnings",
		rate: longContextFit.rate, make: longContextFit.generate,
	},
	"tenants": {
		trace: "servegen-large-24h", about: "thirty tenants of a language model",
		rate: tenantsFit.rate, make: tenantsFit.generate,
	},
	"reasoning": {
		trace: "servegen-reasoning-24h", about: "47 tenants of a reasoning model, with long answers",
		rate: reasoningFit.rate, make: reasoningFit.generate,
	},
	"batch": {
		trace: "servegen-small-12h", about: "one tenant that sends batches, over three calm ones",
		rate: batchFit.rate, make: batchFit.generate,
	},
	"assistant": {
		trace: "coding-assistant", about: "conversations with a coding assistant, a closed loop",
		rate: assistantFit.rate, make: assistantFit.generate,
	},
}

// Names are the kinds of traffic that Generate knows.
func Names() []string { return slices.Sorted(maps.Keys(kinds)) }

// About describes a kind in a few words.
func About(name string) string { return kinds[name].about }

// What may be asked for. Requests take about 50 bytes each, those with blocks about 100.
const (
	maxRate     = 1000
	maxDays     = 100
	maxRequests = 5_000_000
)

// Generate makes traffic of a kind: rate requests per second on average, 0 for as many as the
// trace has to which the kind is fitted, for so many seconds. Equal arguments make equal
// traffic, another seed other tenants of the same family.
//
// A closed loop has no rate of its own; it gets as many conversations as have rate x seconds
// requests.
func Generate(name string, seed uint64, rate, seconds float64) (*engine.Traffic, error) {
	k, known := kinds[name]
	if !known {
		return nil, fmt.Errorf("unknown kind of traffic %q: want one of %s", name, strings.Join(Names(), ", "))
	}
	if rate == 0 {
		rate = k.rate
	}
	switch {
	case !(rate > 0 && rate <= maxRate):
		return nil, fmt.Errorf("rate %v is not between 0 and %d requests per second", rate, maxRate)
	case !(seconds > 0 && seconds <= maxDays*86400):
		return nil, fmt.Errorf("%v s is not a length of traffic: want more than 0 and at most %d days", seconds, maxDays)
	case rate*seconds > maxRequests:
		return nil, fmt.Errorf("%v requests per second for %v s are more than %d requests: want a lower rate or less time", rate, seconds, maxRequests)
	}
	t := k.make(seed, rate, seconds)
	t.Name = name
	return t, nil
}

// finishArrivals sorts what tenants sent and rounds the times, so that a trace that is written
// and read back is the same.
func finishArrivals(all []engine.Arrival, seconds float64) *engine.Traffic {
	const digits = 1e4
	for i := range all {
		all[i].At = math.Floor(all[i].At*digits) / digits
	}
	slices.SortFunc(all, func(a, b engine.Arrival) int { return cmp.Compare(a.At, b.At) })
	return &engine.Traffic{Arrivals: all, Span: seconds}
}
