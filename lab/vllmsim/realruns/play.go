package realruns

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
)

// Settings are those of a replay.
type Settings struct {
	// Interval is the time between two scrapes.
	Interval time.Duration
	// Offset is the time of the first scrape, at most the interval.
	Offset time.Duration
	// Source is where the latencies come from.
	Source Source
	// Processor has the settings of the processor, as in a collector's configuration.
	Processor map[string]any
}

// longestTimeout is the receiver's default timeout of a scrape.
const longestTimeout = 10 * time.Second

// Validate reports settings that cannot be.
func (s *Settings) Validate() error {
	switch {
	case s.Interval < time.Second || s.Interval > time.Hour:
		return fmt.Errorf("the interval %v is not between 1s and 1h", s.Interval)
	case s.Offset < 0 || s.Offset > s.Interval:
		return fmt.Errorf("the offset %v is not between 0 and the interval %v", s.Offset, s.Interval)
	case s.Source != Clients && s.Source != Gauges:
		return fmt.Errorf("the source of latencies %q is not one of %s, %s", s.Source, Clients, Gauges)
	}
	return nil
}

// Reported is the diagnosis after a scrape.
type Reported struct {
	// At is in seconds since the beginning of the recording.
	At float64
	// Answered is true where the server answered the scrape.
	Answered bool
	// Severity is -1 where nothing is reported.
	Severity                 int
	Condition, Cause, Detail string
	Contributing             []string
	// Values are other values that the processor derived, by name and, where it has one,
	// quantile.
	Values map[string]float64
}

// Alarms reports whether it is an alarm: a warning or a page.
func (r *Reported) Alarms() bool { return r.Severity >= 2 || r.Condition == "degraded" }

// Text is the condition, and the cause with its detail where there is one.
func (r *Reported) Text() string {
	text := r.Condition
	if text == "" {
		return "nothing"
	}
	if r.Cause != "" {
		text += ", " + r.Cause
	}
	if r.Detail != "" {
		text += "/" + r.Detail
	}
	return text
}

// Play sends a recording through the processor and returns what it reports after each
// scrape.
func Play(ctx context.Context, r *Recording, settings Settings) (out []Reported, err error) {
	if err := settings.Validate(); err != nil {
		return nil, err
	}
	scraper, err := newScraper(r, settings.Source, judge.Begin())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.Name, err)
	}
	diagnosing, err := judge.NewProcessor(ctx, settings.Processor, judge.Begin())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, diagnosing.Close(context.WithoutCancel(ctx))) }()
	interval := settings.Interval.Seconds()
	timeout := min(settings.Interval, longestTimeout).Seconds()
	for n := 0; ; n++ {
		at := settings.Offset.Seconds() + float64(n)*interval
		if at > r.End() {
			return out, nil
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		metrics, answered := scraper.scrape(at, timeout)
		passed, err := diagnosing.Observe(ctx, answered, metrics)
		if err != nil {
			return nil, fmt.Errorf("%s, %.0f s: %w", r.Name, answered, err)
		}
		reported := read(passed, diagnosing.Pools())
		reported.At, reported.Answered = answered, scraper.live
		out = append(out, reported)
	}
}

// read reads the diagnosis, and what else was derived, from the processor's output for the
// server, and the values of its pool.
func read(server, pools pmetric.Metrics) Reported {
	out := Reported{Severity: -1, Values: map[string]float64{}}
	for _, metrics := range []pmetric.Metrics{server, pools} {
		for _, rm := range metrics.ResourceMetrics().All() {
			for _, sm := range rm.ScopeMetrics().All() {
				if strings.HasSuffix(sm.Scope().Name(), "vllmprocessor") {
					out.metrics(sm.Metrics())
				}
			}
		}
	}
	slices.Sort(out.Contributing)
	return out
}

func (r *Reported) metrics(all pmetric.MetricSlice) {
	for _, m := range all.All() {
		if m.Type() != pmetric.MetricTypeGauge {
			continue
		}
		for _, p := range m.Gauge().DataPoints().All() {
			if !p.Flags().NoRecordedValue() {
				r.point(m.Name(), p)
			}
		}
	}
}

func (r *Reported) point(name string, p pmetric.NumberDataPoint) {
	value := p.DoubleValue()
	if p.ValueType() == pmetric.NumberDataPointValueTypeInt {
		value = float64(p.IntValue())
	}
	text := func(attribute string) string {
		v, has := p.Attributes().Get(attribute)
		if !has {
			return ""
		}
		return v.AsString()
	}
	switch name {
	case "vllm.diagnosis.severity":
		r.Severity = int(value)
	case "vllm.diagnosis.condition":
		if value == 1 {
			r.Condition = text("condition")
		}
	case "vllm.diagnosis.cause":
		switch role := text("role"); {
		case value != 1:
		case role == "primary":
			r.Cause, r.Detail = text("cause"), text("detail")
		case role == "contributing":
			r.Contributing = append(r.Contributing, text("cause"))
		}
	default:
		// A point has a quantile or a signal, or neither.
		if of := text("quantile") + text("signal"); of != "" {
			name += "/" + of
		}
		r.Values[name] = value
	}
}

// Value is a derived value; NaN where there is none.
func (r *Reported) Value(name string) float64 {
	if v, has := r.Values[name]; has {
		return v
	}
	return math.NaN()
}
