package querylint

import (
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/otlptranslator"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/spelling"
	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// part is what a name stands for within a metric.
type part uint8

const (
	partValue  part = iota // A gauge, or a quantile of a summary.
	partTotal              // A counter.
	partBucket             // The buckets of a histogram.
	partSum                // The sum of a histogram or summary.
	partCount              // The count of a histogram or summary.
	partWhole              // A native histogram.
)

// entry is what a name means.
type entry struct {
	metric *catalog.Metric
	part   part
	// source is set for a name on the wire.
	source *catalog.Source
	// spelling is the one in which the name is right.
	spelling Spelling
}

// names are the names of all metrics in one spelling.
type names struct {
	spelling Spelling
	byName   map[string]entry
	// bare are the names of histograms without part.
	bare map[string]*catalog.Metric
}

var allNames = sync.OnceValue(func() map[Spelling]*names {
	all := map[Spelling]*names{}
	for _, s := range []Spelling{Suffixed, Unsuffixed, Dotted, Wire} {
		n := &names{spelling: s, byName: map[string]entry{}, bare: map[string]*catalog.Metric{}}
		metrics := catalog.All()
		for i := range metrics {
			n.add(&metrics[i])
		}
		for i := range routerMetrics {
			if s == Wire {
				n.addParts(routerMetrics[i].Name, &routerMetrics[i], nil)
			}
		}
		all[s] = n
	}
	return all
})

func namesOf(s Spelling) *names {
	if n, known := allNames()[s]; known {
		return n
	}
	return allNames()[Suffixed]
}

func (n *names) add(m *catalog.Metric) {
	if n.spelling == Wire {
		for i := range m.Sources {
			for _, family := range withPrefixes(m.Sources[i].Family) {
				n.addParts(family, m, &m.Sources[i])
			}
		}
		if len(m.Sources) > 0 {
			return
		}
		// With "naming: wire" of the receiver, what the project itself computes keeps its name.
	}
	to := spelling.Spelling(n.spelling)
	if n.spelling == Wire {
		to = spelling.Suffixed
	}
	name, err := spelling.Name(m, to)
	if err != nil {
		return
	}
	n.addParts(name, m, nil)
}

// withPrefixes returns a family with each prefix that deployments use.
func withPrefixes(family string) []string {
	rest, ours := strings.CutPrefix(family, catalog.Prefixes[0])
	if !ours {
		return []string{family}
	}
	all := make([]string, 0, len(catalog.Prefixes))
	for _, prefix := range catalog.Prefixes {
		all = append(all, prefix+rest)
	}
	return all
}

func (n *names) addParts(name string, m *catalog.Metric, source *catalog.Source) {
	add := func(name string, p part) {
		// A family with two meanings keeps the first; an entry of the newest version wins.
		if before, known := n.byName[name]; known && (before.source == nil || before.source.Until == "") {
			return
		}
		n.byName[name] = entry{metric: m, part: p, source: source, spelling: n.spelling}
	}
	if source != nil && source.Label != "" {
		// An info family: its value is always 1.
		add(name, partValue)
		return
	}
	switch m.Kind {
	case catalog.KindGauge:
		add(name, partValue)
	case catalog.KindSum:
		add(name, partTotal)
	case catalog.KindHistogram:
		n.bare[name] = m
		add(name+"_bucket", partBucket)
		add(name+"_sum", partSum)
		add(name+"_count", partCount)
	case catalog.KindSummary:
		add(name, partValue)
		add(name+"_sum", partSum)
		add(name+"_count", partCount)
	}
}

// prefixOf returns the prefix of a deployment that a name on the wire has.
func prefixOf(name string) string {
	longest := catalog.Prefixes[0]
	for _, prefix := range catalog.Prefixes {
		if strings.HasPrefix(name, prefix) {
			longest = prefix
		}
	}
	return longest
}

// infoFamily reports whether a name is that of a family whose facts are in its labels.
func infoFamily(name string) bool {
	return slices.ContainsFunc(catalog.InfoFamilies, func(f catalog.InfoFamily) bool {
		return slices.Contains(withPrefixes(f.Family), name)
	})
}

// write returns the name of a part of a metric in this spelling.
func (n *names) write(m *catalog.Metric, p part) string {
	best := ""
	for name, e := range n.byName {
		if e.metric != m || e.part != p {
			continue
		}
		if n.spelling == Wire && len(m.Sources) > 0 {
			newest := m.Sources[len(m.Sources)-1].Family
			if !strings.HasPrefix(name, newest) {
				continue
			}
		}
		if best == "" || len(name) < len(best) || len(name) == len(best) && name < best {
			best = name
		}
	}
	return best
}

// mostEdits is the number of wrong characters up to which a name counts as misspelt. With more, it is
// rather the name of something else; a short name has fewer.
const mostEdits = 3

// nearest returns the name that is most like the given one, and "" if none is.
func (l *Linter) nearest(name string) string {
	best, distance := "", min(mostEdits, len(name)/6)
	for _, all := range []iter.Seq[string]{maps.Keys(l.names.byName), maps.Keys(l.recorded)} {
		for candidate := range all {
			if abs(len(candidate)-len(name)) > distance || strings.HasSuffix(candidate, "_total") != strings.HasSuffix(name, "_total") {
				continue
			}
			d := catalog.EditDistance(name, candidate)
			if d < distance || d == distance && (best == "" || candidate < best) {
				best, distance = candidate, d
			}
		}
	}
	return best
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func abs(n int) int { return max(n, -n) }

// label spells the name of an attribute.
func (s Spelling) label(attribute string) string {
	if s == Dotted {
		return attribute
	}
	namer := otlptranslator.LabelNamer{}
	name, err := namer.Build(attribute)
	if err != nil {
		return attribute
	}
	return name
}
