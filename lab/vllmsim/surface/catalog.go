package surface

import (
	"strconv"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/observed"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/wire"
)

// definition is the meaning of a family and the source of its numbers.
type definition struct {
	help string
	kind wire.Type
	// whole marks gauges of whole numbers.
	whole bool
	// points returns the children for one engine, without the base labels.
	points func(*Server, *observed.Stats) []wire.Point
}

func gauge(help string, value func(*observed.Stats) float64) definition {
	return definition{help: help, kind: wire.Gauge, points: single(value)}
}

func whole(help string, value func(*observed.Stats) float64) definition {
	return definition{help: help, kind: wire.Gauge, whole: true, points: single(value)}
}

func counter(help string, value func(*observed.Stats) float64) definition {
	return definition{help: help, kind: wire.Counter, points: single(value)}
}

func single(value func(*observed.Stats) float64) func(*Server, *observed.Stats) []wire.Point {
	return func(_ *Server, st *observed.Stats) []wire.Point { return []wire.Point{{Value: value(st)}} }
}

func histogram(help string, bounds func(*Server) []float64, values func(*observed.Stats) *observed.Histogram) definition {
	return definition{help: help, kind: wire.Histogram, points: func(s *Server, st *observed.Stats) []wire.Point {
		return []wire.Point{histogramPoint(values(st), bounds(s), s.isRay())}
	}}
}

// latency is a histogram that some versions of the first engine filled with zeros.
func latency(help string, bounds func(*Server) []float64, values func(*observed.Stats) *observed.Histogram) definition {
	return definition{help: help, kind: wire.Histogram, points: func(s *Server, st *observed.Stats) []wire.Point {
		return []wire.Point{histogramPoint(s.nearZero(values(st)), bounds(s), s.isRay())}
	}}
}

// swapped are two histograms that some versions of the first engine exchanged.
func swapped(help string, values, others func(*observed.Stats) *observed.Histogram) definition {
	return definition{help: help, kind: wire.Histogram, points: func(s *Server, st *observed.Stats) []wire.Point {
		if s.shows(catalog.DefectPrefillDecodeSwapped) {
			return []wire.Point{histogramPoint(others(st), latencyBounds(s), s.isRay())}
		}
		return []wire.Point{histogramPoint(values(st), latencyBounds(s), s.isRay())}
	}}
}

func histogramPoint(h *observed.Histogram, bounds []float64, exclusive bool) wire.Point {
	cumulative, err := h.Cumulative(bounds, exclusive)
	if err != nil {
		panic(err) // A bucket table of this package that package observed does not have.
	}
	return wire.Point{Value: h.Sum, Count: h.Count, Bounds: bounds, Cumulative: cumulative}
}

// bare is a family that a server declares and never fills here.
func bare(help string, kind wire.Type) definition {
	return definition{help: help, kind: kind, points: func(*Server, *observed.Stats) []wire.Point { return nil }}
}

func labelled(help string, kind wire.Type, label string, points func(*Server, *observed.Stats) ([]string, []float64)) definition {
	return definition{help: help, kind: kind, whole: true, points: func(s *Server, st *observed.Stats) []wire.Point {
		var out []wire.Point
		names, values := points(s, st)
		for i, name := range names {
			out = append(out, wire.Point{Labels: []wire.Label{{Name: label, Value: name}}, Value: values[i]})
		}
		return out
	}}
}

// finishedReasons returns the series of request_success: V1 creates one per
// reason that it knows, V0 and the Rust front end only those that occurred.
func finishedReasons(s *Server, st *observed.Stats) (names []string, values []float64) {
	for reason, n := range st.Finished {
		r := observed.Reason(reason)
		known := r <= observed.ReasonAbort ||
			(r == observed.ReasonError && !s.Version.before("0.13.0")) ||
			(r == observed.ReasonRepetition && !s.Version.before("0.18.0"))
		if s.isV0() || s.Dialect == Rust {
			known = n > 0
		}
		if known {
			names, values = append(names, r.String()), append(values, n)
		}
	}
	return names, values
}

func draftPositions(_ *Server, st *observed.Stats) (names []string, values []float64) {
	for pos, n := range st.AcceptedPerPosition {
		names, values = append(names, strconv.Itoa(pos)), append(values, n)
	}
	return names, values
}

func promptSources(_ *Server, st *observed.Stats) ([]string, []float64) {
	return []string{"local_compute", "local_cache_hit", "external_kv_transfer"},
		[]float64{st.PromptTokens - st.PromptCached, st.PromptCached - st.PromptExternal, st.PromptExternal}
}

// cacheTiers are where cached tokens were. What a KV connector read is of another server here.
func cacheTiers(_ *Server, st *observed.Stats) ([]string, []float64) {
	return []string{"device", "host", "p2p", "disk", "external_unspecified"}, []float64{st.PrefixHits, 0, st.ExternalHits, 0, 0}
}

func waitingReasons(_ *Server, st *observed.Stats) ([]string, []float64) {
	return []string{"capacity", "deferred"}, []float64{float64(st.WaitingCapacity), float64(st.WaitingDeferred)}
}

func sleepStates(_ *Server, st *observed.Stats) ([]string, []float64) {
	states := make([]float64, 3)
	states[st.SleepLevel] = 1
	return []string{"awake", "weights_offloaded", "discard_all"}, states
}

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}
