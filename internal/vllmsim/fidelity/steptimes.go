package fidelity

import (
	"context"
	"fmt"
	"math"
)

// work is what a step has to do, as it was recorded.
type work struct {
	prefillTokens, prefillRequests, prefillKV int
	decodeRequests, decodeKV                  int
}

func (w work) kind() string {
	switch {
	case w.prefillTokens == 0:
		return "decode"
	case w.decodeRequests == 0:
		return "prompts only"
	default:
		return "prompts and decode"
	}
}

// fits groups steps of about the same work, so that one stall is not a case of its own:
// the numbers of tokens and requests by about a fifth, and those of the cache by a half.
func (w work) alike() work {
	group := func(n int, per float64) int {
		if n < 2 {
			return n
		}
		return int(math.Round(math.Pow(2, math.Round(math.Log2(float64(n))*per)/per)))
	}
	return work{
		group(w.prefillTokens, 4), w.prefillRequests, group(w.prefillKV, 2),
		group(w.decodeRequests, 4), group(w.decodeKV, 2),
	}
}

// stepTimes compares the lengths of recorded steps with those that the simulator gives to
// the same batches: one case per kind of step and size of batch, the medians of both.
func stepTimes(_ context.Context, d *data) ([]Line, error) {
	const gpu, model = "B300-SXM", "Qwen3-32B"
	type key struct {
		segment, kind string
		tp            int
	}
	type seen struct{ measured, simulated []float64 }
	lines := map[key]map[work]*seen{}
	models := map[int]func(work) float64{}
	for _, tp := range []int{1, 2, 4, 8} {
		m, err := d.model(engineOf{gpu: gpu, model: model, tp: tp, dtype: "bf16", kv: "bf16"})
		if err != nil {
			return nil, err
		}
		models[tp] = func(w work) float64 { return stepTime(m, w) }
	}
	err := d.each("steps-measured-b300.csv.gz", func(r row) {
		w := work{
			r.whole("prefill_tokens"), r.whole("prefill_requests"), r.whole("prefill_kv_tokens"),
			r.whole("decode_requests"), r.whole("decode_kv_tokens"),
		}
		tp := r.whole("tp")
		if r.text("model") != model || models[tp] == nil || w.prefillTokens+w.decodeRequests == 0 {
			return
		}
		k := key{r.text("segment"), w.kind(), tp}
		if lines[k] == nil {
			lines[k] = map[work]*seen{}
		}
		s := lines[k][w.alike()]
		if s == nil {
			s = &seen{}
			lines[k][w.alike()] = s
		}
		s.measured = append(s.measured, r.number("step_ms"))
		s.simulated = append(s.simulated, 1e3*models[tp](w))
	})
	if err != nil {
		return nil, err
	}
	var out []Line
	for _, tp := range []int{1, 2, 4, 8} {
		for _, k := range []key{{"real", "decode", tp}, {"real", "prompts and decode", tp}, {"sweep", "prompts only", tp}} {
			l := Line{
				What: fmt.Sprintf("%s, %s, TP %d: %s", gpu, model, tp, k.kind), Quantity: StepTime,
				Bar: 0.15, Fitted: tp == 1,
			}
			steps := 0
			for w, s := range lines[k] {
				if len(s.measured) < 3 {
					continue // The first step of a shape can contain its compilation.
				}
				steps += len(s.measured)
				l.Pairs = append(l.Pairs, Pair{fmt.Sprintf("%+v", w), quantile(s.measured, 0.5), quantile(s.simulated, 0.5)})
			}
			l.Note = fmt.Sprintf("%d steps", steps)
			if len(l.Pairs) > 0 {
				out = append(out, l)
			}
		}
	}
	return out, nil
}
