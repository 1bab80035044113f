//go:build e2e

package backends

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/collector"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim"
)

// waits are the times that the shipped alerts wait. The test replaces them.
var waits = regexp.MustCompile(`(?m)^(\s+)(for|keep_firing_for): .*$`)

const shippedRules = "../../content/rules/suffixed/vllm.yaml"

// quickRules returns the shipped rules, with short waits.
func quickRules(t *testing.T) string {
	t.Helper()
	rules, err := os.ReadFile(filepath.Join(root, "content", "rules", "suffixed", "vllm.yaml"))
	require.NoError(t, err)
	return waits.ReplaceAllString(string(rules), "${1}${2}: 1s")
}

// firing returns the instances for which an alert fires.
func firing(t *testing.T, addr, alert string) (instances []string) {
	t.Helper()
	query := fmt.Sprintf("ALERTS{alertname=%q, alertstate=\"firing\"}", alert)
	body := collector.Get(t, "http://"+addr+"/api/v1/query?"+url.Values{"query": {query}}.Encode())
	var decoded struct {
		Data struct {
			Result []struct{ Metric map[string]string }
		}
	}
	if len(body) == 0 {
		return nil
	}
	require.NoError(t, json.Unmarshal(body, &decoded))
	for _, series := range decoded.Data.Result {
		instances = append(instances, series.Metric["instance"])
	}
	return instances
}

// broken returns the errors of the rules that Prometheus could not evaluate.
func broken(t *testing.T, addr string) (errors []string) {
	t.Helper()
	var decoded struct {
		Data struct {
			Groups []struct {
				Rules []struct{ Name, Health, LastError string }
			}
		}
	}
	require.NoError(t, json.Unmarshal(collector.Get(t, "http://"+addr+"/api/v1/rules"), &decoded))
	for _, group := range decoded.Data.Groups {
		for _, rule := range group.Rules {
			if rule.Health == "err" {
				errors = append(errors, rule.Name+": "+rule.LastError)
			}
		}
	}
	return errors
}

// betweenScrapes is the time between two scrapes, for the server.
const betweenScrapes = 7 * time.Second

// serve runs a simulated server at an address.
func serve(t *testing.T, address string) *httptest.Server {
	t.Helper()
	simulated, err := vllmsim.New(vllmsim.Config{Engines: 1, Rate: 5, KVCacheTokens: 24000})
	require.NoError(t, err)
	listener, err := net.Listen("tcp", address)
	require.NoError(t, err)
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: &collector.Moving{Simulated: simulated, Step: betweenScrapes}, ReadHeaderTimeout: time.Minute}}
	server.Start()
	t.Cleanup(server.Close)
	return server
}

// Two servers behind the collector of the quick start, read by a Prometheus with the
// example's scrape configuration and the shipped alerts. One server dies: the alert fires
// with its name only, and ends when the server is back.
func TestTheAlertNamesTheServerThatDied(t *testing.T) {
	t.Parallel()
	healthy, dying := serve(t, "127.0.0.1:0"), serve(t, "127.0.0.1:0")
	exporter := collector.FreeAddr(t)
	example, err := os.ReadFile(filepath.Join(root, "examples", "prometheus", "prometheus.yml"))
	require.NoError(t, err)
	rules := filepath.Join(t.TempDir(), "rules.yml")
	require.NoError(t, os.WriteFile(rules, []byte(quickRules(t)), 0o600))
	config := strings.NewReplacer(
		`"127.0.0.1:9464"`, fmt.Sprintf("%q", exporter), `"127.0.0.1:8888"`, fmt.Sprintf("%q", collector.FreeAddr(t)),
		"scrape_interval: 15s", "scrape_interval: 500ms",
		shippedRules, rules,
	).Replace(string(example))
	const evaluation = "global: {evaluation_interval: 200ms}\n"
	prometheus, addr := collector.Prometheus(t, evaluation+config)
	// The same without the line that the example explains.
	without := strings.Replace(config, "honor_labels: true", "honor_labels: false", 1)
	require.NotEqual(t, config, without)
	mixing, mixed := collector.Prometheus(t, evaluation+without)

	c := collector.Collector(t, map[string]string{"PROMETHEUS_ADDR": exporter},
		filepath.Join(root, "examples", "quickstart.yaml"),
		`yaml:receivers::vllm::endpoint: ""`,
		fmt.Sprintf("yaml:receivers::vllm::targets: [{endpoint: %q}, {endpoint: %q}]", healthy.URL, dying.URL),
		"yaml:receivers::vllm::collection_interval: 500ms", "yaml:receivers::vllm::timeout: 400ms",
		"yaml:processors::vllm::window: 1600ms")
	alive := func(addr string) int {
		now := time.Now()
		return len(ask(t, addr, "vllm_diagnosis_severity < 3", now, now))
	}
	c.WaitFor(t, "both servers in Prometheus", func() bool { return alive(addr) == 2 })
	assert.Empty(t, firing(t, addr, "VLLMServerNotServing"))

	name := strings.TrimPrefix(dying.URL, "http://")
	dying.CloseClientConnections()
	dying.Close()
	c.WaitFor(t, "the alert", func() bool { return len(firing(t, addr, "VLLMServerNotServing")) > 0 })
	for range 20 {
		assert.Equal(t, []string{name}, firing(t, addr, "VLLMServerNotServing"))
	}
	assert.Empty(t, broken(t, addr), "every rule can be evaluated with two servers")

	c.WaitFor(t, "the alert of the other Prometheus", func() bool { return len(firing(t, mixed, "VLLMServerNotServing")) > 0 })
	assert.Equal(t, []string{exporter}, firing(t, mixed, "VLLMServerNotServing"), "without honor_labels the alert names the collector")

	serve(t, name)
	c.WaitFor(t, "the end of the alert", func() bool { return len(firing(t, addr, "VLLMServerNotServing")) == 0 })
	c.Stop(t)
	prometheus.Stop(t)
	mixing.Stop(t)
}
