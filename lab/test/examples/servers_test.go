//go:build e2e

package examples

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/fleet"
)

// vllmServer is a minimal vLLM server with one metric of each type. The counters increase
// with every scrape.
type vllmServer struct {
	// path is where the metrics are; token, if set, must come as a bearer token.
	path, token string
	scrapes     atomic.Int64
	// refused counts the requests with a wrong token.
	refused atomic.Int64
}

func (s *vllmServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.token != "" && r.Header.Get("Authorization") != "Bearer "+s.token {
		s.refused.Add(1)
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return
	}
	switch r.URL.Path {
	case s.path:
	case "/version":
		fmt.Fprint(w, `{"version":"0.11.0"}`)
		return
	default:
		http.NotFound(w, r)
		return
	}
	n := s.scrapes.Add(1)
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	fmt.Fprintf(w, `# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 3.0
# HELP vllm:generation_tokens_total Number of generation tokens processed.
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{engine="0",model_name="m"} %[1]d.0
# HELP vllm:time_to_first_token_seconds Histogram of time to first token in seconds.
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_bucket{engine="0",le="0.5",model_name="m"} %[2]d.0
vllm:time_to_first_token_seconds_bucket{engine="0",le="+Inf",model_name="m"} %[2]d.0
vllm:time_to_first_token_seconds_count{engine="0",model_name="m"} %[2]d.0
vllm:time_to_first_token_seconds_sum{engine="0",model_name="m"} %[2]d.0
# HELP http_request_size_bytes Content length of incoming requests by handler.
# TYPE http_request_size_bytes summary
http_request_size_bytes_count{handler="/v1/completions"} %[2]d.0
http_request_size_bytes_sum{handler="/v1/completions"} %[1]d.0
`, 100*n, n)
}

// serve starts the server on loopback and returns its base URL.
func (s *vllmServer) serve(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return server.URL
}

// backend accepts what the exporters send: OTLP and Prometheus remote write.
type backend struct {
	// header must come with a value of its own, or the request is refused.
	header, value string
	url           string

	mu      sync.Mutex
	otlp    []pmetric.Metrics
	events  []plog.Logs
	written [][]byte
	errs    []error
}

// serve starts the backend on loopback; its base URL is in url from then on.
func (b *backend) serve(t *testing.T) {
	t.Helper()
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	b.url = server.URL
}

func (b *backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.take(r); err != nil {
		b.errs = append(b.errs, err)
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
}

func (b *backend) take(r *http.Request) error {
	if got := r.Header.Get(b.header); got != b.value {
		return fmt.Errorf("header %s is %q, not %q", b.header, got, b.value)
	}
	content, err := fleet.Content(r)
	if err != nil {
		return err
	}
	switch r.URL.Path {
	case "/v1/metrics":
		request := pmetricotlp.NewExportRequest()
		if err := request.UnmarshalProto(content); err != nil {
			return err
		}
		b.otlp = append(b.otlp, request.Metrics())
	case "/v1/logs":
		request := plogotlp.NewExportRequest()
		if err := request.UnmarshalProto(content); err != nil {
			return err
		}
		b.events = append(b.events, request.Logs())
	case "/api/v1/write":
		decoded, err := snappy.Decode(nil, content)
		if err != nil {
			return err
		}
		b.written = append(b.written, decoded)
	default:
		return fmt.Errorf("unexpected path %s", r.URL.Path)
	}
	return nil
}

// metrics are all metrics received by OTLP so far, by name.
func (b *backend) metrics() map[string][]pmetric.Metric {
	b.mu.Lock()
	defer b.mu.Unlock()
	found := map[string][]pmetric.Metric{}
	for _, received := range b.otlp {
		for _, resource := range received.ResourceMetrics().All() {
			for _, scope := range resource.ScopeMetrics().All() {
				for _, metric := range scope.Metrics().All() {
					found[metric.Name()] = append(found[metric.Name()], metric)
				}
			}
		}
	}
	return found
}

// records are all log records received so far.
func (b *backend) records() []plog.LogRecord {
	b.mu.Lock()
	defer b.mu.Unlock()
	var found []plog.LogRecord
	for _, received := range b.events {
		for _, resource := range received.ResourceLogs().All() {
			for _, scope := range resource.ScopeLogs().All() {
				for _, record := range scope.LogRecords().All() {
					found = append(found, record)
				}
			}
		}
	}
	return found
}

// errors are the requests that the backend refused.
func (b *backend) errors() []error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.errs
}

// authority is a certificate authority of one test.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	// file holds the certificate as PEM.
	file string
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	certificate, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	return &authority{certificate: certificate, key: key, file: file}
}

// serve starts an HTTPS server on loopback whose certificate carries names, each
// a host name or an IP address, and returns its base URL.
func (a *authority) serve(t *testing.T, handler http.Handler, names ...string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "test server"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	require.NoError(t, err)
	server := httptest.NewUnstartedServer(handler)
	server.TLS = &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL
}
