package pools

import (
	"cmp"
	"math"
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/diagnose"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
)

const (
	// halfLost is the share of the engines that should serve from which on a pool has the
	// condition of those that do not. With fewer of them it is degraded.
	halfLost = 0.5
	// loadHarmed is the share of a pool's requests on degraded and failing engines from
	// which on the pool is degraded. The pool stays degraded until the share is below
	// stillHarmed times that.
	loadHarmed  = 0.2
	stillHarmed = diagnose.StillHarm
	// leastLoad is the weight of an engine without requests: its harm may keep them away.
	leastLoad = 0.01
	// room is the utilization of the KV cache up to which an engine without a queue could
	// take more.
	room = 0.7
	// heldBack is the harmful delay at the gateway, in seconds, while the servers have
	// room: as much as for the time to the first token.
	heldBack = 0.1
	// greatDelay is how many times as long as usual the gateways hold requests back, leastDelay for how
	// many seconds at least, and fewest how many requests of a window show it.
	greatDelay, leastDelay, fewest = 5, 0.5, 5
	// readBefore is for how many windows a delay has to last longer than other harm. A gateway that is read
	// less often shows for as long what the servers needed before.
	readBefore = 2
)

// pool is one pool.
type pool struct {
	place[Source]
	report  *diagnose.Report
	members []member
	// siblings are by model and configuration, at most signal.MostReferences.
	siblings []*siblings
	// queued is how many requests wait before the pool's servers.
	queued float64
	// delay is what its gateways add, NaN where it is not known; usualDelay is what they have added.
	delay      Delay
	usualDelay history
	// late is true where they hold requests back.
	late bool
	// asked is what its engines are asked for, askedBefore the same at the evaluation before.
	asked, askedBefore diagnose.Load
	// before is its diagnosis before the collector restarted, until the first evaluation; nil
	// without one. It holds for a window from resumed on, a time in Unix nanoseconds; 0 where
	// it does not hold, or not any more.
	before  []byte
	resumed int64
}

func (p *pool) empty() bool { return len(p.members) == 0 }

func (p *pool) clear() { //nolint:unused // of placed, which the linter does not follow
	clear(p.members)
	p.members, p.queued, p.delay = p.members[:0], 0, unknownDelay
	p.asked, p.askedBefore = diagnose.Load{}, p.asked
}

// member is an engine of a pool.
type member struct {
	diagnose.Member
	// load is the number of its requests, waiting that of those that wait, work the
	// tokens per second of the requests that arrive, rate the first tokens per second; NaN
	// where one is not known.
	load, waiting, kv, work, rate float64
	// server is the name of its server.
	server string
}

func newMember(e *diagnose.Member, server string) member {
	s := &e.Signals
	return member{
		Member: *e, server: server,
		load: signal.OrZero(s[signal.Running]) + signal.OrZero(s[signal.Waiting]), waiting: signal.OrZero(s[signal.Waiting]),
		kv:   s[signal.KVUtilization],
		work: s[signal.ArrivalRate] * (s[signal.PromptTokens] + signal.OrZero(s[signal.OutputTokens])), rate: s[signal.FirstTokenRate],
	}
}

func (m *member) weight() float64 { return max(m.load, leastLoad) }

// roomy reports whether an engine that serves could take more. The KV utilization of an
// idle engine is that of its last step.
func (m *member) roomy() bool {
	return m.Verdict.Condition == diagnose.Idle || m.Verdict.Condition == diagnose.Healthy && m.waiting < 1 && !(m.kv > room)
}

// takes reports whether requests that wait at a gateway could be for the pool.
func (p *pool) takes(q *diagnose.Queue) bool {
	if p == nil || p.empty() {
		return false
	}
	for _, a := range q.Attributes {
		for _, b := range p.attributes {
			if a.Name == b.Name && a.Value != b.Value {
				return false
			}
		}
	}
	return true
}

// roomy reports whether there are engines that should serve and all of them have room.
func (p *pool) roomy() bool {
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

// resting reports whether an engine need not serve now.
func (m *member) resting() bool {
	return m.Verdict.Condition == diagnose.Asleep || m.Verdict.Condition == diagnose.Starting || m.Verdict.Condition == diagnose.Draining
}

// judge returns what this evaluation alone shows. The order of the cases is the
// precedence.
func (p *pool) judge(settings *diagnose.Settings, at int64) diagnose.Judgement {
	var count [diagnose.NumConditions]float64
	var load, harmed, serving float64
	var shares diagnose.Shares
	explained, uneven := false, p.uneven()
	for i := range p.members {
		m := &p.members[i]
		count[m.Verdict.Condition]++
		if !m.resting() {
			serving++
			load += m.weight()
		}
		// Who waits where more is asked for, while others have room, is harmed by the routing.
		if m.Harmed() || uneven && m.Verdict.Harms() && m.waiting > 1 {
			harmed += m.weight()
			shares = shares.Plus(m.Shares.Scale(m.weight()))
			explained = explained || m.Verdict.Explained
		}
	}
	p.late = p.delayed(settings)
	starved := p.starved(settings, at)
	enough := loadHarmed
	if c := p.report.Reported.Condition; c == diagnose.Degraded || c == diagnose.Critical {
		enough *= stillHarmed
	}
	lost := count[diagnose.Failing] + count[diagnose.Stalled] + count[diagnose.Unreachable]
	shares = p.lose(shares, harmed, load/serving, lost < halfLost*serving)
	j := diagnose.Judgement{
		At: at, Signals: p.signals(), Details: p.details(), Reference: p.reference(), Explained: explained,
	}
	switch {
	case lost > 0 && lost >= halfLost*serving:
		j.Condition, j.Shares = most(&count, diagnose.Unreachable, diagnose.Stalled, diagnose.Failing), balance(shares, uneven)
	case count[diagnose.Critical] > 0 && lost+count[diagnose.Critical] >= halfLost*serving:
		j.Condition, j.Shares = diagnose.Critical, balance(shares, uneven)
	case lost > 0, harmed > 0 && harmed >= enough*load:
		j.Condition, j.Shares = diagnose.Degraded, balance(shares, uneven)
	case starved:
		j.Condition, j.Shares[diagnose.UpstreamStarved] = diagnose.Degraded, 1
	case count[diagnose.Unknown] > serving/2:
		j.Condition = diagnose.Unknown
	case count[diagnose.Healthy]+count[diagnose.Degraded]+count[diagnose.Critical] > 0:
		j.Condition = diagnose.Healthy
	default:
		j.Condition = most(&count, diagnose.Idle, diagnose.Unknown, diagnose.Starting, diagnose.Asleep, diagnose.Draining)
	}
	return j
}

// lose adds that servers are lost to the sum of the causes of harmed engines, and returns the shares. One that does not
// answer or stands still has no cause of its own; it weighs as much as the mean of all at least, because its requests are
// not known. Where only a few fail, a part of their harm is that they still belong to the pool.
func (p *pool) lose(s diagnose.Shares, harmed, mean float64, few bool) diagnose.Shares {
	for i := range p.members {
		switch m := &p.members[i]; {
		case m.Verdict.Condition == diagnose.Stalled, m.Verdict.Condition == diagnose.Unreachable:
			weight := max(m.weight(), m.Asked.Requests, mean)
			s[diagnose.ServersLost] += weight
			harmed += weight
		case m.Verdict.Condition == diagnose.Failing && few:
			s = s.Plus(m.Shares.Scale(-toLost * m.weight()))
			s[diagnose.ServersLost] += toLost * m.weight()
		}
	}
	if harmed > 0 {
		// The unexplained part of an engine's harm stays unexplained in its pool.
		s = s.Scale(1 / harmed)
	}
	return s
}

// most returns the condition that most members are in; of equal ones the first.
func most(count *[diagnose.NumConditions]float64, of ...diagnose.Condition) diagnose.Condition {
	return slices.MaxFunc(of, func(a, b diagnose.Condition) int {
		return cmp.Or(cmp.Compare(count[a], count[b]), cmp.Compare(slices.Index(of, b), slices.Index(of, a)))
	})
}

// starved reports whether requests have waited before servers with room for as long as
// the hold, and for a delay longer. Once that is reported, it takes as long to end.
func (p *pool) starved(settings *diagnose.Settings, at int64) bool {
	rate := 0.0
	for i := range p.members {
		rate += signal.OrZero(p.members[i].rate)
	}
	r := p.report
	verdict := &r.Reported
	reported := r.Starved > 0 && verdict.Condition == diagnose.Degraded && verdict.Explained && verdict.Primary == diagnose.UpstreamStarved
	queue, hold := p.queued >= 1 && p.queued >= heldBack*rate, settings.HoldTime()
	if !queue && !reported {
		hold += readBefore * int64(settings.Window)
	}
	switch now := (queue || p.late) && p.roomy(); {
	case now:
		r.Fed = 0
		r.Starved = cmp.Or(r.Starved, at)
	case !reported:
		r.Starved = 0
	case r.Fed == 0:
		r.Fed = at
	}
	if r.Fed > 0 && at-r.Fed >= settings.HoldTime() {
		r.Starved, r.Fed = 0, 0
	}
	return r.Starved > 0 && at-r.Starved >= hold
}

// delayed reports whether the gateways hold requests back: much longer than they usually do, and longer than
// the servers then need. A delay that is always there is usual.
func (p *pool) delayed(settings *diagnose.Settings) bool {
	usual, d := p.usualDelay.usual(), &p.delay
	return d.Gateway >= leastDelay && d.Gateway >= greatDelay*usual && d.Gateway >= d.Engines && d.Rate*settings.Window.Seconds() >= fewest
}

const (
	// unevenLoad and unevenWork are how many times as many requests, and as many arriving
	// tokens, degraded engines have to have as the others. A slow engine holds more
	// requests; no more arrive at it.
	unevenLoad, unevenWork = 2, 1.5
	// toImbalance is the share of an overload that is attributed to the routing. The rest
	// stays with the causes of the engines.
	toImbalance = 0.6
	// toLost is the share of the harm of a few failing servers that is attributed to their place in the pool.
	toLost = 0.6
)

// uneven reports whether some engines are overloaded while others have room.
func (p *pool) uneven() bool {
	var harmed, others side
	roomy := 0.0
	for i := range p.members {
		switch m := &p.members[i]; m.Verdict.Condition {
		case diagnose.Degraded, diagnose.Critical:
			harmed.add(m)
		case diagnose.Healthy, diagnose.Idle:
			others.add(m)
			if m.roomy() {
				roomy++
			}
		}
	}
	verdict := &p.report.Reported
	switch {
	case harmed.n == 0, others.n == 0, roomy < others.n/2:
		return false
	case verdict.Explained && verdict.Primary == diagnose.Imbalanced, verdict.Contributing[diagnose.Imbalanced]:
		// The queue that uneven routing has left outlives it.
		return true
	case harmed.load/harmed.n < unevenLoad*math.Max(others.load/others.n, 0.5):
		return false
	}
	// Where as many tokens arrive at the others, requests stay because the engine is slow.
	return !(harmed.work/harmed.n < unevenWork*others.work/others.n)
}

// balance attributes a part of the overload of some engines to the imbalance, where
// others have room: if the requests were spread evenly, the overload would be smaller.
func balance(s diagnose.Shares, uneven bool) diagnose.Shares {
	if !uneven {
		return s
	}
	for _, c := range []diagnose.Cause{diagnose.DemandExceedsCapacity, diagnose.KVPressure, diagnose.DecodeLoad, diagnose.PrefillHeavy} {
		s[diagnose.Imbalanced] += toImbalance * s[c]
		s[c] *= 1 - toImbalance
	}
	return s
}

// side is the degraded engines of a pool, or the others.
type side struct{ n, load, work float64 }

func (s *side) add(m *member) {
	s.n++
	s.load += m.load
	if m.Verdict.Condition == diagnose.Idle {
		// Nothing arrives, also where the engine does not report that.
		s.work += signal.OrZero(m.work)
		return
	}
	s.work += m.work
}

// details are those of the engine that each cause harms most: a pool has no baseline of
// its own.
func (p *pool) details() (details [diagnose.NumCauses]string) {
	var most [diagnose.NumCauses]float64
	for i := range p.members {
		m := &p.members[i]
		if !m.Harmed() {
			continue
		}
		for c := range diagnose.NumCauses {
			if by := m.Shares[c] * m.weight(); by > most[c] {
				most[c], details[c] = by, m.Details[c]
			}
		}
	}
	return details
}

// reference is what most of the pool's harmed requests were compared with.
func (p *pool) reference() diagnose.Reference {
	var by [diagnose.Objectives + 1]float64
	for i := range p.members {
		if m := &p.members[i]; m.Harmed() {
			by[m.Verdict.Reference] += m.weight()
		}
	}
	return diagnose.Reference(slices.Index(by[:], slices.Max(by[:])))
}
