package fidelity

import (
	"context"
	"fmt"
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

// stepTimes compares the lengths of recorded steps with those that the simulator gives to
// the same batches. Each step is a case.
func stepTimes(_ context.Context, d *data) ([]Line, error) {
	const gpu, model = "B300-SXM", "Qwen3-32B"
	type key struct {
		segment, kind string
		tp            int
	}
	lines := map[key]*Line{}
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
			lines[k] = &Line{
				What: fmt.Sprintf("%s, %s, TP %d: %s", gpu, model, tp, k.kind), Quantity: StepTime, Bar: 0.15, Fitted: k.kind == "decode",
			}
		}
		lines[k].Pairs = append(lines[k].Pairs, Pair{fmt.Sprintf("%+v", w), r.number("step_ms"), 1e3 * models[tp](w)})
	})
	if err != nil {
		return nil, err
	}
	var out []Line
	for _, tp := range []int{1, 2, 4, 8} {
		for _, k := range []key{{"real", "decode", tp}, {"real", "prompts and decode", tp}, {"sweep", "prompts only", tp}} {
			if l := lines[k]; l != nil {
				out = append(out, *l)
			}
		}
	}
	return out, nil
}
