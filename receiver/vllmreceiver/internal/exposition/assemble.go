package exposition

import (
	"cmp"
	"slices"
	"strings"
)

// assembled is a layout and everything else that depends only on the structure of the body.
type assembled struct {
	layout  Layout
	dialect Dialect
	blocks  []*block
	// duplicates counts samples whose series an earlier line has.
	duplicates int
	// misfits are samples without a place in the layout, by ascending slot.
	misfits []misfit
}

type misfit struct {
	slot   int
	reason Reason
}

// assembler assembles families from the lines of a body. It is independent of the dialect,
// except for the names of bare families.
type assembler struct {
	declarations map[string]*declaration
	declared     []*declaration
	// loose holds the declarations by their names without colons.
	loose map[string]*declaration
	// places has the place of the samples of each name.
	places map[string]place
	byName map[string]*growing
	// families are in the order of their first sample.
	families []*growing
	order    int
	result   *assembled
}

// declaration collects the HELP, TYPE and UNIT lines of one name.
type declaration struct {
	name, help, unit string
	kind             Kind
	typed, helped    bool
	// order is the place of the first mention in the body.
	order    int
	families int
	// other is the declaration of a later TYPE line with another kind, and laterHelp the
	// HELP line before it. client_golang writes a gauge x and a counter x_total as two
	// OpenMetrics families x; only the second explains the sample x_total.
	other     *declaration
	laterHelp string
}

// growing is a family to which samples are still added.
type growing struct {
	family      Family
	declaration *declaration
	order       int
	// created marks a family that exists only to hold the "_created" samples of
	// the declaration's family.
	created bool
	// last is the series of the last sample, and index finds others by key once
	// there are many.
	last  int
	index map[labelSet]int
}

// place is where the samples of one name belong.
type place struct {
	family *growing
	role   role
}

type role uint8

const (
	roleValue role = iota
	roleBucket
	roleQuantile
	roleSum
	roleCount
	// roleNone is a name without a meaning for the family's kind, for example the name of a
	// histogram without a suffix.
	roleNone
)

// assemble makes the layout of a sequence of blocks. Slots are the samples'
// places in the body.
func assemble(blocks []*block, d Dialect) *assembled {
	a := &assembler{
		declarations: map[string]*declaration{},
		loose:        map[string]*declaration{},
		places:       map[string]place{},
		byName:       map[string]*growing{},
		result:       &assembled{dialect: d, blocks: slices.Clone(blocks)},
	}
	orders := make([]int, len(blocks))
	// All comments first: a TYPE line may follow the samples.
	for i, b := range blocks {
		for j := range b.metas {
			a.declare(&b.metas[j])
		}
		// The samples are added later; their places in the order are reserved.
		orders[i] = a.order
		a.order += len(b.samples)
	}
	slot := 0
	for i, b := range blocks {
		a.order = orders[i]
		for j := range b.samples {
			s := b.sample(j)
			a.add(&s, slot)
			a.order++
			slot++
		}
	}
	a.foldCreated()
	a.finish(slot, d)
	return a.result
}

// declare records a HELP, TYPE or UNIT line. The first one is used, as in Prometheus. Ray's
// agents repeat them.
func (a *assembler) declare(m *meta) {
	d := a.declarations[m.name]
	if d == nil {
		d = &declaration{name: m.name, order: a.order}
		a.declarations[m.name] = d
		a.declared = append(a.declared, d)
		a.order++
	}
	switch {
	case m.line == lineHelp && !d.helped:
		d.help, d.helped = m.text, true
	case m.line == lineHelp:
		d.laterHelp = m.text
	case m.line == lineUnit && d.unit == "":
		d.unit = m.text
	case m.line == lineType && !d.typed:
		d.kind, d.typed = m.kind, true
		if key := withoutColons(m.name); a.loose[key] == nil {
			a.loose[key] = d
		}
	case m.line == lineType && d.kind != m.kind && d.other == nil:
		d.other = &declaration{name: d.name, help: d.laterHelp, kind: m.kind, typed: true, order: a.order}
		a.order++
	}
}

func withoutColons(name string) string { return strings.ReplaceAll(name, ":", "_") }

// suffixes are the endings by which samples belong to a family of another name.
var suffixes = []struct {
	ending string
	kinds  []Kind
	role   role
}{
	{"_bucket", []Kind{KindHistogram, KindGaugeHistogram}, roleBucket},
	{"_sum", []Kind{KindHistogram, KindSummary, KindGaugeHistogram}, roleSum},
	{"_count", []Kind{KindHistogram, KindSummary, KindGaugeHistogram}, roleCount},
	{"_gsum", []Kind{KindGaugeHistogram}, roleSum},
	{"_gcount", []Kind{KindGaugeHistogram}, roleCount},
	{"_total", []Kind{KindCounter}, roleValue},
	{"_info", []Kind{KindInfo}, roleValue},
}

const (
	createdSuffix = "_created"
	totalSuffix   = "_total"
	infoSuffix    = "_info"
)

// hasCreated reports whether series of this kind have a creation time.
func hasCreated(kind Kind) bool {
	return kind == KindCounter || kind == KindHistogram || kind == KindSummary
}

// locate finds the family of a sample's name: the one declared by exactly this name, else
// the one whose kind explains the name's suffix, else the same with colons ignored, because
// prometheus_client since 0.23 writes OpenMetrics samples without the colons that its TYPE
// lines have. Without any, the name is a new untyped family.
func (a *assembler) locate(name string) place {
	if d := a.declarations[name]; d != nil && d.typed {
		return a.exact(d)
	}
	if p, ok := a.bySuffix(name, a.declarations); ok {
		return p
	}
	plain := withoutColons(name)
	if d := a.loose[plain]; d != nil {
		return a.exact(d)
	}
	if p, ok := a.bySuffix(plain, a.loose); ok {
		return p
	}
	return place{a.family(name, KindUntyped, a.declarations[name], false), roleValue}
}

func (a *assembler) exact(d *declaration) place {
	p := place{family: a.family(d.name, d.kind, d, false)}
	switch d.kind {
	case KindHistogram, KindGaugeHistogram:
		p.role = roleNone
	case KindSummary:
		p.role = roleQuantile
	}
	return p
}

func (a *assembler) bySuffix(name string, declared map[string]*declaration) (place, bool) {
	for i := range suffixes {
		s := &suffixes[i]
		base, ok := strings.CutSuffix(name, s.ending)
		if !ok {
			continue
		}
		d := declared[base]
		if d != nil && d.other != nil && s.role == roleValue && !slices.Contains(s.kinds, d.kind) {
			d = d.other
		}
		if d == nil || !d.typed || !slices.Contains(s.kinds, d.kind) {
			continue
		}
		family := d.name
		if s.role == roleValue {
			family += s.ending
		}
		return place{a.family(family, d.kind, d, false), s.role}, true
	}
	base, ok := strings.CutSuffix(name, createdSuffix)
	if !ok {
		return place{}, false
	}
	for _, base := range []string{base, base + totalSuffix} {
		if d := declared[base]; d != nil && d.typed && hasCreated(d.kind) {
			family := strings.TrimSuffix(d.name, totalSuffix)
			if d.kind != KindCounter {
				family = d.name
			}
			return place{a.family(family+createdSuffix, KindGauge, d, true), roleValue}, true
		}
	}
	return place{}, false
}

// family returns the growing family of a name, and creates it if it is missing.
func (a *assembler) family(name string, kind Kind, d *declaration, created bool) *growing {
	if g := a.byName[name]; g != nil {
		return g
	}
	g := &growing{declaration: d, order: a.order, created: created, last: -1}
	g.family = Family{Name: name, Kind: kind}
	if d != nil && !created {
		g.family.Help, g.family.Unit = d.help, d.unit
		g.order = min(g.order, d.order)
		d.families++
	}
	a.byName[name] = g
	a.families = append(a.families, g)
	return g
}

// add adds one sample to its series.
func (a *assembler) add(s *sample, slot int) {
	p, ok := a.places[s.name]
	if !ok {
		p = a.locate(s.name)
		a.places[s.name] = p
	}
	fits := true
	switch p.role {
	case roleNone:
		fits = false
	case roleBucket:
		upper, ok := bound(s.le)
		if fits = ok; ok {
			series := p.family.seriesOf(s.all(false, true))
			series.Buckets = append(series.Buckets, Bucket{UpperBound: upper, Slot: slot})
		}
	case roleQuantile:
		quantile, ok := bound(s.quantile)
		if fits = ok; ok {
			series := p.family.seriesOf(s.all(true, false))
			series.Quantiles = append(series.Quantiles, Quantile{Quantile: quantile, Slot: slot})
		}
	case roleSum:
		a.fill(&p.family.seriesOf(s.all(true, true)).Sum, slot)
	case roleCount:
		a.fill(&p.family.seriesOf(s.all(true, true)).Count, slot)
	default:
		a.fill(&p.family.seriesOf(s.all(true, true)).Value, slot)
	}
	if !fits {
		a.result.misfits = append(a.result.misfits, misfit{slot, ReasonWrongType})
	}
}

// fill sets a slot, or counts a duplicate if it is set already.
func (a *assembler) fill(at *int, slot int) {
	if *at != NoSlot {
		a.result.duplicates++
		return
	}
	*at = slot
}

// finish puts the families in the body's order and adds the bare ones.
func (a *assembler) finish(slots int, d Dialect) {
	for _, declared := range a.declared {
		if declared.typed && declared.families == 0 {
			a.bare(declared, d)
		}
	}
	// A declaration's families share its order; then their samples decide, whose
	// order the slice has.
	slices.SortStableFunc(a.families, func(x, y *growing) int { return cmp.Compare(x.order, y.order) })
	a.result.layout.Slots = slots
	a.result.layout.Families = make([]Family, len(a.families))
	for i, g := range a.families {
		// Layouts stay, so they have no room for more.
		g.family.Series = slices.Clone(g.family.Series)
		for j := range g.family.Series {
			a.result.duplicates += g.family.Series[j].sortBounds()
			g.family.Series[j].Buckets = slices.Clone(g.family.Series[j].Buckets)
		}
		a.result.layout.Families[i] = g.family
	}
	slices.SortFunc(a.result.misfits, func(x, y misfit) int { return cmp.Compare(x.slot, y.slot) })
}

// bare adds a family that has a TYPE line but no samples, under the name that its
// samples would give it.
func (a *assembler) bare(declared *declaration, d Dialect) {
	name := declared.name
	if d == DialectOpenMetrics {
		switch {
		case declared.kind == KindCounter && !strings.HasSuffix(name, totalSuffix):
			name += totalSuffix
		case declared.kind == KindInfo && !strings.HasSuffix(name, infoSuffix):
			name += infoSuffix
		}
	}
	if base, ok := strings.CutSuffix(name, createdSuffix); ok && declared.kind == KindGauge {
		for _, base := range []string{base, base + totalSuffix} {
			if parent := a.declarations[base]; parent != nil && parent.typed && hasCreated(parent.kind) {
				return
			}
		}
	}
	if a.byName[name] == nil {
		g := a.family(name, declared.kind, declared, false)
		g.order = declared.order
	}
}
