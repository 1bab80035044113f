package fetch

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/configopaque"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const body = "# TYPE a gauge\na 1\n"

// client returns a client for an address, with a small limit and deadline.
func client(t *testing.T, address string, change ...func(*Settings)) *Client {
	t.Helper()
	u, err := url.Parse(address)
	require.NoError(t, err)
	settings := Settings{
		HTTP: &http.Client{Transport: &http.Transport{}}, URL: *u,
		Timeout: 5 * time.Second, Limit: 1 << 20,
	}
	for _, c := range change {
		c(&settings)
	}
	c := New(settings)
	t.Cleanup(c.Close)
	return c
}

func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL + "/metrics"
}

func TestMetricsAsksForTextOnlyAndReturnsTheBody(t *testing.T) {
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "text/plain;version=0.0.4", r.Header.Get("Accept"))
		assert.Equal(t, "secret", r.Header.Get("X-Key"))
		w.Header().Set("Content-Type", "text/plain; version=1.0.0; charset=utf-8")
		_, _ = io.WriteString(w, body)
	})
	c := client(t, address, func(s *Settings) { s.Headers = configopaque.MapList{{Name: "X-Key", Value: "secret"}} })
	for range 2 {
		var got bytes.Buffer
		answer, err := c.Metrics(t.Context(), &got, false)
		require.NoError(t, err)
		assert.Equal(t, body, got.String())
		assert.Equal(t, "text/plain; version=1.0.0; charset=utf-8", answer.ContentType)
		assert.False(t, answer.Open)
	}
}

// prometheus_client compresses in the event loop of the server, so it is asked to only where
// that is configured, and never for the small answers. A proxy may compress nonetheless.
func TestAServerIsAskedToCompressOnlyIfConfigured(t *testing.T) {
	for want, change := range map[string]func(*Settings){
		"identity": func(*Settings) {},
		"gzip":     func(s *Settings) { s.Gzip = true },
	} {
		for _, compresses := range []bool{false, true} {
			address := serve(t, func(w http.ResponseWriter, r *http.Request) {
				text, asked := body, want
				if r.URL.Path != "/metrics" {
					text, asked = `{"version": "0.20.0"}`, "identity"
				}
				assert.Equal(t, []string{asked}, r.Header.Values("Accept-Encoding"), r.URL.Path)
				if !compresses {
					_, _ = io.WriteString(w, text)
					return
				}
				w.Header().Set("Content-Encoding", "gzip")
				zip := gzip.NewWriter(w)
				_, _ = io.WriteString(zip, text)
				assert.NoError(t, zip.Close())
			})
			c := client(t, address, change)
			var got bytes.Buffer
			answer, err := c.Metrics(t.Context(), &got, false)
			require.NoError(t, err)
			assert.Equal(t, body, got.String())
			assert.False(t, answer.Open)
			version, err := c.Version(t.Context())
			require.NoError(t, err)
			assert.Equal(t, "0.20.0", version)
			_, err = c.Health(t.Context())
			require.NoError(t, err)
		}
	}
}

// Each row is one thing that goes wrong, the outcome that is counted, and a part
// of the message to the operator.
func TestMetricsFailures(t *testing.T) {
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	tests := []struct {
		name    string
		handler http.HandlerFunc
		want    Outcome
		words   string
	}{
		{"401", status(401), OutcomeUnauthorized, "none are configured; set auth or headers"},
		{"a rejected token", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "Authentication failed", http.StatusInternalServerError)
		}, OutcomeUnauthorized, "could not verify the token"},
		{"500 with other words", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "Authentication faile", http.StatusInternalServerError)
		}, OutcomeServerError, "look at its log"},
		{"503 with the same words", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "Authentication failed", http.StatusServiceUnavailable)
		}, OutcomeServerError, "look at its log"},
		{"403", status(403), OutcomeForbidden, "nonResourceURLs: [/metrics], verbs: [get]"},
		{"404", status(404), OutcomeNotFound, "/metrics of its API port"},
		{"500", status(500), OutcomeServerError, "500 Internal Server Error"},
		{"503", status(503), OutcomeServerError, "503 Service Unavailable"},
		{"418", status(418), OutcomeStatus, "418 I'm a teapot"},
		{"204", status(204), OutcomeStatus, "204 No Content"},
		{"HTML", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = io.WriteString(w, "<html>")
		}, OutcomeNotPrometheus, "text/html, not Prometheus text"},
		{"unasked compression", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "br")
			_, _ = io.WriteString(w, "xxx")
		}, OutcomeNotPrometheus, "only gzip"},
		{"empty", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "\n\n")
		}, OutcomeEmpty, "--disable-log-stats"},
		{"100 MB", func(w http.ResponseWriter, _ *http.Request) {
			for range 100 {
				if _, err := w.Write(bytes.Repeat([]byte("a 1\n"), 1<<18)); err != nil {
					return
				}
			}
		}, OutcomeTooLarge, "limits::body_size (1048576 bytes)"},
		{"gzip bomb", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			zip := gzip.NewWriter(w)
			for range 1000 {
				if _, err := zip.Write(make([]byte, 1<<20)); err != nil {
					return
				}
			}
		}, OutcomeTooLarge, "limits::body_size"},
		{"reset before the answer", func(http.ResponseWriter, *http.Request) {
			panic(http.ErrAbortHandler)
		}, OutcomeReset, "closed before the whole answer"},
		{"reset in the middle of the body", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, body)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, OutcomeReset, "partial body was dropped"},
		{"body shorter than announced", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, body)
		}, OutcomeReset, "partial body was dropped"},
		{"redirect to another host", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.2:1/metrics", http.StatusFound)
		}, OutcomeRedirect, "credentials would go there"},
		{"redirect forever", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path+"/", http.StatusFound)
		}, OutcomeRedirect, "more than 5 times"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := client(t, serve(t, tt.handler)).Metrics(t.Context(), new(bytes.Buffer), false)
			require.Error(t, err)
			assert.Equal(t, tt.want, AsError(err).Outcome, "%v", err)
			assert.Contains(t, err.Error(), tt.words)
		})
	}
}

func TestMetricsFromAPortWithoutAServer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	_, err = client(t, "http://"+address+"/metrics").Metrics(t.Context(), new(bytes.Buffer), false)
	require.Error(t, err)
	assert.Equal(t, OutcomeRefused, AsError(err).Outcome)
	assert.Contains(t, err.Error(), "nothing listens")
}

func TestMetricsFromAServerThatHangsOrDrips(t *testing.T) {
	tests := map[string]http.HandlerFunc{
		"hangs": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"drips": func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				_, _ = io.WriteString(w, "a")
				_ = http.NewResponseController(w).Flush()
				time.Sleep(10 * time.Millisecond)
			}
		},
	}
	for name, handler := range tests {
		t.Run(name, func(t *testing.T) {
			c := client(t, serve(t, handler), func(s *Settings) { s.Timeout = 100 * time.Millisecond })
			_, err := c.Metrics(t.Context(), new(bytes.Buffer), false)
			require.Error(t, err)
			assert.Equal(t, OutcomeTimeout, AsError(err).Outcome, "%v", err)
			assert.Contains(t, err.Error(), "within the timeout")
		})
	}
}

func TestMetricsEndsWhenTheReceiverStops(t *testing.T) {
	asked := make(chan struct{})
	address := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	_, err := client(t, address).Metrics(ctx, new(bytes.Buffer), false)
	require.Error(t, err)
	assert.Equal(t, OutcomeCanceled, AsError(err).Outcome)
}

func TestMetricsOverTheWrongTLS(t *testing.T) {
	plain := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) })
	_, err := client(t, strings.Replace(plain, "http:", "https:", 1)).Metrics(t.Context(), new(bytes.Buffer), false)
	require.Error(t, err)
	assert.Equal(t, OutcomePlainHTTP, AsError(err).Outcome)
	assert.Contains(t, err.Error(), "write http://")

	secure := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer secure.Close()
	secure.Config.ErrorLog = nil
	_, err = client(t, secure.URL+"/metrics").Metrics(t.Context(), new(bytes.Buffer), false)
	require.Error(t, err)
	assert.Equal(t, OutcomeTLS, AsError(err).Outcome)
	assert.Contains(t, err.Error(), "tls::ca_file")
}

// The address may hold secrets in its query and before its host.
func TestErrorsContainNoSecrets(t *testing.T) {
	for _, address := range []string{
		"http://user:hunter2@127.0.0.1:1/metrics?token=hunter2",
		"http://user:hunter2@no-such-host.invalid/metrics?token=hunter2",
	} {
		_, err := client(t, address, func(s *Settings) { s.Timeout = time.Second }).Metrics(t.Context(), new(bytes.Buffer), false)
		require.Error(t, err)
		assert.NotContains(t, err.Error(), "hunter2")
	}
}

// A compressed body of a gigabyte must not be read beyond the limit.
func TestAGzipBombCostsAtMostTheLimit(t *testing.T) {
	address := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		zip := gzip.NewWriter(w)
		for range 1000 {
			if _, err := zip.Write(make([]byte, 1<<20)); err != nil {
				return
			}
		}
	})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := client(t, address).Metrics(t.Context(), new(bytes.Buffer), false)
	runtime.ReadMemStats(&after)
	require.Error(t, err)
	// The server's side is in the same process, so this leaves room for its
	// buffers: the limit is 1 MiB and the bomb 1000 MiB.
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(50<<20))
}

func TestHealth(t *testing.T) {
	code := http.StatusOK
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "/health", r.URL.Path)
		w.WriteHeader(code)
	})
	healthy, err := client(t, address).Health(t.Context())
	require.NoError(t, err)
	assert.True(t, healthy)
	code = http.StatusServiceUnavailable
	healthy, err = client(t, address).Health(t.Context())
	require.NoError(t, err)
	assert.False(t, healthy)
	_, err = client(t, "http://127.0.0.1:1/metrics").Health(t.Context())
	require.Error(t, err)
}

func TestVersion(t *testing.T) {
	tests := []struct {
		name, path, answer string
		code               int
		want               string
	}{
		{"a release", "/metrics", `{"version":"0.20.0"}`, 200, "0.20.0"},
		{"behind a path prefix", "/m1/metrics", `{"version":"0.20.0"}`, 200, "0.20.0"},
		{"not there", "/metrics", "", 404, ""},
		{"not JSON", "/metrics", "<html>", 200, ""},
		{"empty", "/metrics", `{}`, 200, ""},
		{"two lines", "/metrics", `{"version":"0.20.0\nFATAL"}`, 200, ""},
		{"absurd", "/metrics", `{"version":"` + strings.Repeat("9", 200) + `"}`, 200, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				assert.Equal(t, strings.TrimSuffix(tt.path, "/metrics")+"/version", r.URL.Path)
				w.WriteHeader(tt.code)
				_, _ = io.WriteString(w, tt.answer)
			}))
			defer server.Close()
			got, err := client(t, server.URL+tt.path).Version(t.Context())
			assert.Equal(t, tt.want, got)
			assert.Equal(t, tt.want == "", err != nil)
		})
	}
}

// A server that speaks TLS answers a plain request in one of three ways.
func TestAPlainRequestToATLSServerGetsAHint(t *testing.T) {
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(secure.Close)
	answers := map[string]string{
		"400": "http://" + secure.Listener.Addr().String() + "/metrics",
		"closed connection": serve(t, func(http.ResponseWriter, *http.Request) {
			panic(http.ErrAbortHandler)
		}),
		"alert": serve(t, func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if assert.NoError(t, err) {
				_, _ = conn.Write([]byte("\x15\x03\x01\x00\x02\x02\x16\n\n"))
				_ = conn.Close()
			}
		}),
	}
	for name, address := range answers {
		t.Run(name, func(t *testing.T) {
			_, err := client(t, address).Metrics(t.Context(), new(bytes.Buffer), false)
			assert.ErrorContains(t, err, "; if the server speaks TLS, write https:// in the endpoint")
		})
	}
}

// A server chooses its format by the Accept header, and one that has no OpenMetrics answers text.
func TestExemplarsAreAskedForInOpenMetrics(t *testing.T) {
	var accepts []string
	c := client(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		accepts = append(accepts, r.Header.Get("Accept"))
		assert.Equal(t, "identity", r.Header.Get("Accept-Encoding"))
		_, _ = io.WriteString(w, "a 1\n")
	}))
	for _, exemplars := range []bool{true, false, true} {
		_, err := c.Metrics(t.Context(), new(bytes.Buffer), exemplars)
		require.NoError(t, err)
	}
	both := "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"
	assert.Equal(t, []string{both, Accept, both}, accepts)
}
