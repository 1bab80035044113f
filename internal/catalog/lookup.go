package catalog

import (
	"slices"
	"strings"
	"sync"
)

// Match is one way in which a family on the wire becomes a metric. Metric and Source
// point into the table: do not change them.
type Match struct {
	Metric *Metric
	Source *Source
	// Rank is the index of the source among the metric's sources: if a body has several
	// of them, the one with the highest rank wins.
	Rank int
}

// All returns every metric, sorted by name. The slice is the table itself: do not
// change it.
func All() []Metric { return metrics }

// ByName returns the metric with the canonical name.
func ByName(name string) (*Metric, bool) {
	i, found := slices.BinarySearchFunc(metrics, name, func(m Metric, name string) int {
		return strings.Compare(m.Name, name)
	})
	if !found {
		return nil, false
	}
	return &metrics[i], true
}

// IsServers reports whether a metric is what a vLLM server, a gateway or a router counts itself, and not one of its
// plug-ins.
func IsServers(name string) bool {
	return strings.HasPrefix(name, "vllm.") || strings.HasPrefix(name, "inference_gateway.") ||
		slices.ContainsFunc(Namespaces, func(ns Namespace) bool { return ns.Kind != "" && strings.HasPrefix(name, ns.Name) })
}

// Values returns the values that an attribute can have, sorted; nil if the catalogue does
// not list them. The slice is the table itself: do not change it.
func Values(attribute string) []string { return attributeValues[attribute] }

// BySource returns the metrics that a family may become, sorted by name; nil if the
// catalogue does not know the family. The family is written as in Source.Family. There
// are several matches if the family has different meanings in different versions
// (Source.Version) and for the info families (Source.Label).
func BySource(family string) []Match { return sources()[family] }

var sources = sync.OnceValue(func() map[string][]Match {
	index := make(map[string][]Match, len(metrics))
	for i := range metrics {
		metric := &metrics[i]
		for rank := range metric.Sources {
			source := &metric.Sources[rank]
			index[source.Family] = append(index[source.Family], Match{Metric: metric, Source: source, Rank: rank})
		}
	}
	return index
})
