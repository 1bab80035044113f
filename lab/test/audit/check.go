package audit

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// Scrape is a body as the server sent it, with the settings of the receiver.
type Scrape struct {
	Body        []byte
	ContentType string
	// Version is what the server answers on /version; empty if it does not.
	Version string
	// Wire is true for the receiver's "naming: wire".
	Wire bool
	// Before is the report of the target's scrape before this one, of the same
	// body; nil for the first.
	Before *Report
}

// Report is the result of an audit.
type Report struct {
	// Violations describes each difference from what the receiver must emit. Without any,
	// the audit has passed.
	Violations []string
	// Fates counts the lines of the body by their fate; the sum is the number of lines that
	// look like samples.
	Fates map[Fate]int
	// Points is the number of emitted points.
	Points int
	// Origins are the families of the body.
	Origins []Origin
	// Up is true if the body has a sample that can be read.
	Up bool

	starts map[string]pcommon.Timestamp
}

// the names of the metrics about the scrape itself.
const (
	ownUp       = "vllm.up"
	ownDuration = "vllm.scrape.duration"
	ownSamples  = "vllm.scrape.samples"
	ownFailure  = "vllm.scrape.failure"
)

// auditor compares one scrape.
type auditor struct {
	scrape Scrape
	report *Report
	fates  *fates
	want   *expectation
	got    map[string]*emittedMetric
	// time is the time of the scrape.
	time pcommon.Timestamp
}

// Check compares the points of one scrape of one target with the body.
func Check(s Scrape, rm pmetric.ResourceMetrics) *Report {
	r := &Report{Fates: map[Fate]int{}, starts: map[string]pcommon.Timestamp{}}
	a := &auditor{scrape: s, report: r, fates: newFates(), got: flatten(rm, r)}
	a.oneTime()
	b := readBody(s.Body, s.ContentType)
	a.fates.setAll(b.bad, BadLine)
	fs := group(b, a.fates)
	r.Up = len(b.samples) > 0 || len(b.bad) == 0 && b.badComments == 0 && len(b.types) > 0
	a.own(len(b.samples))
	a.want = expect(fs, s, a.fates, float64(a.time)/1e9)
	a.compareAll()
	if !s.Wire && r.Up {
		a.resource(rm.Resource().Attributes())
	}
	a.everyLine(b)
	r.Origins = a.origins(fs)
	r.Violations = append(r.Violations, a.fates.violations...)
	for _, fate := range a.fates.of {
		r.Fates[fate]++
	}
	return r
}

// oneTime checks that all points of a scrape have the same time.
func (a *auditor) oneTime() {
	for _, name := range slices.Sorted(maps.Keys(a.got)) {
		for _, p := range a.got[name].points {
			if a.time == 0 {
				a.time = p.time
			}
			if p.time != a.time || p.time == 0 {
				a.report.violate("%s: its time %s is not the scrape's, %s", name, p.time, a.time)
			}
		}
	}
	if a.time == 0 {
		a.report.violate("nothing came out, not even %s", ownUp)
	}
}

// own checks the metrics about the scrape itself and claims them.
func (a *auditor) own(samples int) {
	up := 0.0
	if a.report.Up {
		up = 1
	} else {
		samples = 0
	}
	for _, want := range []struct {
		name string
		ok   func(float64) bool
	}{
		{ownUp, func(v float64) bool { return v == up }},
		{ownDuration, func(v float64) bool { return v > 0 && v < 60 }},
		{ownSamples, func(v float64) bool { return v == float64(samples) }},
	} {
		m := a.got[want.name]
		if m == nil || m.points["{}"] == nil || m.kind != catalog.KindGauge {
			a.report.violate("%s: is missing", want.name)
			continue
		}
		m.claimed, m.points["{}"].claimed = true, true
		if rule, _ := catalog.ByName(want.name); m.unit != rule.Unit {
			a.report.violate("%s: has the unit %q, not %q", m.name, m.unit, rule.Unit)
		}
		if v := m.points["{}"].value; !want.ok(v) {
			a.report.violate("%s: is %v; the body has %d readable samples", want.name, v, samples)
		}
	}
	a.failure()
}

// failure checks the kind of the failure, which has one series if the body has no readable
// sample, and otherwise none.
func (a *auditor) failure() {
	m := a.got[ownFailure]
	switch {
	case m == nil && a.report.Up:
	case m == nil:
		a.report.violate("%s: is missing", ownFailure)
	case a.report.Up:
		a.report.violate("%s: is there, though the body can be read", ownFailure)
		m.claimed = true
	default:
		m.claimed = true
		if len(m.points) != 1 {
			a.report.violate("%s: has %d series, not 1", ownFailure, len(m.points))
		}
		for labels, p := range m.points {
			p.claimed = true
			if p.value != 1 || !strings.HasPrefix(labels, "{outcome=") {
				a.report.violate("%s%s: is %v, not 1 with an outcome", ownFailure, labels, p.value)
			}
		}
	}
}

// compareAll compares metric by metric: those with a prescribed name first, then those that
// may have any free name. Metrics that remain are not from a line of the body.
func (a *auditor) compareAll() {
	for _, m := range a.want.metrics {
		if m.name == "" || len(m.points) == 0 {
			continue
		}
		got := a.got[m.name]
		if got == nil {
			a.report.violate("%s: the metric %s is missing (lines %v)", m.wire, m.name, m.lines())
			continue
		}
		if got.kind != m.kind || got.unit != m.unit {
			a.report.violate("%s: %s is a %s in %q, not a %s in %q", m.wire, m.name, got.kind, got.unit, m.kind, m.unit)
		}
		a.compare(m, got)
	}
	for _, m := range a.want.metrics {
		if m.name == "" && len(m.points) > 0 {
			a.compareFree(m)
		}
	}
	taken := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(a.got)) {
		for key, p := range a.got[name].points {
			if !p.claimed {
				a.report.violate("%s%s: stems from no sample of the body", name, key)
			}
		}
		if !a.scrape.Wire {
			if nested(name, taken) || !names[name] && nested(name, names) {
				a.report.violate("%s: is a dotted prefix of another name, or the other way round", name)
			}
			taken[name] = true
		}
	}
}

func (m *metric) lines() []int {
	var lines []int
	for _, p := range m.points {
		lines = append(lines, p.lines...)
	}
	return lines
}

// compareFree looks for an unclaimed metric with exactly these points, under any name.
func (a *auditor) compareFree(m *metric) {
	for _, name := range slices.Sorted(maps.Keys(a.got)) {
		got := a.got[name]
		if got.claimed || names[name] || got.kind != m.kind || len(got.points) != len(m.points) {
			continue
		}
		if slices.ContainsFunc(m.points, func(p *point) bool {
			found := got.points[p.key]
			return found == nil || len(a.differences(m, p, found)) > 0
		}) {
			continue
		}
		a.compare(m, got)
		return
	}
	a.report.violate("%s: is missing; no free name has the points of lines %v", m.wire, m.lines())
}

// compare compares the points of a metric and claims them.
func (a *auditor) compare(m *metric, got *emittedMetric) {
	got.claimed, m.got = true, got
	for _, p := range m.points {
		found := got.points[p.key]
		if found == nil {
			a.report.violate("%s%s: the point of %s is missing (lines %v)", m.wire, p.key, got.name, p.lines)
			continue
		}
		if found.claimed {
			a.report.violate("%s%s: the point of %s stems from several series (lines %v)", m.wire, p.key, got.name, p.lines)
		}
		found.claimed = true
		differences := a.differences(m, p, found)
		for _, d := range differences {
			a.report.violate("%s%s (lines %v): %s", got.name, p.key, p.lines, d)
		}
		if len(differences) == 0 {
			a.fates.setAll(p.lines, Emitted)
		}
		a.start(got.name+p.key, m, p, found)
	}
}

// everyLine checks that every line has a fate.
func (a *auditor) everyLine(b *body) {
	for _, s := range b.samples {
		if _, ok := a.fates.of[s.line]; !ok {
			a.report.violate("line %d, a sample of %s, is not accounted for", s.line, s.name)
		}
	}
}

// start checks a point's start time: the server's own, else the process's, else
// the point's time; later scrapes of the same body have the same.
func (a *auditor) start(key string, m *metric, p *point, got *emittedPoint) {
	if m.kind == catalog.KindGauge {
		if got.start != 0 {
			a.report.violate("%s: is a gauge with a start time", key)
		}
		return
	}
	a.report.starts[key] = got.start
	want := got.time
	if at := a.past(a.want.processStart); at != 0 {
		want = at
	}
	if p.created != nil {
		if at := a.past(p.created.value); at != 0 {
			want = at
		}
	}
	if a.scrape.Before != nil {
		want = a.scrape.Before.starts[key]
	}
	// A time in seconds has less than a microsecond's precision as a float64.
	if math.Abs(float64(got.start)-float64(want)) > 1e3 {
		a.report.violate("%s: starts at %s, not %s", key, got.start.AsTime(), want.AsTime())
	}
	if got.start > got.time {
		a.report.violate("%s: starts at %s, after its time %s", key, got.start, got.time)
	}
}

// past converts seconds to a time before the scrape; 0 for others.
func (a *auditor) past(seconds float64) pcommon.Timestamp {
	if !(seconds > 0) || seconds*1e9 > float64(a.time) {
		return 0
	}
	return pcommon.Timestamp(seconds * 1e9)
}

// resource checks the attributes that come from info families.
func (a *auditor) resource(attributes pcommon.Map) {
	want := map[string]string{}
	if a.scrape.Version != "" {
		// The server's own answer is preferred to the name of a gateway's build.
		want["service.version"] = a.scrape.Version
	}
	for _, l := range a.want.resource {
		// A gateway's build has two names, of which the first is used.
		if _, named := want[l.name]; !named {
			want[l.name] = l.value
		}
	}
	for _, info := range catalog.InfoFamilies {
		for _, r := range info.Resource {
			got := "none"
			if value, ok := attributes.Get(r.Attribute); ok {
				got = strconv.Quote(value.AsString())
			}
			wanted := "none"
			if value, ok := want[r.Attribute]; ok {
				wanted = strconv.Quote(value)
			}
			if got != wanted {
				a.report.violate("the resource attribute %s is %s, not %s", r.Attribute, got, wanted)
			}
		}
	}
}
