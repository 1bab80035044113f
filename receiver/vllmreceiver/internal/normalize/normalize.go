package normalize

import (
	"cmp"
	"slices"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/exposition"
)

// Make returns the plan for all bodies of this layout.
func Make(layout *exposition.Layout, options Options) *Plan {
	b := &builder{
		options: &options,
		layout:  layout,
		plan:    &Plan{ProcessStart: exposition.NoSlot},
		keys:    make([]string, len(layout.Families)),
		byKey:   make(map[string]*exposition.Family, len(layout.Families)),
		byName:  make(map[string]*exposition.Family, len(layout.Families)),
	}
	b.indexFamilies()
	b.recognise()
	b.renameRouter()
	switch {
	case options.Wire:
		b.planWire()
	case b.exporter != nil:
		b.planAccelerators(b.exporter)
	default:
		b.planCanonical()
	}
	if !options.Wire {
		b.hideUnused()
	}
	if b.ray.agent {
		// This is the start of the agent, and not of the vLLM processes behind it.
		b.plan.ProcessStart = exposition.NoSlot
	}
	b.plan.signs = b.readSigns()
	b.plan.present = presence(layout)
	b.plan.number()
	return b.plan
}

// builder makes one plan.
type builder struct {
	options *Options
	layout  *exposition.Layout
	plan    *Plan
	// keys are the names of the families without the prefix of the deployment.
	keys []string
	// byKey and byName have the families with samples; byKey the first of each key.
	byKey, byName map[string]*exposition.Family
	ray           rayLabels
	// exporter is the exporter of GPUs that the body is from; nil for others.
	exporter *catalog.Exporter
	// namespaced is true for the body of a gateway that keeps its names.
	namespaced bool
}

// indexFamilies reads the whole body before any family is planned.
func (b *builder) indexFamilies() {
	for i := range b.layout.Families {
		family := &b.layout.Families[i]
		key, isVLLM := b.options.wireKey(family.Name)
		b.keys[i] = key
		if ns := namespaceOf(key); ns != nil && ns.Kind == string(KindGateway) {
			b.namespaced = true
		}
		if len(family.Series) == 0 {
			continue
		}
		if b.byKey[key] == nil {
			b.byKey[key] = family
		}
		b.byName[family.Name] = family
		if family.Name == "process_start_time_seconds" {
			b.plan.ProcessStart = family.Series[0].Value
		}
		b.ray.observe(b.options.withoutUserPrefix(family.Name), isVLLM, family)
	}
}

// candidate is a family that a metric may be planned from.
type candidate struct {
	family *exposition.Family
	metric *catalog.Metric
	rank   int
}

// planCanonical plans the points under the names of the catalogue.
func (b *builder) planCanonical() {
	var order []*catalog.Metric
	winners := map[*catalog.Metric]candidate{}
	var claims []*claim
	var infos []infoBody

	for i := range b.layout.Families {
		family, key := &b.layout.Families[i], b.keys[i]
		if len(family.Series) == 0 {
			continue
		}
		if family.Kind == exposition.KindGaugeHistogram {
			b.drop(ReasonUnsupported, family)
			if _, known := b.match(key); known {
				b.plan.Conflicts = append(b.plan.Conflicts, family.Name)
			}
			continue
		}
		if info, ok := infoFamily(key); ok && isInfoKind(family.Kind) {
			if slices.ContainsFunc(infos, func(i infoBody) bool { return i.info == info }) {
				// The same family under a second prefix has the same labels.
				b.drop(ReasonAlias, family)
			} else {
				infos = append(infos, infoBody{info, family})
			}
			continue
		}
		if b.isGaugeTwin(family) {
			b.plan.Conflicts = append(b.plan.Conflicts, family.Name)
			b.drop(ReasonTypeConflict, family)
			continue
		}
		match, ok := b.match(b.withTotal(key, family.Kind))
		switch {
		case !ok && b.isGateway(family, key):
			claims = append(claims, &claim{family: family, key: gatewayKey(family), gateway: true})
		case !ok:
			claims = append(claims, &claim{family: family, key: key})
		case !sameKind(match.Metric.Kind, family.Kind):
			claims = append(claims, &claim{family: family, key: key, metric: match.Metric})
		default:
			c := candidate{family: family, metric: match.Metric, rank: match.Rank}
			held, taken := winners[match.Metric]
			switch {
			case !taken:
				order = append(order, match.Metric)
				winners[match.Metric] = c
			case c.rank > held.rank:
				b.drop(ReasonAlias, held.family)
				winners[match.Metric] = c
			default:
				b.drop(ReasonAlias, c.family)
			}
		}
	}
	for _, metric := range order {
		b.addKnown(winners[metric])
	}
	claims = b.newestOnly(claims)
	assignNames(claims)
	for _, c := range claims {
		b.addClaimed(c)
	}
	for _, info := range infos {
		b.addInfo(info)
	}
	if b.options.GenAI {
		b.addGenAI(winners)
	}
}

// planWire plans every family under its own name and labels, for dashboards that
// query these. Old and new names stay separate metrics. No metric gets a unit, because
// a translation to Prometheus would append it to the name. The switches are by canonical name. What nothing here
// reads may be read by those dashboards, so it is on.
func (b *builder) planWire() {
	for i := range b.layout.Families {
		family := &b.layout.Families[i]
		match, known := b.match(b.withTotal(b.keys[i], family.Kind))
		on := b.options.unknown(family.Name, !offByPrefix(family.Name))
		if known {
			on = b.options.enabled(match.Metric) || b.options.unknown(match.Metric.Name, !offByPrefix(family.Name))
		}
		switch {
		case len(family.Series) == 0:
		case family.Kind == exposition.KindGaugeHistogram:
			b.drop(ReasonUnsupported, family)
		case !on:
			b.drop(ReasonDisabled, family)
		default:
			b.add(Metric{
				Name: family.Name, Description: family.Help, Kind: wireKind(family.Kind),
				Engine: known && catalog.IsServers(match.Metric.Name) && sameKind(match.Metric.Kind, family.Kind),
			}, family)
		}
	}
}

// isInfoKind reports whether an info family may have this TYPE.
func isInfoKind(kind exposition.Kind) bool {
	return kind == exposition.KindGauge || kind == exposition.KindInfo || kind == exposition.KindUntyped
}

// isGaugeTwin reports whether a family repeats a counter: Ray also exports each
// counter as a gauge without "_total".
func (b *builder) isGaugeTwin(family *exposition.Family) bool {
	if !b.ray.agent || family.Kind != exposition.KindGauge {
		return false
	}
	twin := b.byName[family.Name+"_total"]
	return twin != nil && twin.Kind == exposition.KindCounter
}

// withTotal returns the key for looking up a family. It adds the suffix "_total" to
// counters, because programs that imitate vLLM omit it.
func (b *builder) withTotal(key string, kind exposition.Kind) string {
	if kind != exposition.KindCounter || strings.HasSuffix(key, "_total") {
		return key
	}
	for _, m := range catalog.BySource(key) {
		if sameKind(m.Metric.Kind, kind) || len(catalog.BySource(key+"_total")) == 0 {
			return key
		}
	}
	return key + "_total"
}

// match returns the metric that a family is a source of. Some families have a
// different meaning in different versions. Then the version of the server decides. If
// it is unknown, a newer family of the same metric in the body shows that the server
// counts as newer releases do. Without either, match returns the metric that the
// catalogue marks as the fallback.
func (b *builder) match(key string) (catalog.Match, bool) {
	matches := catalog.BySource(key)
	for _, m := range matches {
		if m.Source.Label == "" && (!m.Source.Version || b.options.versionIn(m.Source.Since, m.Source.Until)) {
			return m, true
		}
	}
	for _, m := range matches {
		for _, newer := range m.Metric.Sources[m.Rank+1:] {
			if family := b.byKey[newer.Family]; family != nil && sameKind(m.Metric.Kind, family.Kind) {
				return m, true
			}
		}
	}
	for _, m := range matches {
		if m.Source.Fallback {
			return m, true
		}
	}
	return catalog.Match{}, false
}

// sameKind reports whether a TYPE line agrees with the catalogue. A family without a
// TYPE line agrees with both a gauge and a sum.
func sameKind(kind catalog.Kind, wire exposition.Kind) bool {
	switch wire {
	case exposition.KindUntyped:
		return kind == catalog.KindGauge || kind == catalog.KindSum
	case exposition.KindGaugeHistogram:
		return false
	}
	return kind == wireKind(wire)
}

// wireKind is the kind of an unknown family.
func wireKind(wire exposition.Kind) catalog.Kind {
	switch wire {
	case exposition.KindCounter:
		return catalog.KindSum
	case exposition.KindHistogram:
		return catalog.KindHistogram
	case exposition.KindSummary:
		return catalog.KindSummary
	}
	return catalog.KindGauge
}

// addKnown plans a family of the catalogue.
func (b *builder) addKnown(c candidate) {
	m := c.metric
	// What every program has tells something about a server of vLLM only.
	ours := b.plan.Server == KindServer || b.plan.Server == KindSimulator || b.options.Enabled[m.Name]
	if !b.options.enabled(m) || !ours && offByPrefix(c.family.Name) {
		b.drop(ReasonDisabled, c.family)
		return
	}
	metric := metricOf(m)
	metric.Engine = catalog.IsServers(m.Name)
	b.add(metric, c.family)
}

// addClaimed plans a family that the catalogue does not have, or whose TYPE
// contradicts the catalogue.
func (b *builder) addClaimed(c *claim) {
	var on bool
	switch {
	case c.metric != nil:
		b.plan.Conflicts = append(b.plan.Conflicts, c.family.Name)
		on = b.options.enabled(c.metric)
	default:
		on = b.options.unknown(c.name, !offByPrefix(c.family.Name))
		// The catalogue need not have all families of other programs.
		if ns := namespaceOf(c.key); on && !offByPrefix(c.family.Name) && (ns == nil || ns.Kind == "") {
			b.plan.Unknown = append(b.plan.Unknown, c.family.Name)
		}
	}
	if !on {
		b.drop(ReasonDisabled, c.family)
		return
	}
	// A gateway is also scraped as text, which has no units.
	if c.family.Unit != "" && c.unit == "" && b.plan.Server != KindGateway {
		c.unit = cmp.Or(units[c.family.Unit], "{"+c.family.Unit+"}")
	}
	help := c.family.Help
	if _, ok := gatewayPrefix(c.family.Name); ok {
		help = plainHelp(help)
	}
	b.add(Metric{Name: c.name, Description: help, Unit: c.unit, Kind: wireKind(c.family.Kind)}, c.family)
}

// parts returns the series of a server's metric by their attributes.
func (b *builder) parts(name string) map[SeriesKey][]exposition.Series {
	out := map[SeriesKey][]exposition.Series{}
	for i := range b.plan.Metrics {
		if m := &b.plan.Metrics[i]; m.Name == name && m.Engine {
			for j := range m.Points {
				out[pointKey("", 0, m.Points[j].Attributes)] = m.Points[j].Parts
			}
		}
	}
	return out
}

// hideUnused marks the points that are not emitted while they are 0, unless the user switches their metric on.
func (b *builder) hideUnused() {
	for i := range b.plan.Metrics {
		m := &b.plan.Metrics[i]
		known, ok := catalog.ByName(m.Name)
		if !ok || known.HideZero == "" || !m.Engine || b.options.whole(m.Name) {
			continue
		}
		used := b.parts(known.HideZero)
		for k := range m.Points {
			p := &m.Points[k]
			if !slices.ContainsFunc(p.Attributes, func(l exposition.Label) bool { return l.Value == known.ZeroShown }) {
				// Without the other metric, its own number counts.
				p.Unused = slices.Concat(p.Parts, used[pointKey("", 0, p.Attributes)])
			}
		}
	}
}

// metricOf returns a metric of the catalogue without its points.
func metricOf(m *catalog.Metric) Metric {
	return Metric{Name: m.Name, Description: m.Description, Unit: m.Unit, Kind: m.Kind, Sentinel: m.Sentinel}
}

// emit adds a metric to the plan, if it has points.
func (b *builder) emit(m Metric) {
	if len(m.Points) > 0 {
		b.plan.Metrics = append(b.plan.Metrics, m)
	}
}

// units are those of UCUM for an OpenMetrics UNIT.
var units = map[string]string{"seconds": "s", "bytes": "By", "ratio": "1"}

// drop counts all series of a family as dropped.
func (b *builder) drop(reason Reason, family *exposition.Family) {
	b.plan.Dropped[reason] += len(family.Series)
}
