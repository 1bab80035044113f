//go:build e2e

package e2e

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/lab/test/collector"
)

// exposed are the series of a page of metrics: the value of each by its name and
// labels.
type exposed map[string]float64

// parsePage reads a page in the text format with Prometheus's own parser. keep returns the
// labels that are part of a series' key.
func parsePage(t *testing.T, page []byte, keep func(labels.Labels) labels.Labels) exposed {
	t.Helper()
	series := exposed{}
	eachSeries(t, page, func(set labels.Labels, _ *int64, value float64) { series[keep(set).String()] = value })
	return series
}

// of returns the series of one target, without the labels that the exporter adds.
func of(instance string) func(labels.Labels) labels.Labels {
	return func(set labels.Labels) labels.Labels {
		if set.Get("instance") != instance || set.Get("job") != "vllm" {
			return labels.FromStrings(model.MetricNameLabel, "of another target")
		}
		return bare(set)
	}
}

// bare writes bounds as numbers and labels as the exporter does, and drops those that the exporter adds.
func bare(set labels.Labels) labels.Labels {
	b := labels.NewBuilder(set)
	set.Range(func(l labels.Label) {
		switch {
		case l.Name == "job", l.Name == "instance", strings.HasPrefix(l.Name, "otel_scope_"), l.Value == "":
			b.Del(l.Name)
		case strings.HasPrefix(l.Name, "_") && l.Name != model.MetricNameLabel:
			// The Collector's translation does not let a label begin with an underscore.
			b.Del(l.Name).Set("key"+l.Name, l.Value)
		case l.Name == "le":
			if bound, err := strconv.ParseFloat(l.Value, 64); err == nil {
				b.Set("le", strconv.FormatFloat(bound, 'g', -1, 64))
			}
		}
	})
	return b.Labels()
}

const prometheusConfig = `
receivers:
  vllm/canonical: &vllm
    collection_interval: 1s
    timeout: 1s
    endpoint: http://%[1]s/0/metrics
    preset: full # also what nothing here reads, or is 0 because it is not used
  vllm/wire:
    <<: *vllm
    naming: wire
    preset: standard
exporters:
  prometheus/canonical: {endpoint: %[2]s}
  prometheus/wire: {endpoint: %[3]s}
service:
  pipelines:
    metrics/canonical: {receivers: [vllm/canonical], exporters: [prometheus/canonical]}
    metrics/wire: {receivers: [vllm/wire], exporters: [prometheus/wire]}
`

// A dashboard written for vLLM's own endpoint must work on Prometheus's copy of
// ours: with a colon for an underscore, or with "naming: wire" as it is.
func TestDashboardsForVLLMWorkThroughPrometheus(t *testing.T) {
	t.Parallel()
	var p *page
	for _, own := range ownPages(t) {
		if own.name == "v1-0.20.0" {
			p = own
		}
	}
	require.NotNil(t, p)
	host := servePages(t, []*page{p})
	canonicalAddr, wireAddr := collector.FreeAddr(t), collector.FreeAddr(t)
	c := collector.RunWith(t, fmt.Sprintf(prometheusConfig, host, canonicalAddr, wireAddr))
	instance := host + "/0/metrics"
	// The series that each endpoint must have with the value of the target, and those that the
	// receiver leaves out.
	wire, canonical := exposed{}, exposed{}
	var leftOut []string
	renamed := excepted()
	for series, value := range parsePage(t, p.body, bare) {
		name := metricName(series)
		if strings.HasSuffix(name, "_created") || strings.HasPrefix(name, "process_") && name != "process_open_fds" || strings.HasPrefix(name, "python_") {
			leftOut = append(leftOut, series)
			continue
		}
		wire[series] = value
		if !renamed(name) {
			canonical[colonRule(series)] = value
		}
	}
	assert.Greater(t, len(canonical), 300, "nearly the whole body follows the colon rule")
	canonical[labels.FromStrings(model.MetricNameLabel, "vllm_up").String()] = 1

	var found, kept exposed
	started := time.Now()
	c.WaitFor(t, "both endpoints", func() bool {
		found = parsePage(t, collector.Get(t, "http://"+canonicalAddr+"/metrics"), of(instance))
		kept = parsePage(t, collector.Get(t, "http://"+wireAddr+"/metrics"), of(instance))
		// The exporter takes in a scrape series by series: a page that is read meanwhile has only a
		// part of them. What does not come at all is named below.
		return found.hasAll(canonical) && kept.hasAll(wire) || time.Since(started) > 15*time.Second
	})
	c.Stop(t)
	assert.Empty(t, c.Errors())

	for _, series := range leftOut {
		assert.NotContains(t, kept, series, "naming: wire")
	}
	for series, value := range wire {
		equal(t, kept, series, value, "naming: wire")
	}
	for series, value := range canonical {
		equal(t, found, series, value, "naming: canonical")
	}
}

// hasAll reports whether a page has every one of some series, whatever their values.
func (in exposed) hasAll(series exposed) bool {
	for one := range series {
		if _, ok := in[one]; !ok {
			return false
		}
	}
	return true
}

// colonRule returns a series as Prometheus's copy of our metrics names it.
func colonRule(series string) string { return strings.Replace(series, "vllm:", "vllm_", 1) }

func equal(t *testing.T, in exposed, series string, want float64, naming string) {
	t.Helper()
	got, ok := in[series]
	if !ok {
		t.Errorf("%s: %s is missing", naming, series)
		return
	}
	if got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
		t.Errorf("%s: %s is %v, not %v", naming, series, got, want)
	}
}

// metricName returns the name of a series in the form of labels.Labels.
func metricName(series string) string {
	_, rest, _ := strings.Cut(series, `__name__="`)
	name, _, _ := strings.Cut(rest, `"`)
	return name
}

// excepted reports which samples have another name by an exception that the
// catalogue gives a reason for, or are an info family.
func excepted() func(sample string) bool {
	families := map[string]bool{}
	for _, info := range catalog.InfoFamilies {
		families[info.Family] = true
	}
	for _, m := range catalog.All() {
		for _, s := range m.Sources {
			if m.Exception != "" {
				families[s.Family] = true
			}
		}
	}
	return func(sample string) bool {
		for _, suffix := range []string{"", "_bucket", "_sum", "_count"} {
			if base, ok := strings.CutSuffix(sample, suffix); ok && families[base] {
				return true
			}
		}
		return false
	}
}
