package profile

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// choose returns the card that is meant.
func choose(cards []versioned, gpu, model string, tp int, dtype string) (versioned, error) {
	found := matching(cards, gpu, func(v versioned) string { return v.GPU })
	if len(found) == 0 {
		return versioned{}, fmt.Errorf("gpu: no %q: the file has %s", gpu, list(cards, func(v versioned) string { return v.GPU }))
	}
	of := found
	found = matching(found, model, func(v versioned) string { return v.Model })
	if len(found) == 0 {
		return versioned{}, fmt.Errorf("model: no %q on %q: the file has %s", model, gpu, list(of, func(v versioned) string { return v.GPU + " " + v.Model }))
	}
	if pairs := distinct(found, func(v versioned) string { return v.GPU + " " + v.Model }); len(pairs) > 1 {
		return versioned{}, fmt.Errorf("gpu and model: %q and %q are not unique: the file has %s; name one in full", gpu, model, strings.Join(pairs, ", "))
	}
	number := func(v versioned) string { return strconv.Itoa(v.TP) }
	if tp == 0 {
		if sizes := distinct(found, number); len(sizes) == 1 {
			tp = found[0].TP
		} else {
			tp = 1
		}
	}
	of = found
	found = slices.DeleteFunc(slices.Clone(found), func(v versioned) bool { return v.TP != tp })
	if len(found) == 0 {
		return versioned{}, fmt.Errorf("tp: no %d for %s %s: the file has %s", tp, of[0].GPU, of[0].Model, list(of, number))
	}
	kind := func(v versioned) string { return v.DType }
	if dtype == "" {
		dtype = "bf16"
		if kinds := distinct(found, kind); len(kinds) == 1 {
			dtype = kinds[0]
		}
	}
	of = found
	found = slices.DeleteFunc(slices.Clone(found), func(v versioned) bool { return !strings.EqualFold(v.DType, dtype) })
	if len(found) == 0 {
		return versioned{}, fmt.Errorf("dtype: no %q for %s %s at tp %d: the file has %s", dtype, of[0].GPU, of[0].Model, tp, list(of, kind))
	}
	return slices.MaxFunc(found, func(a, b versioned) int { return compareVersions(a.version, b.version) }), nil
}

// matching are the cards whose name has all wanted words; where one has these and no others,
// that one alone.
func matching(cards []versioned, wanted string, name func(versioned) string) []versioned {
	var found, exact []versioned
	for _, c := range cards {
		if engine.HasWords(name(c), wanted) {
			found = append(found, c)
			if engine.HasWords(wanted, name(c)) {
				exact = append(exact, c)
			}
		}
	}
	if len(exact) > 0 {
		return exact
	}
	return found
}

func distinct(cards []versioned, name func(versioned) string) []string {
	var out []string
	for _, c := range cards {
		if n := name(c); !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// listed is how many names an error has.
const listed = 40

func list(cards []versioned, name func(versioned) string) string {
	names := distinct(cards, name)
	if len(names) > listed {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:listed], ", "), len(names)-listed)
	}
	return strings.Join(names, ", ")
}

// compareVersions compares numbers between dots.
func compareVersions(a, b string) int {
	x, y := strings.Split(a, "."), strings.Split(b, ".")
	for i := range min(len(x), len(y)) {
		m, errM := strconv.Atoi(x[i])
		n, errN := strconv.Atoi(y[i])
		order := cmp.Compare(m, n)
		if errM != nil || errN != nil {
			order = cmp.Compare(x[i], y[i])
		}
		if order != 0 {
			return order
		}
	}
	return cmp.Compare(len(x), len(y))
}
