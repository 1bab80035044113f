package vllmsim

import (
	"context"
	"net/http"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/gpu"
)

// Exporter is the exporter of the GPUs on the node of one server. It is an http.Handler and
// safe for concurrent use.
type Exporter struct{ target *Target }

// Exporters returns one for each server, in their order; none without Config.GPUs.
func (s *Server) Exporters() []*Exporter {
	var out []*Exporter
	for _, t := range s.targets {
		if t.exporter != nil {
			out = append(out, &Exporter{t})
		}
	}
	return out
}

// usedShare is vLLM's default of gpu_memory_utilization.
const usedShare = 0.9

func (t *Target) newExporter() *gpu.Exporter {
	spec, c := engine.H100(), t.server.cfg.GPUs
	var cards []gpu.Card
	for _, engines := range t.engine.Devices() {
		for range engines {
			n := len(cards)
			cards = append(cards, gpu.Card{
				Index: n, UUID: c.UUID(t.index, n),
				MemoryMiB: spec.MemoryMiB, MaxMHz: spec.MaxMHz, UsedMiB: usedShare * spec.MemoryMiB, Workload: c.Workload(t.index),
			})
		}
	}
	return gpu.New(*c, c.Node(t.index), cards)
}

// sample lets the exporter take a sample at a time, up to which the engines are. Cards are those of
// the beginning, also where engines are added.
func (t *Target) sample(at float64) {
	gone := 0.0
	if t.restarting() {
		gone = max(1e-9, at-t.ready.Sub(t.born).Seconds()-t.engine.Now())
	}
	var states []engine.DeviceState
	for _, of := range t.engine.DevicesAfter(gone) {
		states = append(states, of...)
	}
	t.exporter.Take(at, states)
}

// Body returns what the exporter answers to a scrape at this moment, and its content type.
func (e *Exporter) Body() (body []byte, contentType string, err error) {
	t := e.target
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.advance(); err != nil {
		return nil, "", err
	}
	now := t.server.clock().Sub(t.born).Seconds()
	if t.exporter.Away(now) {
		return nil, "", errAway
	}
	if t.exporter.OnScrape() {
		t.sample(now)
	}
	return t.exporter.Body(), t.exporter.ContentType(), nil
}

// ServeHTTP answers /metrics and /health as the exporters do. One that is away closes the
// connection.
func (e *Exporter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, contentType, err := e.Body()
	switch {
	case err != nil:
		panic(http.ErrAbortHandler)
	case r.URL.Path == "/health":
		w.WriteHeader(http.StatusOK)
	case r.URL.Path != "/metrics":
		http.NotFound(w, r)
	default:
		w.Header().Set("Content-Type", contentType)
		_, _ = w.Write(body) // An error means that the client has gone.
	}
}

// ServeExporters listens at the given loopback address and those after it, one for each server,
// passes the URLs to announce, and answers until ctx ends.
func (s *Server) ServeExporters(ctx context.Context, address string, announce func(urls []string)) error {
	exporters := s.Exporters()
	listeners, err := Listen(ctx, address, len(exporters))
	if err != nil {
		return err
	}
	announce(URLs(listeners))
	var handlers []http.Handler
	for _, e := range exporters {
		handlers = append(handlers, e)
	}
	return Serve(ctx, listeners, handlers)
}
