package recording

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Content types that a body without one gets.
const (
	textMedia        = "text/plain; version=0.0.4; charset=utf-8"
	openMetricsMedia = "application/openmetrics-text; version=1.0.0; charset=utf-8"
)

// PlayerOptions are how bodies are played back.
type PlayerOptions struct {
	// ContentType overrides that of the recording or the body.
	ContentType string
	// Every is how long each body stays; 0 moves on with every request.
	Every time.Duration
	// Loop starts over after the last body, which otherwise stays.
	Loop bool
	// Version is the answer of /version; it overrides the recording's.
	Version string
	// Clock returns the time; nil means time.Now.
	Clock func() time.Time
}

// Player serves recorded bodies. It is an http.Handler and safe for concurrent
// use.
type Player struct {
	options PlayerOptions
	version string
	bodies  []played

	mu    sync.Mutex
	next  int
	began time.Time
}

type played struct {
	path, contentType string
	status            int
}

// Open prepares a file, or a folder's *.txt and *.prom files in the order of
// their names without extension.
func Open(path string, options PlayerOptions) (*Player, error) {
	if options.Clock == nil {
		options.Clock = time.Now
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	p := &Player{options: options, version: options.Version}
	dir, files := filepath.Dir(path), []string{filepath.Base(path)}
	if info.IsDir() {
		dir = path
		if files, err = bodyFiles(dir); err != nil {
			return nil, err
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s holds no *.txt or *.prom file", path)
	}
	index, err := ReadIndex(dir)
	if err != nil {
		return nil, err
	}
	if p.version == "" {
		p.version = index.VLLMVersion
	}
	for _, name := range files {
		p.bodies = append(p.bodies, describe(dir, name, index, options.ContentType))
	}
	return p, nil
}

// Len returns the number of bodies.
func (p *Player) Len() int { return len(p.bodies) }

func bodyFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); e.Type().IsRegular() && (ext == ".txt" || ext == ".prom") {
			files = append(files, e.Name())
		}
	}
	slices.SortFunc(files, func(a, b string) int {
		return strings.Compare(strings.TrimSuffix(a, filepath.Ext(a)), strings.TrimSuffix(b, filepath.Ext(b)))
	})
	return files, nil
}

// describe finds the content type of a body: from the option, the index, a file
// "content-type" in the folder, or "<name>.content-type" next to it. Otherwise the body
// itself decides when it is served.
func describe(dir, name string, index Index, override string) played {
	body := played{path: filepath.Join(dir, name), status: http.StatusOK, contentType: override}
	for _, s := range index.Scrapes {
		if s.File != name {
			continue
		}
		if s.Status != 0 {
			body.status = s.Status
		}
		if body.contentType == "" {
			body.contentType = s.ContentType
		}
	}
	for _, sidecar := range []string{name + ".content-type", "content-type"} {
		if body.contentType == "" {
			if raw, err := os.ReadFile(filepath.Join(dir, sidecar)); err == nil {
				body.contentType = strings.TrimSpace(string(raw))
			}
		}
	}
	return body
}

// ServeHTTP answers /metrics with the body whose turn it is, /health, and
// /version where the version is known.
func (p *Player) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/metrics", "/metrics/":
		p.serveBody(w)
	case "/health":
		w.WriteHeader(http.StatusOK)
	case "/version":
		if p.version == "" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]string{"version": p.version}) // The client may have gone.
	default:
		http.NotFound(w, r)
	}
}

func (p *Player) serveBody(w http.ResponseWriter) {
	body := p.bodies[p.turn()]
	raw, err := os.ReadFile(body.path)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	contentType := body.contentType
	if contentType == "" {
		contentType = guess(raw)
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(body.status)
	_, _ = w.Write(raw) // The client may have gone.
}

// turn returns whose turn it is.
func (p *Player) turn() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	turn := p.next
	if p.options.Every > 0 {
		now := p.options.Clock()
		if p.began.IsZero() {
			p.began = now
		}
		turn = int(now.Sub(p.began) / p.options.Every)
	} else {
		p.next++
	}
	if p.options.Loop {
		return turn % len(p.bodies)
	}
	return min(turn, len(p.bodies)-1)
}

// guess recognises OpenMetrics by its end mark.
func guess(body []byte) string {
	if bytes.HasSuffix(bytes.TrimRight(body, "\r\n"), []byte("# EOF")) {
		return openMetricsMedia
	}
	return textMedia
}
