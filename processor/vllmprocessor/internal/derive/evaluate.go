package derive

import (
	"math"
	"slices"
	"strconv"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
)

// Settings are the configuration of a processor, and what is known about a resource.
type Settings struct {
	// Enabled is true for each of Rows that is to be computed.
	Enabled []bool
	// Quantiles are the quantiles of the latencies.
	Quantiles []Quantile
	// MeanConstrained uses sum and count to place a quantile in its bucket.
	MeanConstrained bool
	// PerEngineQuantiles computes quantiles for each engine also where there are
	// several.
	PerEngineQuantiles bool
	// CapacityFromBlocks allows blocks times block size as the capacity of the KV
	// cache.
	CapacityFromBlocks bool
	// Peak is the peak of one GPU of the resource; 0 where it is not known.
	Peak Peak
}

// Peak is the highest throughput of one GPU.
type Peak struct {
	// FLOPS are floating-point operations per second, Bandwidth bytes per second.
	FLOPS, Bandwidth float64
}

// Quantile is a configured quantile.
type Quantile struct {
	// Rank is from 0 to 1.
	Rank float64
	// Text is the value of the attribute quantile.
	Text string
}

// NewQuantile writes the rank as the attribute does: "0.95".
func NewQuantile(rank float64) Quantile {
	return Quantile{Rank: rank, Text: strconv.FormatFloat(rank, 'g', -1, 64)}
}

// Value is one point of a derived metric.
type Value struct {
	// Row is the metric; nil is all metrics of the group.
	Row *Row
	// Group is the number of the engine and model, or of the roll-up.
	Group int
	// Rollup is true where Group is the number of a roll-up over several engines.
	Rollup bool
	// Extra is the values of the row's own attributes.
	Extra Extra
	// Attributes are those of the engine and model.
	Attributes []input.Attribute
	// Start is when the counting began, in Unix nanoseconds; only for a sum.
	Start int64
	// Number is the value. Where Pending is true there is no value yet, and the series is
	// neither repeated nor ended. Pending holds for all own attributes of the row in
	// the group.
	Number  float64
	Pending bool
}

// Extra is the values of a row's own attributes, in the order of Row.Extra. An empty
// one is left out.
type Extra [maxOwn]string

// maxOwn is the most own attributes of a row.
const maxOwn = 3

// Evaluator computes derived metrics. It reuses its memory between calls and is not
// safe for concurrent use.
type Evaluator struct {
	// Absent counts the values that could not be computed, by reason.
	Absent [NumReasons]int

	values    []Value
	now, long []window.View
	members   []Member
	// places maps the place of a group in the resource to its place in members.
	places      []int
	scopes      map[*window.Rollup]scope
	one, merged window.Histogram
	entries     []entry
	ofMember    []entry
}

// entry is the parts for one value of the own attributes of a row.
type entry struct {
	extra Extra
	parts Parts
}

// find returns the place of a value of the own attributes; -1 where it is not there.
func find(all []entry, extra Extra) int {
	return slices.IndexFunc(all, func(one entry) bool { return one.extra == extra })
}

// Evaluate returns the derived values of a resource at its newest batch. The result is
// valid until the next call.
func (e *Evaluator) Evaluate(settings *Settings, resource *window.Resource) []Value {
	e.values = e.values[:0]
	e.now = resource.Views(e.now, false)
	e.long = resource.Views(e.long, true)
	e.members = e.members[:0]
	for i := range e.now {
		e.members = append(e.members, Member{e.now[i], e.long[i]})
		place := e.now[i].Group().Place()
		for len(e.places) <= place {
			e.places = append(e.places, 0)
		}
		e.places[place] = i
	}
	for group := range resource.PendingGroups() {
		e.values = append(e.values, Value{Group: group, Pending: true})
	}
	if e.scopes == nil {
		e.scopes = map[*window.Rollup]scope{}
	}
	clear(e.scopes)
	for up, status := range resource.Rollups() {
		e.scopes[up] = e.drafts(resource, up)
		if status == window.Pending {
			e.values = append(e.values, Value{Group: up.Number, Rollup: true, Pending: true})
		}
	}
	for i := range e.members {
		group := e.members[i].Now.Group()
		in := scope{number: group.Number, attributes: group.Attributes, alone: true}
		if up, several := e.scopes[group.Rollup()]; several {
			in.alone, in.misattributed, in.undecided = false, up.misattributed, up.undecided
		}
		if whole := group.Whole(); whole != nil {
			in.gateway, in.nameless = true, len(group.Attributes) == len(whole.Attributes)
		}
		e.rows(settings, e.members[i:i+1], in)
	}
	for up, status := range resource.Rollups() {
		if status == window.Present {
			e.rows(settings, e.of(resource, up), scope{number: up.Number, attributes: up.Attributes, rollup: true, gateway: up.Gateway})
		}
	}
	return e.values
}

// of returns the members of a roll-up, all of which are in the newest batch.
func (e *Evaluator) of(resource *window.Resource, up *window.Rollup) []Member {
	members := e.members[len(e.members):]
	for g := range resource.Groups(up) {
		members = append(members, e.members[e.places[g.Place()]])
	}
	return members
}

// drafts says whose drafts are counted. They are misattributed where one engine has all of them
// although others generate tokens too: under Ray one engine has the counts of all
// (ray-last-engine). That is undecided while not more than one engine has some, and a later part of
// the batch can have the counts of others.
func (e *Evaluator) drafts(resource *window.Resource, up *window.Rollup) scope {
	credited, uncredited, pending, counted := 0, 0, false, false
	for g := range resource.Groups(up) {
		switch {
		case g.Ever(input.Drafts) > 0:
			credited++
		case g.Ever(input.GenerationTokens) > 0:
			uncredited++
		}
		// A group that the batch lacks has no view, and perhaps never had a place.
		if g.Place() >= len(e.places) {
			continue
		}
		if i := e.places[g.Place()]; i < len(e.now) && e.now[i].Group() == g {
			_, drafts := e.now[i].Total(input.Drafts)
			_, tokens := e.now[i].Total(input.GenerationTokens)
			pending = pending || drafts == window.Pending || tokens == window.Pending
			counted = counted || drafts != window.Missing
		}
	}
	return scope{misattributed: credited == 1 && uncredited > 0, undecided: pending && counted && credited <= 1}
}

// scope is one engine, or the roll-up over the engines of a model.
type scope struct {
	number     int
	attributes []input.Attribute
	rollup     bool
	// alone is true for an engine that is in no roll-up.
	alone         bool
	misattributed bool
	// undecided is true where a part of the batch that may follow decides about misattributed.
	undecided bool
	// gateway is true for a model of an inference gateway, and for the whole gateway. nameless
	// is true for what it refused before it knew the model.
	gateway, nameless bool
}

// derives reports whether a row is evaluated in the scope. What has no model is a part of
// the ratios of the whole gateway only. It has no attributes, as the front end of a server
// that shares the resource.
func (in *scope) derives(row *Row) bool {
	switch {
	case in.rollup && row.Additive != nil:
		return false
	case row.gateway:
		return in.gateway && (!in.nameless || row.Additive != nil)
	}
	return !in.gateway || in.nameless
}

func (e *Evaluator) rows(settings *Settings, members []Member, in scope) {
	for number := range rows {
		row := &rows[number]
		if !settings.Enabled[number] || !in.derives(row) {
			continue
		}
		switch {
		case in.undecided && (row.speculative || row.speculativeExtra != Extra{}):
			e.add(in, row, Extra{}, 0, Pending)
			continue
		case in.misattributed && row.speculative:
			continue
		}
		if row.shared != "" && !in.rollup && !in.alone && members[0].Now.Affected(row.shared) {
			if parts := row.Of(settings, &members[0]); parts.Reason == OK && parts.Denominator > 0 {
				e.Absent[KnownDefect]++
			}
			continue
		}
		switch {
		case row.Quotient != nil:
			e.quotient(settings, members, in, row)
		case row.Additive != nil:
			value, reason := row.Additive(settings, &members[0])
			e.add(in, row, Extra{}, value, reason)
		case row.Several != nil:
			e.several(members, in, row)
		case in.rollup || in.alone || settings.PerEngineQuantiles:
			e.quantiles(settings, members, in, row)
		}
	}
}

// add appends a value, or counts the reason why it is absent.
func (e *Evaluator) add(in scope, row *Row, extra Extra, number float64, reason Reason) {
	if reason == OK && (math.IsNaN(number) || math.IsInf(number, 0)) {
		reason = Contradiction
	}
	if reason != OK {
		e.Absent[reason]++
		if reason != Pending {
			return
		}
	}
	e.values = append(e.values, Value{
		Row: row, Group: in.number, Rollup: in.rollup, Extra: extra, Attributes: in.attributes, Number: number, Pending: reason == Pending,
	})
}

// sum adds the parts of one more engine. An engine without a value is left out. One that
// is pending makes the sum pending, and one with a defect makes it absent: the others alone
// would be reported as the whole.
func (p *Parts) sum(other Parts) {
	switch {
	case p.Reason == Pending || other.Reason == Pending:
		p.Reason = Pending
	case p.Reason == KnownDefect || other.Reason == KnownDefect:
		p.Reason = KnownDefect
	case p.Whole && p.Reason != OK:
	case other.Whole && other.Reason != OK:
		*p = other
	case other.Reason == OK && p.Reason == OK:
		p.Numerator += other.Numerator
		p.Denominator += other.Denominator
	case other.Reason == OK:
		*p = other
	}
}

func (e *Evaluator) quotient(settings *Settings, members []Member, in scope, row *Row) {
	total := Parts{Reason: Missing}
	for i := range members {
		parts := row.Of(settings, &members[i])
		if i == 0 {
			total = parts
		} else {
			total.sum(parts)
		}
	}
	value, reason := total.Divide()
	e.add(in, row, Extra{}, value, reason)
}

// several evaluates a row with attributes of its own. Their values are few; the cap
// protects against hostile servers.
func (e *Evaluator) several(members []Member, in scope, row *Row) {
	// before is the sum over the members so far for a value that none of them has.
	entries, before, reason := e.entries[:0], noParts, Missing
	for i := range members {
		own, rest, one := row.Several(&members[i], e.ofMember[:0])
		for k := range entries {
			parts := rest
			if at := find(own, entries[k].extra); at >= 0 {
				parts = own[at].parts
			}
			entries[k].parts.sum(parts)
		}
		for _, next := range own {
			if len(entries) < maxExtras && find(entries, next.extra) < 0 && !(in.misattributed && next.extra == row.speculativeExtra) {
				next.parts.sum(before)
				entries = append(entries, next)
			}
		}
		before.sum(rest)
		reason = reason.Together(one, i == 0)
		e.ofMember = own
	}
	e.entries = entries
	if reason == OK && len(entries) == 0 {
		return // all its values belong to the roll-up
	}
	if reason == Pending || len(entries) == 0 {
		e.add(in, row, Extra{}, 0, reason)
		return
	}
	for k := range entries {
		value, reason := entries[k].parts.Divide()
		e.add(in, row, entries[k].extra, value, reason)
	}
}

// maxExtras is the most values of a row's own attributes for one engine.
const maxExtras = 64

func (e *Evaluator) quantiles(settings *Settings, members []Member, in scope, row *Row) {
	e.merged.Reset()
	reason := Missing
	for i := range members {
		e.one.Reset()
		one := row.Quantiles(&members[i], &e.one)
		if one == OK {
			e.merged.Add(&e.one)
		}
		reason = reason.Together(one, i == 0)
	}
	if reason == OK && e.merged.Count <= 0 {
		reason = Idle
	}
	for _, q := range settings.Quantiles {
		if row.bounds {
			lower, upper, ok := e.merged.Interval(q.Rank)
			for i, end := range [...]float64{lower, upper} {
				why := reason
				if reason == OK && (!ok || math.IsInf(end, 1)) {
					why = Missing
				}
				e.add(in, row, Extra{q.Text, [...]string{"lower", "upper"}[i]}, end, why)
			}
			continue
		}
		value, why := 0.0, reason
		if reason == OK {
			value, why = settings.Quantile(&e.merged, q.Rank)
		}
		e.add(in, row, Extra{q.Text}, value, why)
	}
}
