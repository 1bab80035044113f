package fetch

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
)

// secure starts a server whose certificate change has modified. It returns the address
// and a pool with the authority.
func secure(t *testing.T, change func(*x509.Certificate)) (address string, authority *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	certificate := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "vllm"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.ParseIP("127.0.0.1")}, BasicConstraintsValid: true, IsCA: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	change(certificate)
	der, err := x509.CreateCertificate(rand.Reader, certificate, certificate, &key.PublicKey, key)
	require.NoError(t, err)
	parsed, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	authority = x509.NewCertPool()
	authority.AddCert(parsed)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, body)
	}))
	server.Config.ErrorLog = zap.NewStdLog(zap.NewNop())
	server.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL + "/metrics", authority
}

// read scrapes and trusts this authority; nil means those of the system.
func read(t *testing.T, address string, authority *x509.CertPool) error {
	t.Helper()
	u, err := url.Parse(address)
	require.NoError(t, err)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authority, MinVersion: tls.VersionTLS12}}
	t.Cleanup(transport.CloseIdleConnections)
	c := New(Settings{HTTP: &http.Client{Transport: transport}, URL: *u, Timeout: 5 * time.Second, Limit: 1 << 20})
	_, err = c.Metrics(t.Context(), new(bytes.Buffer), false)
	return err
}

func TestTheMessageForACertificateSaysWhatToDo(t *testing.T) {
	for name, tt := range map[string]struct {
		change    func(*x509.Certificate)
		trusted   bool
		want, not string
	}{
		"unknown authority": {func(*x509.Certificate) {}, false, "tls::ca_file", "server_name_override"},
		"expired": {func(c *x509.Certificate) {
			c.NotBefore, c.NotAfter = time.Unix(1700000000, 0), time.Unix(1700003600, 0)
		}, true, "expired at 2023-11-14T23:13:20Z; renew it", "ca_file"},
		"not valid yet": {func(c *x509.Certificate) {
			c.NotBefore, c.NotAfter = time.Unix(4000000000, 0), time.Unix(4000003600, 0)
		}, true, "is not valid before 2096-10-02T07:06:40Z; check the clocks", "ca_file"},
		"another host": {func(c *x509.Certificate) {
			c.IPAddresses, c.DNSNames = nil, []string{"vllm-7.inference"}
		}, true, "server_name_override", "ca_file"},
		"another purpose": {func(c *x509.Certificate) {
			c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageEmailProtection}
		}, true, "the server needs another one", "ca_file"},
	} {
		t.Run(name, func(t *testing.T) {
			address, authority := secure(t, tt.change)
			if !tt.trusted {
				authority = x509.NewCertPool()
			}
			err := read(t, address, authority)
			require.Error(t, err)
			assert.Equal(t, OutcomeTLS, AsError(err).Outcome)
			assert.Contains(t, err.Error(), tt.want)
			assert.NotContains(t, err.Error(), tt.not)
			again := read(t, address, authority)
			assert.EqualError(t, again, err.Error(), "the same text for each scrape, so that only a change is logged")
		})
	}
	address, authority := secure(t, func(*x509.Certificate) {})
	require.NoError(t, read(t, address, authority))
}

// A name in a certificate must not become a line of the log.
func TestTheTextOfACertificateForgesNoLogLine(t *testing.T) {
	forged := "a\n2026-01-01T00:00:00Z\tinfo\tall is well\r\x1b[2J"
	for name, change := range map[string]func(*x509.Certificate){
		"names of another host": func(c *x509.Certificate) { c.IPAddresses, c.DNSNames = nil, []string{forged} },
		"many names": func(c *x509.Certificate) {
			c.IPAddresses = nil
			for range 500 {
				c.DNSNames = append(c.DNSNames, strings.Repeat("x", 60))
			}
		},
		"subject": func(c *x509.Certificate) { c.Subject.CommonName, c.NotAfter = forged, c.NotBefore.Add(time.Second) },
		"forbidden names": func(c *x509.Certificate) {
			c.DNSNames, c.PermittedDNSDomains, c.PermittedDNSDomainsCritical = []string{forged}, []string{"only.example"}, true
		},
	} {
		t.Run(name, func(t *testing.T) {
			address, authority := secure(t, change)
			if name == "forbidden names" {
				address = strings.Replace(address, "127.0.0.1", "localhost", 1)
			}
			err := read(t, address, authority)
			require.Error(t, err)
			assert.False(t, strings.ContainsFunc(err.Error(), unicode.IsControl), "%q", err)
			assert.Less(t, len(err.Error()), 700)
		})
	}
}
