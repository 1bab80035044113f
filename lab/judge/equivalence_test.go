package judge

import (
	"context"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/race"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/scenario"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver"
)

// scenarios are files that have, together, what a scenario can have.
var scenarios = map[string]string{
	"slow, away, restarts": `
length: 20m
workload: {rate: 6}
changes:
  - {at: 4m, until: 8m, set: {bandwidth: 0.4}}
faults:
  - {kind: unreachable, at: 9m55s, until: 10m55s}
  - {kind: restart, at: 13m15s, until: 14m15s}`,
	"everything that can be counted": `
length: 12m
lora_slots: 2
speculation: true
count_corrupted: true
estimate_flops: true
kv_cache_metrics_sample: 0.2
kv_cache_tokens: 60000
transfer: {share: 0.5, latency: 20ms, bytes_per_second: 1e10}
workload: {rate: 5, adapter_share: 0.8, adapters: 4, image_share: 0.3, images: 20, choices_share: 0.1, choices: 3, session_share: 0.05, session_chunks: 3, session_pause: 2s}
changes:
  - {at: 4m, until: 8m, set: {transfer_failure: 0.5, corruption: 0.2, acceptance: 0.1, adapter_pool: 3}}
  - {at: 5m, set: {clients_leave: 0.5}}
  - {at: 6m, until: 7m, set: {unscheduled_errors: 0.1, client_errors: 0.2, error_rate: 0.1}}`,
	"engines": `
length: 10m
engines: 3
engine_shares: [0.6, 0.3, 0.1]
workload: {rate: 9}
changes:
  - {at: 4m, until: 6m, engines: [1], set: {clock: 0.2}}
  - {at: 7m, until: 8m, engines: [2], set: {stall: 1}}`,
	"a full cache": `
length: 10m
kv_cache_tokens: 40000
workload: {rate: 4}
changes:
  - {at: 4m, until: 6m, set: {arrival_rate: 2}}`,
	"hybrid, asleep": `
length: 12m
hybrid_model: true
quantized_model: true
estimate_flops: true
workload: {rate: 3, timeout: 20s}
changes:
  - {at: 4m, until: 6m, set: {sleep: 1, arrival_rate: 0.1}}
  - {at: 8m, until: 9m, set: {host_delay: 0.02, front_end: 3}}`,
}

func load(t *testing.T, text string) scenario.Scenario {
	t.Helper()
	file := filepath.Join(t.TempDir(), "one.yaml")
	require.NoError(t, os.WriteFile(file, []byte("about: a test\n"+text), 0o600))
	s, err := scenario.Load(file)
	require.NoError(t, err)
	return s
}

// The processor derives the same values from batches of the scraper and from our
// receiver's scrapes of a stand-in server with the same engine.
func TestTheScraperIsEquivalentToTheReceiver(t *testing.T) {
	race.SkipSequential(t)
	names := map[string]bool{}
	for name, text := range scenarios {
		t.Run(name, func(t *testing.T) {
			sc := load(t, text)
			config := sc.Config
			config.Start, config.Version = begin, ShownVersion
			received := receive(t, scrapePages(t, config, sc.Length.Seconds()))

			story, err := FromScenario(&sc)
			require.NoError(t, err)
			cfg := story.Servers[0]
			cfg.Changes = scenario.Changes(story.Injections, 0, cfg.Engines)
			w, err := newWorld(cfg, story.Faults, nil, func(*seen) {})
			require.NoError(t, err)
			scraper := newScraper(w, 0, !story.Uncounted)
			direct := derive(t, len(received), func(i int) pmetric.Metrics {
				at := float64(i+1) * interval
				require.NoError(t, w.advance(at))
				metrics, came := scraper.scrape(w, begin.Add(seconds(at)), begin)
				require.True(t, came)
				return metrics
			})
			scraped := derive(t, len(received), func(i int) pmetric.Metrics { return received[i] })
			for i := range direct {
				var differ []string
				for name := range merged(scraped[i], direct[i]) {
					if scraped[i][name] != direct[i][name] {
						differ = append(differ, fmt.Sprintf("%s: %q by the receiver, %q by the scraper", name, scraped[i][name], direct[i][name]))
					}
				}
				require.Empty(t, differ, "scrape %d", i)
				for name := range direct[i] {
					names[name[:strings.IndexByte(name, '{')]] = true
				}
			}
		})
	}
	assert.Greater(t, len(names), 20, "%v", slices.Sorted(maps.Keys(names)))
}

func merged(a, b map[string]string) map[string]string {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}

const interval = 10.0

// answer is one scrape: a page, or none.
type answer struct {
	body        []byte
	contentType string
}

// scrapePages returns the answers of the first server to all scrapes.
func scrapePages(t *testing.T, config vllmsim.Config, length float64) (out []answer) {
	t.Helper()
	server, err := vllmsim.New(config)
	require.NoError(t, err)
	for at := interval; at <= length; at += interval {
		server.Advance(seconds(interval))
		body, contentType, err := server.Targets()[0].Body()
		if err != nil {
			body = nil
		}
		out = append(out, answer{body, contentType})
	}
	return out
}

// replay answers each scrape with the next page and receives the metrics of it.
type replay struct {
	pages []answer
	done  chan struct{}

	mu       sync.Mutex
	asked    int
	received []pmetric.Metrics
}

func (r *replay) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if request.URL.Path != "/metrics" {
		http.NotFound(w, request)
		return
	}
	r.mu.Lock()
	page := r.pages[min(r.asked, len(r.pages)-1)]
	r.asked++
	asked := r.asked
	r.mu.Unlock()
	// The pages are read faster than real time: this is the clock of the server.
	w.Header().Set("Date", begin.Add(seconds(float64(asked)*interval)).Format(http.TimeFormat))
	if page.body == nil {
		// A closed connection would be more realistic, but the client would retry.
		http.Error(w, "away", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", page.contentType)
	_, _ = w.Write(page.body)
}

func (*replay) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (r *replay) ConsumeMetrics(_ context.Context, metrics pmetric.Metrics) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := pmetric.NewMetrics()
	metrics.CopyTo(kept)
	r.received = append(r.received, kept)
	if len(r.received) == len(r.pages) {
		close(r.done)
	}
	return nil
}

// receive lets our receiver read the pages faster than real time, and sets the times
// of the scrapes on the points.
func receive(t *testing.T, pages []answer) []pmetric.Metrics {
	t.Helper()
	server := &replay{pages: pages, done: make(chan struct{})}
	listening := httptest.NewServer(server)
	defer listening.Close()
	factory := vllmreceiver.NewFactory()
	config := factory.CreateDefaultConfig().(*vllmreceiver.Config)
	config.Client.Endpoint = listening.URL
	config.Controller.CollectionInterval = 5 * time.Millisecond
	config.Controller.InitialDelay = 0
	receiver, err := factory.CreateMetrics(t.Context(), receivertest.NewNopSettings(factory.Type()), config, server)
	require.NoError(t, err)
	require.NoError(t, receiver.Start(t.Context(), componenttest.NewNopHost()))
	select {
	case <-server.done:
	case <-time.After(time.Minute):
		assert.Fail(t, "the receiver did not read the server")
	}
	require.NoError(t, receiver.Shutdown(t.Context()))
	server.mu.Lock()
	defer server.mu.Unlock()
	out := server.received[:len(pages)]
	for i, metrics := range out {
		stamp(metrics, pcommon.NewTimestampFromTime(begin.Add(seconds(float64(i+1)*interval))))
	}
	return out
}

// stamp sets the time of all points.
func stamp(metrics pmetric.Metrics, at pcommon.Timestamp) {
	for _, rm := range metrics.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				switch m.Type() {
				case pmetric.MetricTypeGauge:
					for _, p := range m.Gauge().DataPoints().All() {
						p.SetTimestamp(at)
					}
				case pmetric.MetricTypeSum:
					for _, p := range m.Sum().DataPoints().All() {
						p.SetTimestamp(at)
					}
				case pmetric.MetricTypeHistogram:
					for _, p := range m.Histogram().DataPoints().All() {
						p.SetTimestamp(at)
					}
				case pmetric.MetricTypeSummary:
					for _, p := range m.Summary().DataPoints().All() {
						p.SetTimestamp(at)
					}
				default:
				}
			}
		}
	}
}

// derive sends batches to the processor, with all its signals, and returns the points that
// it adds to each.
func derive(t *testing.T, n int, next func(i int) pmetric.Metrics) []map[string]string {
	t.Helper()
	config, err := configure(map[string]any{"metrics": map[string]any{
		"vllm.diagnosis.signal": map[string]any{"enabled": true}, "vllm.diagnosis.signal_ratio": map[string]any{"enabled": true},
	}})
	require.NoError(t, err)
	d, err := newDiagnosis(t.Context(), config, begin)
	require.NoError(t, err)
	var out []map[string]string
	for i := range n {
		d.advance(float64(i+1) * interval)
		_, err := d.observe(t.Context(), next(i))
		require.NoError(t, err)
		out = append(out, added(d.last))
	}
	require.NoError(t, d.processor.Shutdown(t.Context()))
	return out
}

// added returns the points that the processor added, by metric and attributes.
func added(metrics pmetric.Metrics) map[string]string {
	out := map[string]string{}
	name := vllmprocessor.NewFactory().Type().String()
	for _, rm := range metrics.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			if !strings.HasSuffix(sm.Scope().Name(), name+"processor") {
				continue
			}
			for _, m := range sm.Metrics().All() {
				for _, p := range m.Gauge().DataPoints().All() {
					var attributes []string
					for k, v := range p.Attributes().All() {
						attributes = append(attributes, k+"="+v.AsString())
					}
					slices.Sort(attributes)
					v := p.DoubleValue()
					if math.Abs(v) < 1e-12 {
						v = 0 // What is left of differences of equal sums.
					}
					value := fmt.Sprintf("%.9g", v)
					if p.Flags().NoRecordedValue() {
						value = "end"
					}
					out[m.Name()+"{"+strings.Join(attributes, ",")+"}"] = value
				}
			}
		}
	}
	return out
}
