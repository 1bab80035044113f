package check

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/probe"
)

// Quantile is the bucket in which a percentile of the time between the scrapes is.
type Quantile struct {
	// Metric is the histogram, and Quantile the share, as "0.95".
	Metric, Quantile string
	// Lower and Upper are the bounds of the bucket; Upper is infinite in the last one.
	Lower, Upper float64
}

// judgeObjectives judges what the buckets of the server can decide.
func judgeObjectives(f *findings, s *Seen) {
	if s.Processor == nil {
		return
	}
	r := s.newest()
	exact := 0
	for i := range s.Processor.Objectives {
		o := &s.Processor.Objectives[i]
		bounds, there := boundsOf(r, o.Metric)
		switch {
		case !there && (r.Kind != "" || !hasEngine(r)):
			// An objective about requests to servers says nothing about a gateway.
		case switchedOff(s.ReceiverConfig, o.Metric):
			f.add(CodeObjectiveMetric, fmt.Sprintf("The objective %q needs %s, which is off under metrics of the receiver.", o.Name, o.Metric))
		case !there:
			f.add(CodeObjectiveMetric, fmt.Sprintf("The objective %q needs %s, which the server lacks.", o.Name, o.Metric))
		default:
			if words := o.Resolution(bounds); words != "" {
				f.add(CodeObjectiveBound, strings.ToUpper(words[:1])+words[1:]+".")
			} else {
				exact++
			}
		}
	}
	if exact > 0 {
		f.pass(Objectives, "%d of %d objectives are at bounds of the histograms, so they are exact", exact, len(s.Processor.Objectives))
	}
	var wide []string
	for _, q := range s.Quantiles {
		if q.Lower <= 0 || math.IsInf(q.Upper, 1) || q.Upper/q.Lower > wideBucket {
			wide = append(wide, fmt.Sprintf("the %s quantile of %s is between %g s and %g s", q.Quantile, short(q.Metric), q.Lower, q.Upper))
		}
	}
	if len(wide) > 0 {
		f.add(CodeQuantile, fmt.Sprintf("%d percentiles are in a wide bucket.", len(wide)), wide...)
	}
}

// switchedOff reports whether the receiver is configured not to emit a metric.
func switchedOff(config *vllmreceiver.Config, metric string) bool {
	wanted := config.Metrics[metric].Enabled
	return wanted != nil && !*wanted
}

// wideBucket is how many times larger the upper bound of a bucket than the lower one may be.
const wideBucket = 2

// boundsOf returns the finite bounds of the histogram that a metric is read from. It returns
// false where the server does not have it.
func boundsOf(r *probe.Reading, name string) ([]float64, bool) {
	metric, ok := catalog.ByName(name)
	if !ok {
		return nil, false
	}
	for _, source := range slices.Backward(metric.Sources) {
		for _, x := range r.Families {
			if x.Source == source.Family && x.Series > 0 && x.Type == "histogram" {
				return x.Bounds, true
			}
		}
	}
	return nil, false
}

// quantilesOf reads the buckets of percentiles from what the processor emitted.
func quantilesOf(batch pmetric.Metrics) []Quantile {
	type key struct{ metric, quantile, rest string }
	found := map[key]*Quantile{}
	var order []*Quantile
	for m := range metricsOf(batch) {
		name, is := strings.CutSuffix(m.Name(), "_quantile_bound")
		if !is || m.Type() != pmetric.MetricTypeGauge {
			continue
		}
		for _, p := range m.Gauge().DataPoints().All() {
			quantile, bound := attribute(p.Attributes(), "quantile"), attribute(p.Attributes(), "bound")
			if p.Flags().NoRecordedValue() || len(order) >= mostDetails {
				continue
			}
			k := key{name, quantile, attribute(p.Attributes(), "model_name") + "\x00" + attribute(p.Attributes(), "engine")}
			if found[k] == nil {
				found[k] = &Quantile{Metric: name, Quantile: quantile, Upper: math.Inf(1)}
				order = append(order, found[k])
			}
			if bound == "upper" {
				found[k].Upper = p.DoubleValue()
			} else {
				found[k].Lower = p.DoubleValue()
			}
		}
	}
	out := make([]Quantile, len(order))
	for i, q := range order {
		out[i] = *q
	}
	return out
}
