// Package surface knows which metric families a vLLM server of a given version
// and deployment exposes, and fills them with the numbers of the simulated engines. What
// exists when follows the project's reference of vLLM's metrics; the HELP texts
// are the project's own.
package surface

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/observed"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/wire"
)

// Dialect is a way in which vLLM's metrics reach a scraper.
type Dialect string

// The dialects.
const (
	// V1 is the V1 engine with one API server process.
	V1 Dialect = "v1"
	// V1MultiProcess is the V1 engine behind several API server processes.
	V1MultiProcess Dialect = "v1-multiproc"
	// V0 is the first engine; from v0.5.5 on it uses multi-process mode.
	V0 Dialect = "v0"
	// RayOld is a Ray agent's endpoint with names like ray_vllm:x.
	RayOld Dialect = "ray-old"
	// RayNew is a Ray agent's endpoint with names like ray_vllm_x.
	RayNew Dialect = "ray-new"
	// Rust is the Rust front end, which speaks OpenMetrics.
	Rust Dialect = "rust"
)

// reach is the range of vLLM versions of each dialect.
var reach = []struct {
	dialect      Dialect
	since, until string
	preset       string
}{
	{V1, "0.8.0", "", "0.20.0"},
	{V1MultiProcess, "0.8.3", "", "0.10.2"},
	{V0, "0.5.0", "0.11.0", "0.6.6"},
	{RayOld, "0.6.0", "0.8.0", "0.6.3"},
	{RayNew, "0.11.1", "", "0.20.0"},
	{Rust, "0.22.0", "", "0.24.0"},
}

// Dialects returns the names of all dialects.
func Dialects() []string {
	var names []string
	for _, r := range reach {
		names = append(names, string(r.dialect))
	}
	return names
}

// DefaultVersion returns the version that stands for a dialect, or "" for an
// unknown one.
func DefaultVersion(d Dialect) string {
	for _, r := range reach {
		if r.dialect == d {
			return r.preset
		}
	}
	return ""
}

// Check returns an error if the stand-in has no such server.
func Check(d Dialect, v Version) error {
	for _, r := range reach {
		if r.dialect != d {
			continue
		}
		if v.within(r.since, r.until) {
			return nil
		}
		if r.until == "" {
			return fmt.Errorf("dialect %s: vLLM version %s is too old, use %s or newer", d, v, r.since)
		}
		return fmt.Errorf("dialect %s: vLLM version %s has no such server here, use %s or newer and older than %s",
			d, v, r.since, r.until)
	}
	return fmt.Errorf("unknown dialect %q: want one of %v", string(d), Dialects())
}

// Server is one server at one moment.
type Server struct {
	Dialect Dialect
	Version Version
	Model   string
	// ProcessStart, Ready and Now are unix times in seconds; Ready is the zero
	// of the engines' own clocks.
	ProcessStart, Ready, Now float64
	Engines                  []*observed.Stats
	// APIServers is the number of API server processes.
	APIServers                                int
	MaxModelLen, KVTokens, BlockSize, MaxSeqs int
	MaxLoRAs                                  int
	LoRA, SpecDecode, PrefixCaching           bool
	// NaNCounter is a server that counts requests with corrupted logits,
	// Transfer one that reads KV blocks from others through NIXL, BlockMetrics one
	// with --kv-cache-metrics.
	NaNCounter, Transfer, BlockMetrics bool
	// Operation and Priority are labels of vLLM's open changes #52249 and #58078.
	Operation, Priority bool
	// Hybrid is a model with several kinds of layers, whose blocks are larger than what was
	// configured. LostHandlers is a server whose web framework gives routes no path.
	Hybrid, LostHandlers bool
	// CountedSince is when the engines' statistics began, in seconds after Ready.
	CountedSince float64
	// Served is the name under which the model is served; empty means Model.
	Served string
	// Connections are those of clients that wait for an answer.
	Connections int
	// Node is the number of the node that a Ray agent names, from 0.
	Node int
}

// isV0 reports whether the server runs the first engine.
func (s *Server) isV0() bool { return s.Dialect == V0 || s.Dialect == RayOld }

// isRay reports whether a Ray agent answers.
func (s *Server) isRay() bool { return s.Dialect == RayOld || s.Dialect == RayNew }

// multiProcess reports whether prometheus_client runs in multi-process mode.
func (s *Server) multiProcess() bool {
	return s.Dialect == V1MultiProcess || (s.Dialect == V0 && !s.Version.before("0.5.5"))
}

// Families returns everything that the server exposes, in its order.
func (s *Server) Families() []wire.Family {
	var out []wire.Family
	if s.Dialect != Rust && !s.multiProcess() {
		out = append(out, s.processFamilies()...)
	}
	if s.isRay() {
		out = append(out, s.rayFamilies()...)
	}
	own := s.engineFamilies()
	if !s.isRay() {
		own = append(own, s.httpFamilies()...)
	}
	if s.multiProcess() {
		slices.SortStableFunc(own, func(a, b wire.Family) int {
			return cmp.Compare(s.fileRank(a), s.fileRank(b))
		})
	}
	return append(out, own...)
}

// fileRank orders families as in multi-process mode, where the collector reads
// one file per kind; V0 servers were seen with gauges first.
func (s *Server) fileRank(f wire.Family) int {
	if s.Dialect == V0 {
		return map[wire.Type]int{wire.Gauge: 0, wire.Counter: 1, wire.Histogram: 2, wire.Summary: 3}[f.Type]
	}
	rank := map[wire.Type]int{wire.Counter: 0, wire.Gauge: 2, wire.Histogram: 4, wire.Summary: 5}[f.Type]
	switch f.Name {
	case "vllm:kv_cache_usage_perc":
		if s.perProcessUsage() {
			rank = 1 // Mode "all" sorts before "mostrecent" ...
		}
	case "vllm:lora_requests_info":
		rank = 3 // ... and "sum" after it.
	}
	return rank
}

// perProcessUsage reports whether kv_cache_usage_perc lacks a multi-process
// mode and so has one series per process.
func (s *Server) perProcessUsage() bool {
	return s.Dialect == V1MultiProcess && s.shows(catalog.DefectUsagePerProcess)
}

// Encoder returns the writer that belongs to the server.
func (s *Server) Encoder() wire.Encoder {
	// Python client 0.23 of autumn 2025 changed the version in its content type.
	media := "text/plain; version=0.0.4; charset=utf-8"
	if !s.Version.before("0.11.0") {
		media = "text/plain; version=1.0.0; charset=utf-8"
	}
	switch s.Dialect {
	case Rust:
		return wire.Rust{}
	case RayOld, RayNew:
		return wire.Ray{
			Underscore: s.Dialect == RayNew, Twins: s.Dialect == RayNew,
			Labels: s.rayLabels(), Media: "text/plain; version=0.0.4; charset=utf-8",
		}
	default:
		return wire.Python{
			// The V0 engine switched creation times off, and files of the
			// multi-process mode have no place for them.
			Created:        s.Dialect == V1,
			MultiProcess:   s.multiProcess(),
			PaddedExponent: s.Version.before("0.28.0"),
			Media:          media,
		}
	}
}

// baseLabels are the labels of every series of engine number i.
func (s *Server) baseLabels(i int) []wire.Label {
	name := s.Model
	if s.Served != "" && !s.shows(catalog.DefectRustServedName) {
		name = s.Served
	}
	labels := []wire.Label{{Name: "model_name", Value: name}}
	if s.hasEngineLabel() {
		labels = append(labels, wire.Label{Name: "engine", Value: strconv.Itoa(i)})
	}
	return labels
}

func (s *Server) hasEngineLabel() bool { return ManyEngines(s.Dialect, s.Version) }

// ManyEngines reports whether servers of this kind have an engine label and so can have
// several engines. Older ones cannot have more than one.
func ManyEngines(d Dialect, v Version) bool {
	return d != V0 && d != RayOld && !v.before("0.8.3")
}
