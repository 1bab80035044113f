package judge

import (
	"github.com/otelcol-vllm/otelcol-vllm/internal/vllmsim/scenario"
)

// FromScenario returns the story of a scenario file.
func FromScenario(sc *scenario.Scenario) (*Story, error) {
	cfg := sc.Config
	cfg.Dialect, cfg.Version = dialect, ShownVersion
	cfg.Changes = nil
	servers, err := cfg.Simulations()
	if err != nil {
		return nil, err
	}
	for i := range servers {
		servers[i].Changes = nil
	}
	s := &Story{
		Name: sc.Name, Servers: servers, Injections: sc.Injections, Length: sc.Length, Interval: sc.Interval,
		Uncounted: !cfg.NaNCounter, Processor: sc.Processor,
	}
	for _, f := range cfg.Faults {
		s.Faults = append(s.Faults, Fault{FaultKind(f.Kind), f.At, f.Until})
	}
	return s, nil
}
