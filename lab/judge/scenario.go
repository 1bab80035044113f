package judge

import (
	"context"
	"errors"
	"fmt"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/scenario"
)

// FromScenario returns the story of a scenario file. Errors name the file.
func FromScenario(sc *scenario.Scenario) (*Story, error) {
	if err := checkProcessor(sc.Processor); err != nil {
		var wrong settingError
		_ = errors.As(err, &wrong)
		return nil, fmt.Errorf("%s: %w", sc.ProcessorAt(wrong.keys()...), err)
	}
	cfg := sc.Config
	cfg.Dialect, cfg.Version = dialect, ShownVersion
	cfg.Changes = nil
	servers, err := cfg.Simulations()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", sc.Name, err)
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

// checkProcessor reports what is wrong with settings, which is known of some only when a
// processor starts.
func checkProcessor(settings map[string]any) error {
	ctx := context.Background()
	p, err := NewProcessor(ctx, settings, begin)
	if err != nil {
		return err
	}
	return p.Close(ctx)
}
