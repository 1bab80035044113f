package surface

import (
	"slices"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/observed"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/wire"
)

// httpFamilies are those of the instrumented web framework, present since
// v0.8.5 and since v0.8.3 in multi-process mode.
func (s *Server) httpFamilies() []wire.Family {
	since := "0.8.5"
	if s.Dialect == V1MultiProcess {
		since = "0.8.3"
	}
	if s.Version.before(since) || s.Dialect == V0 {
		return nil
	}
	handlers, fine := s.httpTotals()
	requests := wire.Family{Name: "http_requests", Help: "Answered requests by method, status and handler.", Type: wire.Counter}
	received := wire.Family{Name: "http_request_size_bytes", Help: "Announced length of requests by handler. ", Type: wire.Summary}
	sent := wire.Family{Name: "http_response_size_bytes", Help: "Announced length of answers by handler. ", Type: wire.Summary}
	precise := wire.Family{Name: "http_request_duration_highr_seconds", Help: "Seconds per request in many buckets. ", Type: wire.Histogram}
	coarse := wire.Family{Name: "http_request_duration_seconds", Help: "Seconds per request by handler in few buckets. ", Type: wire.Histogram}

	total := histogramPoint(fine, highr, false)
	total.Created = s.Ready - 1
	precise.Points = []wire.Point{total}
	for _, h := range handlers {
		handler, method := wire.Label{Name: "handler", Value: h.Path}, wire.Label{Name: "method", Value: "POST"}
		for _, status := range []string{"2xx", "4xx", "5xx"} {
			if h.ByStatus[status] == 0 {
				continue
			}
			requests.Points = append(requests.Points, wire.Point{
				Value: h.ByStatus[status], Created: s.Ready + h.StatusSince[status],
				Labels: []wire.Label{method, {Name: "status", Value: status}, handler},
			})
		}
		size := wire.Point{Labels: []wire.Label{handler}, Count: uint64(h.Requests()), Created: s.Ready + h.Since}
		size.Value = h.RequestBytes
		received.Points = append(received.Points, size)
		size.Value = h.ResponseBytes
		sent.Points = append(sent.Points, size)
		duration := histogramPoint(h.Duration, byHandler, false)
		duration.Labels = []wire.Label{method, handler}
		duration.Created = s.Ready + h.Since
		coarse.Points = append(coarse.Points, duration)
	}
	if s.Dialect == Rust {
		return []wire.Family{requests, coarse, precise}
	}
	return []wire.Family{requests, received, sent, precise, coarse}
}

// httpTotals adds up what the engines' requests meant for the one front end,
// handlers by first use.
func (s *Server) httpTotals() ([]*observed.Handler, *observed.Histogram) {
	fine := observed.NewHistogram(highr)
	var handlers []*observed.Handler
	for _, st := range s.Engines {
		fine.Add(st.HTTPFine)
		for _, h := range st.HTTP {
			path := h.Path
			if s.LostHandlers && s.shows(catalog.DefectHandlerLost) {
				path = "none"
			}
			i := slices.IndexFunc(handlers, func(o *observed.Handler) bool { return o.Path == path })
			if i < 0 {
				handlers = append(handlers, &observed.Handler{
					Path: path, Since: h.Since, ByStatus: map[string]float64{}, StatusSince: map[string]float64{},
					Duration: observed.NewHistogram(byHandler),
				})
				i = len(handlers) - 1
			}
			sum := handlers[i]
			sum.Since = min(sum.Since, h.Since)
			sum.RequestBytes += h.RequestBytes
			sum.ResponseBytes += h.ResponseBytes
			sum.Duration.Add(h.Duration)
			for status, n := range h.ByStatus {
				if first, seen := sum.StatusSince[status]; !seen || h.StatusSince[status] < first {
					sum.StatusSince[status] = h.StatusSince[status]
				}
				sum.ByStatus[status] += n
			}
		}
	}
	slices.SortFunc(handlers, func(a, b *observed.Handler) int { return strings.Compare(a.Path, b.Path) })
	return handlers, fine
}
