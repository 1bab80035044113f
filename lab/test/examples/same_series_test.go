//go:build e2e

package examples

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/collector"
)

var (
	sample = regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? \S+$`)
	label  = regexp.MustCompile(`([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"`)
)

// series are the series of a page as Prometheus 2 stores them: it keeps the text of each
// label. Prometheus 3 writes each bound as "5.0", so its own parser would hide a bound
// that the collector writes differently.
func series(t *testing.T, page string, added ...string) map[string]labels.Labels {
	t.Helper()
	all := map[string]labels.Labels{}
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		parts := sample.FindStringSubmatch(line)
		require.NotNil(t, parts, "%s", line)
		b := labels.NewBuilder(labels.FromStrings(added...))
		b.Set(model.MetricNameLabel, parts[1])
		for _, pair := range label.FindAllStringSubmatch(parts[2], -1) {
			b.Set(pair[1], pair[2])
		}
		set := b.Labels()
		all[set.String()] = set
	}
	return all
}

// jobs has the rules of the job that reads the collector in docs/start/prometheus.md, for the
// trial, and what is left of it for the replacement, when the rule that keeps only new
// metrics is removed.
func jobs(t *testing.T) (trial, replacement []*relabel.Config) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, "docs", "start", "prometheus.md"))
	require.NoError(t, err)
	for _, block := range yamlBlock.FindAllStringSubmatch(string(page), -1) {
		if !strings.Contains(block[1], "scrape_configs:") {
			continue
		}
		loaded, err := config.Load(block[1], promslog.NewNopLogger())
		require.NoError(t, err)
		for _, job := range loaded.ScrapeConfigs {
			if len(job.MetricRelabelConfigs) == 0 {
				continue
			}
			require.Empty(t, trial, "one job has rules")
			assert.True(t, job.HonorLabels)
			trial = job.MetricRelabelConfigs
		}
	}
	replacement = slices.DeleteFunc(slices.Clone(trial), func(rule *relabel.Config) bool { return rule.Action == relabel.Keep })
	require.Len(t, replacement, len(trial)-1)
	return trial, replacement
}

// ingested are the series that Prometheus stores of a page for a job with "honor_labels".
func ingested(page map[string]labels.Labels, rules []*relabel.Config) map[string]labels.Labels {
	kept := map[string]labels.Labels{}
	for _, set := range page {
		b := labels.NewBuilder(set)
		if relabel.ProcessBuilder(b, rules...) {
			kept[b.Labels().String()] = b.Labels()
		}
	}
	return kept
}

// docs/start/prometheus.md: where the collector takes the place of the scrape, each series
// of the server goes on as it was. The trial before that stores none of them a second time.
func TestEachSeriesOfTheServerGoesOnInPrometheus(t *testing.T) {
	t.Parallel()
	body, err := os.ReadFile(filepath.Join(root, "testdata", "v1-0.20.0", "metrics.txt"))
	require.NoError(t, err)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metrics" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = w.Write(body)
	}))
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	addr := collector.FreeAddr(t)
	c := startExample(t, example("prometheus-dashboards.yaml"), map[string]string{"VLLM_ADDRESS": host, "PROMETHEUS_ADDR": addr},
		`receivers::vllm::discovery::static_configs: [{targets: ["`+host+`"], labels: {env: prod}}]`,
		"processors::vllm::pool::interval: 1s")
	var page string
	c.WaitFor(t, "the severity of the engine and of the pool", func() bool {
		page = string(collector.Get(t, "http://"+addr+"/metrics"))
		return strings.Contains(page, "\nvllm_diagnosis_severity{") && strings.Contains(page, "\nvllm_pool_diagnosis_severity{")
	})
	c.Stop(t)

	before := series(t, string(body), "job", "vllm", "instance", host, "env", "prod")
	require.Greater(t, len(before), 300)
	now := series(t, page)
	trial, replacement := jobs(t)
	after, tried := ingested(now, replacement), ingested(now, trial)
	var ended []string
	for key, set := range before {
		// The page says that those that end in "_created" become start times, and that one series has
		// a label which cannot begin with an underscore.
		name := set.Get(model.MetricNameLabel)
		if _, goesOn := after[key]; !goesOn && !strings.HasSuffix(name, "_created") && name != "vllm:cache_config_info" {
			ended = append(ended, key)
		}
	}
	assert.Empty(t, ended, "these series of the server end at the change")
	severity := 0
	for key, set := range tried {
		assert.Contains(t, after, key, "a series of the trial ends at the change")
		name := set.Get(model.MetricNameLabel)
		if name == "vllm_diagnosis_severity" {
			severity++
			assert.Equal(t, "prod", set.Get("env"))
		}
		for _, known := range before {
			require.NotEqual(t, known.Get(model.MetricNameLabel), name, "the trial stores a metric of the server twice")
		}
	}
	assert.Equal(t, 1, severity)
	// A derived metric and one of the server have the same labels but for the name.
	shared := func(name string) string {
		for _, set := range after {
			if set.Get(model.MetricNameLabel) == name {
				return labels.NewBuilder(set).Del(model.MetricNameLabel).Labels().String()
			}
		}
		return name + " is missing"
	}
	assert.Equal(t, shared("vllm:num_requests_running"), shared("vllm_diagnosis_severity"))
}
