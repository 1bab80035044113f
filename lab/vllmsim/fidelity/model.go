package fidelity

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/profile"
)

const componentsFile = "components.csv.gz"

// model returns the simulator's model of an engine: from the table of components where it
// has the pair with this cache, otherwise from components put together from the kernels.
func (d *data) model(e engineOf) (engine.Model, error) {
	found := false
	if e.kv == "bf16" {
		err := d.each(componentsFile, func(r row) {
			found = found || (r.text("gpu") == e.gpu && r.text("model") == e.model && r.whole("tp") == e.tp && r.text("dtype") == e.dtype)
		})
		if err != nil {
			return engine.Model{}, err
		}
	}
	if found {
		return profile.Read(filepath.Join(d.profiles, componentsFile), e.gpu, e.model, e.tp, e.dtype)
	}
	of := e
	if e.dtype == fourBits {
		of.dtype = "fp8"
	}
	parts, err := d.compose(of)
	if err != nil {
		return engine.Model{}, err
	}
	if e.dtype == fourBits {
		for i := range parts.Products {
			parts.Products[i].Seconds *= fourBitShare
		}
	}
	return e.measured(parts)
}

// There are no times of products with 4-bit weights. They take a share of those with 8 bits,
// which is fitted to the closed loops of Llama-3.1-70B on one B200: it is 0.56 by the bytes
// of the weights, and 0.7 in those runs.
const (
	fourBits     = "nvfp4"
	fourBitShare = 0.7
)

// measured is the simulator's model with these parts.
func (e engineOf) measured(parts engine.Parts) (engine.Model, error) {
	tables, err := engine.NewTables(parts)
	if err != nil {
		return engine.Model{}, fmt.Errorf("%s: %w", e, err)
	}
	m := engine.Measured(e.String(), e.card(), tables)
	if e.kv == "fp8" {
		m.KVBytes, m.Blocks = m.KVBytes/2, m.Blocks*2
	}
	return m, nil
}

func (e engineOf) card() engine.Card {
	return engine.Card{GPU: e.gpu, Model: e.model, DType: e.dtype, TP: e.tp}
}

// stepTime is how long the simulated step takes for recorded work, in seconds. What belongs
// to several requests is spread evenly over them.
func stepTime(m engine.Model, w work) float64 {
	var b engine.Batch
	for i := range w.decodeRequests {
		b.AddDecode(1, part(w.decodeKV, w.decodeRequests, i))
	}
	for i := range w.prefillRequests {
		b.AddChunk(part(w.prefillTokens, w.prefillRequests, i), part(w.prefillKV, w.prefillRequests, i))
	}
	return m.StepTime(b, engine.Nominal())
}

// part is the i-th of n parts of a sum.
func part(sum, n, i int) int { return sum*(i+1)/n - sum*i/n }

// sortedEngines returns the engines in the order of their names.
func sortedEngines[V any](of map[engineOf]V) []engineOf {
	out := make([]engineOf, 0, len(of))
	for e := range of {
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b engineOf) int {
		if a.String() < b.String() {
			return -1
		}
		return 1
	})
	return out
}

// qwen05L4 and qwen06H100 are small models, of which there are no measured parts: the
// formula of the simulator with the makers' rates (L4: 300 GB/s, 121 TFLOP/s; H100: 3.35
// TB/s, 989 TFLOP/s) and the models' published shapes.
func qwen05L4() engine.Model {
	m := formula("0.5b-l4", 300e9, 121e12)
	m.MaxSeqs, m.MaxBatchedTokens = 256, 2048 // vLLM's defaults for a GPU of that size.
	m.WeightBytes, m.FlopsPerToken, m.KVBytes = 0.988e9, 0.988e9, 12288
	m.Layers, m.Width, m.Blocks = 24, 896, 50000
	return m
}

func qwen06H100() engine.Model {
	m := formula("0.6b-h100", 3.35e12, 989e12)
	m.WeightBytes, m.FlopsPerToken, m.KVBytes = 1.19e9, 1.19e9, 114688
	m.Layers, m.Width, m.Blocks = 28, 2048, 20000
	return m
}

// formula has usual efficiencies. The host takes longer than in large models, since less of
// its work is hidden behind that of the GPU: 1.5 ms, fitted to the steps of the 0.6B model.
func formula(name string, bandwidth, compute float64) engine.Model {
	return engine.Model{
		Name: name, GPUs: 1, Bandwidth: bandwidth, Compute: compute, StepSeconds: 1.5e-3, SequenceSeconds: 5e-6,
		WeightEfficiency: 0.80, KVEfficiency: 0.75, ComputeEfficiency: 0.55, AttentionEfficiency: 0.40,
	}
}
