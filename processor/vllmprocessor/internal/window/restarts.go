package window

import (
	"math"
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// restarts finds the engines that have restarted, and those whose counters began again
// without a restart, see scaledUp. Their counters show it: a value fell, the buckets changed, or
// the start moved to the time of the previous point or later. A start equal to the
// point's own time means that the start is not known, as after a restart of the
// collector that scrapes the server. It proves no restart.
func (u *update) restarts() {
	var restarted []*engine
	for i := range u.batch.Samples {
		sample, s := &u.batch.Samples[i], u.series[i]
		if sample.Gone || sample.Level || sample.Input.Define().Kind == input.Gauge || sample.Input.OfReceiver() {
			continue
		}
		g := u.group(sample.Group)
		if g == nil {
			continue
		}
		g.engine.observe(u.seq)
		if s == nil || sample.Delta || s.delta || s.time >= u.batch.Time || u.stale(s) ||
			s.epoch != g.engine.epoch || g.engine.restarting == u.batch.Time {
			continue
		}
		moved := sample.Start != s.start && sample.Start >= s.time && sample.Start < u.batch.Time
		if moved || s.fell(u.numbers(sample), sample.Bounds) {
			g.engine.restarting = u.batch.Time
			restarted = append(restarted, g.engine)
		}
	}
	if len(restarted) == 0 {
		return
	}
	if u.scaledUp() {
		for _, e := range restarted {
			u.renew(e)
		}
		u.scaled = true
		return
	}
	for _, e := range restarted {
		u.restart(e)
	}
	u.report.Resets = len(restarted)
	if front := u.engines[""]; front != nil && u.frontRestarted(front) {
		u.restart(front)
		u.report.Resets++
	}
}

func (e *engine) observe(seq int64) {
	if e.seen != seq {
		e.before, e.seen = e.seen, seq
	}
}

func (u *update) restart(e *engine) {
	u.renew(e)
	e.restarts++
	e.restarted, e.restartedAt = u.seq, u.batch.Time
}

// renew begins a new epoch of an engine. Series that an earlier part of the same batch
// continued are corrected.
func (u *update) renew(e *engine) {
	for _, g := range e.groups {
		u.acquit(g)
		for in := range input.NumMetrics {
			for _, s := range g.inputs.of(in) {
				if s.epoch == e.epoch && s.newest == u.seq && s.time == u.batch.Time && s.cumulative(in) {
					s.begin(in, u)
				}
			}
		}
	}
	e.epoch++
	e.renewed = u.seq
}

// begin corrects a series that was continued earlier in this batch: it counts from 0.
func (s *series) begin(in input.Metric, u *update) {
	s.epoch++
	if s.created >= u.seq || s.known >= u.seq {
		return
	}
	var room [2]buffer
	was := slices.Clone(s.totals.at(u.seq-1, room[0][:]))
	raw := slices.Clone(s.received(room[1][:]))
	total := make([]float64, len(raw))
	for i, v := range raw {
		total[i] = was[i] + v
	}
	s.shift(was, raw)
	s.totals.set(u.seq, total)
	u.storeStep(s, in, s.rest().since, total, was)
}

// frontRestarted reports whether the front end has restarted although its own counters
// do not show it. This is so where all engines have restarted. An engine that was in the
// previous batch and is missing in this one may follow in a later part, so the answer is
// then false. A restart that the front end has shown since the engines were last seen is
// the same restart.
func (u *update) frontRestarted(front *engine) bool {
	if front.restarted == u.seq {
		return false
	}
	restarted := false
	for name, e := range u.engines {
		switch {
		case name == "":
		case e.restarted == u.seq:
			if front.restarted > e.before {
				return false
			}
			restarted = true
		case e.seen == u.seq, e.seen == u.seq-1 && !u.ends(e):
			return false
		}
	}
	return restarted
}

// ends reports whether all groups of an engine end in this batch or have ended before.
func (u *update) ends(e *engine) bool {
	for _, g := range e.groups {
		if !g.ended && !u.endsGroup(g) {
			return false
		}
	}
	return true
}

func (u *update) endsGroup(g *Group) bool {
	if u.ending == nil {
		u.ending = map[*Group]bool{}
		for i := range u.batch.Samples {
			if of := u.groups[u.batch.Samples[i].Group]; u.batch.Samples[i].Gone && of != nil {
				u.ending[of] = true
			}
		}
	}
	return u.ending[g]
}

// scaledUp reports whether the counters that began again in this batch are those of a server
// that added engines while it ran. vLLM then creates all its metrics again, with those of
// the new engines, so that all counters of all engines are 0. The process is the same one.
//
// It must be certain, because a restart of a server with more engines than before looks the
// same but for the process. Without a proof that the process is the same one, it is a
// restart.
func (u *update) scaledUp() bool {
	return u.canScaleUp() && u.addsEngines() && u.allBeganAnew() && u.sameProcess()
}

func (u *update) canScaleUp() bool {
	defect := defects()[catalog.DefectScaleUpResets]
	version := u.Version()
	return defect.in(version) && !version.v0 && !u.severalServers()
}

// addsEngines reports whether the batch has a new engine besides all those of the previous
// batch.
func (u *update) addsEngines() bool {
	for _, e := range u.engines {
		if e.named() && e.seen == u.seq-1 {
			return false
		}
	}
	for i := range u.batch.Groups {
		from := &u.batch.Groups[i]
		if from.Engine() != "" && u.group(i) == nil && u.engines[process(from.Attributes)] == nil {
			return true
		}
	}
	return false
}

// named reports whether it is an engine, and not the front end.
func (e *engine) named() bool { return len(e.groups) > 0 && e.groups[0].Engine() != "" }

// allBeganAnew reports whether no counter of an engine goes on. One that was 0 before does
// not show that it began again. The front end has not restarted.
func (u *update) allBeganAnew() bool {
	for _, e := range u.engines {
		switch {
		case e.seen != u.seq:
		case !e.named():
			if e.restarting == u.batch.Time {
				return false
			}
		case e.restarting != u.batch.Time && e.counted():
			return false
		}
	}
	return true
}

func (e *engine) counted() bool {
	var b buffer
	for _, g := range e.groups {
		for in := range input.NumMetrics {
			for _, s := range g.inputs.of(in) {
				if !s.cumulative(in) {
					continue
				}
				for _, value := range s.received(b[:]) {
					if value != 0 {
						return true
					}
				}
			}
		}
	}
	return false
}

// startJitter is by how many seconds the start of one process may differ: it is computed
// from the time of boot, which follows the clock of the machine.
const startJitter = 1

// SameStart reports whether two starts, in Unix seconds, can be those of one process; also where
// one is 0, which means that it is not known.
func SameStart(a, b float64) bool { return a == 0 || b == 0 || math.Abs(a-b) <= startJitter }

// sameProcess reports whether it is proven that the server is the same process as in the
// previous batch. Either it says when it began. Or the counters of its front end go on:
// each is there again, has not fallen, and has the same start, and they are not all 0. vLLM
// counts what the front end answers apart from its engines.
func (u *update) sameProcess() bool {
	if was, is := u.evidence.ProcessStart, u.batch.Evidence.ProcessStart; was != 0 && is != 0 {
		return SameStart(was, is)
	}
	front := u.engines[""]
	if front == nil {
		return false
	}
	var b buffer
	answered := false
	for i := range u.batch.Samples {
		sample, s := &u.batch.Samples[i], u.series[i]
		if s == nil || !s.cumulative(sample.Input) || u.group(sample.Group).engine != front {
			continue
		}
		if sample.Gone || sample.Start == 0 || sample.Start != s.start || s.time >= u.batch.Time {
			return false
		}
		answered = answered || s.received(b[:])[0] > 0
	}
	for _, g := range front.groups {
		for in := range input.NumMetrics {
			for _, s := range g.inputs.of(in) {
				if s.cumulative(in) && s.newest >= u.seq-1 && !s.ended && s.found != u.seq {
					return false
				}
			}
		}
	}
	return answered
}
