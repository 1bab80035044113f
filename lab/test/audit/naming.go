package audit

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// catalogued has the metrics that a family can become, by the family's name.
var catalogued = func() map[string][]ruling {
	rulings := map[string][]ruling{}
	for i := range catalog.All() {
		m := &catalog.All()[i]
		for rank, source := range m.Sources {
			if source.Label == "" {
				rulings[source.Family] = append(rulings[source.Family], ruling{m, source, rank})
			}
		}
	}
	return rulings
}()

// ruling is a metric that the catalogue has for a family. Of several families of a metric
// in one body, the one with the highest rank is the newest.
type ruling struct {
	metric *catalog.Metric
	source catalog.Source
	rank   int
}

// plainName replaces the deployment's prefix of a family's name by vLLM's own.
func plainName(family string) string {
	if strings.HasPrefix(family, "vllm_router_") {
		return family
	}
	for _, prefix := range catalog.Prefixes {
		if rest, ok := strings.CutPrefix(family, prefix); ok && rest != "" {
			return "vllm:" + rest
		}
	}
	return family
}

// rule finds the metric of a family. If a family has different meanings in different
// versions, the server's version decides. If that is unknown, a newer family of the same
// metric in the body decides; otherwise the marked metric is assumed.
func rule(f *family, fs *families, version string) (ruling, bool) {
	key := plainName(f.name)
	rulings := catalogued[key]
	if len(rulings) == 0 && f.kind == "counter" && !strings.HasSuffix(key, "_total") {
		rulings = catalogued[key+"_total"]
	}
	for _, r := range rulings {
		if !r.source.Version || within(version, r.source.Since, r.source.Until) {
			return r, true
		}
	}
	for _, r := range rulings {
		for _, newer := range r.metric.Sources[r.rank+1:] {
			if slices.ContainsFunc(fs.list, func(other *family) bool { return plainName(other.name) == newer.Family }) {
				return r, true
			}
		}
	}
	for _, r := range rulings {
		if r.source.Fallback {
			return r, true
		}
	}
	return ruling{}, false
}

// within reports whether a version is known and lies in [since, until).
func within(version, since, until string) bool {
	if version == "" {
		return false
	}
	return (since == "" || !older(version, since)) && (until == "" || older(version, until))
}

// older compares versions of up to three plain numbers.
func older(a, b string) bool {
	x, y := strings.Split(a, "."), strings.Split(b, ".")
	for i := range 3 {
		var m, n int
		if i < len(x) {
			m, _ = strconv.Atoi(x[i])
		}
		if i < len(y) {
			n, _ = strconv.Atoi(y[i])
		}
		if m != n {
			return m < n
		}
	}
	return false
}

// agrees reports whether a TYPE line agrees with the catalogue. Without one a
// single number may be a gauge or a counter.
func agrees(kind catalog.Kind, word string) bool {
	switch word {
	case "counter":
		return kind == catalog.KindSum
	case "gauge", "info", "stateset":
		return kind == catalog.KindGauge
	case "histogram":
		return kind == catalog.KindHistogram
	case "summary":
		return kind == catalog.KindSummary
	case "unknown":
		return kind == catalog.KindGauge || kind == catalog.KindSum
	}
	return false
}

// kindOf is the kind of a family that is not in the catalogue.
func kindOf(word string) catalog.Kind {
	switch word {
	case "counter":
		return catalog.KindSum
	case "histogram":
		return catalog.KindHistogram
	case "summary":
		return catalog.KindSummary
	}
	return catalog.KindGauge
}

// mechanical returns the name and unit, by steps 1 to 4 of docs/reference/naming.md, of a
// family that the catalogue does not have.
func mechanical(f *family) (name, unit string) {
	name = plainName(f.name)
	if f.kind == "counter" {
		name = strings.TrimSuffix(name, "_total")
	}
	for suffix, u := range map[string]string{"_seconds": "s", "_milliseconds": "ms", "_ms": "ms", "_bytes": "By"} {
		if rest, ok := strings.CutSuffix(name, suffix); ok && rest != "" {
			name, unit = rest, u
			break
		}
	}
	if unit == "" && f.unit != "" {
		unit = "{" + f.unit + "}"
		if u, ok := map[string]string{"seconds": "s", "bytes": "By", "ratio": "1"}[f.unit]; ok {
			unit = u
		}
	}
	if i := gatewayPrefix(name); i >= 0 {
		p := catalog.Gateway.Prefixes[i]
		return p.Name + name[len(p.Wire):], unit
	}
	for _, n := range catalog.Namespaces {
		if rest, ok := strings.CutPrefix(name, n.Wire); ok {
			return n.Name + rest, unit
		}
	}
	if rest, ok := strings.CutPrefix(name, "vllm:"); ok {
		for _, g := range catalog.Groups {
			if member, ok := strings.CutPrefix(rest, g); ok && member != "" {
				return "vllm." + g[:len(g)-1] + "." + member, unit
			}
		}
	}
	return strings.ReplaceAll(name, ":", "."), unit
}

// offByDefault reports whether families of this name are off.
func offByDefault(name string) bool {
	return slices.ContainsFunc(catalog.DisabledPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// reserved labels would make a managed backend reject the series.
var reserved = []string{"namespace", "location", "cluster", "job", "instance", "project_id"}

// rayOwn are the labels that Ray's agent adds to every series.
var rayOwn = []string{"Component", "NodeAddress", "SessionName", "Version"}

// attributed is a series with its attributes.
type attributed struct {
	*series
	attributes []label
}

// attributes returns the series of a family with their attributes. It sets the fate of the
// lines of a series that the body also has without a pid.
func attributes(f *family, ray bool, fates *fates) []attributed {
	all := make([]attributed, 0, len(f.series))
	twins := map[string]int{}
	noPid := map[string]bool{}
	for _, s := range f.series {
		key := labelKey(without(s.labels, "pid"))
		twins[key]++
		if get(s.labels, "pid") == "" {
			noPid[key] = true
		}
	}
	for _, s := range f.series {
		list := without(s.labels, "pid")
		if key := labelKey(list); get(s.labels, "pid") != "" && twins[key] > 1 {
			if noPid[key] {
				fates.setAll(s.lines(), Alias)
				continue
			}
			list = s.labels
		}
		all = append(all, attributed{s, list})
	}
	if ray {
		dropRayOwn(all)
	}
	for i := range all {
		if gatewayPrefix(f.name) >= 0 {
			all[i].attributes = gatewayLabels(all[i].attributes)
		}
		all[i].attributes = renamed(all[i].attributes)
	}
	return all
}

// dropRayOwn removes Ray's labels if the series remain distinct without them. A label in
// which two series differ stays on all.
func dropRayOwn(all []attributed) {
	drop := slices.Clone(rayOwn)
	for {
		first := map[string][]label{}
		telling := map[string]bool{}
		stripped := make([][]label, len(all))
		for i, a := range all {
			stripped[i] = without(a.attributes, drop...)
			if get(a.labels, "ReplicaId") != "" {
				stripped[i] = without(stripped[i], "WorkerId")
			}
			key := labelKey(stripped[i])
			other, seen := first[key]
			if !seen {
				first[key] = a.attributes
				continue
			}
			for _, name := range drop {
				if get(other, name) != get(a.attributes, name) {
					telling[name] = true
				}
			}
		}
		if len(telling) == 0 {
			for i := range all {
				all[i].attributes = stripped[i]
			}
			return
		}
		drop = slices.DeleteFunc(drop, func(name string) bool { return telling[name] })
	}
}

// renamed renames reserved and imitated labels.
func renamed(list []label) []label {
	out := slices.Clone(list)
	for i, l := range list {
		if slices.Contains(reserved, l.name) {
			out[i].name = "exported_" + l.name
		}
		if alias, ok := catalog.AttributeAliases[l.name]; ok && get(list, alias) == "" {
			out[i].name = alias
		}
	}
	sortLabels(out)
	return out
}

// dottedParents yields "a" and "a.b" for "a.b.c".
func dottedParents(name string) []string {
	var out []string
	for i := range len(name) {
		if name[i] == '.' {
			out = append(out, name[:i])
		}
	}
	return out
}

// names are the names of the catalogue.
var names = func() map[string]bool {
	all := map[string]bool{}
	for _, m := range catalog.All() {
		all[m.Name] = true
	}
	return all
}()

// nested reports whether one of the names is a dotted prefix of name, or name of it.
func nested(name string, others map[string]bool) bool {
	for _, parent := range dottedParents(name) {
		if others[parent] {
			return true
		}
	}
	return slices.ContainsFunc(slices.Collect(maps.Keys(others)), func(other string) bool {
		return strings.HasPrefix(other, name+".")
	})
}
