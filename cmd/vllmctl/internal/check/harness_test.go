package check_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/check"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim"
)

// delay is the time between two scrapes in tests. The simulated servers move on by
// themselves.
const delay = 30 * time.Millisecond

// recording has the bodies of a simulated server under traffic, ten seconds apart, and the
// server for all other paths. Each kind of server is simulated once.
type recording struct {
	bodies      []string
	contentType string
	target      *vllmsim.Target
}

var (
	recordingsMu sync.Mutex
	recordings   = map[string]*recording{}
)

func recordingOf(tb testing.TB, cfg vllmsim.Config) *recording {
	tb.Helper()
	recordingsMu.Lock()
	defer recordingsMu.Unlock()
	key := fmt.Sprintf("%+v", cfg)
	if recordings[key] != nil {
		return recordings[key]
	}
	if cfg.Seed == 0 {
		cfg.Seed = 7
	}
	sim, err := vllmsim.New(cfg)
	require.NoError(tb, err)
	r := &recording{target: sim.Targets()[0]}
	sim.Advance(90 * time.Second)
	for range 4 {
		body, contentType, err := r.target.Body()
		require.NoError(tb, err)
		r.bodies, r.contentType = append(r.bodies, string(body)), contentType
		sim.Advance(10 * time.Second)
	}
	recordings[key] = r
	return r
}

// simulated is a server that shows one recording. It is busy between any two scrapes.
type simulated struct {
	*recording
	// idle is a server without requests, and later is how many bodies it is ahead.
	idle  bool
	later int
	// version replaces the answer of /version; empty leaves it.
	version string
	// health is the status of /health; 0 leaves it.
	health int
	// load is the answer of /load; empty leaves it.
	load string
	// edit changes a body. n counts the scrapes from 1.
	edit func(n int, body string) string
	// header changes the header of the metrics.
	header func(http.Header)

	mu sync.Mutex
	n  int
}

func newSimulated(tb testing.TB, cfg vllmsim.Config) *simulated {
	tb.Helper()
	return &simulated{recording: recordingOf(tb, cfg)}
}

// body is the next one.
func (s *simulated) body() string {
	s.n++
	i := s.later
	if !s.idle {
		i += s.n - 1
	}
	body := s.bodies[min(i, len(s.bodies)-1)]
	if s.edit != nil {
		body = s.edit(s.n, body)
	}
	return body
}

func (s *simulated) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case strings.HasPrefix(r.URL.Path, "/metrics"):
		w.Header().Set("Content-Type", s.contentType)
		if s.header != nil {
			s.header(w.Header())
		}
		_, _ = w.Write([]byte(s.body()))
	case r.URL.Path == "/version" && s.version == "none":
		http.NotFound(w, r)
	case r.URL.Path == "/version" && s.version != "":
		_, _ = fmt.Fprintf(w, `{"version":%q}`, s.version)
	case r.URL.Path == "/health" && s.health != 0:
		w.WriteHeader(s.health)
	case r.URL.Path == "/load" && s.load != "":
		_, _ = w.Write([]byte(s.load))
	default:
		s.target.ServeHTTP(w, r)
	}
}

// healthy is a server without any mistake.
func healthy(tb testing.TB) *simulated {
	tb.Helper()
	return newSimulated(tb, vllmsim.Config{})
}

// serve returns the address of a handler on loopback.
func serve(tb testing.TB, handler http.Handler) string {
	tb.Helper()
	server := httptest.NewServer(handler)
	tb.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return server.URL
}

// answers serves the same answer for the metrics, and 404 for the rest.
func answers(tb testing.TB, status int, contentType, body string) string {
	tb.Helper()
	return serve(tb, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/metrics") {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
}

// raw serves connections without HTTP.
func raw(tb testing.TB, on func(net.Conn)) string {
	tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	var (
		mu   sync.Mutex
		open []net.Conn
		wg   sync.WaitGroup
	)
	wg.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, c)
			mu.Unlock()
			wg.Go(func() { defer c.Close(); on(c) })
		}
	})
	tb.Cleanup(func() {
		_ = listener.Close()
		mu.Lock()
		for _, c := range open {
			_ = c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return "http://" + listener.Addr().String()
}

// secure serves a handler over TLS with a certificate that was changed before it was signed,
// and returns the address and a file with the authority.
func secure(tb testing.TB, handler http.Handler, change func(*x509.Certificate), settings *tls.Config) (address, authority string) {
	tb.Helper()
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(tb, err)
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(1000 * time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, ca, ca, &caKey.PublicKey, caKey)
	require.NoError(tb, err)
	authority = filepath.Join(tb.TempDir(), "ca.pem")
	require.NoError(tb, os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(tb, err)
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "server"}, NotBefore: time.Now().Add(-24 * time.Hour),
		NotAfter: time.Now().Add(900 * time.Hour), KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	if change != nil {
		change(leaf)
	}
	der, err = x509.CreateCertificate(rand.Reader, leaf, ca, &key.PublicKey, caKey)
	require.NoError(tb, err)
	if settings == nil {
		settings = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	settings.Certificates = []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}
	server := httptest.NewUnstartedServer(handler)
	server.TLS = settings
	server.EnableHTTP2 = slices.Contains(settings.NextProtos, "h2")
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.StartTLS()
	tb.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return "https://" + server.Listener.Addr().String(), authority
}

// resetting stands before a server and resets one of the connections, the first is 1. A client
// sees the same where its request meets a connection that the server has just closed.
func resetting(tb testing.TB, address string, which int) string {
	tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = listener.Close() })
	go func() {
		for number := 1; ; number++ {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			if number == which {
				_ = client.(*net.TCPConn).SetLinger(0)
				_ = client.Close()
				continue
			}
			server, err := net.Dial("tcp", strings.TrimPrefix(address, "https://"))
			if err != nil {
				_ = client.Close()
				continue
			}
			go func() { _, _ = io.Copy(server, client); _ = server.Close() }()
			go func() { _, _ = io.Copy(client, server); _ = client.Close() }()
		}
	}()
	return "https://" + listener.Addr().String()
}

// patient lets a target take its time: the machine may do other things as well.
const patient = "timeout: 30s, collection_interval: 30s, "

// configuration writes a configuration for the receiver, with the processor and an exporter
// that goes nowhere, and returns its path.
func configuration(tb testing.TB, receiver, processor string) string {
	tb.Helper()
	if !strings.Contains(receiver, "timeout:") {
		receiver = patient + receiver
	}
	return written(tb, "receivers: {vllm: {"+receiver+"}}\nprocessors: {vllm: {"+processor+"}}\nexporters: {debug: {}}\n"+
		"service: {pipelines: {metrics: {receivers: [vllm], processors: [vllm], exporters: [debug]}}}\n")
}

// written writes a configuration without own metrics: other collectors can have their usual port on this machine.
func written(tb testing.TB, text string) string {
	tb.Helper()
	if !strings.Contains(text, "telemetry:") {
		text = strings.Replace(text, "service: {", "service: {telemetry: {metrics: {level: none}}, ", 1)
	}
	path := filepath.Join(tb.TempDir(), "otelcol.yaml")
	require.NoError(tb, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// checked checks a configuration.
func checked(tb testing.TB, path string) *check.Report {
	tb.Helper()
	report, err := check.Configured(tb.Context(), []string{path}, check.Settings{Delay: delay, Lookup: 600 * time.Millisecond})
	require.NoError(tb, err)
	return report
}

// all returns the findings of a report.
func all(report *check.Report) []check.Finding {
	out := slices.Clone(report.Findings)
	for _, target := range report.Targets {
		out = append(out, target.Findings...)
	}
	return out
}

// codesOf returns the codes of the findings of some severities, each once, sorted.
func codesOf(report *check.Report, severities ...string) []string {
	out := []string{}
	for _, f := range all(report) {
		if slices.Contains(severities, f.Severity) && !slices.Contains(out, f.Code) {
			out = append(out, f.Code)
		}
	}
	slices.Sort(out)
	return out
}
