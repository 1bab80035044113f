//go:build e2e

package backends

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/lab/content/datadog"
	"github.com/otelcol-vllm/otelcol-vllm/lab/test/collector"
)

// tagged are the tags of the points of a metric, as Datadog makes them: attributes of the
// resource and of the point.
func (p point) tagged() map[string]string {
	tags := map[string]string{}
	for key, value := range p.resource.All() {
		tags[key] = value.AsString()
	}
	for key, value := range p.attributes.All() {
		tags[key] = value.AsString()
	}
	return tags
}

// unanswered returns why a query would find nothing in what was sent.
//
// A point that the test makes up has one value of each attribute; the query may name others
// that the catalogue has.
func unanswered(query string, sent map[string][]point) (why []string) {
	uses, err := datadog.Uses(query)
	if err != nil {
		return []string{err.Error()}
	}
	for _, use := range uses {
		points := sent[use.Metric]
		if len(points) == 0 {
			why = append(why, use.Metric+" was not sent")
			continue
		}
		counts := points[0].kind == pmetric.MetricTypeSum && points[0].temporality == pmetric.AggregationTemporalityDelta && points[0].monotonic
		if use.Counts != counts || !use.Counts && points[0].kind != pmetric.MetricTypeGauge {
			why = append(why, fmt.Sprintf("%s is a %s", use.Metric, points[0].kind))
		}
		for tag, values := range use.Filters {
			for _, value := range values {
				if !emitted(use.Metric, tag, value) && !slices.ContainsFunc(points, func(p point) bool { return p.tagged()[tag] == value }) {
					why = append(why, fmt.Sprintf("%s has no point with %s:%s", use.Metric, tag, value))
				}
			}
		}
		for _, tag := range use.By {
			if !slices.ContainsFunc(points, func(p point) bool { return p.tagged()[tag] != "" }) {
				why = append(why, use.Metric+" has no tag "+tag)
			}
		}
	}
	return why
}

// emitted reports whether the catalogue has a value of an attribute: a cause or a detail of the
// diagnosis, or what a family of an exporter of GPU metrics becomes.
func emitted(metric, tag, value string) bool {
	if metric == "vllm.diagnosis.cause" {
		return slices.ContainsFunc(catalog.Causes(), func(c catalog.Cause) bool {
			return tag == "cause" && c.Name == value ||
				tag == "detail" && slices.ContainsFunc(c.Details, func(d catalog.Detail) bool { return d.Name == value })
		})
	}
	m, known := catalog.ByName(metric)
	return known && slices.ContainsFunc(m.Exporters, func(e catalog.Exported) bool { return e.Set[tag] == value })
}

func sentByName(points []point) map[string][]point {
	sent := map[string][]point{}
	for _, p := range points {
		sent[p.name] = append(sent[p.name], p)
	}
	return sent
}

// deltasOfObjectives checks that no event is lost where counters become deltas: what an
// objective counted at each time is what its histogram did, from the second scrape on.
func deltasOfObjectives(t *testing.T, sent map[string][]point) {
	t.Helper()
	observed, counted := map[pcommon.Timestamp]float64{}, map[pcommon.Timestamp]float64{}
	for _, p := range sent["vllm.time_to_first_token"] {
		observed[p.at] += float64(p.count)
	}
	for _, p := range sent["vllm.slo.valid"] {
		counted[p.at] += p.value
	}
	times := slices.Sorted(maps.Keys(observed))
	require.Greater(t, len(times), 3)
	assert.Positive(t, observed[times[0]], "the first requests")
	// Of the last one a part may have been on its way.
	for _, at := range times[:len(times)-1] {
		assert.InDelta(t, observed[at], counted[at], 1e-9, "at %s", at.AsTime())
	}
}

// The example with its own receiver reads a stand-in server. What arrives has the names,
// types and tags that the monitors, the dashboard and the SLO ask for. A gateway cannot be
// read there, and nothing is wrong with the server; so these metrics come by OTLP.
func TestTheQueriesForDatadogFindWhatTheExampleSends(t *testing.T) {
	t.Parallel()
	queries, err := datadog.Queries()
	require.NoError(t, err)
	b := backends[slices.IndexFunc(backends, func(b backend) bool { return b.file == "datadog.yaml" })]

	vllm := collector.Busy(t, 2, betweenScrapes)
	direct, fed := newRecorder(t), newRecorder(t)
	env := environment(t, b, direct.url)
	env["VLLM_ENDPOINT"] = vllm
	c := collector.Collector(t, env, b.config(),
		"yaml:receivers::vllm::collection_interval: 1s", "yaml:receivers::vllm::timeout: 900ms",
		"yaml:exporters::otlp_http::sending_queue::batch::flush_timeout: 500ms",
		`yaml:{processors: {vllm: {metrics: {vllm.time_to_first_token: {enabled: true}}, window: 4s, pool: {interval: 1s}, burn_windows: [5m, 30m, 1h, 2h, 6h, 1d, 3d],
			objectives: [{name: ttft, metric: vllm.time_to_first_token, threshold: 2.5s, target: 0.95}]}}}`)
	elsewhere := func(query string) bool {
		return strings.Contains(query, "inference_gateway.") || strings.Contains(query, "vllm.diagnosis.cause{") ||
			strings.Contains(query, "vllm.accelerator.")
	}
	missing := func() (why []string) {
		sent := sentByName(direct.points())
		for _, query := range queries {
			if !elsewhere(query) {
				why = append(why, unanswered(query, sent)...)
			}
		}
		return why
	}
	deadline := time.Now().Add(2 * time.Minute)
	// Two engines have two points each time.
	enough := func() bool {
		return len(sentByName(direct.points())["vllm.time_to_first_token"]) >= 2*6 && len(missing()) == 0
	}
	for !enough() && time.Now().Before(deadline) {
		time.Sleep(time.Second)
	}
	assert.Empty(t, missing())
	c.Stop(t)
	deltasOfObjectives(t, sentByName(direct.points()))

	addr := collector.FreeAddr(t)
	c = collector.Collector(t, environment(t, b, fed.url), b.config(), b.feed(addr), "yaml:processors::vllm::window: 1m")
	c.WaitFor(t, "the start of all components", c.Ready)
	b.scrape(t, addr)
	b.waitForAll(t, c, fed)
	c.Stop(t)
	sent := sentByName(fed.points())
	for _, query := range queries {
		if elsewhere(query) {
			// The values that the test sends are made up.
			assert.Empty(t, unanswered(strings.ReplaceAll(query, "quantile:0.99", "quantile:0.95"), sent), query)
		}
	}
	for _, tag := range datadog.Choices() {
		assert.True(t, slices.ContainsFunc(sent["vllm.num_requests.running"], func(p point) bool { return p.tagged()[tag] != "" }), tag)
	}
}
