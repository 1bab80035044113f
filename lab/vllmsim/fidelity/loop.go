package fidelity

import (
	"context"
	"fmt"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// answers are what clients of a run saw.
type answers struct {
	outcomes []engine.Outcome
	// from and to are the first arrival and the end of the last answer, in seconds.
	from, to float64
	// usage is the mean share of the KV cache in use, from the first arrival on.
	usage float64
}

// sampled is how often the use of the cache is looked at, in seconds: often enough that the
// rhythm of requests does not matter.
const sampled = 0.1

// longest is how long a run may take, in virtual seconds.
const longest = 6 * 3600

// run lets the clients of a configuration work until so many requests are answered.
func run(ctx context.Context, cfg engine.Config, requests int) (answers, error) {
	cfg.KeepOutcomes = true
	s, err := engine.New(cfg)
	if err != nil {
		return answers{}, err
	}
	var a answers
	var usage []float64
	for now := sampled; len(a.outcomes) < requests; now += sampled {
		if now > longest {
			return a, fmt.Errorf("%d of %d requests are not answered after %d simulated seconds", requests-len(a.outcomes), requests, longest)
		}
		if err := ctx.Err(); err != nil {
			return a, err
		}
		s.AdvanceTo(now)
		a.outcomes = append(a.outcomes, s.Outcomes()...)
		used, all := 0, 0
		for _, st := range s.States() {
			used, all = used+st.UsedBlocks, all+st.Blocks
		}
		usage = append(usage, float64(used)/float64(all))
	}
	a.outcomes = a.outcomes[:requests]
	a.from = a.outcomes[0].Arrived
	for _, o := range a.outcomes {
		a.from, a.to = min(a.from, o.Arrived), max(a.to, o.Ended)
	}
	a.usage = mean(usage)
	return a, nil
}

func (a answers) each(of func(engine.Outcome) float64) []float64 {
	out := make([]float64, len(a.outcomes))
	for i, o := range a.outcomes {
		out[i] = of(o)
	}
	return out
}

// first and gaps are in milliseconds, as clients see them: with the way through the front
// end. Requests with one token have no gap.
func (a answers) first() []float64 {
	return a.each(func(o engine.Outcome) float64 { return 1e3 * o.FirstToken })
}

func (a answers) gaps() []float64 {
	var out []float64
	for _, o := range a.outcomes {
		if o.Output > 1 {
			out = append(out, 1e3*(o.Ended-o.Arrived-o.FirstToken)/float64(o.Output-1))
		}
	}
	return out
}

func (a answers) tokensPerSecond() float64 {
	tokens := 0
	for _, o := range a.outcomes {
		tokens += o.Output
	}
	return float64(tokens) / (a.to - a.from)
}

func (a answers) requestsPerSecond() float64 { return float64(len(a.outcomes)) / (a.to - a.from) }

// found is the share of the prompts' tokens that were in the prefix cache.
func (a answers) found() float64 {
	prompts, found := 0, 0
	for _, o := range a.outcomes {
		prompts, found = prompts+o.Prompt, found+o.Cached
	}
	return float64(found) / float64(prompts)
}
