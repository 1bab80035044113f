package accuracy

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/otelcol-vllm/otelcol-vllm/internal/vllmsim"
	"github.com/otelcol-vllm/otelcol-vllm/internal/vllmsim/engine"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver"
)

// The processor derives the same values from batches of the scraper and from our
// receiver's scrapes of a stand-in server with the same engine. The server is slow for
// a while, is unreachable for a while, and restarts.
func TestTheScraperIsEquivalentToTheReceiver(t *testing.T) {
	const length = 20 * window
	seed := uint64(7)
	workload := engine.Chat(6)
	changes := []engine.Change{{At: 240, Parameter: engine.ParamBandwidth, Value: 0.4}, {At: 480, Parameter: engine.ParamBandwidth, Value: 1}}
	faults := []Fault{{Unreachable, 595, 655}, {Restart, 795, 855}}

	config := vllmsim.Config{
		Dialect: "v1", Version: shownVersion, Seed: seed, Hardware: "8b-h100", Workload: &workload, Changes: changes,
		NaNCounter: true, Start: synctestBegin,
	}
	for _, f := range faults {
		config.Faults = append(config.Faults, vllmsim.Fault{Kind: vllmsim.FaultKind(f.Kind), At: f.At, Until: f.Until})
	}
	pages := scrapePages(t, config, length)
	received := receive(t, pages)

	direct := directly(t, func(w *world, s *scraper, i int, begin time.Time) pmetric.Metrics {
		require.NoError(t, w.advance(float64(i+1)*interval))
		metrics, came := s.scrape(w, time.Now(), begin)
		require.True(t, came)
		return metrics
	}, engine.Config{
		Seed: seed * 1_000_003, Model: engine.Llama8B(), Blocks: engine.Llama8B().Blocks, BlockSize: blockSize, MaxSeqs: 1024, MaxModelLen: 16384,
		FrontEnd: engine.DefaultFrontEnd(), Workload: workload, Changes: changes, Semantics: engine.Semantics{RecountBlocked: true},
	}, faults, length)
	scraped := directly(t, func(_ *world, _ *scraper, i int, _ time.Time) pmetric.Metrics { return received[i] },
		engine.Config{Model: engine.Llama8B(), Workload: engine.Chat(0)}, nil, length)

	require.Len(t, direct, len(scraped))
	seen := map[string]bool{}
	for i := range direct {
		require.Equal(t, scraped[i], direct[i], "scrape %d", i)
		for name := range direct[i] {
			seen[name[:strings.IndexByte(name, '{')]] = true
		}
	}
	assert.Greater(t, len(seen), 20, "%v", slices.Sorted(maps.Keys(seen)))
}

// synctestBegin is the start time of every bubble of testing/synctest.
var synctestBegin = time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)

// answer is one scrape: a page, or none.
type answer struct {
	body        []byte
	contentType string
}

// scrapePages returns the answers of the first server to all scrapes.
func scrapePages(t *testing.T, config vllmsim.Config, length float64) []answer {
	t.Helper()
	return scrapeTargets(t, config, length)[0]
}

// scrapeTargets returns the answers of all servers.
func scrapeTargets(t *testing.T, config vllmsim.Config, length float64) [][]answer {
	t.Helper()
	server, err := vllmsim.New(config)
	require.NoError(t, err)
	out := make([][]answer, len(server.Targets()))
	for at := interval; at <= length; at += interval {
		server.Advance(seconds(interval))
		for i, target := range server.Targets() {
			body, contentType, err := target.Body()
			if err != nil {
				body = nil
			}
			out[i] = append(out[i], answer{body, contentType})
		}
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
	w.Header().Set("Date", synctestBegin.Add(seconds(float64(asked)*interval)).Format(http.TimeFormat))
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
		stamp(metrics, pcommon.NewTimestampFromTime(synctestBegin.Add(seconds(float64(i+1)*interval))))
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

// directly sends batches to the processor in virtual time, and returns the points that
// it adds to each.
func directly(
	t *testing.T, next func(*world, *scraper, int, time.Time) pmetric.Metrics, cfg engine.Config, faults []Fault, length float64,
) []map[string]string {
	t.Helper()
	var out []map[string]string
	synctest.Test(t, func(t *testing.T) {
		w, err := newWorld(cfg, faults)
		require.NoError(t, err)
		scraper := newScraper(w)
		d := diagnose(t, configuration(&Story{}, true))
		require.NoError(t, d.Start(t.Context(), componenttest.NewNopHost()))
		begin := time.Now()
		for i := range int(length / interval) {
			time.Sleep(time.Until(begin.Add(seconds(float64(i+1) * interval))))
			require.NoError(t, d.ConsumeMetrics(t.Context(), next(w, scraper, i, begin)))
			out = append(out, added(d.last))
		}
		require.NoError(t, d.Shutdown(t.Context()))
	})
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
					value := fmt.Sprintf("%.9g", p.DoubleValue())
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
