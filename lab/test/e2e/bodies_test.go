//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/captures"
)

// page is one body and how a server sends it.
type page struct {
	// name is the origin of the body.
	name        string
	body        []byte
	contentType string
	// version is the answer of /version; empty if there is none.
	version string
	// asked counts the requests for the body, per receiver.
	asked atomic.Int64
}

const text = "text/plain; version=0.0.4; charset=utf-8"

// ownPages returns the bodies of testdata. Those of a dialect have the version in the name
// of their folder.
func ownPages(t *testing.T) []*page {
	t.Helper()
	var pages []*page
	dialects, err := filepath.Glob(filepath.Join(root, "testdata", "*", "metrics.txt"))
	require.NoError(t, err)
	require.NotEmpty(t, dialects)
	for _, file := range dialects {
		folder := filepath.Dir(file)
		name := filepath.Base(folder)
		p := &page{name: name, body: read(t, file), contentType: strings.TrimSpace(string(read(t, filepath.Join(folder, "content-type"))))}
		if !strings.HasPrefix(name, "ray") {
			p.version = name[strings.LastIndex(name, "-")+1:]
		}
		// The same once more from a server that does not report its version.
		pages = append(pages, p, &page{name: name + " of an unknown version", body: p.body, contentType: p.contentType})
	}
	odd, err := filepath.Glob(filepath.Join(root, "testdata", "odd", "*.txt"))
	require.NoError(t, err)
	require.NotEmpty(t, odd)
	gateways, err := filepath.Glob(filepath.Join(root, "testdata", "gateway", "*.txt"))
	require.NoError(t, err)
	require.NotEmpty(t, gateways)
	for _, file := range append(odd, gateways...) {
		p := &page{name: filepath.Base(filepath.Dir(file)) + "/" + filepath.Base(file), body: read(t, file), contentType: text}
		if content, err := os.ReadFile(file + ".content-type"); err == nil {
			p.contentType = strings.TrimSpace(string(content))
		}
		pages = append(pages, p)
	}
	return pages
}

// capturedPages returns bodies of real servers: all of model servers, one of each live kind
// of gateway, the first and the last of each series.
func capturedPages(t *testing.T) []*page {
	t.Helper()
	dir := captures.Dir(t)
	files := captures.Files(t)
	for _, pattern := range []string{
		"gateway/*-live.txt", "gateway/*-live-t0.txt", "gateway/*-live-openmetrics.txt", "gateway/lora-syncer*.txt",
		"series/*/*/01.txt", "series/*/*/*04.txt",
	} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		require.NoError(t, err)
		require.NotEmpty(t, found, pattern)
		files = append(files, found...)
	}
	var pages []*page
	for _, file := range files {
		name, err := filepath.Rel(dir, file)
		require.NoError(t, err)
		p := &page{name: filepath.ToSlash(name), body: read(t, file), contentType: text}
		// Only OpenMetrics ends so.
		if strings.HasSuffix(strings.TrimSpace(string(p.body)), "# EOF") {
			p.contentType = "application/openmetrics-text; version=1.0.0; charset=utf-8"
		}
		pages = append(pages, p)
	}
	return pages
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	return content
}

// servePages serves every page on a path of its own and returns the server's
// host and port. Page n is at /n/metrics, its version at /n/version.
func servePages(t *testing.T, pages []*page) string {
	t.Helper()
	mux := http.NewServeMux()
	for i, p := range pages {
		mux.HandleFunc(fmt.Sprintf("GET /%d/metrics", i), func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", p.contentType)
			_, _ = w.Write(p.body)
			p.asked.Add(1)
		})
		if p.version != "" {
			mux.HandleFunc(fmt.Sprintf("GET /%d/version", i), func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprintf(w, `{"version":%q}`, p.version)
			})
		}
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}
