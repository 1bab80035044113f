package judge

// sum adds up the requests of one run that count in one minute.
type sum struct {
	requests, queued float64
	firstToken       float64
	decoding, tokens float64
	good             float64
	over, of         []float64
}

func (m *sum) add(s *seen) {
	m.requests++
	m.queued += s.queued
	m.firstToken += s.first
	m.decoding += s.decoding
	m.tokens += s.tokens
	if s.good {
		m.good++
	}
	if m.over == nil {
		m.over, m.of = make([]float64, len(s.over)), make([]float64, len(s.over))
	}
	for i := range s.over {
		m.over[i] += s.over[i]
		m.of[i] += s.of[i]
	}
}

// meanFirst is the mean time to the first token in seconds.
func (m *sum) meanFirst() float64 { return quotient(m.firstToken, m.requests) }

// perToken is the mean time per further token in seconds.
func (m *sum) perToken() float64 { return quotient(m.decoding, m.tokens) }

// meanQueue is the mean time in the engine's queue in seconds.
func (m *sum) meanQueue() float64 { return quotient(m.queued, m.requests) }

// goodput is the share of requests with a complete answer within the objectives.
func (m *sum) goodput() float64 { return quotient(m.good, m.requests) }

// missed is the share of observations beyond the threshold of an objective.
func (m *sum) missed(i int) float64 {
	if i >= len(m.over) {
		return 0
	}
	return quotient(m.over[i], m.of[i])
}

func quotient(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// The bar of harm, and the least number of requests for which a minute is judged.
const (
	slowdown     = 0.3
	slowerFirst  = 0.100
	slowerToken  = 0.005
	goodputLoss  = 0.05
	leastInAMean = 20
)

// harm is that of a minute as a multiple of the bar: more than 1 is harmful. Latency is an
// objective that was missed and that the nominal run meets; where that misses it as well, the
// share that is missed beyond it, against the share that the target allows. For a measure
// without an objective it is a mean that exceeds that of the nominal run. Lost is too few
// complete answers.
type harm struct {
	judged        bool
	latency, lost float64
}

func (h harm) effect() float64 { return max(h.latency, h.lost) }

// assess compares the requests of the actual run with the same ones of the nominal run.
// An objective for first tokens or for the time between tokens decides alone about that
// measure: with an objective of 2.5 s, 200 ms instead of 100 ms is not harm.
func assess(actual, nominal *sum, objectives []objective) harm {
	h := harm{judged: nominal.requests >= leastInAMean}
	if !h.judged {
		return h
	}
	var first, token bool
	for i, o := range objectives {
		first = first || o.of == firstToken
		token = token || o.of == interToken || o.of == tokenMean
		missed, usual, allowed := actual.missed(i), nominal.missed(i), 1-o.target
		switch {
		case missed <= usual:
		case usual <= allowed:
			h.latency = max(h.latency, missed/allowed)
		default:
			h.latency = max(h.latency, (missed-usual)/allowed)
		}
	}
	slower := func(a, w, least float64) float64 { return (a - w) / max(slowdown*w, least) }
	if !first {
		h.latency = max(h.latency, slower(actual.meanFirst(), nominal.meanFirst(), slowerFirst))
	}
	if !token {
		h.latency = max(h.latency, slower(actual.perToken(), nominal.perToken(), slowerToken))
	}
	if whole := nominal.goodput(); whole > 0 {
		h.lost = max(0, 1-actual.goodput()/whole) / goodputLoss
	}
	return h
}

// delay is how much longer a request of so many tokens takes than in the nominal run, in
// seconds: the measure of harm by latency.
func delay(m, nominal *sum, tokens float64) float64 {
	return max(0, m.meanFirst()-nominal.meanFirst()) + tokens*max(0, m.perToken()-nominal.perToken())
}

// undone is the share of the harm that is absent in another run: of the delay, of the lost
// answers, or their mean if both are harmful, so that seconds and answers have the same
// weight.
func (h harm) undone(actual, other, nominal *sum, tokens float64) float64 {
	total, kinds := 0.0, 0.0
	add := func(all, left float64) {
		kinds++
		if all > 0 {
			total += min(1, max(0, (all-left)/all))
		}
	}
	if h.latency > 1 {
		add(delay(actual, nominal, tokens), delay(other, nominal, tokens))
	}
	if h.lost > 1 {
		whole := nominal.goodput()
		add(max(0, whole-actual.goodput()), max(0, whole-other.goodput()))
	}
	return quotient(total, kinds)
}
