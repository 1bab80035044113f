package said

import (
	"context"
	"errors"
	"maps"
	"math"
	"net/http"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/run"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/probe"
)

// Feed sends what a server showed through the receiver and the processor, in the time of the
// run: the looks that are the interval apart, a multiple of run.Every. settings are the
// processor's besides those of the story. emitted receives what comes out for each look.
func Feed(ctx context.Context, r *run.Run, interval time.Duration, settings map[string]any, emitted func(s *run.Scrape, metrics pmetric.Metrics) error) (err error) {
	replays, err := probe.NewReplays(vllmreceiver.NewFactory().CreateDefaultConfig().(*vllmreceiver.Config))
	if err != nil {
		return err
	}
	receiver, err := replays.Target("http://vllm:8000", nil)
	if err != nil {
		return err
	}
	defer receiver.Close()
	all := maps.Clone(settings)
	if all == nil {
		all = map[string]any{}
	}
	maps.Copy(all, r.Play.Processor)
	processor, err := judge.NewProcessor(ctx, all, r.Began)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, processor.Close(ctx)) }()
	next := 0.0
	for i := range r.Scrapes {
		s := &r.Scrapes[i]
		// Looks are at multiples of the shorter interval, give or take their delay. A scrape that is
		// late, because a look took its whole time, does not move those after it.
		if s.At < next-run.Every.Seconds()/2 {
			continue
		}
		next = (math.Floor((s.At+run.Every.Seconds()/2)/interval.Seconds()) + 1) * interval.Seconds()
		at := r.Began.Add(seconds(s.At))
		var metrics pmetric.Metrics
		if s.Status == http.StatusOK {
			metrics = receiver.Scrape(at, s.Body, r.Version)
		} else {
			metrics = receiver.Fail(at, s.Failure)
		}
		out, err := processor.Observe(ctx, s.At, metrics)
		if err == nil {
			err = emitted(s, out)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// Points are the points of a gauge that have a value.
func Points(metrics pmetric.Metrics, name string) (out []pmetric.NumberDataPoint) {
	for _, rm := range metrics.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if m.Name() != name || m.Type() != pmetric.MetricTypeGauge {
					continue
				}
				for _, p := range m.Gauge().DataPoints().All() {
					if !p.Flags().NoRecordedValue() {
						out = append(out, p)
					}
				}
			}
		}
	}
	return out
}
