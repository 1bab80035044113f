package engine

import (
	"maps"
	"math"
	"slices"
	"sync"
)

// fitted are the step times of a card in few numbers: those of presets_data.go. All times
// are in milliseconds.
type fitted struct {
	name string
	card Card
	// products, head and allReduce are as in Parts.
	products, head, allReduce []knot
	// prompt is attention over a whole prompt by its length. A chunk takes what the prompt
	// with it takes longer than without, but no less than a prompt of its own length.
	prompt []knot
	// decode is attention of generating sequences: a row for each number of sequences, with
	// a column for each number of tokens that they have in the cache together. Between them
	// it is linear in logarithms.
	sequences, cached []float64
	decode            [][]float64
}

type knot struct{ x, ms float64 }

func points(knots []knot) (out []Point) {
	for _, k := range knots {
		out = append(out, Point{k.x, 0, k.ms / 1000})
	}
	return out
}

// parts are the tables that the numbers stand for.
func (f fitted) parts() Parts {
	p := Parts{Products: points(f.products), Head: points(f.head), AllReduce: points(f.allReduce)}
	for d := 1.0; d <= 512; d *= 2 {
		for context := 16.0; context <= 131072 && d*context <= f.cached[len(f.cached)-1]; context *= 2 {
			p.Decode = append(p.Decode, Point{d, context, f.generating(d, d*context) / 1000})
		}
	}
	for n := 16.0; n <= 16384; n *= 2 {
		for _, before := range []float64{0, 512, 1024, 2048, 4096, 8192, 12288} {
			if before > 0 && n+before > 16384 {
				continue // Beyond the measurements.
			}
			p.Prefill = append(p.Prefill, Point{n, before, f.chunk(n, before) / 1000})
		}
	}
	return p
}

// chunk is attention over a chunk of a prompt.
func (f fitted) chunk(n, before float64) float64 {
	if before == 0 {
		return f.whole(n)
	}
	return max(f.whole(n), f.whole(n+before)-f.whole(before))
}

// whole is attention over a whole prompt, linear in logarithms between the knots.
func (f fitted) whole(n float64) float64 {
	i := 0
	for i+2 < len(f.prompt) && f.prompt[i+1].x <= n {
		i++
	}
	a, b := f.prompt[i], f.prompt[i+1]
	return a.ms * math.Pow(b.ms/a.ms, math.Log(n/a.x)/math.Log(b.x/a.x))
}

// generating is attention of generating sequences.
func (f fitted) generating(sequences, cached float64) float64 {
	i, right := place(f.sequences, sequences)
	j, down := place(f.cached, cached)
	along := func(row []float64) float64 { return math.Log(row[j])*(1-down) + math.Log(row[j+1])*down }
	return math.Exp(along(f.decode[i])*(1-right) + along(f.decode[i+1])*right)
}

// place returns the gap of a list that x is in, and where in the gap, by logarithms.
func place(at []float64, x float64) (gap int, share float64) {
	x = min(max(x, at[0]), at[len(at)-1])
	for gap+2 < len(at) && at[gap+1] <= x {
		gap++
	}
	return gap, math.Log(x/at[gap]) / math.Log(at[gap+1]/at[gap])
}

// model is a preset, which is made once.
func (f fitted) model() Model {
	t, err := NewTables(f.parts())
	if err != nil {
		panic("preset " + f.name + ": " + err.Error()) // A test makes all of them.
	}
	return Measured(f.name, f.card, t)
}

var allModels = sync.OnceValue(func() map[string]Model {
	out := map[string]Model{}
	for _, f := range presets {
		out[f.name] = f.model()
	}
	return out
})

// Models are the presets by name. Their step times are fitted to measurements; presets_data.go
// has the source.
func Models() map[string]Model { return maps.Clone(allModels()) }

// ModelNames are the names of the presets in alphabetical order.
func ModelNames() []string { return slices.Sorted(maps.Keys(allModels())) }

// Llama8B is Llama 3.1 8B in BF16 on one H100 SXM.
func Llama8B() Model { return allModels()["8b-h100"] }

// Llama70B is Llama 3.1 70B in BF16 over four H100 SXM.
func Llama70B() Model { return allModels()["70b-tp4-h100"] }
