package judge

import "github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"

// unqueued is what a request would take if it were alone on the idle nominal server, given
// what it found in the cache.
func unqueued(idle *engine.Alone, s *seen, objectives []objective) seen {
	first, gap := idle.Request(s.prompt, s.cached, s.output)
	out := *s
	out.first, out.queued, out.decoding = first, 0, gap*s.tokens
	out.complete = true
	out.over, out.of = make([]float64, len(objectives)), make([]float64, len(objectives))
	for i, o := range objectives {
		out.of[i] = 1
		v := gap
		switch o.of {
		case firstToken:
			v = first
		case wholeTime:
			v = first + out.decoding
		case interToken, tokenMean:
		}
		if v > o.threshold {
			out.over[i] = 1
		}
	}
	return out
}
