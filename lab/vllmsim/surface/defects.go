package surface

import (
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/observed"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/wire"
)

// Shows reports whether servers of a dialect and a version have a known defect of vLLM's
// metrics. Whether it acts is a question of the server's settings and of its load.
func Shows(d Dialect, v Version, id catalog.DefectID) bool {
	known, exists := defects[id]
	if !exists || !v.within(known.Since, known.Until) {
		return false
	}
	return len(known.Engines) == 0 || slices.Contains(known.Engines, implementation(d))
}

var defects = func() map[catalog.DefectID]catalog.Defect {
	out := map[catalog.DefectID]catalog.Defect{}
	for _, d := range catalog.Defects() {
		out[d.ID] = d
	}
	return out
}()

// implementation is the name that the catalogue of defects has for the code behind a
// dialect.
func implementation(d Dialect) string {
	switch d {
	case V0, RayOld:
		return "v0"
	case Rust:
		return "rust"
	default:
		return "python"
	}
}

func (s *Server) shows(id catalog.DefectID) bool { return Shows(s.Dialect, s.Version, id) }

// reported returns the numbers that families have for each engine, with nil for an engine
// without a series.
func (s *Server) reported() []*observed.Stats {
	out := slices.Clone(s.Engines)
	if s.shows(catalog.DefectOnlyLastEngine) {
		clear(out[:len(out)-1])
	}
	return out
}

// underLastLabels is what a Ray agent gets where all children of a family share one object,
// whose labels are those of the last child that was created. Information about settings and
// adapters is written together with its labels.
func (s *Server) underLastLabels(f *wire.Family) {
	if len(f.Points) == 0 || f.Name == "vllm:"+loraInfo || f.Name == "vllm:"+cacheConfig {
		return
	}
	perEngine := len(f.Points) / len(s.Engines)
	if s.shows(catalog.DefectRayLastLabel) && perEngine > 1 {
		var merged []wire.Point
		for engine := range s.Engines {
			merged = append(merged, underLast(f.Type, f.Points[engine*perEngine:(engine+1)*perEngine], perEngine-1))
		}
		f.Points = merged
	}
	if s.shows(catalog.DefectRayLastEngine) && len(s.Engines) > 1 {
		newest := 0
		for i, st := range s.Engines {
			if st.LastStep > s.Engines[newest].LastStep {
				newest = i
			}
		}
		f.Points = []wire.Point{underLast(f.Type, f.Points, newest)}
	}
}

// underLast merges points under the labels of the last one: counters and histograms add up,
// a gauge has the value of the point that was written last.
func underLast(kind wire.Type, points []wire.Point, written int) wire.Point {
	last := points[len(points)-1]
	if kind == wire.Gauge {
		last.Value = points[written].Value
		return last
	}
	last.Cumulative = slices.Clone(last.Cumulative)
	for _, pt := range points[:len(points)-1] {
		last.Value += pt.Value
		last.Count += pt.Count
		for i, n := range pt.Cumulative {
			last.Cumulative[i] += n
		}
	}
	return last
}

// hybridBlockSize is the block size that a server with a hybrid model reports: what was
// configured, and since v0.23 the least of its kinds of layers.
func (s *Server) hybridBlockSize() string {
	if s.Version.before("0.23.0") {
		return "16"
	}
	return "4"
}

// nearZero returns the same number of observations, of about 0 in versions that take them
// so.
func (s *Server) nearZero(h *observed.Histogram) *observed.Histogram {
	if !s.shows(catalog.DefectLatenciesNearZero) {
		return h
	}
	out := h.Empty()
	out.ObserveN(nearZero, int(h.Count))
	return out
}

// nearZero is what a server observes that takes two times at the same moment, in seconds.
const nearZero = 2e-6
