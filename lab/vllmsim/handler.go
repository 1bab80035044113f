package vllmsim

import (
	"encoding/json"
	"net/http"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/surface"
)

// ServeHTTP answers like the server's own endpoints: /metrics, /health, /ping,
// /version and /v1/models, and with a simulated engine /v1/completions. A Ray
// agent has only /metrics. A server that a fault keeps from answering closes the
// connection.
func (t *Target) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if t.isAway() {
		panic(http.ErrAbortHandler)
	}
	dialect, version := surface.Dialect(t.server.cfg.Dialect), t.server.version
	path := r.URL.Path
	if path == "/metrics/" && dialect != surface.Rust {
		path = "/metrics"
	}
	ray := dialect == surface.RayOld || dialect == surface.RayNew
	if ray && path != "/metrics" {
		http.NotFound(w, r)
		return
	}
	if path == "/v1/completions" && r.Method == http.MethodPost {
		t.serveCompletion(w, r)
		return
	}
	post := path == "/ping"
	if r.Method != http.MethodGet && r.Method != http.MethodHead && !(post && r.Method == http.MethodPost) {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	switch {
	case path == "/metrics":
		t.serveMetrics(w)
	case path == "/health":
		w.WriteHeader(http.StatusOK)
	case path == "/ping" && version.AtLeast("0.7.0"):
		w.WriteHeader(http.StatusOK)
	case path == "/version":
		writeJSON(w, map[string]string{"version": version.String()})
	case path == "/v1/models":
		t.serveModels(w)
	default:
		http.NotFound(w, r)
	}
}

func (t *Target) isAway() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.advance() != nil || t.away
}

func (t *Target) serveMetrics(w http.ResponseWriter) {
	body, contentType, err := t.Body()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", contentType)
	_, _ = w.Write(body) // An error means that the client has gone.
}

func (t *Target) serveModels(w http.ResponseWriter) {
	cfg := t.server.cfg
	type model struct {
		ID          string `json:"id"`
		Object      string `json:"object"`
		Created     int64  `json:"created"`
		OwnedBy     string `json:"owned_by"`
		MaxModelLen int    `json:"max_model_len"`
	}
	writeJSON(w, map[string]any{
		"object": "list",
		"data":   []model{{cfg.served(), "model", t.ready.Unix(), "vllm", cfg.MaxModelLen}},
	})
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // As above.
}
