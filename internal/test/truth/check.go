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
	// Wrong are sentences about values that are not true.
	Wrong []string
	// Compared counts the values that are true, Withheld the times at which there was
	// something to derive and no value, by metric.
	Compared, Withheld map[string]int
}

// Window of the processor, and its long window, in seconds.
const (
	windowLength = 60
	longWindow   = 300
)

// Judge compares every derived value with the truth.
func Judge(o *Observed) Verdict {
	v := Verdict{Compared: map[string]int{}, Withheld: map[string]int{}}
	for n := range o.Scrapes {
		points, unknown := index(o.Case, o.Scrapes[n].Points)
		for _, name := range unknown {
			v.wrong(o, n, name, "has no truth: add a row, or a reason to Others")
		}
		for _, of := range o.Case.scopes() {
			for _, long := range []bool{false, true} {
				length := float64(windowLength)
				if long {
					length = longWindow
				}
				w, known := newWindow(o, n, of, length, long)
				for i := range rows {
					if row := &rows[i]; row.Long == long && row.in(&w, of) {
						v.judge(o, n, row, &w, known || row.Instant, points)
					}
				}
			}
		}
		for name := range points {
			v.wrong(o, n, name, "was derived where nothing can be")
		}
	}
	return v
}

// scopes are the numbers of the engines, and -1 for all of several.
func (c *Case) scopes() (all []int) {
	for i := range c.engines() {
		all = append(all, i)
	}
	return append(all, -1)
}

// in reports whether a metric is derived for an engine, or for all.
func (r *Row) in(w *Window, of int) bool {
	switch {
	case r.Server:
		return of == -1
	case of == -1:
		return !r.Additive && w.severalEngines()
	}
	return true
}

func (w *Window) severalEngines() bool { return w.Case != nil && w.Case.engines() > 1 }

func (v *Verdict) judge(o *Observed, n int, row *Row, w *Window, known bool, points map[string]float64) {
	extras := row.Extras
	if extras == nil {
		extras = []map[string]string{nil}
	}
	for _, extra := range extras {
		name := key(row.Metric, w.Engine, extra)
		value, present := points[name]
		answer := Answer{}
		if known {
			answer = row.Truth(w, extra)
		}
		delete(points, name)
		switch {
		case present && !answer.admits(value):
			v.wrong(o, n, name, fmt.Sprintf("is %.9g, and the truth is %s", value, answer))
		case present:
			v.Compared[row.Metric]++
			if lower, upper, has := v.bounds(o, n, row, w, extra); has && (value < lower || value > upper) {
				v.wrong(o, n, name, fmt.Sprintf("is %.9g, which is not between its bounds %.9g and %.9g", value, lower, upper))
			}
		case len(answer.intervals) > 0 && !answer.unsure:
			v.Withheld[row.Metric]++
		}
	}
}

// bounds returns the bounds of an interpolated quantile.
func (v *Verdict) bounds(o *Observed, n int, row *Row, w *Window, extra map[string]string) (lower, upper float64, has bool) {
	if !strings.HasSuffix(row.Metric, "_quantile") {
		return 0, 0, false
	}
	points, _ := index(o.Case, o.Scrapes[n].Points)
	bound := func(which string) (float64, bool) {
		with := maps.Clone(extra)
		with["bound"] = which
		value, ok := points[key(row.Metric+"_bound", w.Engine, with)]
		return value, ok
	}
	lower, hasLower := bound("lower")
	upper, hasUpper := bound("upper")
	if !hasLower {
		v.wrong(o, n, key(row.Metric, w.Engine, extra), "has no bounds")
		return 0, 0, false
	}
	if !hasUpper {
		upper = lower // The open bucket has its lower bound.
	}
	return lower, upper, true
}

func (v *Verdict) wrong(o *Observed, n int, name, what string) {
	v.Wrong = append(v.Wrong, fmt.Sprintf("%s at %.0f s: %s %s", o.Case.Name(), o.Scrapes[n].At, name, what))
}

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
		of := -1
		if text, has := p.Attributes["engine"]; has {
			of, _ = strconv.Atoi(text)
		} else if c.engines() == 1 && !strings.HasPrefix(p.Metric, "vllm.http.") {
			of = 0 // Old servers name no engine.
		}
		extra := maps.Clone(p.Attributes)
		delete(extra, "engine")
		delete(extra, "model_name")
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
