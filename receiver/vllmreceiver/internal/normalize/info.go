package normalize

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/exposition"
)

const (
	engineLabel = "engine"
	// pythonNone is the text of a value that is not set in Python.
	pythonNone = "None"
)

// infoBody is an info family of a body with its entry of the catalogue.
type infoBody struct {
	info   *catalog.InfoFamily
	family *exposition.Family
}

func infoFamily(key string) (*catalog.InfoFamily, bool) {
	i := slices.IndexFunc(catalog.InfoFamilies, func(f catalog.InfoFamily) bool { return f.Family == key })
	if i < 0 {
		return nil, false
	}
	return &catalog.InfoFamilies[i], true
}

// addInfo plans numbers and resource attributes from the labels of an info family. The family
// itself is not emitted: its values have no meaning, and its label set grows with every release.
func (b *builder) addInfo(i infoBody) {
	b.drop(ReasonInfo, i.family)
	for _, number := range i.info.Numbers {
		b.addNumbers(number, i.family)
	}
	for _, attribute := range i.info.Resource {
		if value, ok := equalOnAll(i.family, attribute.Label); ok {
			b.plan.Resource = append(b.plan.Resource, exposition.Label{Name: attribute.Attribute, Value: value})
		}
	}
	if len(i.info.Lists) > 0 {
		processes := map[SeriesKey]int{}
		for set := range i.family.Series {
			series := &i.family.Series[set]
			process := pointKey("", 0, b.ray.identity(i.family, series.Labels))
			if _, ok := processes[process]; !ok {
				processes[process] = len(processes)
			}
			empty := !slices.ContainsFunc(i.info.Lists, func(l catalog.InfoList) bool { return label(series.Labels, l.Label) != "" })
			b.plan.Adapters = append(b.plan.Adapters, AdapterSet{Slot: series.Value, Process: processes[process], Empty: empty})
		}
		for _, key := range []string{"vllm:num_requests_running", "vllm:num_requests_waiting"} {
			if family := b.byKey[key]; family != nil {
				for _, series := range family.Series {
					if series.Value != exposition.NoSlot {
						b.plan.Requests = append(b.plan.Requests, series.Value)
					}
				}
			}
		}
	}
	for _, list := range i.info.Lists {
		b.addList(list, i.family)
	}
}

// addNumbers plans one metric, with a point per engine, from a label that holds a number.
func (b *builder) addNumbers(number catalog.InfoNumber, family *exposition.Family) {
	metric, ok := catalog.ByName(number.Metric)
	if !ok || !b.options.enabled(metric) {
		return
	}
	m := metricOf(metric)
	var frontEnds map[SeriesKey]*frontEnd
	if metric.Name == capacityMetric && b.options.CapacityFromBlocks {
		frontEnds = b.frontEnds(family)
	}
	seen := map[SeriesKey]bool{}
	for i := range family.Series {
		labels := family.Series[i].Labels
		if _, replaced := numberLabel(labels, number.Unless); replaced && !b.options.whole(metric.Name) {
			continue
		}
		attributes := b.ray.identity(family, labels)
		value, ok := numberLabel(labels, number.Label)
		if !ok && frontEnds != nil {
			value, ok = b.capacityFromBlocks(frontEnds[pointKey("", 0, attributes)], labels)
		}
		if !ok {
			continue
		}
		if engine := label(labels, engineLabel); engine != "" {
			attributes = append(attributes, exposition.Label{Name: engineLabel, Value: engine})
		}
		key := pointKey(m.Name, m.Kind, attributes)
		if seen[key] {
			continue
		}
		seen[key] = true
		m.Points = append(m.Points, Point{Key: key, Attributes: attributes, Constant: value})
	}
	b.emit(m)
}

// numberLabel reads a label that holds a finite number.
func numberLabel(labels []exposition.Label, name string) (float64, bool) {
	value, err := strconv.ParseFloat(label(labels, name), 64)
	return value, err == nil && !math.IsNaN(value) && !math.IsInf(value, 0)
}

// equalOnAll returns the value of a label if it is equal on all series of the family: a
// resource attribute must be true for the whole server.
func equalOnAll(family *exposition.Family, name string) (string, bool) {
	value := label(family.Series[0].Labels, name)
	differ := slices.ContainsFunc(family.Series, func(s exposition.Series) bool { return label(s.Labels, name) != value })
	return value, !differ && value != "" && value != pythonNone
}

// addList plans one point for each LoRA adapter in any label set of
// vllm:lora_requests_info. A scrape emits those of the newest label set, because a
// server never removes old label sets from its body.
func (b *builder) addList(list catalog.InfoList, family *exposition.Family) {
	metric, ok := catalog.ByName(list.Metric)
	if !ok || !b.options.enabled(metric) {
		return
	}
	m := metricOf(metric)
	index := map[SeriesKey]int{}
	for set := range family.Series {
		labels := family.Series[set].Labels
		identity := b.ray.identity(family, labels)
		for adapter := range strings.SplitSeq(label(labels, list.Label), ",") {
			adapter = strings.TrimSpace(adapter)
			if adapter == "" {
				continue
			}
			attributes := append(slices.Clone(identity), exposition.Label{Name: list.Attribute, Value: adapter})
			key := pointKey(m.Name, m.Kind, attributes)
			at, known := index[key]
			if !known {
				at = len(m.Points)
				index[key] = at
				m.Points = append(m.Points, Point{Key: key, Attributes: attributes, Constant: 1, AdapterSets: []int{}})
			}
			m.Points[at].AdapterSets = append(m.Points[at].AdapterSets, set)
		}
	}
	b.emit(m)
}

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
