package settings

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// removed are settings of 0.2.0 that are constants now, by their last name.
var removed = []string{
	"name_length", "label_name_length", "label_value_length", "operation_name", "min_count",
	"lock_timeout", "watch_interval", "max_files",
}

// Unknown says that a name is unknown, and which of those that are known it may mean.
func Unknown(name string, known []string) string {
	if slices.Contains(removed, name) {
		return "is not a setting any more: its default always applies; remove it"
	}
	switch nearest := Nearest(name, known); len(nearest) {
	case 0:
		return "is unknown; docs/reference/configuration.md has all settings"
	case 1:
		return "is unknown; did you mean " + nearest[0] + "?"
	default:
		last := len(nearest) - 1
		return "is unknown; did you mean " + strings.Join(nearest[:last], ", ") + " or " + nearest[last] + "?"
	}
}

// most is how many names a message proposes.
const most = 3

// Nearest returns the most similar names, at most three; none where all are different.
func Nearest(name string, known []string) []string {
	known = slices.SortedFunc(slices.Values(known), func(a, b string) int {
		return cmp.Or(distance(name, a)-distance(name, b), strings.Compare(a, b))
	})
	for i, k := range known {
		if i == most || 2*distance(name, k) > len(name) || distance(name, k) > distance(name, known[0]) {
			return known[:i]
		}
	}
	return known
}

// distance is how different two names are. A word of a name can stand for it.
func distance(a, b string) int {
	best := catalog.EditDistance(a, b)
	for _, word := range strings.FieldsFunc(a, isSeparator) {
		for _, other := range strings.FieldsFunc(b, isSeparator) {
			if min(len(word), len(other)) >= shortWord {
				best = min(best, 2+catalog.EditDistance(word, other))
			}
		}
	}
	return best
}

// shortWord is the least length of a word that says something by itself.
const shortWord = 5

func isSeparator(r rune) bool { return r == '_' || r == '.' || r == '-' }

// Keys returns the keys of a struct by their tags; none of another type.
func Keys(t reflect.Type, tag string) []string {
	if t == nil || inner(t).Kind() != reflect.Struct {
		return nil
	}
	return slices.Sorted(maps.Keys(fieldsOf(inner(t), tag)))
}
