package vllmprocessor

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// byVersion are the derived metrics by the version of the resource that they
// belong to, with "end" for one that has ended.
func byVersion(metrics pmetric.Metrics) map[string][]string {
	all := map[string][]string{}
	for _, rm := range takeAdded(metrics).ResourceMetrics().All() {
		version, _ := rm.Resource().Attributes().Get("service.version")
		for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
			name := strings.TrimPrefix(m.Name(), "vllm.")
			var points pmetric.NumberDataPointSlice
			if m.Type() == pmetric.MetricTypeSum {
				points = m.Sum().DataPoints()
			} else {
				points = m.Gauge().DataPoints()
			}
			if points.At(0).Flags().NoRecordedValue() {
				name += " end"
			}
			if !slices.Contains(all[version.Str()], name) {
				all[version.Str()] = append(all[version.Str()], name)
			}
		}
	}
	return all
}

// The server behind an address is replaced by a newer one. The receiver ends all
// series under the old resource, and continues under the new one.
func TestAnUpdateInPlaceEndsTheSeriesOfTheOldVersion(t *testing.T) {
	r := newRig(t, "diagnosis: {enabled: false}")
	story := readStory(t, `
		at 0
		attribute service.version=1
		counter vllm.generation_tokens{0} 0
		at 15
		attribute service.version=1
		counter vllm.generation_tokens{0} 15
		at 30
		attribute service.version=1
		counter vllm.generation_tokens{0} gone
		server vllm-0:8000
		attribute service.version=2
		counter vllm.generation_tokens{0} 5
		at 45
		attribute service.version=2
		counter vllm.generation_tokens{0} 20`)
	var heard []map[string][]string
	for _, call := range story.calls {
		r.processor.now = func() time.Time { return call.at }
		_, err := r.processor.process(t.Context(), call.input)
		require.NoError(t, err)
		heard = append(heard, byVersion(call.input))
	}
	const metric = "generation_throughput"
	assert.Equal(t, map[string][]string{"1": {metric}}, heard[1])
	assert.Equal(t, map[string][]string{"1": {metric + " end"}, "2": {metric}}, heard[2])
	assert.Equal(t, map[string][]string{"2": {metric}}, heard[3])
}

func TestAnUpdateInPlaceEndsTheObjectivesOfTheOldVersion(t *testing.T) {
	p := run(t, within(promise("ttft", firstToken, 2500*time.Millisecond, 0.95)))
	story := readStory(t, `
		at 0
		attribute service.version=1
		histogram vllm.time_to_first_token{0} 2.5:0 inf:0 sum:0
		at 15
		attribute service.version=1
		histogram vllm.time_to_first_token{0} 2.5:4 inf:0 sum:4
		at 30
		attribute service.version=1
		histogram vllm.time_to_first_token{0} gone
		server vllm-0:8000
		attribute service.version=2
		histogram vllm.time_to_first_token{0} 2.5:1 inf:0 sum:1`)
	var heard map[string][]string
	for _, call := range story.calls {
		p.now = func() time.Time { return call.at }
		_, err := p.process(t.Context(), call.input)
		require.NoError(t, err)
		heard = byVersion(call.input)
	}
	var left []string
	for _, name := range heard["2"] {
		left = append(left, name+" end")
	}
	assert.ElementsMatch(t, left, heard["1"])
	assert.Contains(t, heard["2"], "slo.good")
	assert.Len(t, slices.Collect(maps.Keys(heard)), 2)
}
