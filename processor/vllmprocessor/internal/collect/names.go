package collect

import (
	"slices"
	"strings"
	"sync"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// named is what a metric's name leads to.
type named struct {
	input Input
	// rank decides between several names of one input in one batch, as between
	// an old family and the new one beside it: the highest counts.
	rank int
	// older is true for a name that can stand for the input's older metric.
	older bool
}

// Ranks of the names of one input, from the bottom: older metrics of the
// catalogue, the families of the wire from the oldest on, the catalogue's name.
const (
	rankOlder     = 0
	rankWire      = 1
	rankCanonical = 1000
)

// cacheConfigFamily is the info metric whose labels hold the capacity of the KV
// cache. Our receiver turns the labels into metrics; others pass it on.
const cacheConfigFamily = "vllm:cache_config_info"

// inputs maps every name under which an input can arrive: the catalogue's, and
// each family of the wire with any prefix of a deployment, also without the
// suffix that some receivers and translators cut off.
var inputs = sync.OnceValue(func() map[string]named {
	index := map[string]named{}
	add := func(name string, in Input, rank int) {
		known, taken := index[name]
		if !taken || known.rank < rank {
			index[name] = named{in, rank, rank == rankOlder || (taken && known.older)}
		}
	}
	for in := range NumInputs {
		definition := in.Define()
		if definition.Name == "" {
			continue
		}
		for _, older := range definition.Older {
			addFamilies(older, func(family string, _ int) { add(family, in, rankOlder) })
			add(older, in, rankOlder)
		}
		addFamilies(definition.Name, func(family string, rank int) { add(family, in, rankWire+rank) })
		add(definition.Name, in, rankCanonical)
	}
	return index
})

// addFamilies calls add for each spelling of the families of a metric. Families
// that mean the metric only in some versions are left to the lowest rank.
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

// spellings returns a family of the catalogue with each prefix that deployments
// put before vLLM's names.
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

var cacheConfigNames = sync.OnceValue(func() []string { return spellings(cacheConfigFamily) })

// lookUp returns the input that a metric's name means.
func lookUp(name string) (named, bool) {
	n, known := inputs()[name]
	return n, known
}

func isCacheConfig(name string) bool { return slices.Contains(cacheConfigNames(), name) }
