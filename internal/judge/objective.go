package judge

import "github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor"

// objective requires that the share target of the observations is at most threshold
// seconds.
type objective struct {
	of                indicator
	threshold, target float64
}

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

func objectivesOf(config *vllmprocessor.Config) []objective {
	var out []objective
	for _, o := range config.Objectives {
		if of, known := indicators[o.Metric]; known {
			out = append(out, objective{of, o.Threshold.Seconds(), o.Target})
		}
	}
	return out
}
