package fidelity

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// wholeRun is a run of which the times of each request were recorded.
type wholeRun struct {
	name  string
	of    engineOf
	seqs  int
	cache int // In tokens; 0 is what the simulator gives the model.
	ranks int
	note  string
}

var runs = []wholeRun{
	{name: "rtx-4090-llama-3.1-8b", of: engineOf{"RTX-4090", "Llama-3.1-8B", 1, "bf16", "bf16"}, seqs: 256, cache: 41408, ranks: 1},
	{name: "rtx-pro-6000-llama-3.1-8b", of: engineOf{"RTX-PRO-6000", "Llama-3.1-8B", 1, "bf16", "bf16"}, seqs: 128, ranks: 1},
	{
		name: "rtx-pro-6000-qwen3-30b-a3b", of: engineOf{"RTX-PRO-6000", "Qwen3-30B-A3B", 1, "bf16", "bf16"}, seqs: 128, cache: 290000, ranks: 2,
		note: "two ranks in lockstep; the size of the cache was not recorded",
	},
}

// wholeRuns sends the requests of recorded runs at their times.
func wholeRuns(ctx context.Context, d *data) ([]Line, error) {
	var out []Line
	for _, r := range runs {
		traffic := &engine.Traffic{Name: r.name, Span: longest}
		var first, gap, whole []float64
		last, tokens := 0.0, 0.0
		err := d.each("runs/"+r.name+"-requests.csv", func(q row) {
			at, begins, ends, n := q.number("arrival_s"), q.number("first_token_s"), q.number("last_token_s"), q.number("output_tokens")
			traffic.Arrivals = append(traffic.Arrivals, engine.Arrival{At: at, Prompt: int32(q.whole("prompt_tokens")), Output: int32(n)})
			first, whole = append(first, 1e3*(begins-at)), append(whole, ends-at)
			if n > 1 {
				gap = append(gap, 1e3*(ends-begins)/(n-1))
			}
			last, tokens = max(last, ends), tokens+n
		})
		if err != nil {
			return nil, err
		}
		parts, err := d.layers(r.of)
		if err != nil {
			return nil, err
		}
		m, err := r.of.measured(parts)
		if err != nil {
			return nil, err
		}
		cfg := engine.Config{
			Seed: 1, Model: m, FrontEnd: engine.DefaultFrontEnd(), MaxSeqs: r.seqs, MaxBatchedTokens: 2048, MaxModelLen: 8192,
			Engines: r.ranks, Lockstep: r.ranks > 1, Blocks: r.cache / 16, Workload: engine.Workload{Traffic: traffic},
		}
		a, err := run(ctx, cfg, len(traffic.Arrivals))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.name, err)
		}
		latency := mean(a.each(func(o engine.Outcome) float64 { return o.Ended - o.Arrived }))
		for _, l := range []struct {
			quantity            string
			measured, simulated float64
			bar                 float64
		}{
			{TPOT, mean(gap), mean(a.gaps()), 0.15},
			{TTFT, mean(first), mean(a.first()), 0.25},
			{Latency, mean(whole), latency, 0.25},
			{Throughput, tokens / last, a.tokensPerSecond(), 0.25},
		} {
			out = append(out, Line{
				What: r.name, Quantity: l.quantity, Bar: l.bar, Note: r.note,
				Pairs: []Pair{{r.name, l.measured, l.simulated}},
			})
		}
	}
	return out, nil
}

// expertsOf is how many experts a mixture has and how many compute each token.
var expertsOf = map[string][2]float64{"Qwen3-30B-A3B": {128, 8}}

// layers puts the components of a model together from the times of its layers.
func (d *data) layers(e engineOf) (p engine.Parts, err error) {
	tokens, sequences := map[float64]float64{}, map[float64]float64{}
	moe := map[float64]map[float64]float64{}
	err = d.each("rtx-layers.csv.gz", func(r row) {
		if r.text("gpu") != e.gpu || r.text("model") != e.model || r.whole("tp") != e.tp {
			return
		}
		x, ms := r.number("x"), r.number("times_per_step")*r.number("us")/1e3
		switch r.text("kind") {
		case "tokens":
			tokens[x] += ms
		case "sequences":
			sequences[x] += ms
		case "moe":
			if moe[x] == nil {
				moe[x] = map[float64]float64{}
			}
			moe[x][r.number("experts")] = ms
		}
	})
	if err != nil {
		return p, err
	}
	if len(tokens) < 2 || len(sequences) < 2 {
		return p, fmt.Errorf("there are no times of layers for %s", e)
	}
	mixture := map[float64]float64{}
	for x, byExperts := range moe {
		all, each := expertsOf[e.model][0], expertsOf[e.model][1]
		if all == 0 {
			return p, fmt.Errorf("the experts of %s are not known", e.model)
		}
		mixture[x] = newSeries(byExperts).at(all * (1 - math.Pow(1-each/all, x)))
	}
	for _, x := range slices.Sorted(maps.Keys(tokens)) {
		ms := tokens[x]
		if len(mixture) > 0 {
			ms += newSeries(mixture).at(x)
		}
		p.Products = append(p.Products, point(x, 0, ms))
	}
	for x, ms := range sequences {
		p.Head = append(p.Head, point(x, 0, ms))
	}
	err = d.each("rtx-attention.csv.gz", func(r row) {
		if r.text("gpu") != e.gpu || r.text("model") != e.model || r.whole("tp") != e.tp {
			return
		}
		ms := r.number("times_per_step") * r.number("us") / 1e3
		switch chunk, decodes := r.number("prefill_chunk"), r.number("n_decode"); {
		case chunk == 0:
			p.Decode = append(p.Decode, point(decodes, r.number("kv_decode"), ms))
		case decodes == 0:
			p.Prefill = append(p.Prefill, point(chunk, r.number("kv_prefill"), ms))
		}
	})
	return p, err
}
