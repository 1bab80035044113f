package accuracy

import (
	"fmt"
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/internal/vllmsim/engine"
)

const (
	// heldOutEach is the number of held-out stories of each kind, heldOutPairs that
	// of stories with two causes.
	heldOutEach  = 24
	heldOutPairs = 120
)

// pairable are the parameters that can be combined on any server.
var pairable = []engine.Parameter{
	engine.ParamClock, engine.ParamBandwidth, engine.ParamHostDelay, engine.ParamBlocks, engine.ParamArrivalRate,
	engine.ParamPromptLength, engine.ParamOutputLength, engine.ParamFrontEnd, engine.ParamCorruption, engine.ParamErrorRate,
}

func kindOf(p engine.Parameter) kind {
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.parameter == p })
	return kinds[i]
}

// unseen is a model on hardware that was not used for tuning: 34B parameters in BF16
// on two A100 SXM of 80 GB. The peak rates are those of the manufacturer. The other
// values are estimates, like those of the engine's presets.
func unseen() engine.Model {
	return engine.Model{
		Name: "34b-tp2-a100", WeightBytes: 34e9, FlopsPerToken: 34e9, KVBytes: 98_304,
		Layers: 48, Width: 8192, GPUs: 2,
		StepSeconds: 2.5e-3, SequenceSeconds: 5e-6, TokenSeconds: 6e-6,
		Bandwidth: 2.039e12, Compute: 312e12,
		WeightEfficiency: 0.80, KVEfficiency: 0.75, ComputeEfficiency: 0.52, AttentionEfficiency: 0.40,
		Blocks: 22_000,
	}
}

// drawnServer returns a server of the 8B model or of the unseen one, with a drawn
// load and limit.
func drawnServer(seed uint64, d draw) engine.Config {
	model, rate := engine.Llama8B(), d.between(4, 8)
	if d.IntN(2) == 0 {
		model, rate = unseen(), d.between(0.7, 1.5)
	}
	c := server(seed, model, rate)
	c.MaxSeqs = maxSeqs(d)
	return c
}

// heldOutStories returns stories with drawn severities, two models, limits of 64 to
// 1024 sequences, and one or two causes. Their seeds are used nowhere else.
func heldOutStories() []Story {
	var out []Story
	seed := setSeeds[HeldOut]
	for j := range heldOutEach {
		for _, k := range kinds {
			seed++
			d := newDraw(seed)
			s := single(k, fmt.Sprintf("held-%s-%d", k.parameter, j+1), d, drawnServer(seed, d), d.Float64())
			if j%4 == 3 {
				s.Objectives = promised(s.Config.Model)
			}
			out = append(out, s)
		}
	}
	for j := range heldOutPairs {
		seed++
		d := newDraw(seed)
		out = append(out, pair(fmt.Sprintf("held-pair-%d", j+1), d, drawnServer(seed, d)))
	}
	return out
}

// pair is a story of two causes, of which the second begins up to six minutes
// after the first. Both end at the same time.
func pair(name string, d draw, c engine.Config) Story {
	one := kindOf(pairable[d.IntN(len(pairable))])
	other := one
	for causes[other.parameter] == causes[one.parameter] {
		other = kindOf(pairable[d.IntN(len(pairable))])
	}
	end := warmUp + lasting
	return Story{
		Name: name, Group: "two causes", Config: c, Length: end + recovery,
		Injections: []Injection{
			inject(one.parameter, one.severity(d.Float64()), warmUp, end),
			inject(other.parameter, other.severity(d.Float64()), warmUp+d.between(0, 360), end),
		},
	}
}
