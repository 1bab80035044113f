//go:build e2e

package backends

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/collector"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim"
)

const (
	// step is the virtual time between two scrapes, steps how many there are
	// after the first: ten minutes.
	step  = 15 * time.Second
	steps = 40
	// tolerance is relative. Both jobs hold the same numbers at the same times, so
	// that only the order of additions can differ, by a few units in the last
	// place of a float64 (1.1e-16 each).
	tolerance = 1e-13
)

var aborted = regexp.MustCompile(`(?m)^(vllm:request_success_total\{.*finished_reason="abort".*\}) 0.0$`)

// frozen is a stand-in vLLM server that shows one body until it is moved on.
type frozen struct {
	target *vllmsim.Target
	mu     sync.Mutex
	body   []byte
	reads  int
}

// read returns how often the server was scraped.
func (f *frozen) read() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reads
}

func (f *frozen) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/metrics" {
		f.target.ServeHTTP(w, r)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reads++
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write(f.body)
}

// show freezes the body of this moment, with its number in a family of its own.
func (f *frozen) show(t *testing.T, number int) []byte {
	t.Helper()
	body, _, err := f.target.Body()
	require.NoError(t, err)
	// The simulated clients never give up; these do.
	body = aborted.ReplaceAll(body, fmt.Appendf(nil, "${1} %d", 2*number))
	body = fmt.Appendf(body, "# TYPE vllm:comparison_number gauge\nvllm:comparison_number %d\n", number)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.body = body
	return body
}

// pages serves both pages of one virtual time to Prometheus. Every sample has that time.
type pages struct {
	mu   sync.Mutex
	page map[string][]byte
}

func (p *pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write(p.page[r.URL.Path])
}

func (p *pages) publish(at time.Time, direct, collector []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.page = map[string][]byte{"/direct": stamped(direct, at), "/collector": stamped(collector, at)}
}

// stamped adds a time to every sample of a page.
func stamped(page []byte, at time.Time) []byte {
	var out bytes.Buffer
	for line := range bytes.Lines(page) {
		line = bytes.TrimSuffix(line, []byte("\n"))
		out.Write(line)
		if len(line) > 0 && line[0] != '#' {
			fmt.Fprintf(&out, " %d", at.UnixMilli())
		}
		out.WriteByte('\n')
	}
	return out.Bytes()
}

const prometheusConfig = `
global: {scrape_interval: 200ms, scrape_timeout: 200ms}
scrape_configs:
  - {job_name: direct, metrics_path: /direct, static_configs: [{targets: [%[1]q]}]}
  - {job_name: collector, metrics_path: /collector, static_configs: [{targets: [%[1]q]}]}
`

// answer is the result of a query: values by series and time.
type answer map[string]map[string]float64

// ask evaluates a query at every step between two times.
func ask(t *testing.T, addr, query string, from, to time.Time) answer {
	t.Helper()
	// VictoriaMetrics rounds to milliseconds, and answers nothing for the future.
	from, to = from.Truncate(time.Millisecond), to.Truncate(time.Millisecond)
	parameters := url.Values{
		"query": {query}, "step": {step.String()},
		"start": {from.Format(time.RFC3339Nano)}, "end": {to.Format(time.RFC3339Nano)},
	}
	body := collector.Get(t, "http://"+addr+"/api/v1/query_range?"+parameters.Encode())
	require.NotEmpty(t, body, "Prometheus refuses %s", query)
	var decoded struct {
		Data struct {
			Result []struct {
				Metric map[string]string
				Values [][2]any
			}
		}
	}
	require.NoError(t, json.Unmarshal(body, &decoded))
	result := answer{}
	for _, series := range decoded.Data.Result {
		values := map[string]float64{}
		for _, pair := range series.Values {
			value, err := strconv.ParseFloat(pair[1].(string), 64)
			require.NoError(t, err)
			values[fmt.Sprint(pair[0])] = value
		}
		result[fmt.Sprint(series.Metric)] = values
	}
	return result
}

// The same server is read by a Prometheus directly and by the collector, whose
// page the same Prometheus reads. Time is virtual: the server does not change while both
// read it, and every sample gets the virtual time, so that both jobs see the same scrapes
// at the same times. Ten minutes take about half a minute.
func TestPrometheusAnswersTheSameThroughTheCollector(t *testing.T) {
	t.Parallel()
	began := time.Now().Add(-(steps + 1) * step).Truncate(time.Second)
	// The cache is so small that requests wait at the top of each wave of load.
	simulated, err := vllmsim.New(vllmsim.Config{
		Engines: 2, Rate: 5, KVCacheTokens: 12000, Period: 4 * time.Minute, Start: began.Add(-10 * time.Minute),
	})
	require.NoError(t, err)
	simulated.Advance(10 * time.Minute)
	server := &frozen{target: simulated.Targets()[0]}
	server.show(t, 0)
	vllm := httptest.NewServer(server)
	t.Cleanup(vllm.Close)
	both := &pages{}
	both.publish(began, nil, nil)
	offered := httptest.NewServer(both)
	t.Cleanup(offered.Close)

	prometheus, addr := collector.Prometheus(t, fmt.Sprintf(prometheusConfig, strings.TrimPrefix(offered.URL, "http://")))
	exporter := collector.FreeAddr(t)
	c := collector.Collector(t, map[string]string{"VLLM_ENDPOINT": vllm.URL, "PROMETHEUS_ADDR": exporter},
		filepath.Join(root, "examples", "quickstart.yaml"), "yaml:receivers::vllm::collection_interval: 300ms")
	at := began
	var page []byte
	for number := range steps + 1 {
		body := server.show(t, number)
		marker := fmt.Sprintf("} %d\n", number)
		seen := 0
		c.WaitFor(t, "the collector's page", func() bool {
			page = collector.Get(t, "http://"+exporter+"/metrics")
			_, rest, _ := bytes.Cut(page, []byte("\nvllm_comparison_number{"))
			line, _, _ := bytes.Cut(rest, []byte("\n"))
			if !strings.HasSuffix(string(line)+"\n", marker) {
				return false
			}
			if seen == 0 {
				seen = server.read()
			}
			// The exporter takes a scrape metric by metric. A scrape is complete when the
			// next has begun, which reads the same body.
			return server.read() > seen
		})
		both.publish(at, body, page)
		prometheus.WaitFor(t, "Prometheus's scrapes", func() bool {
			return stored(ask(t, addr, `{__name__=~"vllm[:_]comparison_number"}`, at, at), number) == 2
		})
		simulated.Advance(step)
		at = at.Add(step)
	}
	last := at.Add(-step)
	c.Stop(t)
	for _, complaint := range c.Complaints() {
		// On a busy machine a scrape may be late; it is made again.
		assert.Contains(t, complaint, "did not answer within the timeout")
	}

	compared := 0
	for _, q := range queries {
		theirs, ours := q.through("direct"), q.through("collector")
		want, got := ask(t, addr, theirs, began.Add(time.Minute), last), ask(t, addr, ours, began.Add(time.Minute), last)
		compared += same(t, q.name, want, got)
		assert.True(t, moves(want), "%s: always 0 with this load: %s", q.name, theirs)
	}
	// Nearly every query has an answer at each of the 37 times.
	assert.Greater(t, compared, len(queries)*36)
	t.Logf("%d numbers of %d queries compared", compared, len(queries))
	lint(t, page)
	prometheus.Stop(t)
}

// stored counts the series of an answer that hold this number.
func stored(a answer, number int) int {
	count := 0
	for _, values := range a {
		for _, value := range values {
			if value == float64(number) {
				count++
			}
		}
	}
	return count
}

// same compares all values of two answers and counts them.
func same(t *testing.T, name string, want, got answer) int {
	t.Helper()
	require.NotEmpty(t, want, name)
	compared := 0
	for series, values := range want {
		if !assert.Len(t, got[series], len(values), "%s: %s", name, series) {
			continue
		}
		for at, value := range values {
			other, found := got[series][at]
			equal := other == value || (math.IsNaN(value) && math.IsNaN(other)) || math.Abs(other-value) <= tolerance*math.Abs(value)
			if !found || !equal {
				assert.Fail(t, "another number", "%s: %s at %s is %v through the collector and %v directly", name, series, at, other, value)
				return compared
			}
			compared++
		}
	}
	assert.Len(t, got, len(want), "%s: series", name)
	return compared
}

// moves reports whether an answer has a number that is not 0.
func moves(a answer) bool {
	for _, values := range a {
		for _, value := range values {
			if value != 0 && !math.IsNaN(value) && !math.IsInf(value, 0) {
				return true
			}
		}
	}
	return false
}

// lint lets promtool read the collector's page. Its remarks on names concern vLLM's own
// naming; the collector is responsible for a page that can be read.
func lint(t *testing.T, page []byte) {
	t.Helper()
	command := exec.CommandContext(t.Context(), collector.Tool(t, "promtool"), "check", "metrics")
	command.Stdin = bytes.NewReader(page)
	output, err := command.CombinedOutput()
	t.Logf("promtool check metrics:\n%s", output)
	if err != nil {
		// Status 3 is for remarks, 1 for a page that cannot be read.
		assert.Equal(t, 3, command.ProcessState.ExitCode(), "%s", output)
	}
}
