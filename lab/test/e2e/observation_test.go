//go:build e2e

package e2e

import (
	"bytes"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/collector"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim"
)

const (
	derivedModel = "meta-llama/Llama-3.1-8B-Instruct"
	// derivedWindow ends between two scrapes, which are a second apart, so that
	// their jitter does not decide which scrape a window begins with.
	derivedWindow = 4500 * time.Millisecond
	// numbering is a gauge that the server adds to each body: its number.
	numbering = "vllm:body_number"
	// numberingOnPage is its name at the collector's endpoint.
	numberingOnPage = "vllm_body_number"
	processorScope  = "github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor"
)

// The endpoint carries times in milliseconds. The file has the same scrapes
// with their full times, as the receiver gave them to the processor.
const derivedConfig = `
receivers:
  vllm: {endpoint: 'http://%[1]s', collection_interval: 1s, initial_delay: 0s, timeout: 900ms}
processors:
  # The diagnosis cannot be computed from one window of the bodies, and it continues when
  # the server is gone. It has tests of its own.
  vllm:
    window: 4500ms
    percentiles: {per_engine: true}
    diagnosis: {enabled: false}
    metrics: # off by default
      vllm.e2e_request_latency_mean: {enabled: true}
      vllm.request.decode_time_mean: {enabled: true}
      vllm.request.time_per_output_token_mean: {enabled: true}
      vllm.time_to_first_token_mean: {enabled: true}
exporters:
  prometheus: {endpoint: %[2]s, send_timestamps: true}
  file: {path: %[3]s, flush_interval: 50ms}
service:
  pipelines:
    metrics: {receivers: [vllm], processors: [vllm], exporters: [prometheus, file]}
`

// recorded is a stand-in server that keeps every body that it hands out. Its
// engines move only when it is read: by step, unless it is idle.
type recorded struct {
	simulated *vllmsim.Server
	http      *httptest.Server
	addr      string

	mu     sync.Mutex
	step   time.Duration
	bodies [][]byte
	// life is the number of the first body after the restart; 0 without one.
	life int
}

func serveRecorded(t *testing.T) *recorded {
	t.Helper()
	s := &recorded{simulated: simulate(t, 7), step: 7 * time.Second}
	s.simulated.Advance(5 * time.Minute)
	s.http = httptest.NewServer(s)
	t.Cleanup(s.http.Close)
	s.addr = strings.TrimPrefix(s.http.URL, "http://")
	return s
}

// simulate makes a server that has just started. Its cache is so small that requests wait
// and are preempted at the top of each wave of load.
func simulate(t *testing.T, seed uint64) *vllmsim.Server {
	t.Helper()
	simulated, err := vllmsim.New(vllmsim.Config{
		Version: "0.24.0", Engines: 2, SpecDecode: true, Rate: 10, KVCacheTokens: 12000, Period: time.Minute, Seed: seed,
	})
	require.NoError(t, err)
	return simulated
}

func (s *recorded) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/metrics" {
		s.simulated.Targets()[0].ServeHTTP(w, r)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.simulated.Advance(s.step)
	text, contentType, err := s.simulated.Targets()[0].Body()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	text = fmt.Appendf(text, "# TYPE %[1]s gauge\n%[1]s %[2]d\n", numbering, len(s.bodies))
	s.bodies = append(s.bodies, text)
	w.Header().Set("Content-Type", contentType)
	_, _ = w.Write(text)
}

// handedOut returns every body so far.
func (s *recorded) handedOut() [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bodies[:len(s.bodies):len(s.bodies)]
}

// idle stops the traffic: from now on no request arrives and no counter changes.
func (s *recorded) idle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.step = 0
}

// restart replaces the server by a new one.
func (s *recorded) restart(t *testing.T) {
	t.Helper()
	fresh := simulate(t, 8)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.simulated, s.life = fresh, len(s.bodies)
}

// shown is what the endpoint showed for one time.
type shown struct {
	series exposed
	// reads counts the pages that had the number of the body.
	reads int
}

// wholly is the number of reads after which all of a scrape has been seen: the exporter
// takes a scrape metric by metric, and the number before the derived values.
const wholly = 3

// timeline is what the endpoint showed, by the time of the samples in milliseconds.
type timeline map[int64]*shown

// add adds a page.
func (all timeline) add(t *testing.T, page []byte) {
	t.Helper()
	eachSeries(t, page, func(set labels.Labels, at *int64, value float64) {
		if at == nil || (set.Get("otel_scope_name") != processorScope && set.Get(model.MetricNameLabel) != numberingOnPage) {
			return
		}
		if all[*at] == nil {
			all[*at] = &shown{series: exposed{}}
		}
		if set.Get(model.MetricNameLabel) == numberingOnPage {
			all[*at].reads++
		}
		all[*at].series[bare(set).String()] = value
	})
}

// observation is a collector that scrapes the recorded server, and what its
// endpoint has shown.
type observation struct {
	*collector.Process
	server     *recorded
	addr, file string
	pages      timeline
	// page is the newest.
	page []byte
}

func observe(t *testing.T, server *recorded) *observation {
	t.Helper()
	o := &observation{
		server: server, addr: collector.FreeAddr(t), file: filepath.Join(t.TempDir(), "metrics.json"), pages: timeline{},
	}
	o.Process = collector.RunWith(t, fmt.Sprintf(derivedConfig, server.addr, o.addr, o.file))
	return o
}

// until reads the endpoint until ok.
func (o *observation) until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	o.WaitFor(t, what, func() bool {
		o.page = collector.Get(t, "http://"+o.addr+"/metrics")
		o.pages.add(t, o.page)
		return ok()
	})
}

// more waits until the server has been read n times more.
func (o *observation) more(t *testing.T, n int) {
	t.Helper()
	n += len(o.server.handedOut())
	o.until(t, "more scrapes", func() bool { return len(o.server.handedOut()) >= n })
}

// scrape is the number of a body and the time of its scrape in nanoseconds.
type scrape struct {
	number int
	at     int64
}

// scraped returns what the collector scraped, as its file has it.
func (o *observation) scraped(t *testing.T) []scrape {
	t.Helper()
	content, err := os.ReadFile(o.file)
	require.NoError(t, err)
	var all []scrape
	for line := range bytes.Lines(content) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break
		}
		metrics, err := (&pmetric.JSONUnmarshaler{}).UnmarshalMetrics(line)
		require.NoError(t, err)
		for _, rm := range metrics.ResourceMetrics().All() {
			for key, p := range everyPoint(rm) {
				if key == "vllm.body_number {}" && !p.ends {
					all = append(all, scrape{int(p.value), int64(p.time)})
				}
			}
		}
	}
	return all
}

// compare compares every scrape that was seen at the endpoint with the bodies. It returns
// how many scrapes and values it compared.
func (o *observation) compare(t *testing.T) (scrapes, values int) {
	t.Helper()
	all, texts := o.scraped(t), o.server.handedOut()
	for i, s := range all {
		page := o.pages[s.at/1e6]
		if page == nil || page.reads < wholly {
			// It was the last, or the machine was too busy to read it in time.
			t.Logf("the endpoint was not read often enough while it showed scrape %d", s.number)
			continue
		}
		from, ok := baseline(all, i)
		if !ok {
			continue
		}
		window := span{
			from: parseBody(t, texts[from.number]), to: parseBody(t, texts[s.number]), seconds: float64(s.at-from.at) / 1e9,
		}
		for _, before := range all[:i] {
			if life := o.server.life; from.number < life && life <= s.number && before.number < life {
				window.last = parseBody(t, texts[before.number])
			}
		}
		require.Equal(t, float64(s.number), page.series[labels.FromStrings(model.MetricNameLabel, numberingOnPage).String()])
		want := expected(window, derivedModel, []string{"0", "1"}, []string{"0.5", "0.95", "0.99"})
		values += same(t, s.number, want, page.series)
		scrapes++
	}
	return scrapes, values
}

// baseline returns the first scrape of the window that ends with scrape i: the newest that
// is at least as old as the window, else the first of all. It is unknown where a
// millisecond decides, and where it is older than two windows.
func baseline(all []scrape, i int) (from scrape, ok bool) {
	from = all[i]
	for n := i - 1; n >= 0; n-- {
		from = all[n]
		age := time.Duration(all[i].at - from.at)
		if (age - derivedWindow).Abs() < time.Millisecond {
			return from, false
		}
		if age > derivedWindow {
			return from, age < 2*derivedWindow
		}
	}
	return from, true
}

// same requires that a page has these series with these values, and no other
// derived ones. It returns how many values were equal.
func same(t *testing.T, scrape int, want derivedValues, page exposed) (equals int) {
	t.Helper()
	for series, value := range want {
		got, found := page[series]
		switch {
		case !found:
			t.Errorf("scrape %d: %s is missing; it should be %v", scrape, series, value)
		case math.Abs(got-value) > 1e-9*max(math.Abs(value), 1e-3):
			t.Errorf("scrape %d: %s is %v, not %v", scrape, series, got, value)
		default:
			equals++
		}
	}
	for series, value := range page {
		if _, known := want[series]; !known && metricName(series) != numberingOnPage && !abandoned(series) {
			t.Errorf("scrape %d: %s is %v, which the bodies do not have", scrape, series, value)
		}
	}
	return equals
}

// abandoned reports whether a series is the interval of abandoned prefill, which
// is over five minutes, longer than these tests take.
func abandoned(series string) bool { return strings.Contains(series, `reason="abandoned_prefill"`) }

// derivedNow returns how many derived series of each name the newest page has, with
// whatever time.
func (o *observation) derivedNow(t *testing.T) map[string]int {
	t.Helper()
	one := timeline{}
	one.add(t, o.page)
	names := map[string]int{}
	for _, page := range one {
		for series := range page.series {
			if name := metricName(series); name != numberingOnPage {
				names[name]++
			}
		}
	}
	return names
}

// up returns the value of vllm_up on the newest page.
func (o *observation) up(t *testing.T) float64 {
	t.Helper()
	return parsePage(t, o.page, bare)[labels.FromStrings(model.MetricNameLabel, "vllm_up").String()]
}
