package judge

import (
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/internal/vllmsim/engine"
)

// mostSent is how many requests of a server are kept for what its users felt, some 100 MB.
// Harm after that is not looked for.
const mostSent = 500_000

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

// usual is what clients wait in the nominal run.
func (t *truth) usual() Usual {
	var all sum
	for i := range t.join.minutes {
		m := &t.join.minutes[i].in[t.nominal]
		all.requests += m.requests
		all.firstToken += m.firstToken
		all.decoding += m.decoding
		all.tokens += m.tokens
	}
	return Usual{First: all.meanFirst(), Token: all.perToken()}
}

// felt is when the users of a server were harmed, by the limits that real servers are judged
// by as well. Outages are not among it: when single tokens came is not known, and tokens that
// are spread evenly hide that none came for a while.
func (t *truth) felt(until float64) []Felt {
	return slices.DeleteFunc(FeltHarm(t.sent, t.usual(), until), func(f Felt) bool { return f.Level == Outage })
}
