package fidelity

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// shape is the architecture of a dense model. Heads have a size of 128.
type shape struct {
	layers, hidden, heads, kvHeads, intermediate, vocabulary int
}

var shapes = map[string]shape{
	"Llama-3.1-8B":  {32, 4096, 32, 8, 14336, 128256},
	"Llama-3.3-70B": {80, 8192, 64, 8, 28672, 128256},
	"Llama-3.1-70B": {80, 8192, 64, 8, 28672, 128256},
	"Qwen3-32B":     {64, 5120, 64, 8, 25600, 151936},
}

const headSize = 128

// engineOf is a model on so many GPUs of one kind.
type engineOf struct {
	gpu, model string
	tp         int
	// dtype is of the weights, kv of the cache.
	dtype, kv string
}

func (e engineOf) String() string {
	return fmt.Sprintf("%s, %s %s, TP %d", e.gpu, e.model, e.dtype, e.tp)
}

// compose puts the components of a dense model together from the times of kernels, in the
// way in which the reference data does it for others: products by interpolation in the
// logarithms of their sizes, attention at the heads of one GPU, two all-reduces per layer.
func (d *data) compose(e engineOf) (p engine.Parts, err error) {
	s, known := shapes[e.model]
	if !known {
		return p, fmt.Errorf("the shape of %s is not known", e.model)
	}
	products, err := d.products(e.gpu, e.dtype)
	if err != nil {
		return p, err
	}
	heads, kvHeads := s.heads/e.tp, max(1, s.kvHeads/e.tp)
	layers := float64(s.layers)
	for _, tokens := range []float64{1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 8192, 16384} {
		layer := 0.0
		for _, nk := range [][2]int{
			{(heads + 2*kvHeads) * headSize, s.hidden},
			{s.hidden, heads * headSize},
			{2 * s.intermediate / e.tp, s.hidden},
			{s.hidden, s.intermediate / e.tp},
		} {
			layer += products.at(float64(nk[0]), float64(nk[1]), tokens)
		}
		p.Products = append(p.Products, point(tokens, 0, layers*layer))
	}
	for seqs := 1.0; seqs <= 512; seqs *= 2 {
		p.Head = append(p.Head, point(seqs, 0, products.at(float64(s.vocabulary/e.tp), float64(s.hidden), seqs)))
	}
	if p.Decode, p.Prefill, err = d.attention(e, heads, kvHeads, layers); err != nil {
		return p, err
	}
	p.AllReduce, err = d.allReduce(e, float64(s.hidden), layers)
	return p, err
}

func point(x, y, ms float64) engine.Point { return engine.Point{X: x, Y: y, Seconds: ms / 1e3} }

// attention returns the times of generating sequences and of chunks of prompts. Where kernels were not measured
// at the model's heads, decoding is that of half as many heads over as many of the cache,
// since it reads the cache, and a prompt's is that of as many heads over twice as many of
// the cache, since it computes.
func (d *data) attention(e engineOf, heads, kvHeads int, layers float64) (decode, chunks []engine.Point, err error) {
	var exact, near []engine.Point
	prompts, nearPrompts := map[float64]float64{}, map[float64]float64{}
	err = d.each("kernels-attention.csv.gz", func(r row) {
		if r.text("gpu") != e.gpu || r.text("kv_dtype") != e.kv {
			return
		}
		h, kv := r.whole("heads"), r.whole("kv_heads")
		batch, tokens, ms := r.number("batch"), r.number("tokens"), layers*r.number("ms")
		switch decodes := r.text("kind") == "decode"; {
		case decodes && h == heads && kv == kvHeads:
			exact = append(exact, point(batch, tokens, ms))
		case decodes && h == heads/2 && kv == kvHeads:
			near = append(near, point(batch, tokens, ms))
		case decodes || batch != 1:
		case h == heads && kv == kvHeads:
			prompts[tokens] = ms
		case h == heads && kv == 2*kvHeads:
			nearPrompts[tokens] = ms
		}
	})
	if err != nil {
		return nil, nil, err
	}
	decode, prefill := exact, prompts
	if len(decode) == 0 {
		decode = near
	}
	if len(prefill) == 0 {
		prefill = nearPrompts
	}
	if len(decode) == 0 || len(prefill) < 2 {
		return nil, nil, fmt.Errorf("there are no times of attention for %s with %d and %d heads and a %s cache", e.gpu, heads, kvHeads, e.kv)
	}
	known := newSeries(prefill)
	for _, chunk := range []float64{16, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384} {
		for _, before := range []float64{0, 512, 1024, 2048, 4096, 8192, 16384} {
			ms := known.at(chunk + before)
			if before > 0 {
				// A chunk with a prefix is what the whole costs more than the prefix, and
				// never less than the chunk alone.
				ms = max(ms-known.at(before), known.at(chunk))
			}
			chunks = append(chunks, point(chunk, before, ms))
		}
	}
	return decode, chunks, nil
}

func (d *data) allReduce(e engineOf, hidden, layers float64) ([]engine.Point, error) {
	if e.tp == 1 {
		return nil, nil
	}
	times := map[float64]float64{}
	err := d.each("kernels-allreduce.csv", func(r row) {
		if r.text("gpu") == e.gpu && r.whole("gpus") == e.tp && r.text("path") == "vllm_graph" {
			times[r.number("bytes")] = r.number("ms")
		}
	})
	if err != nil {
		return nil, err
	}
	if len(times) < 2 {
		return nil, fmt.Errorf("there are no times of all-reduces over %d %s", e.tp, e.gpu)
	}
	known := newSeries(times)
	var out []engine.Point
	for tokens := 1.0; tokens <= 16384; tokens *= 2 {
		out = append(out, point(tokens, 0, 2*layers*known.at(2*hidden*tokens)))
	}
	return out, nil
}

// series interpolates in logarithms, and beyond its end in proportion.
type series struct{ x, y []float64 }

func newSeries(points map[float64]float64) series {
	s := series{x: slices.Sorted(maps.Keys(points))}
	for _, x := range s.x {
		s.y = append(s.y, points[x])
	}
	return s
}

func (s series) at(x float64) float64 {
	i := sort.SearchFloat64s(s.x, x)
	switch {
	case i == 0:
		return s.y[0]
	case i == len(s.x):
		return s.y[i-1] * x / s.x[i-1]
	}
	share := math.Log(x/s.x[i-1]) / math.Log(s.x[i]/s.x[i-1])
	return s.y[i-1] * math.Pow(s.y[i]/s.y[i-1], share)
}

// products are the times of matrix products by n, k and m.
type products map[float64]map[float64]series

func (d *data) products(gpu, dtype string) (products, error) {
	times := map[float64]map[float64]map[float64]float64{}
	err := d.each("kernels-gemm.csv.gz", func(r row) {
		if r.text("gpu") != gpu || r.text("dtype") != dtype {
			return
		}
		n, k := r.number("n"), r.number("k")
		if times[n] == nil {
			times[n] = map[float64]map[float64]float64{}
		}
		if times[n][k] == nil {
			times[n][k] = map[float64]float64{}
		}
		times[n][k][r.number("m")] = r.number("ms")
	})
	if err != nil {
		return nil, err
	}
	if len(times) == 0 {
		return nil, fmt.Errorf("there are no times of %s products on %s", dtype, gpu)
	}
	out := products{}
	for n, byK := range times {
		out[n] = map[float64]series{}
		for k, byM := range byK {
			out[n][k] = newSeries(byM)
		}
	}
	return out, nil
}

func (p products) at(n, k, m float64) float64 {
	points := map[float64]float64{}
	for known, byK := range p {
		ks := map[float64]float64{}
		for k, s := range byK {
			ks[k] = s.at(m)
		}
		points[known] = newSeries(ks).at(k)
	}
	return newSeries(points).at(n)
}
