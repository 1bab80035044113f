package normalize

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/exposition"
)

// checkPlan checks what must hold for the plan of every body.
func checkPlan(t assert.TestingT, layout *exposition.Layout, options *Options, plan *Plan) {
	if plan.Server == KindAccelerator && !options.Wire {
		checkDevices(t, layout, plan)
	} else {
		checkConservation(t, layout, plan)
	}
	checkPoints(t, layout, plan)
	checkShown(t, options, plan)
	for _, w := range plan.Workloads {
		checkPoints(t, layout, w.Plan)
		checkNames(t, w.Plan)
	}
	if !options.Wire {
		checkNames(t, plan)
	}
	assert.Equal(t, plan, Make(layout, *options), "the plan of one layout must always be the same")
}

// checkShown checks what the plan shows of the server: numbers, and defects of which each is
// either sure or possible.
func checkShown(t assert.TestingT, options *Options, plan *Plan) {
	for _, m := range plan.Metrics {
		for _, p := range m.Points {
			assert.False(t, math.IsNaN(p.Constant) || math.IsInf(p.Constant, 0), "%s has the constant %v", m.Name, p.Constant)
		}
	}
	for _, version := range []string{"", "0.10.1"} {
		server, is := plan.Shown(options, version, false)
		assert.False(t, is && plan.Server != KindServer)
		sure, possible := catalog.Matters(&server)
		for _, id := range possible {
			assert.NotContains(t, sure, id)
		}
	}
}

// checkConservation checks that each series of the body is in exactly one
// point, or counted as dropped. Mirrored histograms are additional, and a dropped
// LoRA adapter is not a series.
func checkConservation(t assert.TestingT, layout *exposition.Layout, plan *Plan) {
	series := 0
	for _, f := range layout.Families {
		series += len(f.Series)
	}
	parts := map[string]int{}
	planned := 0
	for _, m := range plan.Metrics {
		if strings.HasPrefix(m.Name, "gen_ai.") && !strings.Contains(m.Family, "gen_ai") && mirrors(m.Name) {
			continue
		}
		for _, p := range m.Points {
			for i := range p.Parts {
				parts[slotsOf(&p.Parts[i])]++
				planned++
			}
		}
	}
	for slots, n := range parts {
		assert.Equal(t, 1, n, "the series at slots %s is in several points", slots)
	}
	dropped := 0
	for reason, n := range plan.Dropped {
		assert.GreaterOrEqual(t, n, 0)
		if Reason(reason) != ReasonAdapterLimit {
			dropped += n
		}
	}
	// The LoRA syncer's adapters are series, those of vLLM are names in a label.
	beyond := plan.Dropped[ReasonAdapterLimit]
	missing := series - planned - dropped
	assert.True(t, missing >= 0 && missing <= beyond, "%d series, %d in points, %d dropped, %d adapters beyond the limit",
		series, planned, dropped, beyond)
	if len(plan.Adapters) == 0 {
		assert.Equal(t, beyond, missing)
	}
}

// checkDevices checks that each series of an exporter of GPUs is in a point or counted as
// dropped, and that no two resources have the same device in the same metric. Only the marker
// of shared devices is in several.
func checkDevices(t assert.TestingT, layout *exposition.Layout, plan *Plan) {
	used, series, dropped := map[string]bool{}, 0, 0
	for _, f := range layout.Families {
		series += len(f.Series)
	}
	owners := map[string]string{}
	keys := map[string]bool{}
	plans := map[string]*Plan{"": plan}
	for _, w := range plan.Workloads {
		assert.NotContains(t, plans, w.Key, "two workloads with one key")
		assert.NotEmpty(t, w.Resource)
		assert.Positive(t, w.Plan.Points)
		assert.NotContains(t, keys, labelText(w.Resource), "two workloads with one resource")
		keys[labelText(w.Resource)] = true
		plans[w.Key] = w.Plan
	}
	for key, p := range plans {
		for _, m := range p.Metrics {
			assert.True(t, m.Baseline && !m.Engine, m.Name)
			for i := range m.Points {
				for j := range m.Points[i].Parts {
					used[slotsOf(&m.Points[i].Parts[j])] = true
				}
				if m.Name == workloadsMetric {
					continue
				}
				device := m.Name + labelText(m.Points[i].Attributes)
				held, taken := owners[device]
				assert.False(t, taken, "%s is in the resources %q and %q", device, held, key)
				owners[device] = key
			}
		}
	}
	for _, n := range plan.Dropped {
		dropped += n
	}
	assert.Equal(t, series, len(used)+dropped, "%d series, %d in points, %d dropped", series, len(used), dropped)
}

func mirrors(name string) bool {
	return slices.ContainsFunc(catalog.All(), func(m catalog.Metric) bool { return m.Name == name })
}

// slotsOf identifies a series within its layout.
func slotsOf(s *exposition.Series) string {
	return fmt.Sprint(s.Value, s.Sum, s.Count, s.Created, s.Buckets, s.Quantiles)
}

// checkPoints checks that package emit can read every point: slots that exist,
// attributes that a map can hold, keys that are different for all points.
func checkPoints(t assert.TestingT, layout *exposition.Layout, plan *Plan) {
	keys, series := map[SeriesKey]bool{}, map[string]bool{}
	points := 0
	for _, m := range plan.Metrics {
		assert.NotEmpty(t, m.Points, "metric %q", m.Name)
		for i := range m.Points {
			p := &m.Points[i]
			assert.Equal(t, points, p.Index, "the index of a point of %s", m.Name)
			points++
			assert.False(t, keys[p.Key], "the key %x of %s is not unique", p.Key, m.Name)
			keys[p.Key] = true
			identity := m.Name + labelText(p.Attributes)
			assert.False(t, series[identity], "%s is there twice", identity)
			series[identity] = true
			for j := 1; j < len(p.Attributes); j++ {
				assert.Less(t, p.Attributes[j-1].Name, p.Attributes[j].Name,
					"attributes of %s must be sorted and unique: %s", m.Name, labelText(p.Attributes))
			}
			for j := range p.Parts {
				checkSlots(t, layout, m, &p.Parts[j])
			}
			checkBounds(t, p)
		}
	}
	assert.Equal(t, points, plan.Points)
	yielded := 0
	for m, p := range plan.All() {
		assert.Equal(t, yielded, p.Index)
		assert.Contains(t, m.Points, *p)
		yielded++
	}
	assert.Equal(t, points, yielded)
	for _, slot := range plan.Adapters {
		assert.True(t, slot.Slot >= 0 && slot.Slot < layout.Slots, "the adapter set's slot %d does not exist", slot)
	}
	assert.True(t, plan.ProcessStart == exposition.NoSlot || plan.ProcessStart >= 0 && plan.ProcessStart < layout.Slots)
}

func checkSlots(t assert.TestingT, layout *exposition.Layout, m Metric, s *exposition.Series) {
	slot := s.Value
	if m.Kind == catalog.KindHistogram || m.Kind == catalog.KindSummary {
		slot = s.Count
	}
	assert.True(t, slot >= 0 && slot < layout.Slots, "%s %s has no number at slot %d", m.Kind, m.Name, slot)
	if m.Kind == catalog.KindHistogram {
		n := len(s.Buckets)
		assert.True(t, n > 0 && math.IsInf(s.Buckets[n-1].UpperBound, 1), "%s has no +Inf bucket", m.Name)
	}
}

// checkBounds checks that folding into the point's bounds loses no observation.
func checkBounds(t assert.TestingT, p *Point) {
	if p.Bounds == nil {
		return
	}
	assert.True(t, slices.IsSorted(p.Bounds))
	for i := range p.Parts {
		for _, bound := range p.Bounds {
			assert.True(t, slices.ContainsFunc(p.Parts[i].Buckets, func(b exposition.Bucket) bool { return b.UpperBound == bound }))
		}
	}
}

// checkNames checks rule 3 of the naming rule, and that a name is one.
func checkNames(t assert.TestingT, plan *Plan) {
	names := map[string]bool{}
	for _, m := range plan.Metrics {
		assert.NotEmpty(t, m.Name)
		assert.NotContains(t, m.Name, ":", "the colon is for recording rules")
		assert.False(t, names[m.Name], "%s is the name of two metrics", m.Name)
		names[m.Name] = true
	}
	for name := range names {
		for i := range len(name) {
			if name[i] == '.' {
				assert.False(t, names[name[:i]], "%s is a dotted prefix of %s", name[:i], name)
			}
		}
	}
}
