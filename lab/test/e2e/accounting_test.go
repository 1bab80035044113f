//go:build e2e

package e2e

import (
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/audit"
	"github.com/otelcol-vllm/otelcol-vllm/lab/test/collector"
)

// Each page is a target of two receivers, one per naming, of one collector.
const accountingConfig = `
receivers:
  vllm/canonical: &vllm
    collection_interval: 2s
    initial_delay: 0s
    timeout: 2s
    targets: [%[1]s]
  vllm/wire:
    <<: *vllm
    naming: wire
exporters:
  file/canonical: {path: %[2]s}
  file/wire: {path: %[3]s}
service:
  pipelines:
    metrics/canonical: {receivers: [vllm/canonical], exporters: [file/canonical]}
    metrics/wire: {receivers: [vllm/wire], exporters: [file/wire]}
`

func TestEverySampleOfOurOwnBodiesIsAccountedFor(t *testing.T) {
	t.Parallel()
	account(t, ownPages(t))
}

func TestEverySampleOfRealServersIsAccountedFor(t *testing.T) {
	t.Parallel()
	account(t, capturedPages(t))
}

// account scrapes all pages at least twice with the built collector and audits
// each scrape.
func account(t *testing.T, pages []*page) {
	t.Helper()
	host := servePages(t, pages)
	dir := t.TempDir()
	canonical, wire := filepath.Join(dir, "canonical.json"), filepath.Join(dir, "wire.json")
	targets := make([]string, len(pages))
	for i := range pages {
		targets[i] = fmt.Sprintf("{endpoint: 'http://%s/%d/metrics'}", host, i)
	}
	c := collector.RunWith(t, fmt.Sprintf(accountingConfig, strings.Join(targets, ", "), canonical, wire))
	c.WaitFor(t, "two scrapes of every page by both receivers", func() bool {
		for _, p := range pages {
			// One more than two, because the last one may not have been sent yet.
			if p.asked.Load() < 6 {
				return false
			}
		}
		return true
	})
	c.Stop(t)
	assert.Empty(t, c.Errors())

	for _, naming := range []struct{ name, file string }{{"canonical", canonical}, {"wire", wire}} {
		found := scrapes(t, naming.file)
		assert.Len(t, found, len(pages), "every target has a resource of its own")
		for i, p := range pages {
			t.Run(naming.name+"/"+p.name, func(t *testing.T) {
				audited(t, p, found[fmt.Sprintf("%s/%d/metrics", host, i)], naming.name == "wire", host)
			})
		}
	}
}

// audited audits the scrapes of one page.
func audited(t *testing.T, p *page, all []pmetric.ResourceMetrics, wire bool, host string) {
	t.Helper()
	require.GreaterOrEqual(t, len(all), 2, "it was scraped twice")
	s := audit.Scrape{Body: p.body, ContentType: p.contentType, Version: p.version, Wire: wire}
	for n, rm := range all {
		if n == 3 {
			break
		}
		report := audit.Check(s, rm)
		for i, violation := range report.Violations {
			if i == 20 {
				t.Errorf("scrape %d: and %d more", n, len(report.Violations)-i)
				break
			}
			t.Errorf("scrape %d: %s", n, violation)
		}
		if n == 0 && p.name == "v1-0.20.0" && len(report.Violations) == 0 {
			falsify(t, s, rm)
		}
		if n == 0 {
			t.Logf("%d points; lines: %v", report.Points, report.Fates)
		}
		identified(t, rm, p, host, report.Up)
		s.Before = report
	}
}

// identified checks what the resource says about the server, and the scope.
func identified(t *testing.T, rm pmetric.ResourceMetrics, p *page, host string, up bool) {
	t.Helper()
	address, port, err := net.SplitHostPort(host)
	require.NoError(t, err)
	number, err := strconv.ParseInt(port, 10, 64)
	require.NoError(t, err)
	attributes := rm.Resource().Attributes().AsRaw()
	assert.Equal(t, "vllm", attributes["service.name"])
	assert.Equal(t, address, attributes["server.address"])
	assert.Equal(t, number, attributes["server.port"])
	assert.Equal(t, "http", attributes["url.scheme"])
	if p.version != "" && up {
		assert.Equal(t, p.version, attributes["service.version"])
	} else {
		assert.NotContains(t, attributes, "service.version")
	}
	require.Equal(t, 1, rm.ScopeMetrics().Len())
	scope := rm.ScopeMetrics().At(0).Scope()
	assert.True(t, strings.HasSuffix(scope.Name(), "/receiver/vllmreceiver"), scope.Name())
	assert.Empty(t, scope.Version(), "an upgrade renames no series")
}

// falsify proves with real output that the audit reports every missing point and every
// changed value.
func falsify(t *testing.T, s audit.Scrape, rm pmetric.ResourceMetrics) {
	t.Helper()
	changes := 0
	for i, m := range rm.ScopeMetrics().At(0).Metrics().All() {
		for j := range pointsOf(m) {
			for _, change := range []struct {
				name string
				do   func(pmetric.Metric, int)
			}{{"left out", leaveOut}, {"changed", changeValue}} {
				if change.name == "changed" && m.Name() == "vllm.scrape.duration" {
					// Any short time is true of it.
					continue
				}
				other := pmetric.NewResourceMetrics()
				rm.CopyTo(other)
				change.do(other.ScopeMetrics().At(0).Metrics().At(i), j)
				assert.NotEmpty(t, audit.Check(s, other).Violations, "point %d of %s is %s", j, m.Name(), change.name)
				changes++
			}
		}
	}
	assert.Greater(t, changes, 80)
}

// pointsOf returns the number of points of a metric.
func pointsOf(m pmetric.Metric) int {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		return m.Gauge().DataPoints().Len()
	case pmetric.MetricTypeSum:
		return m.Sum().DataPoints().Len()
	case pmetric.MetricTypeHistogram:
		return m.Histogram().DataPoints().Len()
	case pmetric.MetricTypeSummary:
		return m.Summary().DataPoints().Len()
	}
	return 0
}

func leaveOut(m pmetric.Metric, at int) {
	n := -1
	here := func() bool {
		n++
		return n == at
	}
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		m.Gauge().DataPoints().RemoveIf(func(pmetric.NumberDataPoint) bool { return here() })
	case pmetric.MetricTypeSum:
		m.Sum().DataPoints().RemoveIf(func(pmetric.NumberDataPoint) bool { return here() })
	case pmetric.MetricTypeHistogram:
		m.Histogram().DataPoints().RemoveIf(func(pmetric.HistogramDataPoint) bool { return here() })
	case pmetric.MetricTypeSummary:
		m.Summary().DataPoints().RemoveIf(func(pmetric.SummaryDataPoint) bool { return here() })
	}
}

func changeValue(m pmetric.Metric, at int) {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		p := m.Gauge().DataPoints().At(at)
		p.SetDoubleValue(p.DoubleValue()*2 + 1)
	case pmetric.MetricTypeSum:
		p := m.Sum().DataPoints().At(at)
		p.SetDoubleValue(p.DoubleValue()*2 + 1)
	case pmetric.MetricTypeHistogram:
		counts := m.Histogram().DataPoints().At(at).BucketCounts()
		counts.SetAt(counts.Len()-1, counts.At(counts.Len()-1)+1)
	case pmetric.MetricTypeSummary:
		p := m.Summary().DataPoints().At(at)
		p.SetSum(p.Sum()*2 + 1)
	}
}
