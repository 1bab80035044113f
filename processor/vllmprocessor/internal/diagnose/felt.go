package diagnose

import (
	"cmp"
	"math"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/internal/wording"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
)

// What users wait for is measured, whatever the reason for it: how long the requests of the last
// half minute waited for their first token, those that still wait counted with their wait so far,
// and how long one token takes. It is compared with the objective, else with what is usual.
const (
	// recently is how far it looks back.
	recently = 30 * time.Second
	// leastFelt is the number of requests of which something can be said, feltShare the share of them
	// that must be beyond a limit, besides their mean.
	leastFelt = 3
	feltShare = 1.0 / 3
	// A limit is so many times the usual, and at least so many seconds.
	clearTimes, clearFirst, clearGap = 5.0, 0.5, 0.05
	greatTimes, greatFirst, greatGap = 10.0, 5.0, 0.3
	// farDeviations is by how many deviations of its windows the first token of an engine is late at least where
	// that is great harm: with few long prompts it is late now and then.
	farDeviations = 5.0
	// greatErrors is the share of errors of at least so many answers that is great harm.
	greatErrors, leastAnswers = 0.5, 5.0
	// greatObjective is how many times the threshold of an objective great harm is.
	greatObjective = 3.0
	// withoutAny is the wait for a first token in seconds that is harm for anybody.
	withoutAny = 30.0
	// Harm is reported once it was measured for so long. What it costs in false reports is on
	// docs/why/accuracy.md. It is critical once that is not a short burst: the alert waits for a minute more, and has
	// to page two and a half minutes after the beginning.
	clearAfter, greatAfter, pagesAfter = 40 * time.Second, 15 * time.Second, 45 * time.Second
	// greatFalls and fallsAfter are for how long great harm, and harm, was not measured until what is left is less.
	greatFalls, fallsAfter = time.Minute, 2 * time.Minute
	// asUsual is by how much a latency may exceed the usual, as a multiple of it, at an all-clear.
	asUsual = 2.0
	// usualFor is how long they must be served as usual until harm has ended, usualAgain the same of harm that
	// has come back within comesBack.
	usualFor, usualAgain = 15 * time.Second, 40 * time.Second
	comesBack            = 5 * time.Minute
	// forgetsAfter is how long no request has come until an engine is idle after harm. Before, nobody
	// knows whether the next one is served.
	forgetsAfter = 30 * time.Minute
)

type felt struct {
	waits waits
	// clearSince and greatSince are since when harm of at least that level has been measured without
	// a break; 0 where it is not. clearAt and greatAt are when it was measured last.
	clearSince, greatSince, clearAt, greatAt int64
	// failsSince is since when half of the answers are errors.
	failsSince int64
	// usualSince is since when requests have been served as usual again; 0 where they are not.
	usualSince int64
	// soundSince is since when both latencies have been as they were before harm; 0 where they are not.
	soundSince int64
	// quietSince is since when no request has come; 0 where some have.
	quietSince int64
	// endedAt is when harm ended last, again whether it had come back soon by then.
	endedAt int64
	again   bool
	// fresh is when something new was great harm. One long wait is in the half minute for half a minute.
	fresh int64
	// On is true while harm is certain, Great while it is great harm, First and Gap where it is of
	// the first token and of the time between tokens.
	On, Great, First, Gap bool
}

// recent is what the last half minute shows: how many first tokens there were and their mean wait, how
// many further tokens and the mean time between two, in seconds. All are 0 where nothing is known.
// Where scrapes are further apart, it is the time since the one before.
type recent struct {
	firsts, first, gaps, gap float64
	over                     time.Duration
}

func (x *recent) read(v *window.View, since time.Duration) {
	x.over = max(recently, since)
	half := v.Over(x.over)
	n, mean := derive.Mean(&half, input.TimeToFirstToken)
	x.firsts, x.first = signal.OrZero(n), signal.OrZero(mean)
	n, mean = derive.Mean(&half, input.InterTokenLatency)
	x.gaps, x.gap = signal.OrZero(n), signal.OrZero(mean)
}

// limits are from where on a latency is harm of a level, in seconds; 0 where nothing is known.
type limits struct{ clear, great float64 }

// firstLimits are those of the first token. A longer prompt takes longer: without a queue that alone is
// no harm before it is great.
func firstLimits(settings *Settings, b *signal.Baseline, model string, r *reading) (l limits) {
	usual := b.Usual(signal.TimeToFirstToken)
	if settings.batch(model) {
		return l
	}
	if b.Ready() && usual > 0 {
		l = limits{max(clearTimes*usual, clearFirst), max(greatTimes*usual, greatFirst, usual*math.Exp(farDeviations*signal.OrZero(b.Spread(signal.TimeToFirstToken))))}
		if !(r.waitingNow > 1) {
			l.clear *= max(1, math.Exp(signal.OrZero(b.Growth(&r.Window, signal.PromptTokens))))
		}
	} else {
		l.clear = withoutAny
	}
	if longest, measured := settings.longest(model, lateFirst); measured {
		l = limits{0, greatObjective * longest} // Below that the objective says what is harm.
	}
	return l
}

// gapLimits are those of the time between tokens.
func gapLimits(settings *Settings, b *signal.Baseline, model string) (l limits) {
	if usual := b.Usual(signal.InterTokenLatency); b.Ready() && usual > 0 {
		l = limits{max(clearTimes*usual, clearGap), max(clearTimes*usual, greatGap)}
	}
	if longest, measured := settings.longest(model, slowTokens); measured {
		l = limits{0, greatObjective * longest}
	}
	return l
}

// observeFelt measures the harm of a reading, and returns whether it has ended.
func (e *engine) observeFelt(settings *Settings, v *window.View, r *reading, s *symptoms) (ended bool) {
	f := &e.Felt
	s.suspect = f.observe(settings, e.baseline, v, r)
	since(&f.usualSince, f.On && f.greatSince == 0 && f.clearSince == 0 && f.over(settings, e.baseline, v, r), r.At)
	since(&f.quietSince, r.elapsed > 0 && quietNow(r), r.At)
	if now := s.suspect; now {
		f.clearAt = r.At
		// Users who waited while nothing was served need no more evidence, and what has paged need not do so again.
		if f.greatSince > 0 && (still(e.Reported.Condition) || e.Reported.Condition == Unreachable || f.On && e.Reported.Severity >= 3) {
			f.On, f.Great = true, true
		}
	} else if r.FirstTokens > 0 && r.At-f.clearAt >= int64(fallsAfter) {
		f.On = false // What is left is smaller harm, if any, and has evidence of its own.
	}
	since(&f.soundSince, !f.On && e.harmed() && r.elapsed > 0 && f.sound(settings, e.baseline, v, r), r.At)
	forgotten := f.On && lasts(f.quietSince, r.At, forgetsAfter)
	usual := usualFor
	if f.again {
		usual = usualAgain
	}
	if forgotten || f.On && e.still == deserted || lasts(f.usualSince, r.At, usual) {
		f.On, f.Great, f.First, f.Gap = false, false, false, false
		f.endedAt = r.At
		// The window still has what was before.
		e.Harms[lateFirst], e.Harms[slowTokens] = evidence{}, evidence{}
		ended = true
	}
	s.great = f.Great && !settings.batch(v.Group().Value("model_name"))
	since(&f.failsSince, r.failsNow, r.At)
	s.failsNow = lasts(f.failsSince, r.At, greatAfter)
	// Who could not be reached is healthy once its users are served as usual.
	s.suspect = s.suspect || f.On || e.Reported.Condition == Unreachable && !f.over(settings, e.baseline, v, r)
	return ended
}

// observe takes a reading, and returns whether the newest half minute alone shows harm.
func (f *felt) observe(settings *Settings, b *signal.Baseline, v *window.View, r *reading) (now bool) {
	f.waits.observe(r)
	model := v.Group().Value("model_name")
	first, gap := firstLimits(settings, b, model, r), gapLimits(settings, b, model)
	lateFirst := func(limit float64) bool { return limit > 0 && f.late(v, r, limit) }
	// The tokens of a batch come together: where some gaps are long, their mean is what each request has. One long gap
	// of one request is no more than that.
	lateGap := func(limit float64) bool {
		return limit > 0 && r.recent.gaps >= leastSteps && r.recent.gap > limit && !r.severalSteps &&
			r.recent.beyond(v, input.InterTokenLatency, limit, r.recent.gaps, r.recent.gap) >= leastFelt
	}
	// What the open files alone show is great harm once it is certain that the engine stands still.
	greatGap := lateGap(gap.great)
	great := (r.hidden == 0 || r.runningNow > 0 || r.waitingNow > 0) && lateFirst(first.great) || greatGap
	isFirst, isGap := lateFirst(first.clear), lateGap(gap.clear)
	now = great || isFirst || isGap
	if now {
		f.First, f.Gap = f.First || isFirst || lateFirst(first.great), f.Gap || isGap || lateGap(gap.great)
	} else if !f.On {
		f.First, f.Gap = false, false
	}
	// Before it is reported, harm may come and go.
	since(&f.clearSince, now || f.clearSince > 0 && !f.On && r.At-f.clearAt <= int64(clearAfter+time.Second), r.At)
	since(&f.greatSince, great, r.At)
	if great {
		f.greatAt = r.At
		if waiting, waited, _ := f.waits.now(r.At, 0); greatGap || r.servedAfter > first.great || waiting >= leastFelt && waited > waiting*first.great {
			f.fresh = r.At
		}
	}
	switch {
	case !f.Gap && f.drained(r, cmp.Or(first.clear, first.great)):
	case lasts(f.greatSince, f.fresh, greatAfter):
		f.On, f.Great = true, f.Great || lasts(f.greatSince, f.fresh, pagesAfter)
	case now && lasts(f.clearSince, r.At, clearAfter):
		f.On = true
	}
	f.Great = f.Great && r.At-f.greatAt < int64(greatFalls)
	f.again = f.On && (f.again || f.endedAt > 0 && r.At-f.endedAt < int64(comesBack))
	return now
}

// lasts reports whether something has been true for so long. Scrapes are not quite as far apart as they
// should be.
func lasts(since, at int64, length time.Duration) bool {
	return since > 0 && at-since >= int64(length-time.Second)
}

// wait is the mean wait for the first token in seconds of those that got it in the last half minute and
// of those that wait, whose number it returns as well. It is NaN where there are none.
func (f *felt) wait(r *reading) (seconds, waiting float64) {
	waiting, waited, _ := f.waits.now(r.At, 0)
	if r.doubtful {
		waiting, waited = 0, 0
	}
	return (r.recent.firsts*r.recent.first + waited) / (r.recent.firsts + waiting), waiting
}

// sentence says how long users wait.
func (f *felt) sentence(r *reading, usual *signal.Values) string {
	wait, waiting := f.wait(r)
	felt := wording.Felt{
		FirstToken: wait, UsualFirstToken: usual[signal.TimeToFirstToken], Waiting: waiting, Token: math.NaN(), UsualToken: usual[signal.InterTokenLatency],
	}
	if f.Gap {
		felt.Token = r.recent.gap
	}
	return felt.Sentence()
}

// since keeps since when something is true; 0 where it is not.
func since(since *int64, is bool, at int64) {
	if *since = cmp.Or(*since, at); !is {
		*since = 0
	}
}

// late reports whether requests wait longer than a limit for their first token: those that got it
// lately, and those that wait.
func (f *felt) late(v *window.View, r *reading, limit float64) bool {
	waiting, waited, over := f.waits.now(r.At, limit)
	if r.doubtful {
		waiting, waited, over = 0, 0, 0
	}
	all := r.recent.firsts + waiting
	if all < leastFelt || (r.recent.firsts*r.recent.first+waited)/all <= limit {
		return false
	}
	return over+r.recent.beyond(v, input.TimeToFirstToken, limit, r.recent.firsts, r.recent.first) >= feltShare*all
}

// beyond is how many of count latencies were longer than a limit. Without buckets it is all or none, by their mean.
func (x *recent) beyond(v *window.View, in input.Metric, limit, count, mean float64) float64 {
	var seen window.Histogram
	half := v.Over(x.over)
	switch {
	case count > 0 && derive.Observations(&half, &seen, in) == derive.OK:
		return seen.Count - seen.Below(limit)
	case mean > limit:
		return count
	}
	return 0
}

// drained reports whether a burst is over: the newest requests do not wait, although the half minute has
// those that did.
func (f *felt) drained(r *reading, limit float64) bool {
	waiting, waited, _ := f.waits.now(r.At, 0)
	return limit > 0 && r.served > 0 && r.servedAfter <= limit && waited <= waiting*limit
}

// waits follows when the requests that wait have arrived: they are the last ones that did, because
// a queue is served in its order.
type waits struct {
	recent []arrival
	// waiting is how many waited at the newest reading.
	waiting float64
}

type arrival struct {
	at    int64
	count float64
}

func (w *waits) observe(r *reading) {
	waiting := max(signal.OrZero(r.waitingNow)-signal.OrZero(r.deferredNow), 0) + r.hidden
	count := waiting
	if !signal.Known(r.served) {
		w.recent = w.recent[:0] // After a gap it is not known who still waits.
	} else if n := len(w.recent); n > 0 {
		// Who left the queue without a first token has not arrived later.
		count = w.recent[n-1].count + max(waiting-w.waiting+r.served, 0)
	}
	if waiting == 0 {
		w.recent, count = w.recent[:0], 0
	}
	w.add(r.At, count, waiting)
}

// add adds how many have arrived at a time, and how many of them wait.
func (w *waits) add(at int64, count, waiting float64) {
	w.waiting = waiting
	for len(w.recent) > 1 && w.recent[1].count <= count-waiting {
		w.recent = append(w.recent[:0], w.recent[1:]...)
	}
	if len(w.recent) == mostSamples {
		// Of a long queue every second sample is enough.
		for i := range mostSamples / 2 {
			w.recent[i] = w.recent[2*i]
		}
		w.recent = w.recent[:mostSamples/2]
	}
	w.recent = append(w.recent, arrival{at, count})
}

// now returns how many requests wait at a time, for how many seconds all together at least, and how many
// of them for longer than a limit in seconds. Those that came between two scrapes may have come just
// before the later one: so much is certain.
func (w *waits) now(at int64, limit float64) (waiting, seconds, over float64) {
	if len(w.recent) == 0 || w.waiting == 0 {
		return 0, 0, 0
	}
	before := w.recent[len(w.recent)-1].count - w.waiting // The last one that does not wait any more.
	for _, until := range w.recent {
		count := until.count - before
		if count <= 0 {
			continue
		}
		before = until.count
		waited := float64(at-until.at) / 1e9
		seconds += count * waited
		if waited > limit {
			over += count
		}
	}
	return w.waiting, seconds, over
}
