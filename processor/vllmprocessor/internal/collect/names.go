package collect

import (
	"strings"
	"sync"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
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
	for in := range input.NumMetrics {
		definition := in.Define()
		if definition.Name == "" {
			continue
		}
		if definition.Level != "" {
			addFamilies(definition.Level, func(family string, _ int) { add(family, in, rankLevel) })
			for _, name := range append(translations(definition.Level), definition.Level) {
				add(name, in, rankLevel)
			}
		}
		for _, older := range definition.Older {
			addFamilies(older, func(family string, _ int) { add(family, in, rankOlder) })
			for _, name := range append(translations(older), older) {
				add(name, in, rankOlder)
			}
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
	proof proof
	// known is true for an input.
	known       bool
	cacheConfig bool
	// process is true for the start of the process.
	process bool
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
	for _, name := range cacheConfigNames() {
		m := index[name]
		m.cacheConfig = true
		index[name] = m
	}
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
		for _, family := range spellings(source.Family) {
			add(family, rank)
			for _, suffix := range []string{"_total", "_seconds"} {
				if short, cut := strings.CutSuffix(family, suffix); cut {
					add(short, rank)
				}
			}
		}
	}
}

// spellings returns a family of the catalogue with each prefix that deployments use for
// vLLM's names.
func spellings(family string) []string {
	rest, ours := strings.CutPrefix(family, catalog.Prefixes[0])
	if !ours {
		return []string{family}
	}
	all := make([]string, len(catalog.Prefixes))
	for i, prefix := range catalog.Prefixes {
		all[i] = prefix + rest
	}
	return all
}

// cacheConfigNames includes the name without _info, which the Prometheus receiver gives
// to an OpenMetrics family of the type info.
var cacheConfigNames = sync.OnceValue(func() []string {
	return append(spellings(cacheConfigFamily), spellings(strings.TrimSuffix(cacheConfigFamily, "_info"))...)
})
