package audit

import (
	"slices"
	"strconv"
	"strings"
)

// family has all lines that one TYPE line applies to.
type family struct {
	// name is as in the text format: a counter's name ends in _total if its samples do.
	name string
	// kind is that of the TYPE line; unknown without one.
	kind, unit string
	series     []*series
	index      map[string]*series
}

// series is one label set of a family.
type series struct {
	labels []label
	// value, sum, count and created are nil if the body has no such line.
	value, sum, count, created *sample
	buckets, quantiles         []bucket
}

// bucket is a bucket of a histogram, or a quantile of a summary.
type bucket struct {
	bound  float64
	sample *sample
}

// lines returns all lines of a series except its "_created" line.
func (s *series) lines() []int {
	var out []int
	for _, single := range []*sample{s.value, s.sum, s.count} {
		if single != nil {
			out = append(out, single.line)
		}
	}
	for _, b := range slices.Concat(s.buckets, s.quantiles) {
		out = append(out, b.sample.line)
	}
	return out
}

// families are those of a body, in the order of the body.
type families struct {
	list  []*family
	names map[string]*family
	fates *fates
}

// place is the family and the role of a sample.
type place struct {
	family, kind, role, unit string
}

// The roles of a sample within its family.
const (
	roleValue    = "value"
	roleBucket   = "bucket"
	roleQuantile = "quantile"
	roleSum      = "sum"
	roleCount    = "count"
	roleCreated  = "created"
	roleNone     = "none"
)

// group assembles families from the samples of a body. It sets the fate of samples that fit
// no family or are repeated.
func group(b *body, fates *fates) *families {
	f := &families{names: map[string]*family{}, fates: fates}
	var created []*sample
	var owners [][]string
	for i := range b.samples {
		s := &b.samples[i]
		p := locate(b, s.name)
		switch p.role {
		case roleCreated:
			created = append(created, s)
			owners = append(owners, createdOwners(b, s.name))
		case roleNone:
			fates.set(s.line, BadLine)
		default:
			f.add(p, s)
		}
	}
	for i, s := range created {
		f.addCreated(s, owners[i])
	}
	return f
}

// bySuffix are the endings by which a sample belongs to a family of another
// name, with the types that have such samples.
var bySuffix = []struct {
	ending, role string
	kinds        []string
}{
	{"_bucket", roleBucket, []string{"histogram", "gaugehistogram"}},
	{"_sum", roleSum, []string{"histogram", "summary", "gaugehistogram"}},
	{"_count", roleCount, []string{"histogram", "summary", "gaugehistogram"}},
	{"_gsum", roleSum, []string{"gaugehistogram"}},
	{"_gcount", roleCount, []string{"gaugehistogram"}},
	{"_total", roleValue, []string{"counter"}},
	{"_info", roleValue, []string{"info"}},
}

// locate finds the TYPE line that applies to a sample: one with its name or with its name
// less a suffix; then the same with colons as underscores, which prometheus_client mixes in
// OpenMetrics. Of several TYPE lines for one name (a gauge x and a counter x_total are both
// x in OpenMetrics) the first that can have such a sample is used.
func locate(b *body, name string) place {
	if isCreated(b, name) {
		return place{role: roleCreated}
	}
	same := func(a, b string) bool { return a == b }
	if p, ok := explain(b, name, same); ok {
		return p
	}
	if p, ok := explain(b, name, sameButColons); ok {
		return p
	}
	return place{family: name, kind: "unknown", role: roleValue}
}

func sameButColons(a, b string) bool {
	return strings.ReplaceAll(a, ":", "_") == strings.ReplaceAll(b, ":", "_")
}

func explain(b *body, name string, same func(a, b string) bool) (place, bool) {
	var misfit *place
	for _, d := range b.types {
		if !same(d.name, name) {
			continue
		}
		p := place{family: d.name, kind: d.kind, role: roleValue, unit: b.units[d.name]}
		switch {
		case d.kind == "summary":
			p.role = roleQuantile
		case d.kind == "histogram", d.kind == "gaugehistogram":
			p.role = roleNone
		}
		if p.role != roleNone && (d.kind != "counter" || !b.openMetrics) {
			return p, true
		}
		if misfit == nil {
			misfit = &p
		}
	}
	for _, s := range bySuffix {
		base, ok := strings.CutSuffix(name, s.ending)
		if !ok {
			continue
		}
		for _, d := range b.types {
			if !same(d.name, base) || !slices.Contains(s.kinds, d.kind) {
				continue
			}
			p := place{family: d.name, kind: d.kind, role: s.role, unit: b.units[d.name]}
			if s.role == roleValue {
				p.family += s.ending
			}
			return p, true
		}
	}
	if misfit != nil {
		return *misfit, true
	}
	return place{}, false
}

// isCreated reports whether a name is that of creation times: "_created" behind the
// name of a counter (with or without its _total), histogram or summary.
func isCreated(b *body, name string) bool { return len(createdOwners(b, name)) > 0 }

// createdOwners returns the families whose creation time a "_created" sample can be.
func createdOwners(b *body, name string) []string {
	base, ok := strings.CutSuffix(name, "_created")
	if !ok {
		return nil
	}
	var owners []string
	for _, d := range b.types {
		switch d.kind {
		case "counter":
			if sameButColons(d.name, base) || sameButColons(d.name, base+"_total") {
				owners = append(owners, d.name, d.name+"_total")
			}
		case "histogram", "summary":
			if sameButColons(d.name, base) {
				owners = append(owners, d.name)
			}
		}
	}
	return owners
}

func (f *families) add(p place, s *sample) {
	labels := s.labels
	bound := 0.0
	if p.role == roleBucket || p.role == roleQuantile {
		name := map[string]string{roleBucket: "le", roleQuantile: "quantile"}[p.role]
		var err error
		bound, err = strconv.ParseFloat(get(labels, name), 64)
		if err != nil || bound != bound {
			f.fates.set(s.line, BadLine)
			return
		}
		labels = without(labels, name)
	}
	to := f.family(p).of(labels)
	first := true
	switch p.role {
	case roleValue:
		first = put(&to.value, s)
	case roleSum:
		first = put(&to.sum, s)
	case roleCount:
		first = put(&to.count, s)
	case roleBucket:
		to.buckets, first = insert(to.buckets, bucket{bound, s})
	case roleQuantile:
		to.quantiles, first = insert(to.quantiles, bucket{bound, s})
	}
	if !first {
		f.fates.set(s.line, Duplicate)
	}
}

// addCreated sets the creation time of the series that it belongs to. One without a series
// cannot be used.
func (f *families) addCreated(s *sample, owners []string) {
	for _, name := range owners {
		owner := f.names[name]
		if owner == nil {
			continue
		}
		if of := owner.index[labelKey(s.labels)]; of != nil {
			if put(&of.created, s) {
				f.fates.set(s.line, StartTime)
			} else {
				f.fates.set(s.line, Duplicate)
			}
			return
		}
	}
	f.fates.set(s.line, OrphanCreated)
}

func (f *families) family(p place) *family {
	if found := f.names[p.family]; found != nil {
		return found
	}
	made := &family{name: p.family, kind: p.kind, unit: p.unit, index: map[string]*series{}}
	f.names[p.family] = made
	f.list = append(f.list, made)
	return made
}

func (f *family) of(labels []label) *series {
	key := labelKey(labels)
	if found := f.index[key]; found != nil {
		return found
	}
	made := &series{labels: labels}
	f.index[key] = made
	f.series = append(f.series, made)
	return made
}

// put sets a value that is not yet set, and reports whether it did.
func put(at **sample, s *sample) bool {
	if *at != nil {
		return false
	}
	*at = s
	return true
}

// insert keeps buckets in ascending order, and of equal bounds the first.
func insert(list []bucket, b bucket) ([]bucket, bool) {
	at, found := slices.BinarySearchFunc(list, b.bound, func(e bucket, bound float64) int {
		switch {
		case e.bound < bound:
			return -1
		case e.bound > bound:
			return 1
		}
		return 0
	})
	if found {
		return list, false
	}
	return slices.Insert(list, at, b), true
}
