//go:build e2e

package backends

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/collector"
)

// root is the repository's top folder.
const root = "../../.."

// environment points a configuration at the recorder.
func environment(t *testing.T, b backend, url string) map[string]string {
	t.Helper()
	env := map[string]string{"QUEUE_DIR": t.TempDir(), "OUTBOX_ADDR": collector.FreeAddr(t), "VLLM_ENDPOINT": "http://" + collector.FreeAddr(t)}
	for name, value := range b.env {
		env[name] = strings.ReplaceAll(value, "URL", url)
	}
	if b.file == "google-managed-prometheus.yaml" {
		env["GOOGLE_PRIVATE_KEY"] = privateKey(t)
	}
	return env
}

// feed is an override with an OTLP receiver instead of vllm, all metrics, and a shorter wait for a
// batch to fill than in production.
func (b backend) feed(addr string) string {
	return "yaml:" + fmt.Sprintf(`{receivers: {otlp/test: {protocols: {http: {endpoint: %q}}}},
		processors: {vllm: {preset: full}}, exporters: {%s: {sending_queue: {batch: {flush_timeout: 500ms}}}},
		service: {pipelines: {metrics: {receivers: [otlp/test]}}}}`, addr, b.queued())
}

// queued is the exporter that has the queue on disk.
func (b backend) queued() string {
	if b.env["REMOTE_WRITE_URL"] != "" {
		return "otlp_http/outbox"
	}
	return "otlp_http"
}

func (b backend) config() string { return filepath.Join(root, "examples", "backends", b.file) }

// privateKey is a key as Google's key files hold it.
func privateKey(t *testing.T) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

func TestEveryFileHasATest(t *testing.T) {
	entries, err := os.ReadDir(filepath.Join(root, "examples", "backends"))
	require.NoError(t, err)
	tested := map[string]bool{}
	for _, b := range backends {
		tested[b.file] = true
	}
	for _, entry := range entries {
		assert.True(t, tested[entry.Name()], "examples/backends/%s needs an entry in table_test.go, with the rules of that backend and their sources", entry.Name())
	}
	assert.Len(t, entries, len(backends))
}

func TestEveryConfigurationIsValidAsItIs(t *testing.T) {
	for _, b := range backends {
		t.Run(b.file, func(t *testing.T) {
			t.Parallel()
			command := exec.CommandContext(t.Context(), collector.Binary(t), "validate", "--config", b.config())
			command.Env = []string{"QUEUE_DIR=" + t.TempDir()}
			output, err := command.CombinedOutput()
			require.NoError(t, err, "%s", output)
		})
	}
}

// The real receiver stays in the pipeline here. Neither its server nor the backend exists.
func TestEveryConfigurationStartsAndStopsWithNothingToTalkTo(t *testing.T) {
	for _, b := range backends {
		t.Run(b.file, func(t *testing.T) {
			t.Parallel()
			c := collector.Collector(t, environment(t, b, "http://"+collector.FreeAddr(t)), b.config(),
				"yaml:receivers::vllm::collection_interval: 1s", "yaml:receivers::vllm::timeout: 1s")
			c.WaitFor(t, "the start of all components", c.Ready)
			c.WaitFor(t, "the report of the failing target", func() bool {
				return strings.Contains(c.Log(), "connection refused")
			})
			c.Stop(t)
		})
	}
}

// scrape sends all scrapes of the test's server.
func (b backend) scrape(t *testing.T, addr string) {
	t.Helper()
	began := time.Now()
	for n := range scrapeCount {
		time.Sleep(20 * time.Millisecond)
		now := time.Now()
		metrics := catalogue(n+1, began, now)
		if b.file == "google-managed-prometheus.yaml" {
			withReserved(metrics, now)
		}
		send(t, addr, metrics)
	}
}

// waitForAll waits until the last scrape has arrived completely, and otherwise says what is
// missing.
func (b backend) waitForAll(t *testing.T, c *collector.Process, backend *recorder) {
	t.Helper()
	var missing []string
	defer func() { assert.Empty(t, missing, "what did not arrive as it should") }()
	c.WaitFor(t, "everything to arrive", func() bool {
		got := backend.received()
		missing = b.rules[0].broken(got)
		return len(got.requests) > 0 && len(missing) == 0
	})
}

func TestWhatIsSentFollowsTheBackendsRules(t *testing.T) {
	for _, b := range backends {
		t.Run(b.file, func(t *testing.T) {
			t.Parallel()
			backend, addr := newRecorder(t), collector.FreeAddr(t)
			c := collector.Collector(t, environment(t, b, backend.url), b.config(), b.feed(addr))
			c.WaitFor(t, "the start of all components", c.Ready)
			b.scrape(t, addr)
			b.waitForAll(t, c, backend)
			c.Stop(t)

			got := backend.received()
			assert.Empty(t, backend.errs)
			assert.Empty(t, c.Complaints())
			for _, r := range got.requests {
				require.Equal(t, b.path, r.path)
				for name, want := range b.headers {
					require.Equal(t, want, r.header.Get(name), name)
				}
			}
			for _, r := range append([]rule{once}, b.rules...) {
				broken := r.broken(got)
				assert.Empty(t, broken[:min(len(broken), 5)], "%s (%s), broken %d times", r.says, r.source, len(broken))
			}
			for _, secret := range []string{"secret", "MTIzOnNlY3JldA==", accessToken} {
				assert.NotContains(t, c.Log(), secret)
			}
			tokens(t, b, backend)
		})
	}
}

// The backend is away while the server is scraped, and the collector ends
// meanwhile. Both start again, and everything arrives.
func TestNothingIsLostWhileTheBackendIsAway(t *testing.T) {
	for _, end := range []struct {
		how string
		do  func(*collector.Process, *testing.T)
	}{{"killed", (*collector.Process).Kill}, {"stopped", (*collector.Process).Stop}} {
		for _, b := range backends {
			t.Run(b.file+" "+end.how, func(t *testing.T) {
				t.Parallel()
				backend, addr := newRecorder(t), collector.FreeAddr(t)
				backend.refuse(true)
				env := environment(t, b, backend.url)
				c := collector.Collector(t, env, b.config(), b.feed(addr))
				c.WaitFor(t, "the start of all components", c.Ready)
				b.scrape(t, addr)
				end.do(c, t)
				require.Empty(t, backend.received().requests)

				backend.refuse(false)
				c = collector.Collector(t, env, b.config(), b.feed(addr))
				b.waitForAll(t, c, backend)
				c.Stop(t)
				assert.Empty(t, c.Complaints())
			})
		}
	}
}

// tokens checks how the collector signed in.
func tokens(t *testing.T, b backend, backend *recorder) {
	t.Helper()
	if b.headers["Authorization"] != "Bearer "+accessToken {
		return
	}
	require.NotEmpty(t, backend.tokens)
	form := backend.tokens[0]
	if assertion := form.Get("assertion"); assertion != "" {
		assert.Equal(t, "urn:ietf:params:oauth:grant-type:jwt-bearer", form.Get("grant_type"))
		claims := claimsOf(t, assertion)
		assert.Equal(t, "otelcol@p.iam.gserviceaccount.com", claims["iss"])
		assert.Equal(t, "https://www.googleapis.com/auth/monitoring.write", claims["scope"])
		assert.Equal(t, backend.url+"/token", claims["aud"])
		return
	}
	assert.Equal(t, "client_credentials", form.Get("grant_type"))
	assert.Equal(t, "https://monitor.azure.com/.default", form.Get("scope"))
}
