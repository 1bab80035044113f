package main

import (
	"encoding/json"

	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
	"github.com/otelcol-vllm/otelcol-vllm/lab/test/accuracy/stories"
)

// Before is what the method of before said. Its records come from other sources.
type Before struct {
	// Commit is the commit that was measured, as the caller names it.
	Commit  string
	Records []Record
}

// Beside are the results that a page compares its own with.
type Beside struct {
	// Before is nil without.
	Before *Before
	// Rivals are methods of others. Their stories may be fewer: see sameStories.
	Rivals []Rival
	// Recordings are how many runs of the recordings are right, and all.
	Recordings [2]int
	// Real are the shares, in percent, of minutes of harm on the real vLLM that were reported, and of these rightly, at
	// each interval of scrapes.
	Real [][2]int
}

// sameStories returns the records of the stories that both methods have played, in the same
// order. Another story with the same name does not count, and neither does one whose truth
// differs: then two simulations are compared, not two methods. Both are counted in other.
func sameStories(before, after []Record) (from, to []Record, other int) {
	known := make(map[string]*Record, len(before))
	for i := range before {
		known[before[i].Name] = &before[i]
	}
	for i := range after {
		b, there := known[after[i].Name]
		switch {
		case !there:
		case truth(b) != truth(&after[i]):
			other++
		default:
			from, to = append(from, *b), append(to, after[i])
		}
	}
	return from, to, other
}

// truth is what a record has that no diagnosis changes, as text.
func truth(r *Record) string {
	type minute struct {
		Minute, Server, Requests int
		Effect, Unended          float64
		Causes                   map[string]float64
		Also                     []string
	}
	all := struct {
		Meta            stories.Meta
		Minutes, Judged int
		Harm            []minute
		Slow            [][2]int
		Sought          []judge.Sought
	}{Meta: r.Meta, Minutes: r.Minutes, Judged: r.Judged}
	for i := range r.Lines {
		if l := &r.Lines[i]; l.Harmful {
			all.Harm = append(all.Harm, minute{l.Minute, l.Server, l.Requests, l.Effect, l.Unended, l.TrueCauses, append([]string{}, l.Also...)})
		}
	}
	all.Slow = append(all.Slow, r.Slow...)
	all.Sought = append(all.Sought, r.Sought...)
	text, err := json.Marshal(all)
	if err != nil {
		panic(err) // It was read from JSON, or will be written as such.
	}
	return string(text)
}

// compared is the table of the method of before and this one on the same stories.
func (t *table) compared(o Origin, before *Before, records []Record) {
	fromRecords, toRecords, other := sameStories(before.Records, records)
	if len(fromRecords) == 0 {
		t.line("The journal of the method of before (commit %s) has no story of this page.", before.Commit)
		return
	}
	from, to := Scores(fromRecords), Scores(toRecords)
	t.line("*Before* is the method of commit %s, *after* the one of this page, at commit %s. Both were given the same scrapes of", before.Commit, o.Commit)
	t.line("the same %d stories; %d of the %d stories of this page are not in the table, because the method of before did not play", len(to), len(records)-len(to), len(records))
	t.line("them (%d) or because what is true of them differs (%d). So the columns *after* can differ from the tables above.", len(records)-len(to)-other, other)
	t.line("Differences have 95 %% intervals by bootstrap over pairs: each sample has the same stories of both. If an interval does not")
	t.line("contain 0, other stories of this kind would hardly turn the sign. Where no story differs, the interval is 0 to 0.\n")
	t.head("harmful minutes of effect 2 or more", "before", "after", "difference")
	for _, r := range headlines() {
		for _, group := range []struct {
			name string
			keep func(*Score, *Verdict) bool
		}{{"tuned", tuned}, {"untuned", untuned}} {
			f := r.figure(group.keep)
			t.row(r.name+", "+group.name+" models", within(r.seen(from, group.keep)), within(r.seen(to, group.keep)), f.differenceText(from, to))
		}
	}
	t.line("")
	t.head("in 10,000 hours without a fault", "before", "after", "difference")
	for _, g := range groups() {
		b, a := alarmsIn(from, g.keep), alarmsIn(to, g.keep)
		for _, r := range fleetRows {
			f := alarmFigure(g.keep, r.column)
			t.row(r.name+", "+g.name, b.text(r.column), a.text(r.column), f.differenceText(from, to))
		}
	}
	t.line("")
	t.head("bar", "must", "before", "after", "difference", "result before", "result after")
	was, is := Bars(from), Bars(to)
	for i := range is {
		b, a := &was[i], &is[i]
		change := "-"
		if !a.Unmeasured {
			change = a.figure.differenceText(from, to)
		}
		t.row(a.Name, a.Must, b.Seen, a.Seen, change, b.Verdict(), "**"+a.Verdict()+"**")
	}
}

// rivals compares with what others would take, each on the stories that it has played.
func (t *table) rivals(all []Rival, records []Record) {
	t.head("untuned models, in 10,000 h", "right", "warnings with nothing behind", "in slow-downs", "pages")
	row := func(name string, records []Record) {
		scores := Scores(records)
		of := judgedIn(scores)
		a := alarmsIn(scores, func(s *Score) bool { return of.models(s) && !s.Recorded })
		m := tally(scores, stories.Inferred, of.minutes)
		t.row(name, within(m.macro(ofRight)), a.text(nothing), a.text(natural), a.text(paged))
	}
	row("this diagnosis", records)
	for _, r := range all {
		theirs, ours, _ := sameStories(r.Records, records)
		row(r.Name, theirs)
		if len(ours) > 0 && len(ours) < len(records) {
			row("this diagnosis, on the same", ours)
		}
	}
}
