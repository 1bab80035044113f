package normalize

import (
	"math"
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/exposition"
)

const (
	capacityMetric = "vllm.kv_cache.capacity"
	blocksLabel    = "num_gpu_blocks"
)

// capacityDefects are the defects that change how a capacity follows from blocks. A plan
// depends on whether the server's version has them.
var capacityDefects = [...]catalog.DefectID{catalog.DefectBlocksSummedOverEngines, catalog.DefectOnlyLastEngine}

// hybridLabels are numbers only if the model has layers with a state besides those with
// attention. Its blocks have several sizes, of which block_size is one.
var hybridLabels = [...]string{"mamba_block_size", "mamba_page_size_padded"}

// frontEnd is what the engines of one front end report of their blocks.
type frontEnd struct {
	engines int
	blocks  float64
	// differ is true where the engines report different numbers.
	differ bool
	// other is true where an engine has another number than 0.
	other bool
}

// frontEnds returns the front ends of a body by their identity.
func (b *builder) frontEnds(family *exposition.Family) map[SeriesKey]*frontEnd {
	out := map[SeriesKey]*frontEnd{}
	seen := map[SeriesKey]bool{}
	for i := range family.Series {
		labels := family.Series[i].Labels
		blocks, ok := numberLabel(labels, blocksLabel)
		if !ok {
			continue
		}
		identity := b.ray.identity(family, labels)
		engine := label(labels, engineLabel)
		key := pointKey("", 0, identity)
		f := out[key]
		if f == nil {
			f = &frontEnd{blocks: blocks}
			out[key] = f
		}
		f.differ = f.differ || blocks != f.blocks
		f.other = f.other || engine != "" && engine != "0"
		if series := pointKey("", 0, append(slices.Clip(identity), exposition.Label{Name: engineLabel, Value: engine})); !seen[series] {
			seen[series] = true
			f.engines++
		}
	}
	return out
}

// capacityFromBlocks returns the capacity of one engine before v0.24, which does not have
// kv_cache_size_tokens. Engines of one front end that report equal blocks each report those
// of all of them in the versions with that defect. The capacity is unknown for hybrid
// models, as far as the labels show them, for the last engine of several that are not
// reported, and where a number of blocks or tokens is none.
func (b *builder) capacityFromBlocks(f *frontEnd, labels []exposition.Label) (float64, bool) {
	blocks, ok := numberLabel(labels, blocksLabel)
	size, sized := numberLabel(labels, "block_size")
	if !ok || !sized || f == nil || blocks <= 0 || size <= 0 || math.IsInf(blocks*size, 0) {
		return 0, false
	}
	for _, name := range hybridLabels {
		if n, ok := numberLabel(labels, name); ok && n > 0 {
			return 0, false
		}
	}
	switch version := b.options.Version; {
	case f.engines > 1 && !f.differ && catalog.DefectBlocksSummedOverEngines.Affects(version):
		return blocks / float64(f.engines) * size, true
	case f.engines == 1 && f.other && catalog.DefectOnlyLastEngine.Affects(version):
		return 0, false
	}
	return blocks * size, true
}
