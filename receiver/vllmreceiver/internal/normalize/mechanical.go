package normalize

import (
	"cmp"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/exposition"
)

// unitSuffixes are the units at the end of a name, by rule 1 of the naming rule. Longer
// suffixes are first.
var unitSuffixes = []struct{ suffix, unit string }{
	{"_milliseconds", "ms"},
	{"_seconds", "s"},
	{"_bytes", "By"},
	{"_ms", "ms"},
}

// mechanicalName returns the name and unit of an unknown family by rule 1: colons
// become dots, "_total" of a counter and the suffix of a unit are removed, and a known
// group of families is separated by a dot.
func mechanicalName(key string, kind exposition.Kind) (name, unit string) {
	name = withoutTotal(key, kind)
	for _, u := range unitSuffixes {
		if rest, ok := strings.CutSuffix(name, u.suffix); ok && rest != "" {
			name, unit = rest, u.unit
			break
		}
	}
	return withoutEmptyParts(dotted(name)), unit
}

// withoutTotal removes the suffix of a counter, unless the rest would be empty.
func withoutTotal(key string, kind exposition.Kind) string {
	if rest, ok := strings.CutSuffix(key, "_total"); ok && rest != "" && kind == exposition.KindCounter {
		return rest
	}
	return key
}

// dotted adds the dots after namespaces and groups.
func dotted(name string) string {
	ns := namespaceOf(name)
	rest, isVLLM := strings.CutPrefix(name, "vllm:")
	switch {
	case ns != nil && ns.Kind == string(KindRouter):
		// A router has families of vLLM.
		name = ns.Name + grouped(name[len(ns.Wire):])
	case ns != nil:
		name = ns.Name + name[len(ns.Wire):]
	case isVLLM:
		name = "vllm." + grouped(rest)
	}
	return strings.ReplaceAll(name, ":", ".")
}

// grouped adds the dot after a group of vLLM's families.
func grouped(rest string) string {
	for _, group := range catalog.Groups {
		if member, ok := strings.CutPrefix(rest, group); ok && member != "" {
			return strings.TrimSuffix(group, "_") + "." + member
		}
	}
	return rest
}

// namespaceOf returns the namespace of a family's name; nil if it has none.
func namespaceOf(name string) *catalog.Namespace {
	i := slices.IndexFunc(catalog.Namespaces, func(ns catalog.Namespace) bool {
		return len(name) > len(ns.Wire) && strings.HasPrefix(name, ns.Wire)
	})
	if i < 0 {
		return nil
	}
	return &catalog.Namespaces[i]
}

// maxDots is how many dots a name may have. Only a hostile body has more, and each dot
// takes time when names are compared.
const maxDots = 16

// withoutEmptyParts replaces the dots of a name with underscores if a part between
// them is empty: backends that turn dots into objects reject such a name.
func withoutEmptyParts(name string) string {
	if strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".") || strings.Contains(name, "..") ||
		strings.Count(name, ".") > maxDots {
		return strings.ReplaceAll(name, ".", "_")
	}
	return name
}

// claim is a family that does not get a name of the catalogue.
type claim struct {
	family *exposition.Family
	// metric is the metric that has this family's name and another kind; nil if the
	// catalogue does not have the name.
	metric *catalog.Metric
	key    string
	// gateway is true for a family of an endpoint picker, whose key is already the name.
	gateway    bool
	name, unit string
}

// assignNames gives each claim its name, in the order of the families' names. The order
// in the body differs between processes and must not change a name. Unknown families
// are first, because the rule names them; families that contradict the catalogue take
// names that are left.
func assignNames(claims []*claim) {
	n := &namer{used: map[string]bool{}, parents: map[string]bool{}, next: map[string]int{}}
	sorted := slices.Clone(claims)
	slices.SortFunc(sorted, func(a, b *claim) int {
		if known := (a.metric != nil); known != (b.metric != nil) {
			if known {
				return 1
			}
			return -1
		}
		return cmp.Compare(a.family.Name, b.family.Name)
	})
	for _, c := range sorted {
		kind := c.family.Kind
		c.name, c.unit = mechanicalName(c.key, kind)
		flat, whole := flatName(c.key, kind), withoutEmptyParts(strings.ReplaceAll(withoutTotal(c.key, kind), ":", "."))
		switch {
		case c.metric != nil:
			c.name = n.distinct(c.metric.Name, kind)
		case n.free(c.name):
		case n.free(flat):
			c.name = flat
		default:
			c.name = n.distinct(whole, kind)
		}
		n.take(c.name)
	}
}

// flatName returns a name with its unit, and with a dot after the namespace only.
func flatName(key string, kind exposition.Kind) string {
	namespace, rest, ok := strings.Cut(withoutTotal(key, kind), ":")
	if !ok {
		return namespace
	}
	return withoutEmptyParts(namespace + "." + strings.ReplaceAll(rest, ":", "_"))
}

// namer assigns names that differ from those of the catalogue and from each other. No
// name is a dotted prefix of another (rule 3).
type namer struct {
	used    map[string]bool
	parents map[string]bool
	// next counts the numbers that were appended to a name.
	next map[string]int
}

// catalogueParents are the dotted prefixes of all names in the catalogue.
var catalogueParents = sync.OnceValue(func() map[string]bool {
	parents := map[string]bool{}
	for _, m := range catalog.All() {
		for parent := range dottedPrefixes(m.Name) {
			parents[parent] = true
		}
	}
	return parents
})

// dottedPrefixes yields "a" and "a.b" for "a.b.c".
func dottedPrefixes(name string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range len(name) {
			if name[i] == '.' && !yield(name[:i]) {
				return
			}
		}
	}
}

// distinct returns a free name that resembles the given one: it appends the kind, and a
// number if that name is in use too. If a metric is a dotted prefix of the name, which
// rule 3 forbids, the dots become underscores.
func (n *namer) distinct(name string, kind exposition.Kind) string {
	if n.hasParent(name) {
		name = strings.ReplaceAll(name, ".", "_")
	}
	if n.free(name) {
		return name
	}
	name += "_" + kind.String()
	numbered := name
	for !n.free(numbered) {
		n.next[name]++
		numbered = name + "_" + strconv.Itoa(n.next[name]+1)
	}
	return numbered
}

// free reports whether a name is unused and, by rule 3, neither a dotted prefix of
// another name nor the reverse.
func (n *namer) free(name string) bool {
	if _, known := catalog.ByName(name); known || n.used[name] {
		return false
	}
	if n.parents[name] || catalogueParents()[name] {
		return false
	}
	return !n.hasParent(name)
}

// hasParent reports whether a metric is a dotted prefix of a name.
func (n *namer) hasParent(name string) bool {
	for parent := range dottedPrefixes(name) {
		if _, known := catalog.ByName(parent); known || n.used[parent] {
			return true
		}
	}
	return false
}

// take marks a name as used.
func (n *namer) take(name string) {
	n.used[name] = true
	for parent := range dottedPrefixes(name) {
		n.parents[parent] = true
	}
}
