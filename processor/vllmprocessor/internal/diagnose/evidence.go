package diagnose

import "math"

// A sequential test decides as soon as there is enough evidence: after two windows of a
// great harm, and after five of the least that counts. Readings overlap, so
// each counts by the part of a window since the one before: what happened in one window has
// the weight of one window, whatever the interval of the scrapes.

// enoughEvidence is the log likelihood ratio that decides: ln(22,000). Without harm it is reached
// falsely once in at least so many windows in the mean (Lorden, 1971), if their errors are independent
// and as assumed.
const enoughEvidence = 10

// evidence is a test of the effect 1, the bar of harm, against the effect 0, by the log likelihood
// ratio of Wald's sequential test (1945). The score does not fall below 0, so that it begins again
// until there is harm: it is a CUSUM of the ratio (Page, 1954).
type evidence struct {
	Score float64 `json:",omitzero"`
	// On is whether it has decided for harm. It ends when it has decided against it, or after some
	// windows that are clear.
	On bool `json:",omitzero"`
	// Clear is for how many windows no reading has been evidence for harm.
	Clear float64 `json:",omitzero"`
}

// observe adds a reading. effect is the harm as a multiple of the bar, mayBe the same with what may
// have changed in addition, windows the time since the reading before
// in windows. The score collects mayBe, so that it need not wait until a change is certain; it
// decides for harm only if effect is at least 1. However great an effect, it takes about hold windows.
// It has ended after ends windows without a reading for harm.
func (e *evidence) observe(effect, mayBe, windows float64, hold, ends int) {
	// The logarithm of the ratio of the two normal densities.
	was := e.On
	e.add((mayBe-0.5)/(noise*noise), windows, float64(hold), float64(ends))
	if !was && e.On && effect < 1 {
		e.On = false
	}
}

// add adds a log likelihood ratio of one window: at most so much that a decision takes hold windows less
// half of one. In the first window of a change half of what is measured is from before, in the mean.
func (e *evidence) add(ratio, windows, hold, ends float64) {
	if math.IsNaN(ratio) {
		return
	}
	most := enoughEvidence / max(hold-0.5, 0.5)
	e.Score += windows * min(max(ratio, -most), most)
	e.Score = min(max(e.Score, 0), enoughEvidence)
	if e.Clear += windows; ratio > 0 {
		e.Clear = 0
	}
	if e.Clear >= ends {
		// The readings since then have nothing in common with those of the harm.
		e.Score = 0
	}
	switch {
	case e.Score >= enoughEvidence*(1-1e-9):
		e.On = true
	case e.Score <= 0:
		e.On = false
	}
}

// change is a one-sided CUSUM test (Page, 1954) of whether a number has grown for good.
type change struct {
	Score float64 `json:",omitzero"`
	On    bool    `json:",omitzero"`
}

const (
	// slack is the growth in standard deviations that is not a change; changedAt is what has to
	// accumulate beyond it. With independent normal readings a change is found falsely once in
	// at least exp(2 slack changedAt) / (2 slack^2) windows (Siegmund, 1985, without the
	// correction for the overshoot): 11,000.
	slack     = 1.0
	changedAt = 5.0
	// workChangedAt is the same of the work and of latencies, which vary from hour to hour more than
	// any spread shows.
	workChangedAt = 8.0
	// mostDeviations bounds what one window says, since real readings have heavy tails.
	mostDeviations = 6.0
	// remembers is how far the score goes beyond: for so many windows without growth a
	// change that has ended is still the reason for what it left behind.
	remembers = 2.0
)

// observe adds a reading: its growth in standard deviations.
func (c *change) observe(deviations, windows, at float64) {
	if math.IsNaN(deviations) {
		return
	}
	c.Score += windows * (min(max(deviations, -mostDeviations), mostDeviations) - slack)
	c.Score = min(max(c.Score, 0), at+remembers)
	switch {
	case c.Score >= at:
		c.On = true
	case c.Score <= 0:
		c.On = false
	}
}

// collect adds a reading to a change.
func (r *reading) collect(c *change, deviations, windows, at float64) {
	if r.without.Sequential && !math.IsNaN(deviations) {
		c.Score, c.On = 0, deviations >= mostDeviations
		return
	}
	c.observe(deviations, windows, at)
}
