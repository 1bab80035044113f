package boards

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"
)

// site is the server that the browser talks to: the page, the dashboards and Prometheus's API.
type site struct {
	handler http.Handler
	pending atomic.Int64
	asked   atomic.Int64
}

// newSite serves the bundled page of a directory, the dashboards of another, and an API.
func newSite(page, dashboards string, prometheus http.Handler) *site {
	mux := http.NewServeMux()
	mux.Handle("/", http.FileServer(http.Dir(page)))
	mux.Handle("/prometheus/", http.StripPrefix("/prometheus", prometheus))
	mux.HandleFunc("/boards/{name...}", func(w http.ResponseWriter, r *http.Request) {
		name := filepath.Join(dashboards, filepath.FromSlash(filepath.Clean("/"+r.PathValue("name"))))
		content, err := os.ReadFile(name) // #nosec G304 -- cleaned; and only our own page asks.
		if err != nil || !strings.HasSuffix(name, ".json") {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(content) // #nosec G705 -- a dashboard of ours, for a browser of ours.
	})
	return &site{handler: mux}
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.pending.Add(1)
	defer func() {
		s.asked.Store(time.Now().UnixNano())
		s.pending.Add(-1)
	}()
	s.handler.ServeHTTP(w, r)
}

// quiet reports whether nothing was asked for a while.
func (s *site) quiet(since time.Duration) bool {
	return s.pending.Load() == 0 && time.Since(time.Unix(0, s.asked.Load())) > since
}
