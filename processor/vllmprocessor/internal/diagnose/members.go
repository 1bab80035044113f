package diagnose

import (
	"cmp"
	"math"
	"slices"
)

const (
	// halfLost is the share of the engines that should serve from which on a pool is
	// told as those that do not; with fewer it is degraded.
	halfLost = 0.5
	// loadHarmed is the share of a pool's requests on engines that are degraded from
	// which on the pool is.
	loadHarmed = 0.2
	// leastLoad is the weight of an engine without requests: what harms it keeps them
	// away.
	leastLoad = 0.01
	// room is the utilization of the KV cache up to which an engine without a queue
	// could take more.
	room = 0.7
	// unevenLoad and unevenWork are how many times what the other engines have in
	// work, and what comes to them, that of the degraded ones has to be. What is in
	// work grows in an engine that is slow; what comes does not.
	unevenLoad, unevenWork = 2, 1.5
	// toImbalance is the share of what overloads single engines that is the doing of
	// who spreads the requests; the rest is what is told of the engines.
	toImbalance = 0.6
	// heldBack is for how many seconds requests are held back before servers that
	// have room from when on it harms: as much as for the time to the first token.
	heldBack = 0.1
)

// poolState is one pool. What is told about it is kept as that of an engine.
type poolState struct {
	engine
	members []member
	// first is the first resource of its members, shared is true where it has others,
	// too. owner is the only resource at the previous evaluation, or the one for which
	// the pool was made since. made is greater for a pool that was made later.
	first, owner *State
	shared       bool
	made         int
	details      [NumCauses]string
	// queued are the requests that wait before the pool's servers, since
	// starvedSince without a reason; fedSince is when that ended, for now.
	queued                 float64
	starvedSince, fedSince int64
}

// member is an engine of a pool as it is told. The engine is a copy with no more
// than what is told of it, since the resource that it belongs to goes on.
type member struct {
	engine
	// details are what more is known of the causes, where it is harmed.
	details [NumCauses]string
	// load is the number of requests in it, waiting of those that wait, work the
	// tokens per second that come and that are asked for, rate the first tokens per
	// second; NaN where one is not known.
	load, waiting, kv, work, rate float64
}

func newMember(e *engine) member {
	r := &e.last.Signals
	m := member{
		engine: engine{told: e.told, shares: e.shares, last: reading{Signals: e.last.Signals}},
		load:   orZero(r[Running]) + orZero(r[Waiting]), waiting: orZero(r[Waiting]), kv: r[KVUtilization],
		work: r[ArrivalRate] * (r[PromptTokens] + orZero(r[OutputTokens])), rate: r[FirstTokenRate],
	}
	if m.harmed() {
		for c := range NumCauses {
			m.details[c] = e.detail(c)
		}
	}
	return m
}

func (m *member) weight() float64 { return max(m.load, leastLoad) }

// harmed tells whether users of the engine feel something.
func (m *member) harmed() bool { return m.told.Condition == Degraded || m.told.Condition == Failing }

// roomy tells whether an engine that serves could take more. The KV utilization of
// an idle one is of the past.
func (m *member) roomy() bool {
	return m.told.Condition == Idle || m.told.Condition == Healthy && m.waiting < 1 && !(m.kv > room)
}

// takes tells whether requests that wait at a gateway could be for a pool.
func (p *poolState) takes(q *queue) bool {
	if p == nil || len(p.members) == 0 {
		return false
	}
	for _, a := range q.attributes {
		for _, b := range p.attributes {
			if a.Name == b.Name && a.Value != b.Value {
				return false
			}
		}
	}
	return true
}

// roomy tells whether all engines that should serve have room, of which there is
// one at least.
func (p *poolState) roomy() bool {
	serving := 0
	for i := range p.members {
		switch m := &p.members[i]; {
		case m.resting():
		case !m.roomy():
			return false
		default:
			serving++
		}
	}
	return serving > 0
}

// resting tells whether an engine is not there to serve now, and need not be.
func (m *member) resting() bool {
	return m.told.Condition == Asleep || m.told.Condition == Starting || m.told.Condition == Draining
}

// signals are sums and means over the members that can be read, as evidence.
func (p *poolState) signals() Signals {
	s := unknown()
	var running, waiting, kv, arrivals, readable, measured float64
	for i := range p.members {
		m := &p.members[i]
		if m.told.Condition == Unreachable {
			continue
		}
		readable++
		running += m.load - m.waiting
		waiting += m.waiting
		arrivals += orZero(m.last.Signals[ArrivalRate])
		if known(m.kv) {
			kv += m.kv
			measured++
		}
	}
	if readable > 0 {
		s[Running], s[Waiting], s[ArrivalRate] = running, waiting, arrivals
	}
	if measured > 0 {
		s[KVUtilization] = kv / measured
	}
	return s
}

// describe takes over what more is known of each cause from the engine that it
// harms most: a pool has no baseline of its own.
func (p *poolState) describe() {
	var most [NumCauses]float64
	p.details = [NumCauses]string{}
	for i := range p.members {
		m := &p.members[i]
		if !m.harmed() {
			continue
		}
		for c := range NumCauses {
			if by := m.shares[c] * m.weight(); by > most[c] {
				most[c], p.details[c] = by, m.details[c]
			}
		}
	}
}

// reference is what most of the pool's harmed requests were compared with.
func (p *poolState) reference() Reference {
	var by [Objectives + 1]float64
	for i := range p.members {
		if m := &p.members[i]; m.harmed() {
			by[m.told.Reference] += m.weight()
		}
	}
	most := Defaults
	for r := range by {
		if by[r] > by[most] {
			most = Reference(r)
		}
	}
	return most
}

// judge returns the condition of a pool and why.
func (p *poolState) judge(settings *Settings, at int64) (Condition, Shares) {
	var count [NumConditions]float64
	var load, harmed, serving float64
	var shares Shares
	for i := range p.members {
		m := &p.members[i]
		count[m.told.Condition]++
		if !m.resting() {
			serving++
			load += m.weight()
		}
		if m.harmed() {
			harmed += m.weight()
			shares = shares.plus(m.shares.scale(m.weight()))
		}
	}
	if harmed > 0 {
		// What nothing explains in an engine nothing explains in its pool.
		shares = shares.scale(1 / harmed)
	}
	starved := p.starved(settings, at)
	enough := loadHarmed
	if p.told.Condition == Degraded {
		enough *= stillHarm
	}
	lost := count[Failing] + count[Stalled] + count[Unreachable]
	switch {
	case lost > 0 && lost >= halfLost*serving:
		return most(&count, Unreachable, Stalled, Failing), p.balance(shares)
	case lost > 0, harmed > 0 && harmed >= enough*load:
		return Degraded, p.balance(shares)
	case starved:
		shares = Shares{}
		shares[UpstreamStarved] = 1
		return Degraded, shares
	case count[Unknown] > serving/2:
		return Unknown, Shares{}
	case count[Healthy]+count[Degraded] > 0:
		return Healthy, Shares{}
	}
	return most(&count, Idle, Unknown, Starting, Asleep, Draining), Shares{}
}

// most returns the condition that most members are in; of equal ones the first.
func most(count *[NumConditions]float64, of ...Condition) Condition {
	return slices.MaxFunc(of, func(a, b Condition) int {
		return cmp.Or(cmp.Compare(count[a], count[b]), cmp.Compare(slices.Index(of, b), slices.Index(of, a)))
	})
}

// starved tells whether requests wait before servers that have room, and have done
// so for as long as the hold. Once told it takes as long to end.
func (p *poolState) starved(settings *Settings, at int64) bool {
	rate := 0.0
	for i := range p.members {
		rate += orZero(p.members[i].rate)
	}
	told := p.starvedSince > 0 && p.told.Condition == Degraded && p.told.Explained && p.told.Primary == UpstreamStarved
	switch now := p.queued >= 1 && p.queued >= heldBack*rate && p.roomy(); {
	case now:
		p.fedSince = 0
		if p.starvedSince == 0 {
			p.starvedSince = at
		}
	case !told:
		p.starvedSince = 0
	case p.fedSince == 0:
		p.fedSince = at
	}
	if p.fedSince > 0 && at-p.fedSince >= settings.span() {
		p.starvedSince, p.fedSince = 0, 0
	}
	return p.starvedSince > 0 && at-p.starvedSince >= settings.span()
}

// balance gives what overloads single engines to the imbalance where others have
// room: were the requests spread evenly, it would be less.
func (p *poolState) balance(s Shares) Shares {
	var harmed, others side
	roomy := 0.0
	for i := range p.members {
		switch m := &p.members[i]; m.told.Condition {
		case Degraded:
			harmed.add(m)
		case Healthy, Idle:
			others.add(m)
			roomy += truth(m.roomy())
		}
	}
	switch {
	case harmed.n == 0, others.n == 0, roomy < others.n/2:
		return s
	case p.told.Explained && p.told.Primary == Imbalanced, p.told.Contributing[Imbalanced]:
		// What has queued is worked off before users feel nothing any more.
	case harmed.load/harmed.n < unevenLoad*math.Max(others.load/others.n, 0.5):
		return s
	case harmed.work/harmed.n < unevenWork*others.work/others.n:
		// As much comes to the others. The requests stay because the engine is slow.
		return s
	}
	for _, c := range []Cause{DemandExceedsCapacity, KVPressure, DecodeLoad, PrefillHeavy} {
		s[Imbalanced] += toImbalance * s[c]
		s[c] *= 1 - toImbalance
	}
	return s
}

// side are the engines of a pool that are harmed, or the others.
type side struct{ n, load, work float64 }

func (s *side) add(m *member) {
	s.n++
	s.load += m.load
	if m.told.Condition == Idle {
		// Nothing comes, whether or not the engine says so.
		s.work += orZero(m.work)
		return
	}
	s.work += m.work
}
