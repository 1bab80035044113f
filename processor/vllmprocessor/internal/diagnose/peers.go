package diagnose

import (
	"cmp"
	"math"
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
)

// An engine that needs longer than its siblings for the same work is slower, and nothing has to be
// learned of it to see that. Siblings are the engines of a pool that serve one model with one
// configuration, of whatever version.

// Peers are what an engine can be compared with. They are shared and never change.
type Peers struct {
	// Siblings are at most MostSiblings + 1 engines, since the engine itself may be one of them.
	Siblings []Sibling
	// Before is what was usual in the pool before; nil where that is not known.
	Before *signal.Model
}

// MostSiblings bounds the engines that one is compared with: the median of 16 is as good as that
// of a thousand.
const MostSiblings = 16

// Sibling is an engine, and what is usual for it.
type Sibling struct {
	Usual *signal.Model
	// Settled is true where what is usual for it can be the reference of the pool: it is not
	// harmed or slower than usual, and did not change its version.
	Settled bool

	engine *engine
}

// Sibling returns what others can be compared with; false while too little was learned. It is
// valid until the next evaluation.
func (m *Member) Sibling() (Sibling, bool) {
	e := m.engine
	if e == nil {
		return Sibling{}, false
	}
	if b := e.baseline; e.model == nil || e.model.Learned != b.Learned {
		e.model = signal.NewModel(b)
	}
	if e.model == nil {
		return Sibling{}, false
	}
	settled := e.baseline.Earlier == "" && e.Reported.Severity < 2 && e.Changes[slowerSteps].Score < suspicious
	return Sibling{e.model, settled, e}, true
}

// Meet gives an engine what it is compared with until the next call. An engine of which little was
// learned begins with what was usual in its pool.
func (m *Member) Meet(peers *Peers) {
	e := m.engine
	if e == nil {
		return
	}
	e.peers = peers
	if peers == nil || peers.Before == nil || e.baseline.Ready() || e.baseline.Began {
		return
	}
	except := changedBetween(cmp.Or(peers.Before.Version, e.baseline.Version), e.baseline.Version)
	e.baseline.Begin(peers.Before, &except)
}

const (
	// spreadPrior is by how much healthy siblings differ as long as little is known, as a
	// standard deviation of the logarithm, and spreadSiblings for how many siblings that counts:
	// a guess that leaves room for hosts and GPUs of one type that are not equal.
	spreadPrior    = 0.1
	spreadSiblings = 3
	// mostUncertain is the uncertainty from which on a sibling says nothing about a load, because
	// it knows only others.
	mostUncertain = 0.2
	// Of two engines it is not known which is usual: one is slower beyond doubt from this ratio
	// and so many deviations on.
	ratioOfTwo, deviationsOfTwo = 1.25, 4
	// forgetsRatio is how fast the greatest logarithm of the ratio to siblings is forgotten, in a
	// window. The ratio at equal work is greater than that at equal load, so that the newest
	// alone would be accepted too small.
	forgetsRatio = 0.01
)

// beside is how long an engine takes beside its siblings: the logarithm of the ratio to their
// median, which is positive where it is slower, the uncertainty of that median, and
// the standard deviation of the ratio between healthy siblings. siblings is how many they are, of
// which so many are as slow as the engine, and median the model of the one in the middle.
type beside struct {
	growth, uncertainty, deviation float64
	siblings, asSlow               int
	median                         *signal.Model
}

// compareWith compares a time with what siblings would need for the same load or, where they know
// more about that, for the same work: an engine that is slower has more sequences at once than
// its siblings ever had, but its work is as theirs.
func (p *Peers) compareWith(e *engine, seconds float64, atLoad, atWork func(m *signal.Model) signal.Expected) beside {
	load, work := p.compareAt(e, seconds, atLoad), p.compareAt(e, seconds, atWork)
	if work.siblings > load.siblings || work.siblings == load.siblings && work.uncertainty < load.uncertainty {
		return work
	}
	return load
}

func (p *Peers) compareAt(e *engine, seconds float64, expect func(m *signal.Model) signal.Expected) beside {
	type answer struct {
		signal.Expected
		from *signal.Model
	}
	var all [MostSiblings]answer
	n := 0
	for i := range p.Siblings {
		s := &p.Siblings[i]
		if s.engine == e || n == MostSiblings {
			continue
		}
		if x := expect(s.Usual); x.Uncertainty <= mostUncertain {
			all[n] = answer{x, s.Usual}
			n++
		}
	}
	out := beside{growth: math.NaN(), siblings: n}
	if n == 0 || !(seconds > 0) {
		return out
	}
	slices.SortFunc(all[:n], func(a, b answer) int { return cmp.Compare(a.Seconds, b.Seconds) })
	median := all[n/2] // Of two in the middle the slower one: an engine is in the right while there is doubt.
	var differences [MostSiblings]float64
	out.growth = math.Log(seconds / median.Seconds)
	for i, x := range all[:n] {
		differences[i] = math.Abs(math.Log(x.Seconds / median.Seconds))
		if math.Log(seconds/x.Seconds) < max(out.growth/2, spreadPrior) {
			out.asSlow++
		}
	}
	slices.Sort(differences[:n])
	// The median of the absolute differences, so that a few siblings that are slow or lie change
	// little; 1.48 times it is the standard deviation of a normal distribution.
	spread := 1.48 * differences[n/2]
	out.uncertainty, out.median = median.Uncertainty, median.from
	out.deviation = math.Hypot(median.Deviation,
		math.Sqrt((spreadPrior*spreadPrior*spreadSiblings+spread*spread*float64(n))/(spreadSiblings+float64(n))))
	return out
}

// slower returns a growth of a time against siblings, and the same in deviations. Where more than
// a third of the engines are as slow it is another class of hardware and no fault: an engine that
// became slower is seen by its own baseline.
func (b *beside) slower(accepted, swing float64) (grown, deviations float64) {
	growth := b.growth - accepted
	if b.asSlow > 0 && 3*(b.asSlow+1) > b.siblings+1 {
		growth = min(growth, 0)
	}
	grown, deviations = slower(growth, b.uncertainty, math.Hypot(b.deviation, uneven*swing))
	if b.siblings == 1 && (growth < math.Log(ratioOfTwo) || deviations < deviationsOfTwo) {
		grown, deviations = min(grown, 0), min(deviations, 0)
	}
	return grown, deviations
}

// observePeers collects the evidence that an engine is slower than its siblings, in addition to
// what its own baseline shows: the greater evidence counts, with its growth.
func (e *engine) observePeers(r *reading, swing, windows float64, grown, deviated *growths) {
	if e.peers == nil || !(r.FirstTokens >= signal.LeastFirstTokens) {
		return
	}
	sequences, tokens, prompt := r.StepLoad()
	work := r.Work()
	step := e.peers.compareWith(e, r.Signals[signal.StepTime],
		func(m *signal.Model) signal.Expected { return m.Step(sequences, tokens, prompt) }, func(m *signal.Model) signal.Expected { return m.StepOf(work) })
	own, others := r.PrefillLoad()
	prefill := e.peers.compareWith(e, r.Signals[signal.PrefillTime],
		func(m *signal.Model) signal.Expected { return m.Prefill(own, others) }, func(m *signal.Model) signal.Expected { return m.PrefillOf(work) })
	prefill.deviation *= 2 // As where a prefill is compared with the own baseline.
	e.instead = nil
	for i, one := range []beside{step, prefill} {
		f := [...]factor{slowerSteps, slowerPrefills}[i]
		if !signal.Known(one.growth) {
			continue
		}
		slower, deviations := one.slower(e.baseline.Accepted, swing)
		e.SlowerThanPeers[i].observe(deviations, windows, changedAt)
		if score := e.SlowerThanPeers[i].Score; score > 0 && score >= e.Changes[f].Score {
			e.Changes[f] = e.SlowerThanPeers[i]
			e.instead = cmp.Or(e.instead, one.median)
			grown[f], deviated[f] = max(slower, signal.OrZero(grown[f])), max(deviations, signal.OrZero(deviated[f]))
		}
	}
	e.Ratio = max(signal.OrZero(step.growth), e.Ratio-forgetsRatio*windows)
}

// reference is what the effect of a change is computed by: the own baseline, with the times of the
// median sibling where the engine is slower than its siblings.
func (e *engine) reference() *signal.Baseline {
	if e.instead == nil {
		return e.baseline
	}
	return e.baseline.With(e.instead)
}

// acceptPeers takes it as usual that an engine is slower than its siblings.
func (e *engine) acceptPeers() {
	e.baseline.Accepted = max(e.Ratio, 0)
	e.SlowerThanPeers = [2]change{}
}
