package audit

import (
	"fmt"
	"maps"
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// Origin is what became of one family of a body.
type Origin struct {
	// Family is the name on the wire, Type its TYPE line; "unknown" without one.
	Family, Type string
	// Metric, Unit and Kind are of the metric that has its series; Metric is empty where it became none.
	Metric, Unit string
	Kind         catalog.Kind
	// Known is true where the catalogue has the metric.
	Known bool
	// Fates counts its lines.
	Fates map[Fate]int
}

// Mistyped reports whether the kind of the metric is not that of the TYPE line. A family without one
// can have any.
func (o *Origin) Mistyped() bool {
	return o.Metric != "" && o.Type != "unknown" && o.Kind != kindOf(o.Type)
}

// origins are those of the families of a body, in its order.
func (a *auditor) origins(fs *families) []Origin {
	var out []Origin
	for _, f := range fs.list {
		o := Origin{Family: f.name, Type: f.kind, Fates: map[Fate]int{}}
		for _, line := range f.lines() {
			o.Fates[a.fates.of[line]]++
		}
		for _, m := range a.want.metrics {
			if m.wire == f.name && m.got != nil {
				o.Metric, o.Unit, o.Kind, o.Known = m.got.name, m.got.unit, m.got.kind, names[m.got.name]
			}
		}
		out = append(out, o)
	}
	return out
}

// Page is a body as a server sent it.
type Page struct {
	Body        []byte
	ContentType string
}

// Bracketed compares the samples of a page with those of a page before and of one after it.
type Bracketed struct {
	// Equal and Within count the samples that are equal to one of the two, and those between them.
	Equal, Within int
	// Outside are the other ones: a gauge can rise and fall between two pages, a counter cannot.
	Outside []string
	// Absent are samples that both other pages have, Alone those that neither has.
	Absent, Alone []string
}

// Bracket compares a page with the pages before and after it.
func Bracket(before, page, after Page) (out Bracketed) {
	first, at, last := byKey(before), byKey(page), byKey(after)
	for _, key := range slices.Sorted(maps.Keys(at)) {
		v, counts := at[key].value, at[key].counts
		low, had := first[key]
		high, has := last[key]
		switch {
		case !had && !has:
			out.Alone = append(out.Alone, key)
		case had && v == low.value, has && v == high.value, v != v:
			out.Equal++
		case had && has && min(low.value, high.value) <= v && v <= max(low.value, high.value):
			out.Within++
		case !had && counts && v <= high.value: // It appeared.
			out.Within++
		default:
			what := "gauge"
			if counts {
				what = "counter"
			}
			out.Outside = append(out.Outside, fmt.Sprintf("%s: the %s is %s, before %s, after %s", key, what, number(v), number(low.value), number(high.value)))
		}
	}
	for key := range first {
		_, has := at[key]
		if _, still := last[key]; still && !has {
			out.Absent = append(out.Absent, key)
		}
	}
	slices.Sort(out.Absent)
	return out
}

// reading is a sample of a page; counts is true where it never falls.
type reading struct {
	value  float64
	counts bool
}

func byKey(page Page) map[string]reading {
	b := readBody(page.Body, page.ContentType)
	out := map[string]reading{}
	for i := range b.samples {
		s := &b.samples[i]
		p := locate(b, s.name)
		counts := p.role == roleBucket || p.role == roleCount || p.kind == "counter"
		out[s.name+labelKey(s.labels)] = reading{s.value, counts}
	}
	return out
}
