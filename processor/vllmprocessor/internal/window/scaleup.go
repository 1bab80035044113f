package window

import (
	"math"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// scaledUp reports whether the counters that began anew in this batch are those of a server
// that added engines while it ran. vLLM then creates all its metrics again, with those of
// the new engines, so that all counters of all engines are 0. The process is the same one.
//
// It must be certain, because a restart of a server with more engines than before looks the
// same but for the process. Without a proof that the process is the same one, it is a
// restart.
func (u *update) scaledUp() bool {
	return u.canScaleUp() && u.addsEngines() && u.allBeganAnew() && u.sameProcess()
}

// canScaleUp reports whether the version of the server can add engines.
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
// not show that it began anew. The front end has not restarted.
func (u *update) allBeganAnew() bool {
	for _, e := range u.engines {
		switch {
		case e.seen != u.seq:
		case !e.named():
			if e.restarting == u.seq {
				return false
			}
		case e.restarting != u.seq && e.counted():
			return false
		}
	}
	return true
}

// counted reports whether a counter or distribution of the engine is not 0.
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
