package accuracy

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/otelcol-vllm/otelcol-vllm/internal/vllmsim/engine"
)

// Set is the name of a collection of stories.
type Set string

// The sets. Tune the diagnosis only with the tuning sets; the others are for the
// page.
const (
	Tuning        Set = "tuning"
	TuningHealthy Set = "tuning-healthy"
	HeldOut       Set = "heldout"
	Healthy       Set = "healthy"
	Faults        Set = "faults"
)

// setSeeds are the first seeds of the sets, so that no seed is in two sets.
var setSeeds = map[Set]uint64{Tuning: 1_000, HeldOut: 7_000_000, Healthy: 3_000_000, Faults: 4_000_000, TuningHealthy: 5_000_000}

// The times of a story with harm, in seconds: a warm-up, the cause, the recovery.
const (
	warmUp   = 30 * 60.0
	lasting  = 18 * 60.0
	recovery = 15 * 60.0
)

// draw draws the parameters that differ between stories of one kind.
type draw struct{ *rand.Rand }

func newDraw(seed uint64) draw { return draw{rand.New(rand.NewPCG(seed, 0xd1a6))} }

// between draws from a uniform distribution.
func (d draw) between(low, high float64) float64 { return low + (high-low)*d.Float64() }

// scale draws from a uniform distribution of the logarithm.
func (d draw) scale(low, high float64) float64 { return low * math.Exp(d.Float64()*math.Log(high/low)) }

// server is a nominal server with its workload.
func server(seed uint64, model engine.Model, rate float64) engine.Config {
	return engine.Config{
		Seed: seed, Model: model, Blocks: model.Blocks, BlockSize: blockSize,
		FrontEnd: engine.DefaultFrontEnd(), Workload: engine.Chat(rate),
		// A release that counts blocked lookups again and does not count cached tokens.
		Semantics: engine.Semantics{RecountBlocked: true},
	}
}

// kind describes stories of one cause: the server that it needs, and its severity.
type kind struct {
	parameter engine.Parameter
	prepare   func(d draw, c *engine.Config)
	// severity returns the value of the parameter for u between 0, which is just
	// harmful, and 1.
	severity func(u float64) float64
	// lasts is how long the cause lasts, in seconds; 0 means permanently.
	lasts float64
	// breakEven is the processor's setting speculation_break_even.
	breakEven float64
}

func linear(least, most float64) func(float64) float64 {
	return func(u float64) float64 { return least + (most-least)*u }
}

func logarithmic(least, most float64) func(float64) float64 {
	return func(u float64) float64 { return least * math.Pow(most/least, u) }
}

// kinds are the causes by parameter. Their severities are chosen so that most minutes
// are harmful for an 8B model at five to eight requests per second. The truth of each
// story is measured.
var kinds = []kind{
	{parameter: engine.ParamClock, severity: logarithmic(0.35, 0.2)},
	{parameter: engine.ParamBandwidth, severity: logarithmic(0.5, 0.25)},
	{parameter: engine.ParamHostDelay, severity: logarithmic(0.008, 0.03)},
	{parameter: engine.ParamBlocks, severity: logarithmic(0.06, 0.04)},
	{parameter: engine.ParamArrivalRate, severity: linear(2.8, 4)},
	{parameter: engine.ParamPromptLength, severity: linear(3, 5)},
	{parameter: engine.ParamPrefixPool, severity: logarithmic(1e3, 1e5), prepare: func(_ draw, c *engine.Config) {
		w := &c.Workload
		w.Prompt, w.PrefixShare, w.Prefixes, w.PrefixTokens = engine.Lengths{Median: 4400, Sigma: 0.3}, 0.95, 8, 4000
	}},
	{parameter: engine.ParamOutputLength, severity: linear(5, 12)},
	{parameter: engine.ParamFrontEnd, severity: logarithmic(30, 65)},
	{
		parameter: engine.ParamAcceptance, severity: logarithmic(0.3, 0.02), breakEven: 1.5,
		prepare: func(_ draw, c *engine.Config) {
			c.Speculation = engine.Speculation{Acceptance: []float64{0.75, 0.6, 0.5}, Seconds: 1e-3}
		},
	},
	{parameter: engine.ParamAdapterPool, severity: linear(4, 12), prepare: func(_ draw, c *engine.Config) {
		c.MaxLoRAs, c.Workload.AdapterShare, c.Workload.Adapters = 2, 0.8, 2
	}},
	{parameter: engine.ParamTransferFailure, severity: linear(0.5, 1), prepare: func(_ draw, c *engine.Config) {
		c.Transfer = engine.Transfer{Share: 0.7, Latency: 0.02, BytesPerSecond: 10e9}
		c.Workload.Prompt = engine.Lengths{Median: 5000, Sigma: 0.5}
		c.Workload.Rate *= 0.6
	}},
	{parameter: engine.ParamCorruption, severity: linear(0.08, 0.5)},
	{parameter: engine.ParamErrorRate, severity: linear(0.08, 0.5)},
	{parameter: engine.ParamStall, severity: linear(1, 1), lasts: 8 * 60},
	{parameter: engine.ParamSleep, severity: linear(1, 1), lasts: 8 * 60},
}

// single returns a story of one cause.
func single(k kind, name string, d draw, c engine.Config, u float64) Story {
	if k.prepare != nil {
		k.prepare(d, &c)
	}
	lasts := k.lasts
	if lasts == 0 {
		lasts = lasting
	}
	return Story{
		Name: name, Group: k.parameter.String(), Config: c, BreakEven: k.breakEven,
		Injections: []Injection{inject(k.parameter, k.severity(u), warmUp, warmUp+lasts)},
		Length:     warmUp + lasts + recovery,
	}
}

// tuningStories returns stories of one cause each, at three severities, on the 8B
// model, and the practice stories.
func tuningStories() []Story {
	var out []Story
	for i, k := range kinds {
		for j, u := range []float64{0.15, 0.5, 0.85} {
			seed := setSeeds[Tuning] + uint64(10*i+j)
			d := newDraw(seed)
			c := server(seed, engine.Llama8B(), []float64{5, 6.5, 8}[(i+j)%3])
			s := single(k, fmt.Sprintf("%s-%d", k.parameter, j+1), d, c, u)
			if j == 2 {
				s.Objectives = promised(s.Config.Model)
			}
			out = append(out, s)
		}
	}
	return append(out, practiceStories()...)
}

// practiceStories returns stories like the held-out ones, with other seeds and with
// the models for tuning.
func practiceStories() []Story {
	var out []Story
	seed := setSeeds[Tuning] + 10_000
	practice := func() (draw, engine.Config) {
		seed++
		d := newDraw(seed)
		model, rate := engine.Llama8B(), d.between(4, 8)
		if seed%2 == 0 {
			model, rate = engine.Llama70B(), d.between(1.2, 2.6)
		}
		c := server(seed, model, rate)
		c.MaxSeqs = maxSeqs(d)
		return d, c
	}
	for j := range 4 {
		for _, k := range kinds {
			d, c := practice()
			s := single(k, fmt.Sprintf("practice-%s-%d", k.parameter, j+1), d, c, d.Float64())
			if j == 3 {
				s.Objectives = promised(s.Config.Model)
			}
			out = append(out, s)
		}
		seed++ // So that each kind gets both models.
	}
	for j := range 40 {
		d, c := practice()
		out = append(out, pair(fmt.Sprintf("practice-pair-%d", j+1), d, c))
	}
	return out
}

// promised returns objectives that a healthy server meets: 95 % of the first tokens
// within half a second (2.5 s for a large model), and nine of ten gaps between tokens
// within 25 ms (50 ms).
func promised(m engine.Model) []Objective {
	if m.GPUs > 1 {
		return []Objective{{Threshold: 2.5, Target: 0.95}, {InterToken: true, Threshold: 0.05, Target: 0.9}}
	}
	return []Objective{{Threshold: 0.5, Target: 0.95}, {InterToken: true, Threshold: 0.025, Target: 0.9}}
}

// Stories returns the stories of a set; hours is the number of healthy engine-hours.
func Stories(set Set, hours float64) []Story {
	switch set {
	case Tuning:
		return tuningStories()
	case HeldOut:
		return heldOutStories()
	case Healthy, TuningHealthy:
		return healthyStories(set, hours)
	case Faults:
		return faultStories()
	}
	return nil
}
