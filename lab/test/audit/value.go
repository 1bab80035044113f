package audit

import (
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// differences returns the values of a point that differ from the body.
func (*auditor) differences(m *metric, want *point, got *emittedPoint) []string {
	var out []string
	differ := func(what string, want, got float64) {
		if want != got && !(math.IsNaN(want) && math.IsNaN(got)) {
			out = append(out, fmt.Sprintf("%s is %s, not %s", what, number(got), number(want)))
		}
	}
	if w, g := exemplarTexts(want.exemplars, got); !slices.Equal(w, g) {
		out = append(out, fmt.Sprintf("has the exemplars %v, not %v", g, w))
	}
	switch m.kind {
	case catalog.KindGauge, catalog.KindSum:
		differ("the value", want.value, got.value)
		return out
	case catalog.KindHistogram:
		out = append(out, bucketDifferences(want, got)...)
	case catalog.KindSummary:
		if len(got.quantiles) != len(want.quantiles) {
			out = append(out, fmt.Sprintf("%d quantiles, not %d", len(got.quantiles), len(want.quantiles)))
		}
		for _, q := range want.quantiles {
			value, ok := got.quantiles[q.bound]
			if !ok {
				value = math.Inf(-1)
			}
			differ("quantile "+number(q.bound), q.sample.value, value)
		}
	}
	differ("the count", want.count, float64(got.count))
	switch {
	case want.sum != nil && got.sum != nil:
		differ("the sum", want.sum.value, *got.sum)
	case want.sum != nil:
		out = append(out, "has no sum, though the body has")
	case got.sum != nil && (m.kind == catalog.KindHistogram || *got.sum != 0):
		// OTLP cannot express a summary without a sum.
		out = append(out, "has a sum that the body has not")
	}
	return out
}

// bucketDifferences compares OTLP's counts per bucket, added up, with the body's
// cumulative ones.
func bucketDifferences(want *point, got *emittedPoint) []string {
	if len(got.counts) != len(want.buckets) || len(got.bounds) != len(want.buckets)-1 {
		return []string{fmt.Sprintf("%d buckets with %d bounds, not %d", len(got.counts), len(got.bounds), len(want.buckets))}
	}
	var out []string
	cumulative := uint64(0)
	for i, b := range want.buckets {
		if i < len(got.bounds) && got.bounds[i] != b.bound {
			out = append(out, fmt.Sprintf("bound %d is %s, not %s", i, number(got.bounds[i]), number(b.bound)))
		}
		cumulative += got.counts[i]
		if float64(cumulative) != b.sample.value {
			out = append(out, fmt.Sprintf("up to %s there are %d, not %s (line %d)",
				number(b.bound), cumulative, number(b.sample.value), b.sample.line))
		}
	}
	return out
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// exemplarTexts returns the expected and the emitted exemplars as text, so that they can be
// compared in any order. One without a time has that of the scrape.
func exemplarTexts(want []*exemplar.Exemplar, point *emittedPoint) (wanted, got []string) {
	for _, e := range want {
		var attributes []label
		e.Labels.Range(func(l labels.Label) { attributes = append(attributes, label{l.Name, l.Value}) })
		sortLabels(attributes)
		at := int64(point.time)
		if e.HasTs {
			at = e.Ts * 1e6
		}
		wanted = append(wanted, fmt.Sprint(labelKey(attributes), number(e.Value), at))
	}
	for _, e := range point.exemplars.All() {
		var attributes []label
		for k, v := range e.FilteredAttributes().All() {
			attributes = append(attributes, label{k, v.AsString()})
		}
		if id := e.TraceID(); !id.IsEmpty() {
			attributes = append(attributes, label{"trace_id", hex.EncodeToString(id[:])})
		}
		if id := e.SpanID(); !id.IsEmpty() {
			attributes = append(attributes, label{"span_id", hex.EncodeToString(id[:])})
		}
		sortLabels(attributes)
		got = append(got, fmt.Sprint(labelKey(attributes), number(e.DoubleValue()), int64(e.Timestamp())))
	}
	slices.Sort(wanted)
	slices.Sort(got)
	return wanted, got
}
