package check

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/probe"
)

// shareOfBody and shareOfSeries are how full a limit may be without a warning.
const (
	shareOfBody   = 0.7
	shareOfSeries = 0.8
)

// judgeBody judges what could be read of the first body.
func judgeBody(f *findings, s *Seen) {
	r := s.First
	limit := int64(s.ReceiverConfig.Limits.BodySize)
	if float64(r.Bytes) > shareOfBody*float64(limit) {
		f.add(CodeNearLimit, fmt.Sprintf("The body has %s, and limits::body_size is %s.",
			humanize.IBytes(uint64(r.Bytes)), humanize.IBytes(uint64(limit))))
	}
	bad := maps.Clone(r.BadLines)
	if r.Cut || bad["missing_eof"] > 0 {
		f.add(CodeCut, "The end of the body is missing.")
	}
	delete(bad, "missing_eof")
	if n := sum(bad); n > 0 {
		f.add(CodeBadLines, fmt.Sprintf("%s cannot be read; the first one is line %d.", lines(n), r.FirstBad), counted(bad)...)
	}
	if r.Duplicates > 0 {
		f.add(CodeDuplicates, fmt.Sprintf("%d samples repeat an earlier series of the body.", r.Duplicates))
	}
	inconsistent := map[string]int{}
	for _, reason := range []string{
		"no_inf_bucket", "no_count", "bucket_decrease", "bucket_nan", "count_below_bucket", "count_above_bucket", "bad_count", "counter_nan", "counter_negative", "duplicate",
	} {
		if n := r.Dropped[reason]; n > 0 {
			inconsistent[reason] = n
		}
	}
	if n := sum(inconsistent); n > 0 {
		f.add(CodeInconsistent, fmt.Sprintf("%d series with contradictory numbers are dropped.", n), counted(inconsistent)...)
	}
	if names := impossible(r.Emitted); len(names) > 0 {
		f.add(CodeImpossible, fmt.Sprintf("%d gauges have an impossible value.", len(names)), names...)
	}
	// The gauges with which a Ray agent repeats its counters are expected.
	if len(r.Conflicts) > 0 && r.Dropped["type_conflict"] < len(r.Conflicts) && !isRay(r) {
		f.add(CodeConflict, fmt.Sprintf("%d families have another type than vLLM gives them.", len(r.Conflicts)), r.Conflicts...)
	}
	f.pass(Body, "%s, %d samples, %d families, format %s", humanize.IBytes(uint64(r.Bytes)), r.Samples, len(r.Families), r.Dialect)
}

// impossible lists the gauges of vLLM with a number of requests below zero, or with a share that is not
// between 0 and 1. They are delivered as they are.
func impossible(batch pmetric.Metrics) []string {
	var out []string
	for m := range metricsOf(batch) {
		known, ok := catalog.ByName(m.Name())
		if !ok || m.Type() != pmetric.MetricTypeGauge || !strings.HasPrefix(m.Name(), "vllm.") {
			continue
		}
		most := math.Inf(1)
		switch {
		case known.Unit == "1" && !strings.HasPrefix(m.Name(), "vllm.accelerator."):
			most = 1.001 // rounding
		case known.Unit != "{request}":
			continue
		}
		for _, p := range m.Gauge().DataPoints().All() {
			if value := number(p); value < 0 || value > most {
				out = append(out, fmt.Sprintf("%s: %g", m.Name(), value))
				break
			}
		}
	}
	return out
}

// isRay reports whether a body is that of a Ray agent.
func isRay(r *probe.Reading) bool {
	return slices.Contains(r.Server.Setups, "ray") ||
		slices.ContainsFunc(r.Families, func(x probe.Family) bool { return strings.HasPrefix(x.Name, "ray_") })
}

func sum(counts map[string]int) int {
	n := 0
	for _, c := range counts {
		n += c
	}
	return n
}

// counted lists reasons with their numbers, in order.
func counted(counts map[string]int) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		out = append(out, fmt.Sprintf("%s: %d", name, counts[name]))
	}
	return out
}

func lines(n int) string {
	if n == 1 {
		return "One line"
	}
	return fmt.Sprintf("%d lines", n)
}
