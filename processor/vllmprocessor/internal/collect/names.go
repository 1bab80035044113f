package collect

import (
	"slices"
	"strconv"
	"strings"
	"sync"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/internal/identity"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// named is the meaning of a metric's name.
type named struct {
	input input.Metric
	// rank decides between several names of one input in one batch, for example an old
	// family and the new one: the highest rank is used.
	rank int16
	// older is true for a name that can be that of an older metric of the input.
	older bool
	// level is true where the metric is a gauge that counts.
	level bool
}

// Ranks of the names of one input, from the lowest: a gauge that counts, older metrics of
// the catalogue, the families of the wire from the oldest to the newest, the catalogue's
// name as an exporter to Prometheus writes it, and the catalogue's name.
const (
	rankLevel      = -1
	rankOlder      = 0
	rankWire       = 1
	rankTranslated = 999
	rankCanonical  = 1000
)

// cacheConfigFamily is the info metric with the capacity of the KV cache in its labels.
// Our receiver makes metrics of the labels; other receivers pass it on.
const cacheConfigFamily = "vllm:cache_config_info"

// inputs maps every possible name of an input: the catalogue's name, its forms in
// Prometheus, and each family of the wire with any prefix of a deployment, also without
// the suffix that some receivers cut off.
var inputs = sync.OnceValue(func() map[string]named {
	index := map[string]named{}
	add := func(name string, in input.Metric, rank int16) {
		known, taken := index[name]
		if !taken || known.rank < rank {
			index[name] = named{input: in, rank: rank, older: rank == rankOlder || (taken && known.older)}
		}
	}
	addAll := func(name string, in input.Metric, rank int16) {
		eachName(name, func(name string) { add(name, in, rank) })
	}
	for in := range input.NumMetrics {
		definition := in.Define()
		if definition.Name == "" {
			continue
		}
		if definition.Level != "" {
			addAll(definition.Level, in, rankLevel)
		}
		for _, older := range definition.Older {
			addAll(older, in, rankOlder)
		}
		addFamilies(definition.Name, func(family string, rank int) { add(family, in, rankWire+int16(rank)) })
		for _, name := range translations(definition.Name) {
			add(name, in, rankTranslated)
		}
		add(definition.Name, in, rankCanonical)
	}
	return index
})

// meaning is what the name of a metric means.
type meaning struct {
	named
	// proof is what the name shows.
	proof input.Evidence
	// known is true for an input.
	known       bool
	cacheConfig bool
	// process is true for the start of the process, ofClients for times that applications measure.
	process, ofClients bool
}

// meanings has the names that mean something.
var meanings = sync.OnceValue(func() map[string]meaning {
	index := map[string]meaning{}
	for name, n := range inputs() {
		index[name] = meaning{named: n, known: true}
	}
	for name, p := range proofs() {
		m := index[name]
		m.proof = p
		index[name] = m
	}
	// The Prometheus receiver gives an OpenMetrics family of the type info the name without _info.
	for _, name := range spellings(cacheConfigFamily, "_info") {
		m := index[name]
		m.cacheConfig = true
		index[name] = m
	}
	eachName(input.ClientDuration, func(name string) {
		m := index[name]
		m.ofClients = true
		index[name] = m
	})
	m := index[processStart]
	m.process = true
	index[processStart] = m
	return index
})

// unitSuffixes are the suffixes that exporters to Prometheus append for a unit. Only
// gauges get the suffix for a ratio.
var unitSuffixes = map[string]string{"s": "_seconds", "By": "_bytes", "1": "_ratio"}

// translations returns a name of the catalogue as exporters to Prometheus write it by
// OpenTelemetry's rules: with the unit and _total, and with underscores or, where the
// server accepts them, with dots.
func translations(name string) []string {
	metric, known := catalog.ByName(name)
	if !known {
		return nil
	}
	var total string
	if metric.Kind == catalog.KindSum {
		total = "_total"
	}
	suffix := unitSuffixes[metric.Unit]
	underscored := strings.ReplaceAll(name, ".", "_")
	full := underscored
	if !strings.Contains(name+"_", suffix+"_") {
		// A name with the suffix does not get it again.
		full += suffix
	}
	return []string{underscored, full + total, name + suffix + total}
}

// eachName calls add for each name that a metric of the catalogue can have.
func eachName(name string, add func(name string)) {
	addFamilies(name, func(family string, _ int) { add(family) })
	for _, name := range append(translations(name), name) {
		add(name)
	}
}

// addFamilies calls add for each spelling of the families of a metric. The rank of a
// family is its position.
func addFamilies(name string, add func(family string, rank int)) {
	metric, known := catalog.ByName(name)
	if !known {
		return
	}
	for rank, source := range metric.Sources {
		if source.Label != "" {
			continue
		}
		for _, family := range spellings(source.Family, "_total", "_seconds") {
			add(family, rank)
		}
	}
}

// spellings returns a family of the catalogue with each prefix that deployments use for
// vLLM's names, and each of them also without the suffixes that are cut off somewhere.
func spellings(family string, suffixes ...string) (all []string) {
	prefixes := []string{""}
	rest, ours := strings.CutPrefix(family, catalog.Prefixes[0])
	if ours {
		// With a dot the families are pushed as OTLP by loggers inside vLLM (vllm#30258, vllm#35469).
		prefixes = append(slices.Clone(catalog.Prefixes), "vllm.")
	}
	for _, prefix := range prefixes {
		name := prefix + rest
		all = append(all, name)
		for _, suffix := range suffixes {
			if short, cut := strings.CutSuffix(name, suffix); cut {
				all = append(all, short)
			}
		}
	}
	return all
}

// cacheConfigNumbers are the labels of vLLM's cache configuration that are read.
var cacheConfigNumbers = [...]struct {
	label string
	input input.Metric
}{
	{"block_size", input.KVCacheBlockSize},
	{"num_gpu_blocks", input.KVCacheBlocks},
	{"kv_cache_size_tokens", input.CacheConfigTokens},
}

// readCacheConfig reads the numbers in the labels of vLLM's cache configuration. It is for
// input that is not from our receiver.
func (c *Reader) readCacheConfig(metric pmetric.Metric) {
	var points pmetric.NumberDataPointSlice
	switch metric.Type() {
	case pmetric.MetricTypeGauge:
		points = metric.Gauge().DataPoints()
	case pmetric.MetricTypeSum:
		points = metric.Sum().DataPoints()
	default:
		return
	}
	for i := range points.Len() {
		point := points.At(i)
		if point.Flags().NoRecordedValue() {
			continue
		}
		if identity.Size(point.Attributes()) > maxPointBytes {
			c.report[TooLarge]++
			continue
		}
		engine := pcommon.NewMap()
		if value, ok := point.Attributes().Get("engine"); ok {
			engine.PutStr("engine", value.AsString())
		}
		for _, number := range cacheConfigNumbers {
			value, ok := point.Attributes().Get(number.label)
			if !ok {
				continue
			}
			parsed, err := strconv.ParseFloat(value.AsString(), 64)
			if err != nil || !finite(parsed) || parsed < 0 {
				continue // "None" means: not set
			}
			c.origin = origin{rank: rankWire}
			c.add(point.Timestamp(), engine, &input.Sample{Input: number.input, Value: parsed})
		}
		if hybrid(point.Attributes()) {
			c.origin = origin{rank: rankWire}
			c.add(point.Timestamp(), engine, &input.Sample{Input: input.CacheConfigHybrid, Value: 1})
		}
	}
}

// hybridLabels are numbers only where the model has layers with a state besides those
// with attention.
var hybridLabels = [...]string{"mamba_block_size", "mamba_page_size_padded"}

// hybrid reports whether the labels of the cache configuration show such a model. Its
// blocks have several sizes, of which block_size is one.
func hybrid(labels pcommon.Map) bool {
	for _, name := range hybridLabels {
		if value, ok := labels.Get(name); ok {
			if n, err := strconv.ParseFloat(value.AsString(), 64); err == nil && n > 0 {
				return true
			}
		}
	}
	return false
}
