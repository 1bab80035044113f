//go:build e2e

package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/collector"
)

const tlsConfig = `
extensions:
  bearertokenauth: {filename: %[1]s}
receivers:
  vllm:
    collection_interval: 1s
    timeout: 1s
    targets:
      - endpoint: https://%[2]s/custom/metrics
        tls: {ca_file: %[3]s}
        auth: {authenticator: bearertokenauth}
        resource_attributes: {k8s.pod.name: trusted}
      - endpoint: https://%[2]s/other/metrics
        auth: {authenticator: bearertokenauth}
exporters:
  file: {path: %[4]s}
service:
  extensions: [bearertokenauth]
  pipelines:
    metrics: {receivers: [vllm], exporters: [file]}
`

func TestTLSWithATokenFileThatIsRotated(t *testing.T) {
	t.Parallel()
	const oldToken, newToken = "token-of-yesterday", "token-of-today"
	body := read(t, filepath.Join(root, "testdata", "v1-0.13.0", "metrics.txt"))
	var refused, answered atomic.Int64
	server, ca := serveTLS(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Authorization") != "Bearer "+newToken:
			refused.Add(1)
			http.Error(w, "who are you?", http.StatusUnauthorized)
		case r.URL.Path == "/custom/metrics":
			w.Header().Set("Content-Type", text)
			_, _ = w.Write(body)
			answered.Add(1)
		default:
			http.NotFound(w, r)
		}
	}))
	dir := t.TempDir()
	token, file := filepath.Join(dir, "token"), filepath.Join(dir, "metrics.json")
	require.NoError(t, os.WriteFile(token, []byte(oldToken), 0o600))
	c := collector.RunWith(t, fmt.Sprintf(tlsConfig, token, server, ca, file))

	c.WaitFor(t, "the refusal of the old token", func() bool { return refused.Load() > 1 })
	require.NoError(t, os.WriteFile(token, []byte(newToken), 0o600))
	c.WaitFor(t, "scrapes with the new token", func() bool { return answered.Load() > 2 })
	c.Stop(t)

	all := scrapes(t, file)
	trusted := all[server+"/custom/metrics"]
	require.NotEmpty(t, trusted)
	var ups []float64
	for _, rm := range trusted {
		points := everyPoint(rm)
		up, ok := points["vllm.up {}"]
		require.True(t, ok, "vllm.up is always sent")
		if len(ups) == 0 || ups[len(ups)-1] != up.value {
			ups = append(ups, up.value)
		}
		if up.value == 1 {
			assert.Greater(t, len(points), 30)
		} else {
			assert.Len(t, points, 4, "only the scrape's own metrics")
			assert.Contains(t, points, `vllm.scrape.failure {"outcome":"unauthorized"}`)
		}
		assert.Equal(t, "trusted", rm.Resource().Attributes().AsRaw()["k8s.pod.name"])
		assert.Equal(t, "https", rm.Resource().Attributes().AsRaw()["url.scheme"])
	}
	assert.Equal(t, []float64{0, 1}, ups, "down with the old token, then up for good")
	for _, rm := range all[server+"/other/metrics"] {
		assert.Zero(t, everyPoint(rm)["vllm.up {}"].value, "no authority has signed the certificate")
	}
	assert.NotEmpty(t, all[server+"/other/metrics"])

	logged := c.Log()
	assert.Equal(t, 1, strings.Count(logged, "Scraping works again"))
	assert.Contains(t, logged, "401")
	assert.Regexp(t, `(?i)certificate`, logged)
	for _, secret := range []string{oldToken, newToken} {
		assert.NotContains(t, logged, secret)
		assert.NotContains(t, string(read(t, file)), secret)
	}
	assert.Empty(t, c.Errors())
}

// serveTLS starts a server with a certificate of its own authority and returns
// its host and port, and the authority's file.
func serveTLS(t *testing.T, handler http.Handler) (host, caFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "end-to-end test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	caFile = filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(caFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	server := httptest.NewUnstartedServer(handler)
	server.TLS = &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
	}
	// It would log each handshake that the collector breaks off.
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.StartTLS()
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "https://"), caFile
}
