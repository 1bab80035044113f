//go:build e2e

package upgrade

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

var write = flag.Bool("upgrade.write", false, "write the fixtures of the last release with its binary (make upgrade-fixtures)")

func (p points) sum() string {
	hash := sha256.New()
	for _, key := range slices.Sorted(maps.Keys(p)) {
		fmt.Fprintf(hash, "%s %d\n", key, p[key])
	}
	return fmt.Sprintf("%x", hash.Sum(nil))
}

// replayed is how many batches of a simulated server are kept.
const replayed = 20

// TestWriteFixtures makes what testdata/upgrade has of the last release, with its binary.
func TestWriteFixtures(t *testing.T) {
	if !*write {
		t.Skip("-upgrade.write is not set")
	}
	old := oldBinary(t)
	require.NoError(t, os.MkdirAll(fixture(), 0o755))
	require.NoError(t, os.WriteFile(fixture("emitted.txt"), []byte(emitted(t, old).String()), 0o644))

	s := newStage(t, vllmsim(t))
	l := s.life(t, old)
	s.scrapes(t, l, 3)
	s.server.change(func(c *counted) { c.slow += tooSlow })
	s.placed.change(func(c *counted) { c.slow += tooSlow })
	s.scrapes(t, l, learning)
	s.backend.away.Store(true)
	s.scrapes(t, l, 3)
	l.process.Stop(t)
	l.noErrors(t)

	all := written(t, l.out)
	budget := &account{}
	budget.check(t, all)
	left := series(all, counterName, "vllm.slo.error_budget_remaining", map[string]string{"bound": "lower"})
	known := facts{Requests: budget.before, Slow: tooSlow, Left: left[len(left)-1].number}
	for _, scrape := range slices.Concat(series(all, counterName, "vllm.up", nil), series(all, "sim-1:8000", "vllm.up", nil), series(all, "sim-2:8000", "vllm.up", nil)) {
		known.Last = max(known.Last, scrape.at)
	}
	arrived := s.backend.points(math.MaxUint64)
	unsent := points{}
	for _, metrics := range all {
		unsent.add(metrics, 0, known.Last)
	}
	for p, n := range arrived {
		if unsent[p] -= n; unsent[p] <= 0 {
			delete(unsent, p)
		}
	}
	known.Unsent, known.Sum = len(unsent), unsent.sum()
	require.Greater(t, known.Unsent, 100)
	content, err := json.MarshalIndent(known, "", "  ")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(fixture("facts.json"), append(content, '\n'), 0o644))
	pack(t, s.env["STATE"], fixture("storage.tar.gz"))
	keep(t, written(t, l.out+".raw"))
}

// keep writes the last batches of the receiver for one simulated server, and the last one of the
// counted server.
func keep(t *testing.T, raw []pmetric.Metrics) {
	t.Helper()
	var text bytes.Buffer
	packed := gzip.NewWriter(&text)
	want := map[string]int{counterName: 1, "sim-1:8000": replayed}
	var lines [][]byte
	for _, metrics := range slices.Backward(raw) {
		metrics.ResourceMetrics().RemoveIf(func(rm pmetric.ResourceMetrics) bool {
			server := instance(rm.Resource().Attributes())
			want[server]--
			return want[server] < 0
		})
		if metrics.ResourceMetrics().Len() > 0 {
			line, err := (&pmetric.JSONMarshaler{}).MarshalMetrics(metrics)
			require.NoError(t, err)
			lines = append(lines, append(line, '\n'))
		}
	}
	for _, line := range slices.Backward(lines) {
		_, err := packed.Write(line)
		require.NoError(t, err)
	}
	require.NoError(t, packed.Close())
	require.NoError(t, os.WriteFile(fixture("batches.json.gz"), text.Bytes(), 0o644))
}

func pack(t *testing.T, dir, file string) {
	t.Helper()
	var text bytes.Buffer
	packed := gzip.NewWriter(&text)
	archive := tar.NewWriter(packed)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		require.NoError(t, err)
		require.NoError(t, archive.WriteHeader(&tar.Header{Name: entry.Name(), Mode: 0o600, Size: int64(len(content))}))
		_, err = archive.Write(content)
		require.NoError(t, err)
	}
	require.NoError(t, archive.Close())
	require.NoError(t, packed.Close())
	require.NoError(t, os.WriteFile(file, text.Bytes(), 0o644))
}

// body is a server that shows a body of testdata, and after some scrapes the one of 15 s later.
type body struct {
	dir     string
	scrapes atomic.Int64
}

const sameBody = 4

func (b *body) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/version":
		name := filepath.Base(b.dir)
		fmt.Fprintf(w, `{"version":%q}`, name[strings.LastIndex(name, "-")+1:])
	case "/metrics":
		file := "metrics.txt"
		if b.scrapes.Add(1) > sameBody {
			file = "metrics-2.txt"
		}
		content, err := os.ReadFile(filepath.Join(b.dir, file))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		kind, err := os.ReadFile(filepath.Join(b.dir, "content-type"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", strings.TrimSpace(string(kind)))
		_, _ = w.Write(content)
	default:
		http.NotFound(w, r)
	}
}

// emitted is what a program emits for the bodies of testdata, with objectives and a pool. The
// derived metrics are there, as far as two bodies give them.
func emitted(t *testing.T, program string) shapes {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(root, "testdata", "*", "metrics-2.txt"))
	require.NoError(t, err)
	require.Greater(t, len(dirs), 8)
	var targets strings.Builder
	servers := map[string]*body{}
	for _, dir := range dirs {
		b := &body{dir: filepath.Dir(dir)}
		name := filepath.Base(b.dir)
		servers[name] = b
		fmt.Fprintf(&targets, "      - {endpoint: %q, resource_attributes: {service.instance.id: %q}}\n", "http://"+serve(t, b), name)
	}
	out := filepath.Join(t.TempDir(), "out.json")
	l := start(t, program, strings.Replace(aroundBodies, "TARGETS", targets.String(), 1), out, nil)
	l.process.WaitFor(t, "scrapes of both bodies", func() bool {
		for _, b := range servers {
			if b.scrapes.Load() < 4*sameBody {
				return false
			}
		}
		return true
	})
	l.process.Stop(t)
	l.noErrors(t)
	all := shapes{}
	for _, metrics := range written(t, out) {
		all.add(metrics, func(attributes pcommon.Map) string {
			if name := instance(attributes); servers[name] != nil {
				return name
			}
			return "pool"
		})
	}
	return all
}

const aroundBodies = `
receivers:
  vllm:
    collection_interval: 500ms
    timeout: 500ms
    initial_delay: 10ms
    targets:
TARGETS
processors:
  vllm:
    window: 4s
    objectives:
      - {name: ttft, metric: vllm.time_to_first_token, threshold: 2.5s, target: 0.95}
    pool: {interval: 1s}
    metrics:
      vllm.diagnosis.signal: {enabled: true}
      vllm.diagnosis.signal_ratio: {enabled: true}
exporters:
  file: {path: "${env:OUT}", flush_interval: 20ms}
service:
  pipelines:
    metrics: {receivers: [vllm], processors: [vllm], exporters: [file]}
`
