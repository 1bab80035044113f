package normalize

import (
	"cmp"
	"slices"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/exposition"
)

// AttributeExporter is the resource attribute with the exporter of GPUs.
const AttributeExporter = "vllm.accelerator.exporter"

// workloadsMetric has one point for each device of a resource.
const workloadsMetric = "vllm.accelerator.workloads"

// sharingAttribute is how workloads use a device.
const sharingAttribute = "vllm.accelerator.sharing"

// Workload is one container that uses GPUs. Its points belong to a resource of its own.
type Workload struct {
	// Key identifies it over plans.
	Key string
	// Resource are the attributes of its pod.
	Resource []exposition.Label
	// Plan has its points.
	Plan *Plan
}

// accelerators plans the body of an exporter of GPUs.
type accelerators struct {
	*builder
	exporter *catalog.Exporter
	inventory
	// chosen are the series that become points, by the key of the point; order has the
	// keys as they came.
	chosen map[SeriesKey]*chosen
	order  []SeriesKey
	// unknown are the kinds of metrics that the catalogue does not have, by their names.
	unknown map[string]catalog.Kind
	// why is the reason for which a series does not become a point, by its slot.
	why map[int]Reason
}

// chosen is the series that a point is made of.
type chosen struct {
	exported
	Metric
	device     int
	attributes []exposition.Label
	parts      []exposition.Series
	// whole is true if the series is the device's own, and not a copy for one of its
	// workloads or partitions.
	whole bool
}

func (b *builder) planAccelerators(exporter *catalog.Exporter) {
	a := &accelerators{
		builder: b, exporter: exporter, chosen: map[SeriesKey]*chosen{}, unknown: map[string]catalog.Kind{}, why: map[int]Reason{},
		inventory: inventory{
			exporter: exporter, limit: b.options.MaxDevices, behind: b.isBehindPrometheus(),
			byID: map[string]int{}, byName: map[[3]string]int{},
		},
	}
	families := exportedFamilies()[exporter.Name]
	found := make([][]place, len(b.layout.Families))
	for i := range b.layout.Families {
		family := &b.layout.Families[i]
		hasNumbers := !slices.ContainsFunc(family.Series, func(s exposition.Series) bool { return s.Value == exposition.NoSlot })
		if len(family.Series) > 0 && hasNumbers && b.exports(exporter, family.Name) {
			found[i] = a.find(family)
		}
	}
	a.assign()
	for i := range b.layout.Families {
		family := &b.layout.Families[i]
		known, isKnown := families[b.exporterKey(exporter, family.Name)]
		switch {
		case found[i] != nil && isKnown:
			for k := range known {
				a.choose(family, found[i], known[k], func(labels []exposition.Label) []exposition.Label { return mapped(labels, known[k].source.Labels) })
			}
		case found[i] != nil:
			a.chooseUnknown(family, found[i])
		case !b.exports(exporter, family.Name):
			b.drop(ReasonDisabled, family)
		case len(family.Series) > 0:
			b.plan.Conflicts = append(b.plan.Conflicts, family.Name)
			b.drop(ReasonTypeConflict, family)
		}
	}
	a.addUp(found)
	a.build()
	a.countDropped(found)
	b.plan.Resource = append(b.plan.Resource, a.shared()...)
	// What the exporters report is counted by the drivers, which do not start with them.
	b.plan.ProcessStart = exposition.NoSlot
}

// countDropped counts the series that are in no point.
func (a *accelerators) countDropped(found [][]place) {
	used := map[int]bool{}
	for _, c := range a.chosen {
		for i := range c.parts {
			used[c.parts[i].Value] = true
		}
	}
	for i := range found {
		for s := range found[i] {
			if slot := a.layout.Families[i].Series[s].Value; !used[slot] {
				// Without a reason it would have been a part of a sum.
				a.plan.Dropped[cmp.Or(a.why[slot], ReasonAlias)]++
			}
		}
	}
}

// find returns the places of the series of a family.
func (a *accelerators) find(family *exposition.Family) []place {
	places := make([]place, len(family.Series))
	for i := range family.Series {
		var reason Reason
		if places[i], reason = a.locate(family.Series[i].Labels); reason != ReasonNone {
			a.why[family.Series[i].Value] = reason
		}
	}
	return places
}

// choose plans the points that a family becomes in one metric. more returns the attributes that the
// labels of a series become.
func (a *accelerators) choose(family *exposition.Family, places []place, e exported, more func([]exposition.Label) []exposition.Label) {
	if !a.options.enabled(e.metric) {
		a.explain(ReasonDisabled, family.Series...)
		return
	}
	metric := metricOf(e.metric)
	metric.Family = family.Name
	for i := range family.Series {
		s := &family.Series[i]
		device, whole, ok := a.deviceOf(places[i], e.metric.Partitions)
		if !ok {
			a.explain(ReasonDuplicate, *s)
			continue
		}
		a.take(&chosen{
			exported: e, Metric: metric, device: device, whole: whole, parts: []exposition.Series{*s},
			attributes: a.attributesOf(device, e.set, more(s.Labels)),
		})
	}
}

// chooseUnknown plans a family that the catalogue does not have, if it is switched on.
func (a *accelerators) chooseUnknown(family *exposition.Family, places []place) {
	name := a.exporter.Unknown + strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(a.exporterKey(a.exporter, family.Name), "DCGM_")), ":", "_")
	kind := wireKind(family.Kind)
	if !a.options.Enabled[name] {
		a.explain(ReasonDisabled, family.Series...)
		return
	}
	if known, is := a.unknown[name]; is && known != kind {
		// Another family has this name but for its case, and became a metric of another kind.
		a.plan.Conflicts = append(a.plan.Conflicts, family.Name)
		a.explain(ReasonTypeConflict, family.Series...)
		return
	}
	a.unknown[name] = kind
	a.choose(family, places, exported{
		metric: &catalog.Metric{Name: name, Kind: kind, Description: family.Help, Partitions: true}, source: &catalog.Exported{}, convert: plain,
	}, withoutRoles)
}

var plain = &Conversion{times: 1, per: 1}

// take chooses a series for its point, if there is none that is better.
func (a *accelerators) take(c *chosen) {
	key := pointKey(c.Name, c.Kind, c.attributes)
	held, taken := a.chosen[key]
	switch {
	case !taken:
		a.order = append(a.order, key)
		a.chosen[key] = c
	case c.rank > held.rank:
		a.explain(ReasonAlias, held.parts[0])
		a.chosen[key] = c
	case c.rank < held.rank:
		a.explain(ReasonAlias, c.parts[0])
	case c.whole && !held.whole:
		a.explain(ReasonDuplicate, held.parts[0])
		a.chosen[key] = c
	default:
		a.explain(ReasonDuplicate, c.parts[0])
	}
}

// explain keeps the first reason for which each of these series is not in a point.
func (a *accelerators) explain(reason Reason, series ...exposition.Series) {
	for i := range series {
		slot := series[i].Value
		a.why[slot] = cmp.Or(a.why[slot], reason)
	}
}

// addUp adds the further families of a sum to its points.
func (a *accelerators) addUp(found [][]place) {
	byName := map[string][]int{}
	for i := range found {
		if found[i] != nil {
			name := a.exporterKey(a.exporter, a.layout.Families[i].Name)
			byName[name] = append(byName[name], i)
		}
	}
	for key, c := range a.chosen {
		for n, name := range c.source.Plus {
			series, ok := a.seriesOf(byName[name], c, found)
			if ok {
				c.parts = append(c.parts, series)
			} else if n == 0 {
				delete(a.chosen, key)
				break
			}
		}
	}
}

// seriesOf returns the series of a family for the device of a point.
func (a *accelerators) seriesOf(families []int, c *chosen, found [][]place) (exposition.Series, bool) {
	var best exposition.Series
	has := false
	for _, i := range families {
		family := &a.layout.Families[i]
		for s := range family.Series {
			device, whole, ok := a.deviceOf(found[i][s], c.metric.Partitions)
			if ok && device == c.device && (!has || whole) {
				best, has = family.Series[s], true
				if whole {
					return best, true
				}
			}
		}
	}
	return best, has
}

// build makes the plans of the exporter's resource and of the workloads.
func (a *accelerators) build() {
	plans := make([]*Plan, len(a.workloads)+1)
	at := map[planMetric]int{}
	add := func(owner int, metric Metric, point Point) {
		owner++
		plan := plans[owner]
		if plan == nil {
			plan = &Plan{ProcessStart: exposition.NoSlot, Server: KindAccelerator}
			plans[owner] = plan
		}
		i, known := at[planMetric{owner, metric.Name}]
		if !known {
			i = len(plan.Metrics)
			at[planMetric{owner, metric.Name}] = i
			metric.Baseline = true
			plan.Metrics = append(plan.Metrics, metric)
		}
		plan.Metrics[i].Points = append(plan.Metrics[i].Points, point)
	}
	for _, key := range a.order {
		if c, ok := a.chosen[key]; ok {
			add(a.devices[c.device].owner, c.Metric, Point{Key: key, Attributes: c.attributes, Parts: c.parts, Convert: c.convert})
		}
	}
	a.addMembership(add)
	for owner, plan := range plans {
		if plan == nil {
			continue
		}
		slices.SortFunc(plan.Metrics, func(x, y Metric) int { return cmp.Compare(x.Name, y.Name) })
		if owner == 0 {
			a.plan.Metrics = plan.Metrics
			continue
		}
		plan.number()
		w := &a.workloads[owner-1]
		a.plan.Workloads = append(a.plan.Workloads, Workload{Key: w.key(), Resource: w.resource(), Plan: plan})
	}
}

// planMetric is one metric of one resource.
type planMetric struct {
	owner int
	name  string
}

// addMembership adds the points that say which devices a resource has, and who else uses
// them. A device that several workloads share is in the resource of each.
func (a *accelerators) addMembership(add func(int, Metric, Point)) {
	metric, ok := catalog.ByName(workloadsMetric)
	if !ok || !a.options.enabled(metric) {
		return
	}
	for i := range a.devices {
		d := &a.devices[i]
		owners := append([]int{d.owner}, d.sharers()...)
		value, sharing := d.use()
		attributes := a.attributesOf(i, []exposition.Label{{Name: sharingAttribute, Value: sharing}}, nil)
		for _, owner := range owners {
			add(owner, metricOf(metric), Point{Key: pointKey(metric.Name, metric.Kind, attributes), Attributes: attributes, Constant: value})
		}
	}
}
