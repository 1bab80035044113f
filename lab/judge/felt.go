package judge

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
)

// Sent is a request as its client saw it. Times are in seconds; At counts from the beginning
// of the story, all others from At.
type Sent struct {
	At float64 `json:"at"`
	// Tokens is when each token came, or each part of the answer that had some. It is empty
	// where none came. Where it has two, the first and the last, and Output is more, the others
	// count as spread evenly between them.
	Tokens Times `json:"tokens,omitempty"`
	// End is when the client had its answer, or gave up.
	End float64 `json:"end"`
	// How is how it ended.
	How Ending `json:"how"`
	// Status is the HTTP status; 0 without an answer.
	Status int `json:"status,omitempty"`
	// Phase is the number of the phase in which it was sent.
	Phase int `json:"phase"`
	// Prompt, Cached and Output are tokens.
	Prompt int `json:"prompt"`
	Cached int `json:"cached,omitempty"`
	Output int `json:"output"`
}

// Times are times in seconds, in their order. They are kept as milliseconds, each from the
// one before, in steps of 10 ms but for the first: kept in full, the times of tokens would be
// most of what a story takes.
type Times []float64

const (
	perMilli  = 1000
	timesStep = 10
)

// MarshalJSON writes the distances in milliseconds.
func (t Times) MarshalJSON() ([]byte, error) {
	out := make([]int, len(t))
	before := 0
	for i, seconds := range t {
		at := int(math.Round(seconds * perMilli))
		if i > 0 {
			at = before + (at-before+timesStep/2)/timesStep*timesStep
		}
		out[i] = at - before
		before = at
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads them.
func (t *Times) UnmarshalJSON(raw []byte) error {
	var distances []int
	if err := json.Unmarshal(raw, &distances); err != nil {
		return err
	}
	*t = make(Times, len(distances))
	at := 0
	for i, d := range distances {
		at += d
		(*t)[i] = float64(at) / perMilli
	}
	return nil
}

// Ending is how a request ended for its client.
type Ending string

// The endings.
const (
	// Answered is a complete answer.
	Answered Ending = "answered"
	// Refused is an answer that says that the request is wrong; that is no harm.
	Refused Ending = "refused"
	// Failed is an error of the server, or a connection that broke.
	Failed Ending = "failed"
	// Left is a client that went away because it wanted to, TimedOut one that lost its patience.
	Left     Ending = "left"
	TimedOut Ending = "timed_out"
)

// Waited is the time to the first token, or up to the end where none came.
func (s *Sent) Waited() float64 {
	if len(s.Tokens) > 0 {
		return s.Tokens[0]
	}
	return s.End
}

// even reports whether only the first and the last token are known.
func (s *Sent) even() bool { return len(s.Tokens) == 2 && s.Output > 2 }

// by returns how many tokens had come by a time.
func (s *Sent) by(t float64) int {
	if !s.even() || t < s.Tokens[0] || t >= s.Tokens[1] {
		n, _ := slices.BinarySearch(s.Tokens, math.Nextafter(t, math.Inf(1)))
		if s.even() && n == 2 {
			n = s.Output
		}
		return n
	}
	return 1 + int(float64(s.Output-1)*(t-s.Tokens[0])/(s.Tokens[1]-s.Tokens[0]))
}

// token returns when a token came, counted from 0.
func (s *Sent) token(n int) float64 {
	if !s.even() {
		return s.Tokens[n]
	}
	return s.Tokens[0] + (s.Tokens[1]-s.Tokens[0])*float64(n)/float64(s.Output-1)
}

// tokens is how many there are.
func (s *Sent) tokens() int {
	if s.even() {
		return s.Output
	}
	return len(s.Tokens)
}

// The limits of what users feel. They are fixed: the diagnosis is judged by them, and is never
// tuned on them.
const (
	// feltOver is the time in seconds over which users' waits are looked at.
	feltOver = 30.0
	// feltLeast is the number of requests of which something can be said, and feltShare the
	// share of them that must be beyond the limit, besides their mean.
	feltLeast = 3
	feltShare = 1.0 / 3
	// failLeast and failShare are the same for answers that are errors.
	failLeast = 5
	failShare = 0.5
	// outageAfter is how long nobody gets a token while somebody waits.
	outageAfter = 30.0
	// feltMerge joins times of harm with less than this between them.
	feltMerge = 45.0
)

// limit is from where on a latency is harm: beyond so many times the usual, and beyond Least.
type limit struct{ times, least float64 }

func (l limit) of(usual float64) float64 { return max(l.times*usual, l.least) }

var (
	greatFirst, greatToken = limit{10, 5}, limit{5, 0.3}
	clearFirst, clearToken = limit{5, 0.5}, limit{5, 0.05}
)

// Level is how much harm users feel.
type Level string

// The levels.
const (
	// Great is a wait of ten times the usual and 5 s for a first token, of five times the usual
	// and 0.3 s for a further one (with an objective, of three times its threshold), or errors in
	// place of half of the answers.
	Great Level = "great"
	// Clear is a wait of five times the usual, and of 0.5 s or 50 ms a token.
	Clear Level = "five times"
	// Outage is that nobody gets a token for 30 s while somebody waits.
	Outage Level = "outage"
)

// Usual is what clients waited in the steady phase, in seconds.
type Usual struct {
	First float64 `json:"first"`
	Token float64 `json:"token"`
	// PromisedFirst and PromisedToken are the longest thresholds of the objectives; 0 without one. Three times
	// as long is great harm, in place of a multiple of the usual.
	PromisedFirst float64 `json:"-"`
	PromisedToken float64 `json:"-"`
	// computed are the prompt tokens that are computed for a request, tokens its tokens after the first.
	computed, tokens float64
}

const greatPromised = 3.0

// great returns from where on the waits for a first and a further token are great harm.
func (u *Usual) great() (first, token float64) {
	first, token = greatFirst.of(u.First), greatToken.of(u.Token)
	if u.PromisedFirst > 0 {
		first = greatPromised * u.PromisedFirst
	}
	if u.PromisedToken > 0 {
		token = greatPromised * u.PromisedToken
	}
	return first, token
}

// UsualOf is the mean wait of the answered requests of a phase.
func UsualOf(all []Sent, phase int) Usual {
	var first, token mean
	for i := range all {
		if s := &all[i]; s.Phase == phase && s.How == Answered && len(s.Tokens) > 0 {
			first.add(s.Tokens[0])
			if n := len(s.Tokens); n > 1 {
				token.add((s.Tokens[n-1] - s.Tokens[0]) / float64(n-1))
			}
		}
	}
	return Usual{First: first.value(), Token: token.value()}
}

// Felt is a time in which users were harmed.
type Felt struct {
	Level Level `json:"level"`
	// What is what they waited for: "first token", "token", "answer" (errors), or "any token".
	What string `json:"what"`
	// From is when the limit was passed, in seconds of the story, and To the last moment at which
	// somebody waited beyond it.
	From float64 `json:"from"`
	To   float64 `json:"to"`
	// Worst is the worst mean of a window in seconds; for errors the worst share.
	Worst float64 `json:"worst"`
}

// FeltHarm returns when users were harmed, in the order of its beginnings. It looks at each
// second up to until, at the requests of the last 30 s: those that got their first token or gave
// up then count with what they waited, and those that still wait with their wait so far. What an
// error without a token has waited no longer counts after it.
func FeltHarm(all []Sent, usual Usual, until float64) []Felt {
	sorted := slices.Clone(all)
	slices.SortFunc(sorted, func(a, b Sent) int { return cmp.Compare(a.At, b.At) })
	look := look{all: sorted, since: math.Inf(1)}
	harms := []*lasting{
		{Felt: Felt{Level: Great, What: "first token"}},
		{Felt: Felt{Level: Great, What: "token"}},
		{Felt: Felt{Level: Great, What: "answer"}},
		{Felt: Felt{Level: Clear, What: "first token"}},
		{Felt: Felt{Level: Clear, What: "token"}},
		{Felt: Felt{Level: Outage, What: "any token"}},
	}
	first, token := usual.great()
	for t := 1.0; t <= until; t++ {
		look.at(t)
		harms[0].waits(t, look.first, first)
		harms[1].waits(t, look.token, token)
		harms[2].fails(t, look.ends)
		harms[3].waits(t, look.first, clearFirst.of(usual.First))
		harms[4].waits(t, look.token, clearToken.of(usual.Token))
		harms[5].outage(t, &look)
	}
	var out []Felt
	for _, h := range harms {
		out = append(out, h.close()...)
	}
	slices.SortStableFunc(out, func(a, b Felt) int { return cmp.Compare(a.From, b.From) })
	return out
}

// wait is one wait in a window, and when it was over.
type wait struct{ seconds, over float64 }

// look is what clients saw in the 30 s before a time.
type look struct {
	all []Sent
	// from is the first request that may still count.
	from  int
	first []wait
	token []wait
	ends  []ending
	// waits is how many wait for a token. Somebody has done so at each look since the one
	// that followed since: clients that give up and try again wait as one that does not.
	waits int
	since float64
	// last is when a token came last.
	last float64
}

type ending struct {
	failed bool
	at     float64
}

func (l *look) at(t float64) {
	l.first, l.token, l.ends, l.waits = l.first[:0], l.token[:0], l.ends[:0], 0
	for l.from < len(l.all) && l.all[l.from].At+l.all[l.from].End < t-feltOver {
		l.from++
	}
	oldest := math.Inf(1)
	for i := l.from; i < len(l.all) && l.all[i].At <= t; i++ {
		s := &l.all[i]
		ended, waited := s.At+s.End, s.At+s.Waited()
		if ended <= t-feltOver {
			continue
		}
		switch {
		case s.How == Refused:
		case waited > t:
			l.first = append(l.first, wait{t - s.At, t})
		case waited > t-feltOver && (len(s.Tokens) > 0 || s.How != Failed):
			l.first = append(l.first, wait{s.Waited(), waited})
		}
		// Who reads an answer waits as well: for its next token.
		if s.How != Refused && ended > t {
			l.waits++
			oldest = min(oldest, s.At)
		}
		if ended <= t && (s.How == Answered || s.How == Failed) {
			l.ends = append(l.ends, ending{s.How == Failed, ended})
		}
		l.tokens(s, t)
	}
	if l.waits == 0 {
		l.since = math.Inf(1)
	}
	l.since = min(l.since, oldest)
}

// tokens adds the wait of a request per token within the window. A token that has not come
// yet counts like one that comes now.
func (l *look) tokens(s *Sent, t float64) {
	if len(s.Tokens) == 0 || s.At+s.Tokens[0] > t {
		return
	}
	goes := s.At+s.End > t
	// Of the tokens in the window, the first ends a gap that began before it.
	// The sum above and the difference here are rounded apart, so that there can be one that came
	// by the sum only.
	before, n := s.by(t-feltOver-s.At), max(1, s.by(t-s.At))
	l.last = max(l.last, s.At+s.token(n-1))
	begin := max(1, before)
	gaps, from, to := float64(n-begin), s.At+s.token(begin-1), s.At+s.token(n-1)
	switch {
	case goes && (n < s.tokens() || s.How != Answered):
		gaps++
		to = t
	case !goes && s.How == TimedOut && s.At+s.End > t-feltOver:
		// The token for which the client had no more patience.
		gaps++
		to = s.At + s.End
	}
	if gaps > 0 && to > from {
		l.token = append(l.token, wait{(to - from) / gaps, to})
	}
}

// lasting is a kind of harm with the times in which it was felt.
type lasting struct {
	Felt
	open bool
	last float64 // When it was felt last.
	done []Felt
}

func (h *lasting) waits(t float64, all []wait, limit float64) {
	if len(all) < feltLeast {
		return
	}
	var m mean
	beyond, over := 0, 0.0
	for _, w := range all {
		m.add(w.seconds)
		if w.seconds > limit {
			beyond++
			over = max(over, w.over)
		}
	}
	if m.value() > limit && float64(beyond) >= feltShare*float64(len(all)) {
		h.feel(t, over, m.value())
	}
}

func (h *lasting) fails(t float64, all []ending) {
	failed, over := 0, 0.0
	for _, e := range all {
		if e.failed {
			failed++
			over = max(over, e.at)
		}
	}
	if len(all) >= failLeast && float64(failed) >= failShare*float64(len(all)) {
		h.feel(t, over, float64(failed)/float64(len(all)))
	}
}

func (h *lasting) outage(t float64, l *look) {
	if nothing := t - max(l.last, l.since); l.waits > 0 && nothing >= outageAfter {
		h.feel(t, t, nothing)
	}
}

// feel adds a second in which harm is felt.
func (h *lasting) feel(t, over, worst float64) {
	if h.open && t-h.last > feltMerge {
		h.end()
	}
	if !h.open {
		h.open, h.From, h.To, h.Worst = true, t, over, 0
	}
	h.last, h.To, h.Worst = t, max(h.To, over), max(h.Worst, worst)
}

func (h *lasting) end() {
	h.To = max(h.To, h.From)
	h.done = append(h.done, h.Felt)
	h.open = false
}

func (h *lasting) close() []Felt {
	if h.open {
		h.end()
	}
	return h.done
}

// mean is a sum with its number.
type mean struct{ sum, n float64 }

func (m *mean) add(x float64) { m.sum += x; m.n++ }

func (m *mean) value() float64 { return quotient(m.sum, m.n) }
