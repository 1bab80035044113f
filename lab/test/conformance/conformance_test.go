//go:build e2e

package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/audit"
	"github.com/otelcol-vllm/otelcol-vllm/lab/test/collector"
)

var (
	targets = flag.String("conform.targets", "", "programs as \"name=http://host:port name=...\"; a path is that of the page, /metrics without one; \",http://host:port\" behind it takes the requests")
	length  = flag.Duration("conform.for", 40*time.Second, "how long a program is observed")
	keep    = flag.Bool("conform.keep", false, "keep what is found in results")
)

const (
	interval = 2 * time.Second
	// window ends between two scrapes, so that their jitter does not decide.
	window = 9 * time.Second
	// clients send requests at the same time.
	clients = 4
)

const collectorConfig = `
receivers:
  vllm: {endpoint: %q, collection_interval: %s, initial_delay: 0s, timeout: 2s}
processors:
  vllm: {preset: full, window: %s}
exporters:
  file/raw: {path: %q}
  file/derived: {path: %q}
service:
  pipelines:
    metrics/raw: {receivers: [vllm], exporters: [file/raw]}
    metrics/derived: {receivers: [vllm], processors: [vllm], exporters: [file/derived]}
`

// Programs that others wrote, at the addresses that are given.
func TestForeignPrograms(t *testing.T) {
	if *targets == "" {
		t.Skip("no program is named: make conform TARGETS='name=http://host:port'")
	}
	for _, target := range strings.Fields(*targets) {
		name, address, _ := strings.Cut(target, "=")
		address, front, elsewhere := strings.Cut(address, ",")
		if !elsewhere {
			front = address
		}
		t.Run(name, func(t *testing.T) {
			tap, err := NewTap(address)
			require.NoError(t, err)
			if err := tap.Alive(); err != nil {
				t.Skip(name, "is not there:", err)
			}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			requests := load(ctx, t, strings.TrimSuffix(front, tap.Path()))
			r := observe(t, name, tap, *length)
			r.Requests = requests.Load()
			if *keep {
				require.NoError(t, r.Write("results"))
			}
			for _, wrong := range r.Wrong() {
				t.Error(wrong)
			}
		})
	}
}

// The stand-in shows that the comparison works where there is no other program.
func TestTheStandInConforms(t *testing.T) {
	t.Parallel()
	tap, err := NewTap(collector.Busy(t, 2, 2*time.Second))
	require.NoError(t, err)
	r := observe(t, "vllmsim", tap, 12*time.Second)
	assert.Empty(t, r.Wrong())
	assert.Greater(t, r.Between, 100, "it moves between the scrapes")
	assert.NotEmpty(t, r.Derived)
	for version, derived := range r.Derived {
		assert.Greater(t, len(derived), 20, version)
	}
}

// observe compares the collector with a program.
func observe(t *testing.T, name string, tap *Tap, length time.Duration) *Report {
	t.Helper()
	front := httptest.NewServer(tap)
	t.Cleanup(front.Close)
	dir := t.TempDir()
	raw, derived := filepath.Join(dir, "raw.json"), filepath.Join(dir, "derived.json")
	c := collector.RunWith(t, fmt.Sprintf(collectorConfig, front.URL+tap.Path(), interval, window, raw, derived))
	enough := max(int(length/interval), int(window/interval)+3)
	deadline := time.After(length*3 + collector.Patience)
	for n := 0; n < enough; {
		select {
		case <-c.Done():
			require.FailNow(t, "the collector ended by itself")
		case <-deadline:
			require.FailNow(t, "too few scrapes", "%d of %d", n, enough)
		case <-time.After(100 * time.Millisecond):
		}
		scrapes, _ := tap.seen()
		n = len(scrapes)
	}
	c.Stop(t)
	assert.Empty(t, c.Errors())

	scrapes, version := tap.seen()
	batches, values := batchesOf(t, raw), batchesOf(t, derived)
	r := &Report{Program: name, Scrapes: min(len(scrapes), len(batches), len(values))}
	require.GreaterOrEqual(t, r.Scrapes, enough-1)
	var last *audit.Report
	var times []time.Time
	for n := range r.Scrapes {
		s := audit.Scrape{Body: scrapes[n].page.Body, ContentType: scrapes[n].page.ContentType, Version: version}
		last = audit.Check(s, batches[n])
		for _, v := range last.Violations {
			// A target's start times are those of its first scrape: one scrape alone cannot tell them.
			if !strings.Contains(v, ": starts at ") {
				add(&r.Violations, v)
			}
		}
		r.bracket(audit.Bracket(scrapes[n].before, scrapes[n].page, scrapes[n].after))
		times = append(times, up(t, batches[n]).Timestamp().AsTime())
	}
	r.families(last)
	families := map[string]bool{}
	for i := range last.Origins {
		families[last.Origins[i].Family] = true
	}
	r.evaluate(t, version, families, scrapes, values, times)
	t.Logf("%d scrapes; %d samples of %d families; %d equal to the harness's, %d between; %v", r.Scrapes, r.Samples, r.Families, r.Equal, r.Between, r.Fates)
	return r
}

// batchesOf reads a file of the file exporter: one line is one scrape. One that the collector gave up, on a
// busy machine, is left out, as the tap does.
func batchesOf(t *testing.T, file string) (all []pmetric.ResourceMetrics) {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	for line := range bytes.Lines(content) {
		metrics, err := (&pmetric.JSONUnmarshaler{}).UnmarshalMetrics(line)
		require.NoError(t, err)
		for _, rm := range metrics.ResourceMetrics().All() {
			if number(up(t, rm)) == 1 {
				all = append(all, rm)
			}
		}
	}
	return all
}

// up is the point of vllm.up, which has the time of the scrape.
func up(t *testing.T, rm pmetric.ResourceMetrics) pmetric.NumberDataPoint {
	t.Helper()
	for _, sm := range rm.ScopeMetrics().All() {
		for _, m := range sm.Metrics().All() {
			if m.Name() == "vllm.up" {
				return m.Gauge().DataPoints().At(0)
			}
		}
	}
	require.FailNow(t, "a batch without vllm.up")
	return pmetric.NewNumberDataPoint()
}

// load sends requests to a server of models until ctx ends; some of them are wrong. A program that answers none of them, as a
// picker behind a proxy of another address, is left to what its user sends.
// It counts those that are answered.
func load(ctx context.Context, t *testing.T, base string) *atomic.Int64 {
	t.Helper()
	answered := &atomic.Int64{}
	var models struct{ Data []struct{ ID string } }
	if err := json.Unmarshal(collector.Get(t, base+"/v1/models"), &models); err != nil || len(models.Data) == 0 {
		t.Logf("%s lists no models; it gets no requests", base)
		return answered
	}
	var all sync.WaitGroup
	for n := range clients {
		all.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(n)))
			for ctx.Err() == nil {
				model := models.Data[0].ID
				if random.IntN(12) == 0 {
					model = "no-such-model"
				}
				body, _ := json.Marshal(map[string]any{ // It has only numbers and texts.
					"model": model, "prompt": strings.Repeat("a word ", 1+random.IntN(60)),
					"max_tokens": 1 + random.IntN(24), "stream": random.IntN(2) == 0,
				})
				if random.IntN(12) == 0 {
					body = body[1:]
				}
				request, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/v1/completions", bytes.NewReader(body))
				if err != nil {
					return
				}
				request.Header.Set("Content-Type", "application/json")
				if response, err := http.DefaultClient.Do(request); err == nil {
					_, _ = io.Copy(io.Discard, response.Body)
					_ = response.Body.Close()
					answered.Add(1)
				}
			}
		})
	}
	t.Cleanup(all.Wait)
	time.Sleep(5 * time.Second) // Series appear with the first requests.
	return answered
}
