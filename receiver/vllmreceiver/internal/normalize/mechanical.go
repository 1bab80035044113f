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

// unitSuffixes are the unit words that a name ends in, by rule 1 of the naming
// rule. Longer ones first.
var unitSuffixes = []struct{ suffix, unit string }{
	{"_milliseconds", "ms"},
	{"_seconds", "s"},
	{"_bytes", "By"},
}

// mechanicalName returns the name and unit of a family that the catalogue does
// not know, by the mechanical part of the naming rule: colons become dots, a
// counter loses "_total", a unit suffix becomes the unit, and a known group of
// families gets its dot.
func mechanicalName(key string, kind exposition.Kind) (name, unit string) {
	name = withoutTotal(key, kind)
	for _, u := range unitSuffixes {
		if rest, ok := strings.CutSuffix(name, u.suffix); ok && rest != "" {
			name, unit = rest, u.unit
			break
		}
	}
	return presentable(dotted(name)), unit
}

// withoutTotal strips a counter's suffix, unless nothing would be left.
func withoutTotal(key string, kind exposition.Kind) string {
	if rest, ok := strings.CutSuffix(key, "_total"); ok && rest != "" && kind == exposition.KindCounter {
		return rest
	}
	return key
}

// dotted puts the dots behind namespaces and groups.
func dotted(name string) string {
	for _, ns := range catalog.Namespaces {
		if rest, ok := strings.CutPrefix(name, ns.Wire); ok && rest != "" {
			return ns.Name + strings.ReplaceAll(rest, ":", ".")
		}
	}
	if rest, ok := cutVLLM(name); ok {
		for _, group := range catalog.Groups {
			if member, ok := strings.CutPrefix(rest, group); ok && member != "" {
				name = "vllm." + strings.TrimSuffix(group, "_") + "." + member
				break
			}
		}
	}
	return strings.ReplaceAll(name, ":", ".")
}

// maxDots is how many dots a name may have. More come only from a hostile body,
// and each costs time when names are compared.
const maxDots = 16

// presentable makes a name without empty parts, which backends that turn dots
// into objects refuse.
func presentable(name string) string {
	if strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".") || strings.Contains(name, "..") ||
		strings.Count(name, ".") > maxDots {
		return strings.ReplaceAll(name, ".", "_")
	}
	return name
}

// claim is a family that needs a name beside those of the catalogue.
type claim struct {
	family *exposition.Family
	// metric is what the family would be but for its TYPE; nil if unknown.
	metric *catalog.Metric
	key    string
	// gateway is true for a gateway's family, whose key is the name to be, router
	// for one of the production stack's router.
	gateway, router bool
	name, unit      string
}

// settle gives each claim its name. It goes by the families' names and not by
// their order in the body, which differs between processes and must not rename
// anything. Unknown families come first: their names follow from the rule, those
// beside a catalogue entry are only made up.
func settle(claims []*claim) {
	n := newNamer()
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
		flat, whole := flatName(c.key, kind), presentable(strings.ReplaceAll(withoutTotal(c.key, kind), ":", "."))
		if c.router {
			c.name, flat, whole = routerName(c.name), routerName(flat), routerName(whole)
		}
		switch {
		case c.metric != nil:
			c.name = n.apart(c.metric.Name, kind)
		case n.free(c.name):
		case n.free(flat):
			c.name = flat
		default:
			c.name = n.apart(whole, kind)
		}
		n.take(c.name)
	}
}

// flatName keeps the unit and has a dot behind the namespace only.
func flatName(key string, kind exposition.Kind) string {
	namespace, rest, ok := strings.Cut(withoutTotal(key, kind), ":")
	if !ok {
		return namespace
	}
	return presentable(namespace + "." + strings.ReplaceAll(rest, ":", "_"))
}

// namer hands out names that collide neither with the catalogue nor with each
// other, and of which none is a dotted prefix of another (rule 3).
type namer struct {
	used    map[string]bool
	parents map[string]bool
	// next is the number that the next claimant of a name gets at its end.
	next map[string]int
}

func newNamer() *namer {
	return &namer{used: map[string]bool{}, parents: map[string]bool{}, next: map[string]int{}}
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

// apart returns a name beside one that is taken: the same with the kind's name
// at its end, and a number where that is taken too. Where a part of it before a
// dot is itself a metric, which rule 3 forbids, its dots become underscores.
func (n *namer) apart(name string, kind exposition.Kind) string {
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

// free tells whether a name is unused and, by rule 3, neither a dotted prefix
// of another nor an extension of one.
func (n *namer) free(name string) bool {
	if _, known := catalog.ByName(name); known || n.used[name] {
		return false
	}
	if n.parents[name] || catalogueParents()[name] {
		return false
	}
	return !n.hasParent(name)
}

// hasParent tells whether a part of a name before a dot is a metric itself.
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
