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
	capacityMetric = "vllm.kv_cache.capacity"
	engineLabel    = "engine"
	// pythonNone is how Python writes a value that is not set.
	pythonNone = "None"
)

// infoBody is an info family of a body with what the catalogue says of it.
type infoBody struct {
	info   *catalog.InfoFamily
	family *exposition.Family
}

func infoFamily(key string) (*catalog.InfoFamily, bool) {
	for i := range catalog.InfoFamilies {
		if catalog.InfoFamilies[i].Family == key {
			return &catalog.InfoFamilies[i], true
		}
	}
	return nil, false
}

// cutVLLM returns what follows "vllm:".
func cutVLLM(key string) (string, bool) { return strings.CutPrefix(key, "vllm:") }

// infos turns the labels of the info families into numbers and resource
// attributes. Such a family has a label set that grows with every release and a
// value that says nothing, so it is not emitted itself.
func (b *builder) infos(bodies []infoBody) {
	seen := map[string]bool{}
	for _, body := range bodies {
		// The same family under a second prefix says the same again.
		if seen[body.info.Family] {
			b.drop(ReasonAlias, body.family)
			continue
		}
		seen[body.info.Family] = true
		b.info(body)
	}
}

func (b *builder) info(i infoBody) {
	b.drop(ReasonInfo, i.family)
	for _, number := range i.info.Numbers {
		b.numbers(number, i.family)
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
			b.plan.Adapters = append(b.plan.Adapters, AdapterSet{Slot: series.Value, Process: processes[process]})
		}
	}
	for _, list := range i.info.Lists {
		b.list(list, i.family)
	}
}

// numbers plans one metric from a label that holds a number, per engine.
func (b *builder) numbers(number catalog.InfoNumber, family *exposition.Family) {
	metric, ok := catalog.ByName(number.Metric)
	if !ok || !b.options.enabled(metric.Name, metric.Enabled) {
		return
	}
	m := Metric{Name: metric.Name, Description: metric.Description, Unit: metric.Unit, Kind: metric.Kind}
	seen := map[SeriesKey]bool{}
	for i := range family.Series {
		labels := family.Series[i].Labels
		value, ok := numberLabel(labels, number.Label)
		if !ok && metric.Name == capacityMetric && b.options.CapacityFromBlocks {
			value, ok = capacityFromBlocks(labels)
		}
		if !ok {
			continue
		}
		attributes := b.ray.identity(family, labels)
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
	if len(m.Points) > 0 {
		b.plan.Metrics = append(b.plan.Metrics, m)
	}
}

// numberLabel reads a label that holds a finite number.
func numberLabel(labels []exposition.Label, name string) (float64, bool) {
	value, err := strconv.ParseFloat(label(labels, name), 64)
	return value, err == nil && !math.IsNaN(value) && !math.IsInf(value, 0)
}

// capacityFromBlocks is the capacity of a server before v0.24, which has no
// kv_cache_size_tokens. It overstates models with several kinds of attention,
// because their blocks hold fewer tokens each, so it is off by default.
func capacityFromBlocks(labels []exposition.Label) (float64, bool) {
	blocks, ok := numberLabel(labels, "num_gpu_blocks")
	if !ok {
		return 0, false
	}
	size, ok := numberLabel(labels, "block_size")
	return blocks * size, ok
}

// equalOnAll returns a label's value if all series of the family have the same:
// a resource attribute must be true of the whole server.
func equalOnAll(family *exposition.Family, name string) (string, bool) {
	value := label(family.Series[0].Labels, name)
	for i := range family.Series {
		if label(family.Series[i].Labels, name) != value {
			return "", false
		}
	}
	return value, value != "" && value != pythonNone
}

// list plans one point for each LoRA adapter that any label set of
// vllm:lora_requests_info names. Which of them exist in a scrape is decided by
// the newest label set, because old label sets stay in the body for ever.
func (b *builder) list(list catalog.InfoList, family *exposition.Family) {
	metric, ok := catalog.ByName(list.Metric)
	if !ok || !b.options.enabled(metric.Name, metric.Enabled) {
		return
	}
	m := Metric{Name: metric.Name, Description: metric.Description, Unit: metric.Unit, Kind: metric.Kind}
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
	if len(m.Points) > 0 {
		b.plan.Metrics = append(b.plan.Metrics, m)
	}
}
