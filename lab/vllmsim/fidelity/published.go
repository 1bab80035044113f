package fidelity

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// The published benchmarks. Each names its source; all numbers are of those pages.
const (
	// sweepA100 is Llama-3.1-8B-Instruct on an A100 with 40 GB: 1024 tokens in, 128 out, 20
	// requests per client.
	sweepA100 = "https://johnmusgrave.com/p/vllm-throughput-latency-sweep-on"
	// sweepL4 is Qwen2.5-0.5B-Instruct on an L4: 256 tokens in, 128 out.
	sweepL4 = "https://ai.wmx.dev/benchmarks"
	// layoutH100 is Qwen3-0.6B on an H100: 512 tokens in, 128 out, 500 requests.
	layoutH100 = "https://github.com/ovg-project/kvcached/pull/331"
	// shareGPT is Llama-3.1-8B-Instruct with 1000 conversations at once; its GPU is not named.
	shareGPT = "https://github.com/vllm-project/vllm/pull/18566"
)

// a100Of40GB is the share of the bandwidth of an A100 with 80 GB (2039 GB/s) that one with
// 40 GB has (1555 GB/s), both by the maker.
const a100Of40GB = 1555.0 / 2039

// published repeats published benchmarks.
func published(ctx context.Context, d *data) ([]Line, error) {
	var out []Line
	add := func(what, quantity string, bar, measured, simulated float64, fitted bool, note string) {
		out = append(out, Line{
			What: what, Quantity: quantity, Bar: bar, Fitted: fitted, Note: note,
			Pairs: []Pair{{what, measured, simulated}},
		})
	}
	a100, err := d.model(engineOf{"A100-80G-SXM", "Llama-3.1-8B", 1, "bf16", "bf16"})
	if err != nil {
		return nil, err
	}
	sweep := func(m engine.Model, clients, prompt, output, each int, bandwidth float64) (answers, error) {
		return run(ctx, engine.Config{
			Seed: 1, Model: m, FrontEnd: engine.DefaultFrontEnd(), MaxModelLen: 8192,
			Changes: []engine.Change{{Parameter: engine.ParamBandwidth, Value: bandwidth}},
			Workload: engine.Workload{
				Clients: clients, Traffic: lengths(prompt, output, clients*each, false),
			},
		}, clients*each)
	}
	one, err := sweep(a100, 1, 1024, 128, 20, a100Of40GB)
	if err != nil {
		return nil, err
	}
	eight, err := sweep(a100, 8, 1024, 128, 20, a100Of40GB)
	if err != nil {
		return nil, err
	}
	what := "8B, [A100 of 40 GB](" + sweepA100 + ")"
	add(what+", 1 client", Throughput, 0.25, 75, one.tokensPerSecond(), false, "")
	add(what+", 8 clients", Gain, 0.25, 6.6, eight.tokensPerSecond()/one.tokensPerSecond(), false, "")

	for _, c := range []struct {
		clients        int
		ttft, itl, rps float64
	}{{1, 27.0, 5.1, 1.3}, {8, 60.9, 5.5, 10.2}, {32, 135.3, 7.1, 29.5}} {
		a, err := sweep(qwen05L4(), c.clients, 256, 128, 20, 1)
		if err != nil {
			return nil, err
		}
		what := fmt.Sprintf("0.5B, [L4](%s), %s", sweepL4, clients(c.clients))
		add(what, TPOT, 0.15, c.itl, quantile(a.gaps(), 0.5), false, "its medians")
		add(what, TTFT, 0.25, c.ttft, quantile(a.first(), 0.5), c.clients != 8, "its medians")
		add(what, Requests, 0.25, c.rps, a.requestsPerSecond(), false, "")
	}

	for _, c := range []struct {
		rate              float64
		tpot, ttft, rate_ float64
	}{{16, 2.39, 38.9, 15.87}, {math.Inf(1), 5.45, 2905, 94.91}} {
		a, err := run(ctx, engine.Config{
			Seed: 1, Model: qwen06H100(), FrontEnd: engine.DefaultFrontEnd(), MaxModelLen: 2048,
			Workload: engine.Workload{Traffic: atRate(c.rate, 500, func() (int, int) { return 512, 128 })},
		}, 500)
		if err != nil {
			return nil, err
		}
		what := fmt.Sprintf("0.6B, [H100](%s), %v per second", layoutH100, c.rate)
		if math.IsInf(c.rate, 1) {
			what = fmt.Sprintf("0.6B, [H100](%s), 500 at once", layoutH100)
			add(what, Requests, 0.25, c.rate_, a.requestsPerSecond(), true, "")
		}
		add(what, TPOT, 0.15, c.tpot, mean(a.gaps()), c.rate == 16, "")
		add(what, TTFT, 0.25, c.ttft, mean(a.first()), c.rate == 16, "")
	}

	for _, gpu := range []string{"H100-80G-SXM", "A100-80G-SXM"} {
		m, err := d.model(engineOf{gpu, "Llama-3.1-8B", 1, "bf16", "bf16"})
		if err != nil {
			return nil, err
		}
		a, err := run(ctx, engine.Config{
			Seed: 1, Model: m, FrontEnd: engine.DefaultFrontEnd(), MaxModelLen: 8192, MaxSeqs: 1024,
			Workload: engine.Workload{Traffic: chats(1000, 229711, 203068)},
		}, 1000)
		if err != nil {
			return nil, err
		}
		what := "8B, [1000 chats at once](" + shareGPT + ")"
		note := "the GPU is not named; this is with " + gpu
		add(what, Requests, 0.25, 32.42, a.requestsPerSecond(), false, note)
		add(what, TTFT, 0.25, 9626, mean(a.first()), false, note)
		add(what, TPOT, 0.15, 77.86, mean(a.gaps()), false, note)
	}
	return out, nil
}

func clients(n int) string {
	if n == 1 {
		return "1 client"
	}
	return fmt.Sprintf("%d clients", n)
}

// atRate are so many requests of a Poisson process; at an infinite rate all at once.
func atRate(rate float64, n int, lengths func() (prompt, output int)) *engine.Traffic {
	rng := rand.New(rand.NewPCG(2, 2))
	t := &engine.Traffic{Name: "benchmark", Span: longest}
	at := 0.0
	for range n {
		prompt, output := lengths()
		t.Arrivals = append(t.Arrivals, engine.Arrival{At: at, Prompt: int32(prompt), Output: int32(output)})
		at += rng.ExpFloat64() / rate
	}
	return t
}

// chats are lengths of chats whose sums are given. Only those are published; the
// spread is that of the data set, lognormal with a sigma of about 1.
func chats(n, prompts, outputs int) *engine.Traffic {
	rng := rand.New(rand.NewPCG(3, 3))
	draw := func(total int) []int {
		var raw []float64
		sum := 0.0
		for range n {
			raw = append(raw, min(math.Exp(rng.NormFloat64()), 8))
			sum += raw[len(raw)-1]
		}
		out := make([]int, n)
		for i := range out {
			out[i] = max(1, int(raw[i]/sum*float64(total)+0.5))
		}
		return out
	}
	in, out := draw(prompts), draw(outputs)
	next := 0
	return atRate(math.Inf(1), n, func() (int, int) {
		next++
		return in[next-1], out[next-1]
	})
}
