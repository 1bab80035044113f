package audit

import (
	"math"
	"slices"
	"strings"

	"github.com/prometheus/prometheus/model/exemplar"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// metric is the expected metric of a family.
type metric struct {
	// name is empty if the rule allows any free name; the unit is then unused.
	name, unit string
	kind       catalog.Kind
	// wire is the family's name, for violations.
	wire   string
	points []*point
	// got is the emitted metric that it was compared with.
	got *emittedMetric
}

// point is the expected point of a series.
type point struct {
	attributes []label
	key        string
	lines      []int
	// value is that of a gauge or counter.
	value float64
	// count and sum are those of a histogram or summary; sum may be NaN, and is nil if the
	// body has none.
	count float64
	sum   *sample
	// buckets are cumulative; the last bound of a histogram is +Inf.
	buckets, quantiles []bucket
	created            *sample
	exemplars          []*exemplar.Exemplar
}

// expectation is everything that is expected of one body.
type expectation struct {
	metrics []*metric
	// resource are the attributes from info families.
	resource []label
	// processStart is process_start_time_seconds, 0 without it.
	processStart float64
	ray          bool
}

// winner is the newest family of a metric in a body.
type winner struct {
	ruling
	family *family
}

// expect returns what must be emitted for the families. It sets the fate of every line
// except those that must be found in the points.
func expect(fs *families, s Scrape, fates *fates, now float64) *expectation {
	e := &expectation{}
	for _, f := range fs.list {
		e.ray = e.ray || strings.HasPrefix(f.name, "ray_")
		if f.name == "process_start_time_seconds" && f.series[0].value != nil {
			e.processStart = f.series[0].value.value
		}
	}
	if e.ray {
		// The start of the agent is not that of the servers behind it.
		e.processStart = 0
	}
	if s.Wire {
		e.wire(fs, fates)
	} else {
		e.canonical(fs, s, fates, now)
	}
	return e
}

func (e *expectation) canonical(fs *families, s Scrape, fates *fates, now float64) {
	var order []*catalog.Metric
	winners := map[*catalog.Metric]winner{}
	var free []*family
	router := isRouters(fs)
	for _, f := range fs.list {
		if name, unit, ok := routers(f); router && ok {
			kind := kindOf(f.kind)
			e.metrics = append(e.metrics, &metric{name: name, unit: unit, kind: kind, wire: f.name, points: points(f, kind, name, false, e.ray, fates)})
			continue
		}
		if info := infoFamily(f); info != nil {
			fates.setAll(f.lines(), Info)
			e.info(info, f, now)
			continue
		}
		if f.kind == "gaugehistogram" {
			fates.setAll(f.lines(), Unsupported)
			continue
		}
		r, ok := rule(f, fs, s.Version)
		switch {
		case e.ray && f.kind == "gauge" && fs.names[f.name+"_total"] != nil:
			fates.setAll(f.lines(), TypeConflict)
		case !ok:
			free = append(free, f)
		case !agrees(r.metric.Kind, f.kind):
			if !r.metric.In(catalog.Standard) {
				fates.setAll(f.lines(), Disabled)
				continue
			}
			e.metrics = append(e.metrics, &metric{wire: f.name, kind: kindOf(f.kind), points: points(f, kindOf(f.kind), "", false, e.ray, fates)})
		default:
			old, taken := winners[r.metric]
			if !taken {
				order = append(order, r.metric)
			}
			if taken && !newer(r, f, old) {
				fates.setAll(f.lines(), Alias)
				continue
			}
			if taken {
				fates.setAll(old.family.lines(), Alias)
			}
			winners[r.metric] = winner{r, f}
		}
	}
	used := map[string]bool{}
	for _, m := range order {
		used[m.Name] = true
		f := winners[m].family
		if !m.In(catalog.Standard) || offByDefault(f.name) && (isGateways(fs) || router) {
			fates.setAll(f.lines(), Disabled)
			continue
		}
		e.metrics = append(e.metrics, &metric{
			name: m.Name, unit: m.Unit, kind: m.Kind, wire: f.name, points: points(f, m.Kind, m.Name, m.Sentinel, e.ray, fates),
		})
	}
	e.hide(fates)
	claims := map[string]int{}
	for _, f := range free {
		name, _ := mechanical(f)
		claims[name]++
	}
	for _, f := range free {
		e.unknown(f, used, claims, fates)
	}
}

// hide leaves out the points that are 0 because the server does not use what they count.
func (e *expectation) hide(fates *fates) {
	used := map[string]bool{}
	for _, m := range e.metrics {
		for _, p := range m.points {
			used[m.name+p.key] = p.value != 0
		}
	}
	for _, m := range e.metrics {
		known, ok := catalog.ByName(m.name)
		if !ok || known.HideZero == "" {
			continue
		}
		m.points = slices.DeleteFunc(m.points, func(p *point) bool {
			always := slices.ContainsFunc(p.attributes, func(l label) bool { return l.value == known.ZeroShown })
			if always || used[m.name+p.key] || used[known.HideZero+p.key] {
				return false
			}
			fates.setAll(p.lines, Unused)
			return true
		})
	}
}

// isGateways reports whether a program of a gateway wrote a body.
func isGateways(fs *families) bool {
	return slices.ContainsFunc(fs.list, func(f *family) bool { return gatewayPrefix(f.name) >= 0 })
}

// newer reports whether a family replaces the one so far: by its rank, or, with equal
// ranks, because it has no pid.
func newer(r ruling, f *family, old winner) bool {
	return r.rank > old.rank || r.rank == old.rank && hasPid(old.family) && !hasPid(f)
}

func hasPid(f *family) bool {
	return slices.ContainsFunc(f.series, func(s *series) bool { return get(s.labels, "pid") != "" })
}

// unknown expects a family that the catalogue lacks under its mechanical name, or under a
// free one if another family claims that name too or the names would nest.
func (e *expectation) unknown(f *family, used map[string]bool, claims map[string]int, fates *fates) {
	if offByDefault(f.name) {
		fates.setAll(f.lines(), Disabled)
		return
	}
	m := &metric{wire: f.name, kind: kindOf(f.kind), points: points(f, kindOf(f.kind), "", false, e.ray, fates)}
	name, unit := mechanical(f)
	if claims[name] == 1 && !names[name] && !used[name] && !nested(name, names) && !nested(name, used) {
		m.name, m.unit = name, unit
		used[name] = true
	}
	e.metrics = append(e.metrics, m)
}

// wire keeps names and labels.
func (e *expectation) wire(fs *families, fates *fates) {
	for _, f := range fs.list {
		off := offByDefault(f.name)
		if r := catalogued[plainName(f.name)]; len(r) > 0 {
			off = off && !r[0].metric.In(catalog.Standard)
		}
		switch {
		case f.kind == "gaugehistogram":
			fates.setAll(f.lines(), Unsupported)
		case off:
			fates.setAll(f.lines(), Disabled)
		default:
			m := &metric{name: f.name, wire: f.name, kind: kindOf(f.kind)}
			for _, s := range f.series {
				if p := asPoint(attributed{s, s.labels}, m.kind, false, fates); p != nil {
					m.points = append(m.points, p)
				}
			}
			e.metrics = append(e.metrics, m)
		}
	}
}

// lines returns all lines of a family except its "_created" lines.
func (f *family) lines() []int {
	var out []int
	for _, s := range f.series {
		out = append(out, s.lines()...)
	}
	return out
}

// points returns the expected points of a family under a name, which is empty if any free
// name is allowed.
func points(f *family, kind catalog.Kind, name string, sentinel, ray bool, fates *fates) []*point {
	var out []*point
	seen := map[string]bool{}
	together := map[string]*point{}
	addUp := addsUpOver(f, kind, name)
	for _, a := range attributes(f, ray, fates) {
		if seen[labelKey(a.attributes)] {
			fates.setAll(a.lines(), Duplicate)
			continue
		}
		seen[labelKey(a.attributes)] = true
		if addUp {
			a.attributes = without(a.attributes, catalog.Gateway.AggregatedLabels...)
		}
		p := asPoint(a, kind, sentinel, fates)
		switch {
		case p == nil:
		case together[p.key] != nil:
			together[p.key].plus(p)
		default:
			together[p.key] = p
			out = append(out, p)
		}
	}
	return out
}

// asPoint returns the expected point of one series; nil if its lines are dropped.
func asPoint(a attributed, kind catalog.Kind, sentinel bool, fates *fates) *point {
	p := &point{attributes: a.attributes, key: labelKey(a.attributes), lines: a.lines(), created: a.created}
	fate := Emitted
	switch kind {
	case catalog.KindGauge, catalog.KindSum:
		p.value = a.value.value
		p.exemplars = exemplars(a.value)
		if kind == catalog.KindSum && math.IsNaN(p.value) {
			fate = NaNCounter
		}
		if sentinel && p.value == -1 {
			fate = Sentinel
		}
	case catalog.KindHistogram:
		p.buckets = a.buckets
		for _, b := range a.buckets {
			p.exemplars = append(p.exemplars, exemplars(b.sample)...)
		}
		if !addsUp(a.series) {
			fate = BadHistogram
			break
		}
		p.count, p.sum = a.count.value, a.sum
	case catalog.KindSummary:
		p.quantiles = a.quantiles
		if a.count == nil || !whole(a.count.value) {
			fate = BadHistogram
			break
		}
		p.count, p.sum = a.count.value, a.sum
	}
	if fate != Emitted {
		fates.setAll(p.lines, fate)
		return nil
	}
	return p
}

func exemplars(s *sample) []*exemplar.Exemplar {
	if s == nil || s.exemplar == nil {
		return nil
	}
	return []*exemplar.Exemplar{s.exemplar}
}

// addsUp reports whether a histogram's buckets increase to its count.
func addsUp(s *series) bool {
	n := len(s.buckets)
	if n == 0 || !math.IsInf(s.buckets[n-1].bound, 1) || s.count == nil {
		return false
	}
	last := 0.0
	for _, b := range s.buckets {
		if !whole(b.sample.value) || b.sample.value < last {
			return false
		}
		last = b.sample.value
	}
	return s.count.value == last
}

// whole reports whether a value can be a count.
func whole(v float64) bool { return v >= 0 && v <= 1<<53 && v == math.Trunc(v) }
