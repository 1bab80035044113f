package accuracy

import (
	"fmt"

	"github.com/otelcol-vllm/otelcol-vllm/internal/vllmsim/engine"
)

const hour = 3600.0

// healthyKinds are kinds of stories without harm. Each makes a story from its draw.
var healthyKinds = []struct {
	name string
	make func(d draw, c *engine.Config, s *Story)
}{
	{"daily ramp", func(d draw, c *engine.Config, s *Story) {
		c.Workload.Swing, c.Workload.Period = d.between(0.5, 0.8), 24*hour
		s.Length = 24 * hour
	}},
	{"bursts", func(_ draw, c *engine.Config, _ *Story) {
		c.Workload.CV = 3
	}},
	{"cold cache", func(d draw, c *engine.Config, s *Story) {
		w := &c.Workload
		w.Prompt, w.PrefixShare, w.PrefixSkew = engine.Lengths{Median: 2200, Sigma: 0.2}, 0.95, 1
		w.Prefixes, w.PrefixTokens = 60+d.IntN(100), 2000
		for at := d.between(1, 4) * hour; at < s.Length-hour; at += d.between(3, 6) * hour {
			s.Faults = append(s.Faults, Fault{Restart, at, at + d.between(40, 120)})
		}
	}},
	{"long prompts", func(d draw, _ *engine.Config, s *Story) {
		// They should be within the objectives; the truth decides whether they are.
		s.Objectives = []Objective{{Threshold: 2.5, Target: 0.95}, {InterToken: true, Threshold: 0.3, Target: 0.95}}
		in := Injection{Parameter: engine.ParamPromptLength}
		for at := d.between(1, 2) * hour; at < s.Length-hour; at += d.between(0.7, 2) * hour {
			in.Changes = append(in.Changes, engine.Change{At: at, Parameter: in.Parameter, Value: d.between(1.5, 2.5)},
				engine.Change{At: at + d.between(5, 25)*60, Parameter: in.Parameter, Value: 1})
		}
		s.Injections = []Injection{in}
	}},
	{"scrape gaps", func(d draw, _ *engine.Config, s *Story) {
		for at := d.between(0.2, 1) * hour; at < s.Length-hour; at += d.between(0.2, 1.5) * hour {
			s.Faults = append(s.Faults, Fault{Missed, at, at + d.scale(12, 600)})
		}
	}},
	{"permanent shift", func(d draw, _ *engine.Config, s *Story) {
		p := []engine.Parameter{engine.ParamArrivalRate, engine.ParamPromptLength, engine.ParamOutputLength}[d.IntN(3)]
		at := d.between(2, 6) * hour
		s.Injections = []Injection{{p, []engine.Change{{At: at, Parameter: p, Value: d.between(1.1, 1.35)}}}}
	}},
	{"steady", func(d draw, c *engine.Config, _ *Story) {
		if d.IntN(2) == 0 {
			c.Workload = engine.Code(c.Workload.Rate)
		}
	}},
	{"nearly idle", func(d draw, c *engine.Config, _ *Story) {
		c.Workload.Rate = d.scale(0.005, 0.3)
	}},
}

// healthyStories returns stories of all kinds in turn, with the given number of
// engine-hours in total.
func healthyStories(set Set, hours float64) []Story {
	var out []Story
	for i := 0; hours > 0; i++ {
		seed := setSeeds[set] + uint64(i)
		d := newDraw(seed)
		model, rate := engine.Llama8B(), d.between(1, 5)
		if d.IntN(3) == 0 {
			model, rate = engine.Llama70B(), d.between(0.4, 1.8)
		}
		c := server(seed, model, rate)
		c.MaxSeqs = maxSeqs(d)
		k := healthyKinds[i%len(healthyKinds)]
		s := Story{Name: fmt.Sprintf("healthy-%d", i), Group: k.name, Length: 12 * hour}
		k.make(d, &c, &s)
		s.Config = c
		out = append(out, s)
		hours -= s.Length / hour
	}
	return out
}

// maxSeqs draws max_num_seqs.
func maxSeqs(d draw) int { return int(d.scale(64, 1024.5)) }
