package scrape

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatatest/pmetrictest"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/captures"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/normalize"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

const bodies = "../../../../testdata"

// Every point of two scrapes of each dialect and version.
func TestGolden(t *testing.T) {
	folders, err := filepath.Glob(filepath.Join(bodies, "*", "metrics.txt"))
	require.NoError(t, err)
	require.NotEmpty(t, folders)
	for _, path := range folders {
		folder := filepath.Dir(path)
		name := filepath.Base(folder)
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.contentType = strings.TrimSpace(read(t, filepath.Join(folder, "content-type")))
			r.version = name[strings.LastIndex(name, "-")+1:]
			first := r.scrape(read(t, path))
			second := r.scrape(read(t, filepath.Join(folder, "metrics-2.txt")))
			for _, metrics := range []pmetric.Metrics{first, second} {
				validate(t, metrics)
			}
			golden(t, "golden/"+name+".txt", render(first)+"\n"+render(second))
		})
	}
}

// Each odd body shows one point of reading.
func TestGoldenOdd(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(bodies, "odd", "*.txt"))
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".txt")
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			if contentType, err := os.ReadFile(path + ".content-type"); err == nil {
				r.contentType = strings.TrimSpace(string(contentType))
			}
			out := render(r.scrape(read(t, path)))
			for _, entry := range r.logs.All() {
				if entry.Level.String() != "debug" {
					out += "log: " + entry.Message + fields(entry.ContextMap()) + "\n"
				}
			}
			golden(t, "golden/odd/"+name+".txt", out)
		})
	}
}

// What becomes of each real capture: names, kinds, units and numbers of points,
// unknown families and dropped series.
func TestCaptures(t *testing.T) {
	dir := captures.Dir(t)
	gateways, err := filepath.Glob(filepath.Join(dir, "gateway", "*.txt"))
	require.NoError(t, err)
	for _, path := range append(captures.Files(t), gateways...) {
		name := strings.TrimSuffix(filepath.Base(path), ".txt")
		if filepath.Base(filepath.Dir(path)) == "gateway" {
			name = "gateway/" + name
		}
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			body := read(t, path)
			if strings.HasSuffix(strings.TrimSpace(body), "# EOF") {
				r.contentType = "application/openmetrics-text; version=1.0.0"
			}
			metrics := r.scrape(body)
			validate(t, metrics)
			golden(t, "captures/"+name+".txt", summary(r, metrics))
		})
	}
}

// validate checks a batch without the ends of its series, each of which is a
// metric of its own on purpose.
func validate(t *testing.T, metrics pmetric.Metrics) {
	t.Helper()
	living := pmetric.NewMetrics()
	metrics.CopyTo(living)
	for _, rm := range living.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			sm.Metrics().RemoveIf(func(m pmetric.Metric) bool {
				lines := renderMetric(m)
				return len(lines) == 1 && strings.HasSuffix(lines[0], " end")
			})
		}
	}
	require.NoError(t, pmetrictest.ValidateMetrics(living))
}

func summary(r *rig, metrics pmetric.Metrics) string {
	var b strings.Builder
	for _, rm := range metrics.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				fmt.Fprintf(&b, "%s %s %s %d\n", m.Name(), kindOf(m), m.Unit(), len(renderMetric(m)))
			}
		}
	}
	snapshot := r.scraper.reader.Read([]byte(r.body), r.dialect())
	plan := r.scraper.shared.plans.get(snapshot.Layout, "")
	for _, family := range plan.Unknown {
		fmt.Fprintf(&b, "unknown: %s\n", family)
	}
	for _, family := range plan.Conflicts {
		fmt.Fprintf(&b, "conflict: %s\n", family)
	}
	for _, reason := range normalize.Reasons() {
		if n := plan.Dropped[reason]; n > 0 {
			fmt.Fprintf(&b, "dropped: %s %d\n", reason, n)
		}
	}
	fmt.Fprintf(&b, "samples %d, duplicates %d, bad lines %d\n", snapshot.Samples, snapshot.Duplicates, len(snapshot.Problems))
	return b.String()
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(content)
}

// inAllVersions are metrics that every version of vLLM has.
var inAllVersions = []string{
	"vllm.kv_cache.utilization gauge 1", "vllm.inter_token_latency histogram s", "vllm.num_requests.running gauge {request}",
	"vllm.prompt_tokens counter {token}", "vllm.request.success counter {request}", "vllm.time_to_first_token histogram s",
}

// namesIn returns the names, kinds and units of the metrics of a body.
func namesIn(t *testing.T, body string) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	for _, sm := range newRig(t).scrape(body).ResourceMetrics().At(0).ScopeMetrics().All() {
		for _, m := range sm.Metrics().All() {
			out[m.Name()+" "+kindOf(m)+" "+m.Unit()] = true
		}
	}
	return out
}

// A metric has the same name for servers of 2024 and of 2026.
func TestOldAndNewServersHaveTheSameNames(t *testing.T) {
	for _, version := range []string{"v0-0.5.0", "v0-0.6.6", "v1-0.8.5", "v1-0.24.0"} {
		have := namesIn(t, read(t, filepath.Join(bodies, version, "metrics.txt")))
		for _, name := range inAllVersions {
			require.Contains(t, have, name, version)
		}
	}
}

// The metrics that only the server of 2024 has were removed from vLLM and not renamed; the
// list is vLLM's history.
func TestRecordedOldAndNewServersHaveTheSameNames(t *testing.T) {
	dir := captures.Dir(t)
	old := namesIn(t, read(t, filepath.Join(dir, "datadog-vllm_metrics-v0.5.0-original.txt")))
	recent := namesIn(t, read(t, filepath.Join(dir, "inferguard-packet_b-vllm-v0.20.txt")))
	var onlyOld, shared []string
	for name := range old {
		if recent[name] {
			shared = append(shared, name)
		} else {
			onlyOld = append(onlyOld, name)
		}
	}
	require.ElementsMatch(t, []string{
		"vllm.avg_generation_throughput gauge {token}/s", "vllm.avg_prompt_throughput gauge {token}/s",
		"vllm.cpu_cache.utilization gauge 1", "vllm.num_requests.swapped gauge {request}",
		"vllm.request.params_best_of histogram {sequence}",
	}, onlyOld)
	require.Subset(t, shared, inAllVersions)
}
