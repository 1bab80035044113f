package scrape

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.uber.org/zap"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/scrapetest"
)

// A picker that serves TLS may ask for a client certificate. Without one the log
// says so; with one it is scraped.
func TestAPickerThatRequiresAClientCertificate(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile, client := scrapetest.SelfSigned(t, dir)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("# TYPE inference_pool_ready_pods gauge\ninference_pool_ready_pods 4\n"))
	}))
	pool := x509.NewCertPool()
	pool.AddCert(client)
	// The refused handshake is wanted, so its log is expected.
	server.Config.ErrorLog = zap.NewStdLog(zap.NewNop())
	// In TLS 1.3 the refusal is after the client's request, which may reset the
	// connection first.
	server.TLS = &tls.Config{
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool, MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS12,
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	caFile := filepath.Join(dir, "ca.pem")
	require.NoError(t, os.WriteFile(caFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600))

	for name, with := range map[string]bool{"with a certificate": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			s, logs := scraperOf(t, func(c *Config) {
				c.Client.Endpoint = server.URL
				c.Client.TLS.CAFile = caFile
				if with {
					c.Client.TLS.CertFile, c.Client.TLS.KeyFile = certFile, keyFile
				}
			})
			require.NoError(t, s.Start(t.Context(), componenttest.NewNopHost()))
			t.Cleanup(func() { s.Close() })
			out, err := scrapeOnce(t.Context(), s)
			if with {
				require.NoError(t, err)
				assert.Zero(t, logs.Len())
				assert.Equal(t, 4.0, totalOf(out, "inference_gateway.pool.endpoint.ready").value)
				return
			}
			require.Equal(t, 1, logs.Len())
			assert.Contains(t, logs.All()[0].Message, "set tls::cert_file and tls::key_file")
		})
	}
}
