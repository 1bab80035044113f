package judge

import (
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// mostSent is how many requests of a server are kept for what its users felt, some 250 MB.
// Harm after that is not looked for.
const mostSent = 2_000_000

// sent is a simulated request as its client saw it, of which the first and the last token are
// known.
func (s *seen) sent() Sent {
	out := Sent{At: s.arrived, End: s.first + s.decoding, Prompt: s.prompt, Cached: s.cached, Output: s.output}
	switch {
	case s.output > 1 && s.decoding > 0:
		out.Tokens = Times{s.first, s.first + s.decoding}
	case s.output > 0:
		out.Tokens = Times{s.first}
	}
	switch s.end {
	case engine.EndStop, engine.EndLength:
		out.How = Answered
	case engine.EndRefused:
		out.How = Refused
	case engine.EndError, engine.EndAborted:
		out.How = Failed
	default:
		out.How = Left
	}
	return out
}

// usual is what clients wait in the median minute of the nominal run: bursts of its traffic are not
// usual, and their queues would be most of a mean.
func (t *truth) usual() Usual {
	var first, token, computed, tokens []float64
	for i := range t.join.minutes {
		m := &t.join.minutes[i].in[t.nominal]
		if m.requests > 0 {
			first = append(first, m.meanFirst())
			computed, tokens = append(computed, m.meanComputed()), append(tokens, m.meanTokens())
		}
		if m.tokens > 0 {
			token = append(token, m.perToken())
		}
	}
	out := Usual{First: median(first), Token: median(token), computed: median(computed), tokens: median(tokens)}
	for _, o := range t.objectives {
		switch o.of {
		case firstToken:
			out.PromisedFirst = max(out.PromisedFirst, o.threshold)
		case interToken:
			out.PromisedToken = max(out.PromisedToken, o.threshold)
		}
	}
	return out
}

// median is 0 without values.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// felt is when the users of a server were harmed, by the limits that real servers are judged
// by as well. Outages are not among it: when single tokens came is not known, and tokens that
// are spread evenly hide that none came for a while.
func (t *truth) felt(until float64) []Felt {
	return slices.DeleteFunc(FeltHarm(t.sent, t.usual(), until), func(f Felt) bool { return f.Level == Outage })
}
