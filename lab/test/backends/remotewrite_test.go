//go:build e2e

package backends

import (
	"fmt"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/lab/test/collector"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim"
)

const scrapeOne = `
global: {scrape_interval: 200ms, scrape_timeout: 200ms}
scrape_configs:
  - {job_name: direct, static_configs: [{targets: [%q]}]}
`

var sample = regexp.MustCompile(`(?m)^(vllm:[a-z0-9_]+)\{`)

// A real server accepts what the example writes, and stores the same numbers as when it
// scrapes the server itself. The server does not change, so the times of the scrapes do not
// matter.
func TestPrometheusTakesTheRemoteWrites(t *testing.T) {
	t.Parallel()
	simulated, err := vllmsim.New(vllmsim.Config{Engines: 2, Rate: 5, KVCacheTokens: 24000})
	require.NoError(t, err)
	simulated.Advance(10 * time.Minute)
	server := &frozen{target: simulated.Targets()[0]}
	body := server.show(t, 1)
	vllm := httptest.NewServer(server)
	t.Cleanup(vllm.Close)

	prometheus, addr := collector.Prometheus(t, fmt.Sprintf(scrapeOne, strings.TrimPrefix(vllm.URL, "http://")))
	var file backend
	for _, b := range backends {
		if b.file == "prometheus-remote-write.yaml" {
			file = b
		}
	}
	env := environment(t, file, "http://"+addr)
	env["VLLM_ENDPOINT"] = vllm.URL
	c := collector.Collector(t, env, file.config(), "yaml:receivers::vllm::collection_interval: 1s", "yaml:receivers::vllm::preset: full")
	c.WaitFor(t, "both jobs", func() bool {
		now := time.Now()
		return len(ask(t, addr, `vllm_comparison_number{job="vllm"}`, now, now)) == 1 &&
			len(ask(t, addr, `{__name__="vllm:comparison_number",job="direct"}`, now, now)) == 1
	})
	now := time.Now()

	compared := 0
	for name := range plain(body) {
		q := query{name, "sum by (model_name, engine, finished_reason, reason, source) (" + name + "{JOB})"}
		compared += same(t, name, ask(t, addr, q.through("direct"), now, now), ask(t, addr, q.through("vllm"), now, now))
	}
	assert.Greater(t, compared, 100)
	t.Logf("%d numbers compared", compared)
	assert.Empty(t, prometheus.Log(), "Prometheus's warnings")
	c.Stop(t)
	prometheus.Stop(t)
	// The last batch may not be sent any more; it stays in the queue on disk.
	for _, complaint := range c.Complaints() {
		assert.Contains(t, complaint, "otlp_http/outbox")
	}
}

// plain returns the names of vLLM's samples on a page, without those that the receiver
// converts: information in labels, and times of creation.
func plain(body []byte) map[string]bool {
	found := map[string]bool{}
	for _, match := range sample.FindAllSubmatch(body, -1) {
		found[string(match[1])] = true
	}
	for name := range found {
		if strings.HasSuffix(name, "_created") {
			delete(found, name)
		}
		for _, info := range catalog.InfoFamilies {
			if name == info.Family {
				delete(found, name)
			}
		}
	}
	return found
}
