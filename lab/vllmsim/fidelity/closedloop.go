package fidelity

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// perClient is how many requests each client of a closed loop sends. The sources do not
// say it; ten is the custom of the benchmark that most of them used, and all clients begin
// at once, so that a tenth of the requests waits behind all others.
const perClient = 10

// closedLoops runs so many clients against the simulator, each of which sends its next
// request when it has the answer to the last one.
func closedLoops(ctx context.Context, d *data) ([]Line, error) {
	return closedLoopsOf(ctx, d, func(engineOf) bool { return true })
}

func closedLoopsOf(ctx context.Context, d *data, wanted func(engineOf) bool) ([]Line, error) {
	type cell struct{ clients, prompt, output int }
	type measured struct{ ttft, tpot float64 }
	cells := map[engineOf]map[cell]measured{}
	err := d.each("closed-loop.csv", func(r row) {
		e := engineOf{r.text("gpu"), r.text("model"), r.whole("tp"), r.text("quant"), "bf16"}
		if _, known := shapes[e.model]; !known {
			return
		}
		if e.gpu == "B200-SXM" {
			e.kv = "fp8" // As those runs had.
		}
		if !wanted(e) {
			return
		}
		if cells[e] == nil {
			cells[e] = map[cell]measured{}
		}
		cells[e][cell{r.whole("concurrency"), r.whole("prompt_tokens"), r.whole("output_tokens")}] = measured{r.number("ttft_ms"), r.number("tpot_ms")}
	})
	if err != nil {
		return nil, err
	}
	var out []Line
	for _, e := range sortedEngines(cells) {
		m, err := d.model(e)
		if err != nil {
			return nil, err
		}
		tpot := Line{What: e.String(), Quantity: TPOT, Bar: 0.15, Fitted: e.dtype == fourBits && e.tp == 1}
		ttft := Line{What: e.String(), Quantity: TTFT, Bar: 0.25}
		for c, real := range cells[e] {
			cfg := engine.Config{
				Seed: 1, Model: m, FrontEnd: engine.DefaultFrontEnd(), MaxModelLen: c.prompt + c.output + 64,
				Workload: engine.Workload{Clients: c.clients, Traffic: lengths(c.prompt, c.output, c.clients*perClient, true)},
			}
			a, err := run(ctx, cfg, c.clients*perClient)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", e, err)
			}
			name := fmt.Sprintf("%d clients, %d in, %d out", c.clients, c.prompt, c.output)
			ttft.Pairs = append(ttft.Pairs, Pair{name, real.ttft, mean(a.first())})
			tpot.Pairs = append(tpot.Pairs, Pair{name, real.tpot, mean(a.gaps())})
		}
		out = append(out, tpot, ttft)
	}
	return out, nil
}

// lengths are requests of a benchmark, equal or up to a fifth shorter.
func lengths(prompt, output, requests int, varied bool) *engine.Traffic {
	rng := rand.New(rand.NewPCG(1, 1))
	length := func(n int) int32 {
		if varied {
			return int32(float64(n) * (0.8 + 0.2*rng.Float64()))
		}
		return int32(n)
	}
	t := &engine.Traffic{Name: "benchmark"}
	for range requests {
		t.Conversations = append(t.Conversations, engine.Conversation{
			Turns: []engine.Turn{{Prompt: length(prompt), Output: length(output)}},
		})
	}
	return t
}
