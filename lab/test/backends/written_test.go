//go:build e2e

package backends

import (
	"fmt"
	"math"
	"regexp"
	"slices"

	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/prompb"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// This file checks what arrives by remote write.

func label(series prompb.TimeSeries, name string) string {
	for _, l := range series.Labels {
		if l.Name == name {
			return l.Value
		}
	}
	return ""
}

// written requires every metric of the catalogue under its translated name, a
// sample of every scrape and, after the last one, its value.
func written(got received) []string { return writtenAs(prometheusName)(got) }

// writtenAs is written with other names.
func writtenAs(nameOf func(catalog.Metric) string) func(received) []string {
	return func(got received) []string { return unwritten(got, nameOf) }
}

func unwritten(got received, nameOf func(catalog.Metric) string) []string {
	last, samples := map[string]prompb.Sample{}, map[string]int{}
	for _, series := range got.series {
		name := label(series, "__name__")
		if derivedNames()[name] && label(series, sent) == "" {
			continue
		}
		if le := label(series, "le"); le != "" {
			name += " " + le
		}
		samples[name] += len(series.Samples)
		for _, sample := range series.Samples {
			if sample.Timestamp >= last[name].Timestamp {
				last[name] = sample
			}
		}
	}
	var broken []string
	demand := func(name string, want float64) {
		if sample := last[name]; samples[name] != scrapeCount {
			broken = append(broken, fmt.Sprintf("%s: %d samples of %d scrapes", name, samples[name], scrapeCount))
		} else if math.Abs(sample.Value-want) > 1e-9*want {
			broken = append(broken, fmt.Sprintf("%s is %v, not %v", name, sample.Value, want))
		}
	}
	const n = scrapeCount
	for _, m := range catalog.All() {
		name := nameOf(m)
		switch m.Kind {
		case catalog.KindGauge:
			demand(name, 0.25*n)
		case catalog.KindSum:
			demand(name, 100*n)
		case catalog.KindHistogram:
			n := observedAt(m, n)
			// Buckets count what is up to their bound.
			demand(name+"_bucket 0.5", float64(4*n))
			demand(name+"_bucket +Inf", float64(n*(len(bounds)+1)))
			demand(name+"_count", float64(n*(len(bounds)+1)))
			demand(name+"_sum", 94.1*float64(n))
		case catalog.KindSummary:
			demand(name+"_count", 100*n)
			demand(name+"_sum", 100*n)
		}
	}
	return broken
}

// writtenDerived requires the derived values of the test's scrapes.
func writtenDerived(got received) []string { return writtenDerivedAs(prometheusName)(got) }

// writtenDerivedAs is writtenDerived with other names.
func writtenDerivedAs(nameOf func(catalog.Metric) string) func(received) []string {
	return func(got received) []string { return follow(derivedSamples(got), nameOf) }
}

// derivedSamples are the values that the processor derived, by name and quantile.
func derivedSamples(got received) map[string][]float64 {
	values := map[string][]float64{}
	for _, series := range got.series {
		name := label(series, "__name__")
		if !derivedNames()[name] || label(series, sent) != "" {
			continue
		}
		if q := label(series, "quantile"); q != "" {
			name += " " + q
		}
		for _, sample := range series.Samples {
			values[name] = append(values[name], sample.Value)
		}
	}
	return values
}

// labelForm requires valid names, sorted labels without doubles, and the labels
// in which servers and collectors differ.
func labelForm(got received) []string {
	metricName := regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*$`)
	labelName := regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)
	var broken []string
	for _, series := range got.series {
		name := label(series, "__name__")
		if !metricName.MatchString(name) {
			broken = append(broken, name+" is no good name")
		}
		for i, l := range series.Labels {
			if !labelName.MatchString(l.Name) || (i > 0 && l.Name <= series.Labels[i-1].Name) {
				broken = append(broken, name+": label "+l.Name)
			}
		}
		if label(series, "job") != "vllm" || label(series, "instance") != "vllm-1:8000" {
			broken = append(broken, name+": job and instance")
		}
		if label(series, "collector") != "otelcol-vllm" {
			broken = append(broken, name+": the label collector")
		}
	}
	slices.Sort(broken)
	return slices.Compact(broken)
}

// inOrder requires samples with ascending times per series: others are refused as out of
// order or as duplicates.
func inOrder(got received) []string {
	newest := map[string]int64{}
	var broken []string
	for _, series := range got.series {
		key := fmt.Sprint(series.Labels)
		for _, sample := range series.Samples {
			if sample.Timestamp <= newest[key] {
				broken = append(broken, key+" goes back in time")
			}
			newest[key] = sample.Timestamp
		}
	}
	return broken
}

// writtenEnds requires a staleness marker at the end of a series.
func writtenEnds(got received) []string {
	want := map[string]bool{"vllm_test_gauge_gone": true, "vllm_test_sum_gone_total": true, "vllm_test_histogram_gone_count": true}
	for _, series := range got.series {
		for _, sample := range series.Samples {
			if value.IsStaleNaN(sample.Value) {
				delete(want, label(series, "__name__"))
			}
		}
	}
	var broken []string
	for name := range want {
		broken = append(broken, name+" does not end")
	}
	return broken
}
