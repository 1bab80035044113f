package judge

// sum adds up the requests of one run that count in one minute.
type sum struct {
	requests, queued float64
	firstToken       float64
	decoding, tokens float64
	computed         float64
	complete         float64
	unended          float64
	over, of         []float64
}

func (m *sum) add(s *seen) {
	m.requests++
	m.queued += s.queued
	m.firstToken += s.first
	m.decoding += s.decoding
	m.tokens += s.tokens
	m.computed += float64(s.prompt - s.cached)
	if s.complete {
		m.complete++
	}
	if s.unended {
		m.unended++
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

// meanComputed is the mean number of prompt tokens that are computed for a request, meanTokens that of its further
// tokens.
func (m *sum) meanComputed() float64 { return quotient(m.computed, m.requests) }
func (m *sum) meanTokens() float64   { return quotient(m.tokens, m.requests) }

// meanWhole is the mean time of a whole request in seconds.
func (m *sum) meanWhole() float64 { return quotient(m.firstToken+m.decoding, m.requests) }

// completed is the share of requests with a complete answer.
func (m *sum) completed() float64 { return quotient(m.complete, m.requests) }

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
	lostAnswers  = 0.05
	leastInAMean = 20
)

// harm is that of a minute as multiples of the bar: more than 1 is harmful. Slower has the
// harm by each measure of latency, lost is too few complete answers.
type harm struct {
	judged bool
	slower [measures]float64
	lost   float64
}

// latency is the harm by the worst measure of latency.
func (h harm) latency() float64 { return max(h.slower[toFirst], h.slower[toToken], h.slower[toEnd]) }

func (h harm) effect() float64 { return max(h.latency(), h.lost) }

// assess compares the requests of the actual run with the same ones of the nominal run W.
//
// Objectives that W meets decide alone about their measure: with an objective of 2.5 s, 200
// ms instead of 100 ms is not harm. An objective that W misses promises nothing any more, so
// the mean of its measure counts, as without an objective, and what is missed beyond W: a
// server of which all answers are late can still become slower.
func assess(actual, nominal *sum, objectives []objective) harm {
	h := harm{judged: nominal.requests >= leastInAMean}
	if !h.judged {
		return h
	}
	// The mean of whole requests follows from the two others.
	byMean := [measures]bool{toFirst: true, toToken: true}
	for _, o := range objectives {
		byMean[o.of.measure()] = false
	}
	for i, o := range objectives {
		missed, usual, allowed := actual.missed(i), nominal.missed(i), o.allowed()
		switch {
		case usual > allowed:
			byMean[o.of.measure()] = true
			h.slowed(o.of.measure(), (missed-usual)/allowed)
		case missed > usual:
			h.slowed(o.of.measure(), missed/allowed)
		}
	}
	mean := func(of measure, a, w, least float64) {
		if byMean[of] {
			h.slowed(of, (a-w)/max(slowdown*w, least))
		}
	}
	mean(toFirst, actual.meanFirst(), nominal.meanFirst(), slowerFirst)
	mean(toToken, actual.perToken(), nominal.perToken(), slowerToken)
	mean(toEnd, actual.meanWhole(), nominal.meanWhole(), slowerFirst)
	if whole := nominal.completed(); whole > 0 {
		h.lost = max(0, 1-actual.completed()/whole) / lostAnswers
	}
	return h
}

// slowed adds a reason for harm by a measure.
func (h *harm) slowed(of measure, bars float64) { h.slower[of] = max(h.slower[of], bars) }

// delay is how much longer a request of so many tokens takes than in the nominal run, in
// seconds.
func delay(m, nominal *sum, tokens float64) float64 {
	return laterFirst(m, nominal) + laterTokens(m, nominal, tokens)
}

func laterFirst(m, nominal *sum) float64 { return max(0, m.meanFirst()-nominal.meanFirst()) }

func laterTokens(m, nominal *sum, tokens float64) float64 {
	return tokens * max(0, m.perToken()-nominal.perToken())
}

// harmful is the delay in the measures that exceed the bar: what is within an objective is
// no harm, so nothing has caused it.
func (h harm) harmful(m, nominal *sum, tokens float64) float64 {
	out := 0.0
	if h.slower[toFirst] > 1 || h.slower[toEnd] > 1 {
		out += laterFirst(m, nominal)
	}
	if h.slower[toToken] > 1 || h.slower[toEnd] > 1 {
		out += laterTokens(m, nominal, tokens)
	}
	return out
}

// undone is the share of the harm that is absent in another run: of the harmful delay, of
// the lost answers, or their mean if both are harmful, so that seconds and answers have the
// same weight.
func (h harm) undone(actual, other, nominal *sum, tokens float64) float64 {
	total, kinds := 0.0, 0.0
	add := func(all, left float64) {
		kinds++
		if all > 0 {
			total += min(1, max(0, (all-left)/all))
		}
	}
	if h.latency() > 1 {
		add(h.harmful(actual, nominal, tokens), h.harmful(other, nominal, tokens))
	}
	if h.lost > 1 {
		whole := nominal.completed()
		add(max(0, whole-actual.completed()), max(0, whole-other.completed()))
	}
	return quotient(total, kinds)
}
