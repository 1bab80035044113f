package accuracy

import (
	"fmt"
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/internal/vllmsim/engine"
)

// faultStories are faults of the exposition. The truth about them is what was
// done, not what requests went through.
func faultStories() []Story {
	var out []Story
	for i := range 12 {
		seed := setSeeds[Faults] + uint64(i)
		d := newDraw(seed)
		kind := []FaultKind{Unreachable, Restart, Frozen}[i%3]
		length := map[FaultKind]float64{Unreachable: d.between(240, 900), Restart: d.between(60, 180), Frozen: d.between(480, 900)}[kind]
		s := Story{
			Name: fmt.Sprintf("%s-%d", kind, i/3+1), Group: string(kind),
			Config: server(seed, engine.Llama8B(), d.between(4, 8)),
			Faults: []Fault{{kind, warmUp, warmUp + length}}, Length: warmUp + length + recovery,
		}
		if kind == Frozen {
			// Many clients come, who fill a small KV cache, and half a minute later all of
			// them go away, for as long as the gauge stands still.
			s.Config.Blocks = int(s.Config.Workload.Rate * frozenBlocks)
			s.Injections = []Injection{
				inject(engine.ParamArrivalRate, 3, warmUp-30, warmUp), inject(engine.ParamArrivalRate, 0, warmUp, warmUp+length),
			}
		}
		out = append(out, s)
	}
	return out
}

// frozenBlocks is the number of KV blocks per request per second of a server whose
// gauges are to freeze: three times as many requests fill most of them.
const frozenBlocks = 900

// faultTold is how many of the scrapes, from a window after the beginning of the
// faults to their end, told them as they should.
func faultTold(s *Story, told []Told) Share {
	var out Share
	for _, f := range s.Faults {
		for i := range told {
			t := &told[i]
			if t.At <= f.At+window || t.At >= f.Until {
				continue
			}
			out.Of++
			said := false
			switch f.Kind {
			case Unreachable, Restart:
				said = t.Condition == "unreachable" || t.Condition == "starting"
			case Frozen:
				said = slices.Contains(t.Notices, "frozen_gauges")
			case Missed:
			}
			if said {
				out.Right++
			}
		}
	}
	return out
}
