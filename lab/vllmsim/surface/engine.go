package surface

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/observed"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/wire"
)

// engineFamilies returns the families of vLLM itself.
func (s *Server) engineFamilies() []wire.Family {
	rows := v1Rows
	switch {
	case s.Dialect == Rust:
		rows = rustRows
	case s.isV0():
		rows = v0Rows
	}
	var out []wire.Family
	children := 0
	for _, r := range rows {
		if !s.Version.within(r.since, r.until) || !s.has(r.needs) {
			continue
		}
		f := s.family(r)
		if s.isRay() {
			s.underLastLabels(&f)
		}
		if len(f.Points) == 0 && (s.multiProcess() || s.isRay()) {
			continue // Neither has a family before its first value.
		}
		for i := range f.Points {
			// All children are created while the engine starts, one after the other.
			f.Points[i].Created = s.Ready + s.CountedSince - 1.25 + 17e-6*float64(children)
			children++
		}
		out = append(out, f)
	}
	return out
}

func (s *Server) has(f feature) bool {
	switch f {
	case needsSpecDecode:
		return s.SpecDecode
	case needsLoRA:
		return s.LoRA
	case needsNaNCounter:
		return s.NaNCounter
	case needsTransfer:
		return s.Transfer
	case needsBlockMetrics:
		return s.BlockMetrics
	case needsPriority:
		return s.Priority
	default:
		return true
	}
}

func (s *Server) family(r row) wire.Family {
	switch r.name {
	case loraInfo:
		return s.loraFamily()
	case cacheConfig:
		return s.cacheFamily()
	case rejections:
		return s.rejectionsFamily()
	}
	d, ok := definitions[r.name]
	if !ok {
		panic(fmt.Sprintf("no definition of %q", r.name)) // A mistake in this package's tables.
	}
	f := wire.Family{Name: "vllm:" + r.name, Help: d.help, Type: d.kind, Whole: d.whole}
	if r.deprecated != "" && !s.Version.before(r.deprecatedSince) {
		f.Help += r.deprecated
	}
	for i, st := range s.reported() {
		if st == nil {
			continue
		}
		for _, pt := range d.points(s, st) {
			if !s.exists(d.kind, r.name, st, pt) {
				continue
			}
			pt.Labels = append(s.baseLabels(i), pt.Labels...)
			f.Points = append(f.Points, pt)
		}
	}
	s.divide(r.name, &f)
	if r.name == "kv_cache_usage_perc" && s.perProcessUsage() {
		f.Points = s.perProcess(f.Points)
	}
	return f
}

// exists reports whether a child is there yet. V1 creates nearly all of them
// before the first request, V0 on first use, the Rust front end those of
// features only when they are in use.
func (s *Server) exists(kind wire.Type, name string, st *observed.Stats, pt wire.Point) bool {
	switch {
	case s.isV0():
		if kind == wire.Histogram {
			return pt.Count > 0
		}
		return st.LastStep > 0
	case s.Dialect == Rust:
		optional := strings.HasPrefix(name, "spec_decode_") || strings.HasPrefix(name, "estimated_") ||
			strings.HasPrefix(name, "external_") || strings.HasPrefix(name, "kv_block_")
		return !optional || pt.Value > 0
	default:
		return true
	}
}

// perProcess repeats each point for every API server process, the way a gauge
// without a multi-process mode appears. Only that of the process which got the last
// report of the engine is current.
func (s *Server) perProcess(points []wire.Point) []wire.Point {
	var out []wire.Point
	for p := range s.APIServers {
		i := -1
		for _, st := range s.reported() {
			if st == nil {
				continue
			}
			i++
			pt := points[i]
			if p < len(st.ProcessUsage) {
				pt.Value = st.ProcessUsage[p]
			}
			pid := wire.Label{Name: "pid", Value: strconv.Itoa(34 + p)}
			pt.Labels = append(slices.Clone(pt.Labels), pid)
			out = append(out, pt)
		}
	}
	return out
}
