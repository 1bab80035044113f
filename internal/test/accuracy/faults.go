package accuracy

import (
	"fmt"
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/internal/vllmsim/engine"
)

// faultStories returns stories with faults of the exposition. Their truth is the
// fault itself, not the latency of requests.
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
			// Many clients fill a small KV cache. Half a minute later all of them leave, for
			// as long as the gauge is frozen.
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
// gauges freeze: three times as many requests fill most of them.
const frozenBlocks = 900

// faultReported counts the scrapes from a window after the beginning of the faults to
// their end, and how many of them had the right report.
func faultReported(s *Story, reported []Reported) Share {
	var out Share
	for _, f := range s.Faults {
		for i := range reported {
			t := &reported[i]
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
