package accuracy

import (
	"math"

	"github.com/otelcol-vllm/otelcol-vllm/internal/vllmsim/engine"
)

// minute sums up the requests that arrived in one minute, without those that the
// API server refused.
type minute struct {
	// requests counts them, queued is the time they spent in the engine's queue.
	requests, queued float64
	// firstToken is the sum of the times to first token; a request without a first
	// token counts with its age. firsts are the single times, for objectives.
	firstToken float64
	firsts     []float32
	// decoding is the time after first tokens, and tokens is the number of further
	// tokens. Their quotient is the wait of a client per token, also with speculation.
	decoding, tokens float64
	gaps             [len(engine.GapBounds) + 1]float64
	// complete counts complete answers with uncorrupted content.
	complete float64
	// answers has, per complete answer, its time to the first token and its mean
	// distance between tokens, for the goodput under objectives.
	answers [][2]float32
}

func (m *minute) add(o *engine.Outcome) {
	if o.End == engine.EndRefused {
		return
	}
	m.requests++
	m.queued += o.Queue
	first := o.FirstToken
	if first == 0 {
		first = o.Ended - o.Arrived
	}
	m.firstToken += first
	m.firsts = append(m.firsts, float32(first))
	steps := 0.0
	for i, n := range o.Gaps {
		m.gaps[i] += float64(n)
		steps += float64(n)
	}
	decoding, tokens := o.MeanGap*steps, float64(max(0, o.Output-1))
	if o.End == engine.EndNone && o.FirstToken > 0 {
		// It has waited for its next token since the last one.
		if waits := o.Ended - o.Arrived - o.FirstToken - decoding; waits > 0 {
			decoding += waits
			tokens++
			m.gaps[gapBucket(waits)]++
		}
	}
	m.decoding += decoding
	m.tokens += tokens
	if (o.End == engine.EndStop || o.End == engine.EndLength) && !o.Corrupted {
		m.complete++
		m.answers = append(m.answers, [2]float32{float32(first), float32(decoding / max(1, tokens))})
	}
}

func gapBucket(seconds float64) int {
	for i, bound := range engine.GapBounds {
		if seconds <= bound {
			return i
		}
	}
	return len(engine.GapBounds)
}

// meanFirst is the mean time to the first token in seconds.
func (m *minute) meanFirst() float64 { return quotient(m.firstToken, m.requests) }

// perToken is the mean time per further token in seconds.
func (m *minute) perToken() float64 { return quotient(m.decoding, m.tokens) }

// meanQueue is the mean time in the engine's queue in seconds.
func (m *minute) meanQueue() float64 { return quotient(m.queued, m.requests) }

// missed is the share of observations beyond an objective's threshold.
func (m *minute) missed(o Objective) float64 {
	over, all := 0.0, 0.0
	if !o.InterToken {
		for _, v := range m.firsts {
			if float64(v) > o.Threshold {
				over++
			}
		}
		return quotient(over, m.requests)
	}
	for i, n := range m.gaps {
		all += n
		if i == len(engine.GapBounds) || engine.GapBounds[i] > o.Threshold {
			over += n
		}
	}
	return quotient(over, all)
}

// good is the share of requests with a complete answer within the objectives.
func (m *minute) good(objectives []Objective) float64 {
	n := 0.0
	for _, a := range m.answers {
		within := true
		for _, o := range objectives {
			v := a[0]
			if o.InterToken {
				v = a[1]
			}
			within = within && float64(v) <= o.Threshold
		}
		if within {
			n++
		}
	}
	return quotient(n, m.requests)
}

func quotient(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// The bounds of harm, and the least number of requests for which a minute is judged.
const (
	slowdown     = 1.3
	slowerFirst  = 0.100
	slowerToken  = 0.005
	goodputLoss  = 0.05
	leastInAMean = 20
)

// harm is the harm of a minute.
type harm struct {
	// judged is false where too few requests arrived for a judgement.
	judged bool
	// latency is true if an objective was missed that the nominal run met, or, for a
	// measure without an objective, if the mean exceeded that of the nominal run by
	// the bounds. lost is true if there were too few complete answers.
	latency, lost bool
}

func (h harm) any() bool { return h.latency || h.lost }

// judge compares a minute of the actual run with the same one of the nominal run.
// An objective for first tokens or for the time between tokens decides alone about
// that measure: with an objective of 2.5 s, 200 ms instead of 100 ms is not harm.
func judge(actual, nominal *minute, objectives []Objective) harm {
	h := harm{judged: actual.requests >= leastInAMean && nominal.requests >= leastInAMean}
	if !h.judged {
		return h
	}
	var firstPromised, tokenPromised bool
	for _, o := range objectives {
		firstPromised = firstPromised || !o.InterToken
		tokenPromised = tokenPromised || o.InterToken
		if actual.missed(o) > 1-o.Target && nominal.missed(o) <= 1-o.Target {
			h.latency = true
		}
	}
	slower := func(a, w, least float64) bool { return a > slowdown*w && a-w > least }
	h.latency = h.latency ||
		!firstPromised && slower(actual.meanFirst(), nominal.meanFirst(), slowerFirst) ||
		!tokenPromised && slower(actual.perToken(), nominal.perToken(), slowerToken)
	h.lost = actual.good(objectives) < (1-goodputLoss)*nominal.good(objectives)
	return h
}

// delay is how much longer a nominal request of so many tokens takes than in the
// nominal run, in seconds: the measure of harm by latency.
func delay(m, nominal *minute, tokens float64) float64 {
	return math.Max(0, m.meanFirst()-nominal.meanFirst()) + tokens*math.Max(0, m.perToken()-nominal.perToken())
}
