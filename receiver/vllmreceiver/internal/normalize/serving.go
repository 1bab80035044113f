package normalize

import (
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/exposition"
)

// The families that show whether a server serves.
const (
	familyFirstToken = "vllm:time_to_first_token_seconds"
	familyGenerated  = "vllm:generation_tokens_total"
	familySleep      = "vllm:engine_sleep_state"
	labelSleep       = "sleep_state"
)

// Serving is what a body shows of the requests that a server answers.
type Serving struct {
	// FirstTokens is how many requests got a first token, of all engines and models. Without
	// that it is how many tokens were generated, and -1 without both.
	FirstTokens float64
	// Asleep is true where an engine sleeps, so that it cannot serve.
	Asleep bool
}

// Serving returns what a body shows of the requests that a server answers.
func (o *Options) Serving(s *exposition.Snapshot) Serving {
	out := Serving{FirstTokens: -1}
	generated := -1.0
	for i := range s.Layout.Families {
		family := &s.Layout.Families[i]
		switch o.SourceName(family.Name) {
		case familyFirstToken:
			out.FirstTokens = total(family, s.Values, func(s *exposition.Series) int { return s.Count })
		case familyGenerated:
			generated = total(family, s.Values, func(s *exposition.Series) int { return s.Value })
		case familySleep:
			out.Asleep = slices.ContainsFunc(family.Series, func(series exposition.Series) bool {
				state := label(series.Labels, labelSleep)
				return series.Value != exposition.NoSlot && state != "" && (s.Values[series.Value] > 0) != (state == "awake")
			})
		}
	}
	if out.FirstTokens < 0 {
		out.FirstTokens = generated
	}
	return out
}

// total adds up one number of each series; -1 where none has it.
func total(family *exposition.Family, values []float64, slot func(*exposition.Series) int) float64 {
	sum, found := 0.0, false
	for i := range family.Series {
		if at := slot(&family.Series[i]); at != exposition.NoSlot {
			sum, found = sum+values[at], true
		}
	}
	if !found || !(sum >= 0) {
		return -1
	}
	return sum
}

// Answers reports whether the server answers requests itself, so that one can be sent to it: it
// is vLLM or its simulator, and the body is its own and not that of a Ray agent.
func (p *Plan) Answers() bool {
	return (p.Server == KindServer && p.signs&signImitator == 0 || p.Server == KindSimulator) && p.signs&signRay == 0 &&
		slices.ContainsFunc(p.Metrics, func(m Metric) bool { return m.Engine })
}

// Transfers reports whether the server takes KV from other servers, or sends it.
func (p *Plan) Transfers() bool { return p.signs&signTransfer != 0 }

// Parallel reports whether the server has several engines.
func (p *Plan) Parallel() bool { return p.signs&signDataParallel != 0 }
