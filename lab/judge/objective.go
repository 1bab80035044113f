package judge

import (
	"fmt"
	"math"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor"
)

// objective requires that the share target of the observations is at most threshold
// seconds.
type objective struct {
	of                indicator
	threshold, target float64
}

// allowed is the share of the observations that may exceed the threshold. It is rounded,
// because 1 - 0.9 is less than 10 of 100, and never 0, because what exceeds the threshold is
// divided by it.
func (o objective) allowed() float64 { return max(1, math.Round((1-o.target)*1e12)) / 1e12 }

// measure is a time of which clients notice when it becomes longer.
type measure int

const (
	toFirst measure = iota // From the arrival to the first token.
	toToken                // From one token to the next.
	toEnd                  // From the arrival to the end.
	measures
)

// indicator is what an objective is about.
type indicator int

// The indicators by the processor's names. Objectives about other times, which clients do
// not see, decide nothing about harm.
const (
	firstToken indicator = iota // Of requests.
	interToken                  // Of gaps between tokens.
	tokenMean                   // Of requests: their mean gap.
	wholeTime                   // Of requests, from arrival to end.
)

var indicators = map[string]indicator{
	"vllm.time_to_first_token":           firstToken,
	"vllm.inter_token_latency":           interToken,
	"vllm.request.time_per_output_token": tokenMean,
	"vllm.e2e_request_latency":           wholeTime,
}

// measure returns the measure that an indicator is about.
func (i indicator) measure() measure {
	return [...]measure{firstToken: toFirst, interToken: toToken, tokenMean: toToken, wholeTime: toEnd}[i]
}

// objectivesOf are the objectives that clients notice, of those that are for the model of the
// servers.
func objectivesOf(config *vllmprocessor.Config) []objective {
	var out []objective
	for _, o := range config.Objectives {
		if of, known := indicators[o.Metric]; known && o.Matches(modelName) {
			out = append(out, objective{of, o.Threshold.Seconds(), o.Target})
		}
	}
	return out
}

// notesOn are sentences about objectives that do not count as they are written.
func notesOn(config *vllmprocessor.Config) []string {
	var out []string
	for _, o := range config.Objectives {
		threshold, used := time.Duration(o.Threshold), gapThreshold(o.Threshold.Seconds())
		switch {
		case !o.Matches(modelName):
			out = append(out, fmt.Sprintf("objective %q has no effect: it is for other models than %s, the one of the servers", o.Name, modelName))
		case o.Metric != "vllm.inter_token_latency" || used == threshold:
		case used == 0:
			out = append(out, fmt.Sprintf("objective %q: all times between two tokens count as longer than %s, because the truth has them by "+
				"bounds; of these %vs is the least", o.Name, threshold, engine.GapBounds[0]))
		default:
			out = append(out, fmt.Sprintf("objective %q: the truth uses the threshold %s instead of %s, because it has the times between two "+
				"tokens by bounds; of these %s is the nearest below", o.Name, used, threshold, used))
		}
	}
	return out
}

// gapThreshold returns the greatest of the engine's bounds of gaps that is not above a
// threshold in seconds: gaps beyond it count as beyond the threshold. It is 0 where all are above.
func gapThreshold(seconds float64) time.Duration {
	used := 0.0
	for _, bound := range engine.GapBounds {
		if bound <= seconds {
			used = bound
		}
	}
	return time.Duration(math.Round(used * 1e9))
}
