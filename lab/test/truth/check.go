package truth

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Verdict is what became of the truth in a case.
type Verdict struct {
	// Wrong are values that are not true.
	Wrong []Mistake
	// Compared counts the values that are true, Withheld the times at which there was
	// something to derive and no value, by metric.
	Compared, Withheld map[string]int
}

// Window of the processor, and its long window, in seconds.
const (
	windowLength = 60
	longWindow   = 300
)

// Mistake is a derived value that is not true.
type Mistake struct {
	Metric, Text string
}

// judgement is that of one scrape.
type judgement struct {
	*Verdict
	o      *Observed
	scrape int
	points map[string]float64
	// judged are the keys of points that a row was compared with.
	judged map[string]bool
}

// Judge compares every derived value with the truth.
func Judge(o *Observed) Verdict {
	v := Verdict{Compared: map[string]int{}, Withheld: map[string]int{}}
	for n := range o.Scrapes {
		points, unknown := index(o.Case, o.Scrapes[n].Points)
		j := judgement{&v, o, n, points, map[string]bool{}}
		for _, name := range unknown {
			j.wrong(name, "has no truth: add a row, or a reason to Others")
		}
		for _, of := range o.Case.scopes() {
			w, known := newWindow(o, n, of, windowLength, false)
			long, knownLong := newWindow(o, n, of, longWindow, true)
			for i := range rows {
				switch row := &rows[i]; {
				case !row.in(o.Case, of):
				case row.Long:
					j.judge(row, &long, knownLong)
				default:
					j.judge(row, &w, known || row.Instant)
				}
			}
		}
		for name := range points {
			if !j.judged[name] && len(o.Case.Setup.Only) == 0 {
				j.wrong(name, "was derived where nothing can be")
			}
		}
	}
	return v
}

// These stand in for the number of an engine: all of several, and the front end.
const (
	allEngines = -1
	frontEnd   = -2
)

// named is the number under which the values of a scope are reported.
func (c *Case) named(of int) int {
	if of == allEngines && c.merged() {
		return c.engines() - 1
	}
	return of
}

// scopes are the numbers of the engines, and what else has values.
func (c *Case) scopes() (all []int) {
	for i := range c.engines() {
		all = append(all, i)
	}
	return append(all, allEngines, frontEnd)
}

// in reports whether a metric is derived for an engine, or for all.
func (r *Row) in(c *Case, of int) bool {
	switch {
	case len(c.Setup.Only) > 0 && !slices.Contains(c.Setup.Only, r.Metric):
		return false
	case c.merged() && !r.Instant: // Settings are written for each engine.
		return of == allEngines && !r.Server
	case r.Server || of == frontEnd:
		return r.Server && of == frontEnd
	case r.Unlabelled != "" && c.before(r.Unlabelled) && c.engines() > 1:
		return of == allEngines
	case of == allEngines:
		return !r.Additive && c.engines() > 1
	}
	return true
}

func (j *judgement) judge(row *Row, w *Window, known bool) {
	extras := row.Extras
	if extras == nil {
		extras = []map[string]string{nil}
	}
	for _, extra := range extras {
		name := key(row.Metric, j.o.Case.named(w.Engine), extra)
		value, present := j.points[name]
		answer := Answer{}
		if known {
			answer = row.Truth(w, extra)
			if w.other != nil {
				answer = answer.or(row.Truth(w.other, extra))
			}
		}
		j.judged[name] = true
		switch {
		case present && !answer.admits(value):
			j.wrong(name, fmt.Sprintf("is %.9g, and the truth is %s", value, answer))
		case present:
			j.Compared[row.Metric]++
			j.between(row, w, extra, value)
		case len(answer.intervals) > 0 && !answer.unsure:
			j.Withheld[row.Metric]++
		}
	}
}

// between checks that an interpolated quantile is between its bounds.
func (j *judgement) between(row *Row, w *Window, extra map[string]string, value float64) {
	if !strings.HasSuffix(row.Metric, "_quantile") {
		return
	}
	bound := func(which string) (float64, bool) {
		with := maps.Clone(extra)
		with["bound"] = which
		v, ok := j.points[key(row.Metric+"_bound", j.o.Case.named(w.Engine), with)]
		return v, ok
	}
	name := key(row.Metric, j.o.Case.named(w.Engine), extra)
	lower, has := bound("lower")
	upper, closed := bound("upper")
	switch {
	case !has:
		j.wrong(name, "has no bounds")
	case value < lower || (closed && value > upper) || (!closed && value != lower): // The open bucket has its lower bound.
		j.wrong(name, fmt.Sprintf("is %.9g, which is not between its bounds %.9g and %.9g", value, lower, upper))
	}
}

func (j *judgement) wrong(name, what string) {
	metric, _, _ := strings.Cut(name, "{")
	j.Wrong = append(j.Wrong, Mistake{metric, fmt.Sprintf("%s at %.0f s: %s %s", j.o.Case.Name(), j.o.Scrapes[j.scrape].At, name, what)})
}

// own are the attributes of derived metrics besides those of the engine.
var own = []string{"quantile", "bound", "reason", "finished_reason", "position", "source", "status_class"}

// index returns the derived values by key, and the names of those that neither a row nor
// Others knows.
func index(c *Case, points []Point) (known map[string]float64, unknown []string) {
	known = map[string]float64{}
	for _, p := range points {
		if isOther(p.Metric) {
			continue
		}
		if !slices.ContainsFunc(rows, func(r Row) bool { return r.Metric == p.Metric }) {
			unknown = append(unknown, p.Metric)
			continue
		}
		of := allEngines
		if text, has := p.Attributes["engine"]; has {
			of, _ = strconv.Atoi(text)
		} else if strings.HasPrefix(p.Metric, "vllm.http.") {
			of = frontEnd
		} else if c.engines() == 1 {
			of = 0 // Old servers name no engine.
		}
		extra := maps.Clone(p.Attributes)
		maps.DeleteFunc(extra, func(k, _ string) bool { return !slices.Contains(own, k) }) // Ray adds many.
		known[key(p.Metric, of, extra)] = p.Value
	}
	return known, unknown
}

func isOther(metric string) bool {
	for name := range Others {
		if metric == name || (strings.HasSuffix(name, ".") && strings.HasPrefix(metric, name)) {
			return true
		}
	}
	return false
}

func key(metric string, of int, extra map[string]string) string {
	parts := []string{"engine=" + strconv.Itoa(of)}
	for k, v := range extra {
		parts = append(parts, k+"="+v)
	}
	slices.Sort(parts)
	return metric + "{" + strings.Join(parts, ",") + "}"
}
