package scale

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// diagnosis is what became of the conditions of pools and engines during an action and after it.
type diagnosis struct {
	// Untouched pools have all their engines at processes that went on. Changed pools had
	// another condition than before at some time.
	Untouched        int `json:"untouched"`
	UntouchedChanged int `json:"untouched_changed"`
	Touched          int `json:"touched"`
	TouchedChanged   int `json:"touched_changed"`
	// Back is the longest time from the beginning of the action until a touched pool had its former
	// condition permanently, in seconds. Not are those that had another one at the end.
	Back float64 `json:"back"`
	Not  int     `json:"not"`
	// Before counts the pools by their condition before the action, EnginesBefore the engines.
	Before        map[string]int `json:"before"`
	EnginesBefore map[string]int `json:"engines_before"`
	// Meanwhile counts the touched pools that were in another condition at some time, by it.
	Meanwhile map[string]int `json:"in that time"`
	// UntouchedEngines and UntouchedEnginesChanged are the same of engines.
	UntouchedEngines        int      `json:"untouched_engines"`
	UntouchedEnginesChanged int      `json:"untouched_engines_changed"`
	Examples                []string `json:"examples,omitempty"`
}

// follow returns the condition before a time, those after it that differ, and the time of the
// last one that differs.
func follow(conditions []condition, from, until uint64) (before string, others []string, last uint64) {
	sorted := slices.SortedStableFunc(slices.Values(conditions), func(a, b condition) int { return cmp.Compare(a.at, b.at) })
	for _, c := range sorted {
		switch {
		case c.at <= from:
			before = c.what
		case c.at <= until && c.what != before:
			last = c.at
			if !slices.Contains(others, c.what) {
				others = append(others, c.what)
			}
		}
	}
	return before, others, last
}

// diagnosis compares the conditions after an action with those before it.
func (r *run) diagnosis(a *action, touched []bool) diagnosis {
	d := diagnosis{Before: map[string]int{}, EnginesBefore: map[string]int{}, Meanwhile: map[string]int{}}
	from, until := uint64(a.from.UnixNano()), uint64(a.until.UnixNano())
	affected := map[string]bool{}
	for i := range r.engines {
		model := r.engines[i].model
		affected[model] = affected[model] || touched[i]
		before, others, _ := follow(r.account.engines[i].conditions, from, until)
		d.EnginesBefore[before]++
		if !touched[i] {
			d.UntouchedEngines++
			if len(others) > 0 {
				d.UntouchedEnginesChanged++
				d.example("%s was %s, then %v", r.engines[i].pod, before, others)
			}
		}
	}
	for model, is := range affected {
		before, others, last := follow(r.account.pools[model], from, until)
		d.Before[before]++
		if !is {
			d.Untouched++
			if len(others) > 0 {
				d.UntouchedChanged++
				d.example("%s was %s, then %v", model, before, others)
			}
			continue
		}
		d.Touched++
		if len(others) == 0 {
			continue
		}
		d.TouchedChanged++
		for _, what := range others {
			d.Meanwhile[what]++
		}
		if time.Duration(until-last) < 2*r.Interval {
			d.Not++
			continue
		}
		d.Back = max(d.Back, float64(last-from)/1e9)
	}
	return d
}

func (d *diagnosis) example(format string, args ...any) {
	if len(d.Examples) < 5 {
		d.Examples = append(d.Examples, fmt.Sprintf(format, args...))
	}
}
