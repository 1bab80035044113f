package docs

import (
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/config"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var prometheusKey = regexp.MustCompile(`(?m)^(scrape_configs|rule_files|otlp|alerting):`)

// Prometheus accepts what the first pages print for it and the example, the rules that it loads
// exist, and it reads each job often enough for the rates of the boards.
func TestPrometheusAcceptsTheConfigurationsOfTheFirstPages(t *testing.T) {
	rules := 0
	pages, err := filepath.Glob(filepath.Join(root, "docs", "start", "*.md"))
	require.NoError(t, err)
	example := filepath.Join(root, "examples", "prometheus", "prometheus.yml")
	for _, path := range append(pages, filepath.Join(root, "docs", "alerts.md"), example) {
		page, err := filepath.Rel(root, path)
		require.NoError(t, err)
		blocks, from := yamlBlock.FindAllStringSubmatch(read(t, page), -1), root
		if path == example {
			blocks, from = [][]string{{"", read(t, page)}}, filepath.Dir(path)
		}
		for _, block := range blocks {
			if !prometheusKey.MatchString(block[1]) {
				continue
			}
			loaded, err := config.Load(block[1], promslog.NewNopLogger())
			require.NoError(t, err, "%s: %s", page, block[1])
			for _, pattern := range loaded.RuleFiles {
				// promtool finds a wrong path only if it has no wildcard, and Prometheus says nothing.
				assert.NotContains(t, pattern, "*", page)
				found, err := filepath.Glob(filepath.Join(from, pattern))
				require.NoError(t, err)
				assert.NotEmpty(t, found, "%s: %s", page, pattern)
				rules += len(found)
			}
			for _, job := range loaded.ScrapeConfigs {
				assert.LessOrEqual(t, time.Duration(job.ScrapeInterval), 15*time.Second, "%s, %s: Grafana computes rates over one minute, which needs two samples, also where one is missing", page, job.JobName)
				assert.Equal(t, job.JobName == "otelcol-vllm", job.HonorLabels, "%s: only the collector's page of servers has their job and instance", page)
			}
		}
	}
	assert.Positive(t, rules)
}
