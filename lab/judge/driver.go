package judge

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Processor is the processor as a black box in simulated time, for metrics that no story
// plays.
type Processor struct{ driven *diagnosis }

// Begin is when the simulated time begins.
func Begin() time.Time { return begin }

// NewProcessor starts a processor with settings as in a collector's configuration, at the
// time at which what it observes begins.
func NewProcessor(ctx context.Context, settings map[string]any, begin time.Time) (*Processor, error) {
	config, err := configure(settings)
	if err != nil {
		return nil, err
	}
	d, err := newDiagnosis(ctx, config, begin)
	if err != nil {
		return nil, err
	}
	return &Processor{d}, nil
}

// Observe moves the time to so many seconds after the beginning, gives the processor the
// metrics of a scrape, and returns them with what it adds.
func (p *Processor) Observe(ctx context.Context, at float64, metrics pmetric.Metrics) (pmetric.Metrics, error) {
	p.driven.advance(at)
	p.driven.last = pmetric.NewMetrics()
	if err := p.driven.processor.ConsumeMetrics(ctx, metrics); err != nil {
		return pmetric.Metrics{}, fmt.Errorf("processor: %w", err)
	}
	return p.driven.last, nil
}

// Pools returns what the processor emitted last for pools; empty where it has none.
func (p *Processor) Pools() pmetric.Metrics { return p.driven.pools }

// Close stops the processor.
func (p *Processor) Close(ctx context.Context) error { return p.driven.processor.Shutdown(ctx) }
