package sim

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/story"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// starting is how long a real server takes from the end of its process until the next one
// answers, in seconds: 35 to 60 where nothing else ran.
const starting = 40.0

// kind is a process without the number of its rank.
func kind(of string) string { return strings.TrimRight(of, "0123456789") }

// faults are the changes and faults of a server that plays a story, which begins at a time. An
// API server that stands still is none of them: see world.perform.
func faults(p *story.Play, began float64) (changes []engine.Change, away []vllmsim.Fault, err error) {
	from := began
	for i := range p.Phases {
		phase := &p.Phases[i]
		to := from + phase.For.Seconds()
		if phase.Grammar > 0 {
			return nil, nil, fmt.Errorf("story %s is not simulated: the simulator has no structured output", phase.Name)
		}
		f := phase.Fault
		if f == nil {
			from = to
			continue
		}
		var engines []int
		if n, err := strconv.Atoi(f.Of[len(kind(f.Of)):]); err == nil {
			engines = []int{n}
		}
		set := func(what engine.Parameter, value float64) {
			engines := engines
			if !what.PerEngine() {
				engines = nil
			}
			changes = append(changes,
				engine.Change{At: from, Parameter: what, Value: value, Engines: engines},
				engine.Change{At: to, Parameter: what, Value: what.Nominal(), Engines: engines})
		}
		switch f.Do + " " + kind(f.Of) {
		case "stop worker", "stop core":
			set(engine.ParamStall, 1)
		case "stop api":
		case "slow worker":
			set(engine.ParamClock, f.Share)
			set(engine.ParamBandwidth, f.Share)
		case "slow core":
			set(engine.ParamHostDelay, hostSeconds*(1/f.Share-1))
		case "slow api":
			set(engine.ParamFrontEnd, 1/f.Share)
		case "sleep ":
			set(engine.ParamSleep, 1)
		case "restart ":
			away = append(away, vllmsim.Fault{At: from, Until: from + starting, Kind: vllmsim.FaultRestart})
		case "kill ", "kill api", "kill core", "kill worker":
			// Without one of its processes a server ends. It is started again at the end.
			away = append(away, vllmsim.Fault{At: from, Until: to + starting, Kind: vllmsim.FaultRestart})
		default:
			return nil, nil, fmt.Errorf("story %s is not simulated: the simulator has no fault %q of %q", phase.Name, f.Do, f.Of)
		}
		from = to
	}
	slices.SortStableFunc(changes, func(a, b engine.Change) int { return cmp.Compare(a.At, b.At) })
	return changes, away, nil
}
