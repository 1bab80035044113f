package scrapetest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Within is how long a test waits for what must happen.
const Within = 20 * time.Second

// Server returns the address of a server that answers no /load.
func Server(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/load" { // asked beside the metrics: whichever comes first takes no turn of a test
			http.NotFound(w, r)
			return
		}
		handler(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// Gauge is a body with one gauge of one engine.
func Gauge(value string) string {
	return "# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{engine=\"0\"} " + value + "\n"
}

// Ends returns the metrics that have a no-recorded-value point, in order.
func Ends(metrics pmetric.Metrics) []string {
	var out []string
	for line := range strings.SplitSeq(Render(metrics), "\n") {
		if strings.HasSuffix(line, " end") {
			out = append(out, strings.Fields(line)[0])
		}
	}
	return out
}

// Unix writes a time, given in seconds since the first scrape, as a body does.
func Unix(since float64) string {
	return fmt.Sprintf("%.3f", float64(FirstScrape.Unix())+since)
}

// Counter is a body with one counter of one engine.
func Counter(value string) string { return EngineCounter("0", value) }

// EngineCounter is the same of any engine.
func EngineCounter(engine, value string) string {
	return "# TYPE vllm:prompt_tokens_total counter\n" +
		"vllm:prompt_tokens_total{engine=\"" + engine + "\",model_name=\"m\"} " + value + "\n"
}

// Process is the start time of the process in a body.
func Process(start string) string {
	return "# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds " + start + "\n"
}

// Idle is the body of a server that has generated so many tokens.
func Idle(tokens int) string {
	return Gauge("0") + fmt.Sprintf("# TYPE vllm:generation_tokens_total counter\nvllm:generation_tokens_total{engine=\"0\"} %d\n", tokens)
}

// Answers answers a canary as vLLM does.
func Answers(w http.ResponseWriter, _ *http.Request) {
	_, _ = io.WriteString(w, `{"choices": [{"text": "2"}]}`)
}

// Hangs answers when the other side has gone.
func Hangs(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

// CanaryPoints are the points about canaries but the histogram.
func CanaryPoints(metrics pmetric.Metrics) (out []string) {
	for _, name := range []string{"vllm.canary.success", "vllm.canary.unanswered"} {
		for _, point := range Points(metrics, name) {
			_, rest, _ := strings.Cut(point, "} {")
			if rest == "" {
				_, rest, _ = strings.Cut(point, " s {")
			}
			labels, value, _ := strings.Cut(rest, "} @")
			_, value, _ = strings.Cut(value, " ")
			out = append(out, strings.TrimPrefix(name, "vllm.canary.")+" "+strings.Trim(strings.TrimPrefix(labels, "outcome="), `"`)+" "+value)
		}
	}
	return out
}

// Fields writes the fields of a line of the log.
func Fields(all map[string]any) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if name != "target" {
			out = append(out, fmt.Sprintf("%s=%v", name, all[name]))
		}
	}
	return "[" + strings.Join(out, " ") + "]"
}

// BodyWithEveryKind has histograms, with and without a sum, a summary with
// quantiles, counters and gauges.
func BodyWithEveryKind(t *testing.T, repository string) string {
	t.Helper()
	var body []byte
	for _, file := range []string{"v1-0.24.0/metrics.txt", "every-kind.txt"} {
		part, err := os.ReadFile(filepath.Join(repository, "testdata", file))
		require.NoError(t, err)
		body = append(body, part...)
	}
	return string(body)
}

// SelfSigned writes a client certificate and its key.
func SelfSigned(t *testing.T, dir string) (certFile, keyFile string, certificate *x509.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	certificate, err = x509.ParseCertificate(der)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	certFile, keyFile = filepath.Join(dir, "client.pem"), filepath.Join(dir, "client.key")
	require.NoError(t, os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	require.NoError(t, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
	return certFile, keyFile, certificate
}
