package scale

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/fleet"
)

// effect is what an action did to the engines of one kind.
type effect struct {
	// Engines is how many there are, Gaps and Overlaps how many of them had one.
	Engines  int `json:"engines"`
	Gaps     int `json:"gaps"`
	Overlaps int `json:"overlaps"`
	// Gap and MostGap are the median and the longest time in which no process read an engine, in
	// seconds; Overlap and MostOverlap the same of the time in which two did.
	Gap         float64 `json:"gap"`
	MostGap     float64 `json:"most_gap"`
	Overlap     float64 `json:"overlap"`
	MostOverlap float64 `json:"most_overlap"`
	// MostBeyond is the most by which a gap or an overlap exceeds the time in which no process,
	// or two, were there to read the engine, in seconds.
	MostBeyond float64 `json:"most_beyond"`
	// Lost and Doubled are the requests in these times, and Requests all of the engines in the
	// time of the action and after it.
	Lost     float64 `json:"lost"`
	Doubled  float64 `json:"doubled"`
	Requests float64 `json:"requests"`

	gaps, overlaps []float64
}

// outcome is what one action did.
type outcome struct {
	Name string `json:"name"`
	// Took is the time of the action, Watched that until the next one, in seconds.
	Took    float64 `json:"took"`
	Watched float64 `json:"watched"`
	// Moved engines have another member, Restarted another process of the same member, and
	// Untouched the same process.
	Moved     effect    `json:"moved"`
	Restarted effect    `json:"restarted"`
	Untouched effect    `json:"untouched"`
	Diagnosis diagnosis `json:"diagnosis"`
}

// judge compares what arrived with what is true.
func (r *run) judge() {
	served := r.servers.answered()
	r.account.mu.Lock()
	defer r.account.mu.Unlock()
	r.result.fill(r)
	r.firstScrapes()
	r.compare(served)
	for i := range r.actions {
		r.result.Actions = append(r.result.Actions, r.outcome(r.actions[i]))
		for _, m := range r.members {
			if u, ok := used(r.samples, m.number, r.at(r.actions[i].from), r.at(r.actions[i].measured)); ok {
				u.Action, u.Targets = r.actions[i].name, r.mostTargets(m.number, r.actions[i])
				r.result.Usage = append(r.result.Usage, u)
			}
		}
	}
	r.check()
}

func (r *run) at(t time.Time) float64 { return t.Sub(r.began).Seconds() }

// mostTargets is the most engines that a process of a member has read in the time of an action.
func (r *run) mostTargets(member int, a *action) int {
	read := map[int]int{}
	for i := range r.account.engines {
		for _, s := range spans(r.account.engines[i].arrivals) {
			l := r.lives[s.life]
			if l.member == member && r.timeOf(s.last).After(a.from) && r.timeOf(s.first).Before(a.measured) {
				read[s.life]++
			}
		}
	}
	most := 0
	for _, n := range read {
		most = max(most, n)
	}
	return most
}

func (r *run) timeOf(n int64) time.Time { return r.template.epoch.Add(time.Duration(n) * tick) }

// compare checks every counter of every engine.
func (r *run) compare(served map[int]int64) {
	c := &r.result.Counters
	names := map[int]string{}
	for key, name := range r.account.names {
		names[name] = strings.ReplaceAll(key, "\x00", " ")
	}
	for i := range r.account.engines {
		e, k := &r.account.engines[i], r.engines[i].kind
		ticks := map[uint64]int64{}
		first, last := int64(math.MaxInt64), int64(math.MinInt64)
		for _, a := range e.arrivals {
			ticks[a.at] = a.tick
			first, last = min(first, a.tick), max(last, a.tick)
			c.Answers++
			if l := r.lives[a.life]; l.member != shardOf(&r.engines[i], r.servers.Port, l.shards) {
				c.Strangers++
			}
			if a.copies > 1 {
				c.Repeated++
			}
		}
		if len(e.arrivals) == 0 {
			c.Silent++
			continue
		}
		from, to := r.template.truth(k, first), r.template.truth(k, last)
		for which, points := range e.compared {
			var sum fleet.Series
			slices.SortFunc(points, func(a, b fleet.Sample) int { return cmp.Compare(a.At, b.At) })
			for _, p := range points {
				n, known := ticks[p.At]
				c.Compared++
				if !known || p.Value != r.template.truth(k, n).of(which) {
					c.Wrong++
				}
				sum.Add(p)
			}
			c.True += to.of(which) - from.of(which)
			switch d := sum.Increments - (to.of(which) - from.of(which)); {
			case d < 0:
				c.Lost -= d
			case d > 0:
				c.Doubled += d
			}
		}
		lives := map[uint64]int{}
		for _, a := range e.arrivals {
			lives[a.at] = a.life
		}
		for name, s := range e.counters {
			if s.Known {
				c.Series++
				c.Resets += s.Resets
			}
			if s.Falls > 0 && lives[s.Fell[0].At] != lives[s.Fell[1].At] {
				c.Crossed += s.Falls
			} else {
				c.Falls += s.Falls
			}
			if s.Falls > 0 && len(c.Fell) < 10 {
				c.Fell = append(c.Fell, fmt.Sprintf("%s of %s: %v, then %v, answers %v", names[name], r.engines[i].pod, s.Fell[0], s.Fell[1], e.arrivals))
			}
		}
		r.compareObjective(e, k, to.first-from.first)
	}
	c.Missing = r.missingOf(served)
}

// firstScrapes notes when each process was given its first answer.
func (r *run) firstScrapes() {
	for i := range r.account.engines {
		for _, s := range spans(r.account.engines[i].arrivals) {
			l, at := r.lives[s.life], r.timeOf(s.first)
			if l.scraped.IsZero() || at.Before(l.scraped) {
				l.scraped = at
			}
		}
	}
	for _, l := range r.lives[r.result.Limits.Lives:] {
		if !l.scraped.IsZero() {
			r.result.FirstScrape = max(r.result.FirstScrape, l.scraped.Sub(l.ready).Seconds())
		}
	}
}

// missing is how many of the answers have not arrived so far, by process.
func (r *run) missing(served map[int]int64) []missing {
	r.account.mu.Lock()
	defer r.account.mu.Unlock()
	return r.missingOf(served)
}

func (r *run) missingOf(served map[int]int64) (out []missing) {
	arrived := map[int]int64{}
	for i := range r.account.engines {
		for _, a := range r.account.engines[i].arrivals {
			arrived[a.life]++
		}
	}
	for life, n := range served {
		if l := r.lives[life]; life >= r.result.Limits.Lives && n > arrived[life] {
			out = append(out, missing{Life: life, Member: l.member, How: l.how, Answers: n - arrived[life]})
		}
	}
	slices.SortFunc(out, func(a, b missing) int { return cmp.Compare(a.Life, b.Life) })
	return out
}

// compareObjective compares the processor's own counter with what the changes of the processes
// say: both were counted independently of each other.
func (r *run) compareObjective(e *engineAccount, k kind, all float64) {
	o := &r.result.Objective
	got := countUp(e.valid)
	expected := all
	for _, c := range changes(spans(e.arrivals)) {
		d := r.template.truth(k, c.to).first - r.template.truth(k, c.from).first
		if c.gap > 0 {
			expected -= d
		} else {
			expected += d
		}
	}
	o.True += all
	o.ByStart += got.byStart
	o.OneSeries += got.oneSeries
	if got.byStart == expected {
		o.Agree++
	} else {
		o.Differ++
		if len(o.Examples) < 5 {
			o.Examples = append(o.Examples, fmt.Sprintf("%s counted %v, expected %v of %v", r.engines[engineIndex(r, e)].pod, got.byStart, expected, all))
		}
	}
	if all > 0 {
		o.MostOver = max(o.MostOver, got.oneSeries/all)
	}
}

func engineIndex(r *run, e *engineAccount) int {
	for i := range r.account.engines {
		if &r.account.engines[i] == e {
			return i
		}
	}
	return 0
}

func (t truth) of(which int) float64 { return [3]float64{t.prompt, t.generation, t.first}[which] }

// outcome is what an action did to all engines.
func (r *run) outcome(a *action) outcome {
	o := outcome{Name: a.name, Took: a.to.Sub(a.from).Seconds(), Watched: a.until.Sub(a.from).Seconds()}
	from, until := r.template.ticksAt(a.from), r.template.ticksAt(a.until)
	touched := make([]bool, len(r.engines))
	for i := range r.account.engines {
		e, k := &r.account.engines[i], r.engines[i].kind
		within := slices.DeleteFunc(changes(spans(e.arrivals)), func(c change) bool {
			at := r.timeOf(c.after.first)
			return at.Before(a.from) || !at.Before(a.until)
		})
		to := &o.Untouched
		for _, c := range within {
			if r.lives[c.before.life].member != r.lives[c.after.life].member {
				to = &o.Moved
			} else if to == &o.Untouched {
				to = &o.Restarted
			}
		}
		touched[i] = len(within) > 0
		to.Engines++
		to.Requests += r.template.truth(k, until).first - r.template.truth(k, from).first
		for _, c := range within {
			r.add(to, k, c)
		}
	}
	for _, e := range []*effect{&o.Moved, &o.Restarted, &o.Untouched} {
		e.sum()
	}
	o.Diagnosis = r.diagnosis(a, touched)
	return o
}

// add adds a change of the process to an effect.
func (r *run) add(e *effect, k kind, c change) {
	requests := r.template.truth(k, c.to).first - r.template.truth(k, c.from).first
	away, both := handover(r.lives[c.before.life], r.lives[c.after.life])
	seconds := time.Duration(c.gap+c.overlap) * tick
	if c.gap > 0 {
		e.gaps = append(e.gaps, seconds.Seconds())
		e.Lost += requests
		e.MostBeyond = max(e.MostBeyond, (seconds - away).Seconds())
		return
	}
	e.overlaps = append(e.overlaps, seconds.Seconds())
	e.Doubled += requests
	e.MostBeyond = max(e.MostBeyond, (seconds - both).Seconds())
}

func (e *effect) sum() {
	for _, one := range []struct {
		values       []float64
		n            *int
		median, most *float64
	}{{e.gaps, &e.Gaps, &e.Gap, &e.MostGap}, {e.overlaps, &e.Overlaps, &e.Overlap, &e.MostOverlap}} {
		slices.Sort(one.values)
		if *one.n = len(one.values); *one.n > 0 {
			*one.median, *one.most = one.values[len(one.values)/2], one.values[len(one.values)-1]
		}
	}
}

// check turns what was found into failures.
func (r *run) check() {
	c := &r.result.Counters
	// An answer that came too late for the collector, on a machine that is too busy, is no
	// increment that was lost on the way.
	undisturbed := 1.0
	for text := range r.result.Complaints {
		if strings.Contains(text, "Scraping failed") {
			undisturbed = 0
		}
	}
	for _, one := range []struct {
		n    float64
		what string
	}{
		{float64(r.backend.Taken().Broken), "requests to the backend are no OTLP"},
		{float64(c.Silent), "engines never arrived at the backend"},
		{float64(c.Strangers), "answers were given to another shard than the hash says"},
		{float64(c.Wrong), "points of the compared counters are not what the engine had counted at that time"},
		{float64(c.Falls), "points of counters fell without a new start time"},
		{float64(c.Resets), "start times of counters changed, although no server was restarted"},
		{c.Lost, "increments of scraped counters were lost"},
		{c.Doubled, "increments of scraped counters were doubled"},
		{undisturbed * float64(r.result.Objective.Differ), fmt.Sprintf("engines have another sum of vllm.slo.valid than their processes have read: %v", r.result.Objective.Examples)},
	} {
		if one.n > 0 {
			r.fail("%.0f %s", one.n, one.what)
		}
	}
	allowed := (2*r.Interval + r.Slack).Seconds()
	// A missed objective is evidence for two and a half windows before it is reported, and the
	// diagnosis is expected to be steady from then on.
	steady := 2*r.Rest/3 >= 5*r.Window/2
	for i := range r.result.Actions {
		o := &r.result.Actions[i]
		if o.Untouched.Gaps+o.Untouched.Overlaps > 0 {
			r.fail("%s: engines of shards that went on have gaps or overlaps", o.Name)
		}
		for _, e := range []effect{o.Moved, o.Restarted} {
			if e.MostBeyond > allowed {
				r.fail("%s: a gap or an overlap is %.1f s longer than that of the processes; %.1f s are allowed", o.Name, e.MostBeyond, allowed)
			}
		}
		if d := o.Diagnosis; d.UntouchedChanged > 0 && steady {
			r.fail("%s: the diagnosis of %d untouched pools changed, for example %v", o.Name, d.UntouchedChanged, d.Examples)
		}
	}
	for _, m := range c.Missing {
		if m.How != "SIGKILL" && undisturbed*float64(m.Answers) > mostInFlight {
			r.fail("%d answers to process %d of shard %d never arrived, although it ended in order", m.Answers, m.Life, m.Member)
		}
	}
	for text := range maps.Keys(r.result.Complaints) {
		if targetsWarning.MatchString(text) || seriesWarning.MatchString(text) {
			r.fail("with the numbers that the log had named there is still: %s", text)
		}
	}
}

// mostInFlight is how many answers a process may have asked for when it is ended.
const mostInFlight = 64
