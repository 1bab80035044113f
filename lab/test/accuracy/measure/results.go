package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/accuracy/stories"
)

// section is a table of the results. The page has some columns and rows of it, results.tsv all.
type section struct {
	title, prose string
	// columns of the page; without one it is not there. rows are the beginnings of their names; nil for all.
	columns []int
	rows    []string
	table   string
}

// sections are all tables.
func sections(o Origin, records []Record, beside Beside) []section {
	scores := Scores(records)
	generated := slices.DeleteFunc(slices.Clone(scores), func(s Score) bool { return s.Recorded })
	write := func(write func(*table, []Score), of []Score) string {
		var t table
		write(&t, of)
		return t.String()
	}
	out := []section{
		rightOf(scores),
		{"By cause", "Counted minutes of effect 2 or more on generated traffic.", []int{0, 1, 2, 4, 5}, nil, write((*table).causes, scores)},
		{"How often a name is right", "", []int{0, 1, 3}, nil, write((*table).names, scores)},
		{"What is reported for each cause", "", nil, nil, write((*table).confusion, scores)},
		{"Hours without a fault", "In 10,000 hours.", []int{0, 1, 4, 5, 7}, []string{"all", "load", "recorded"}, write((*table).alarms, scores)},
		{"What warnings report", "", nil, nil, write((*table).falses, generated)},
		{"Time to detect", "In minutes from the start of the harm.", []int{0, 1, 2, 5, 7}, nil, write((*table).delays, generated)},
		{
			"Faults that are easily missed", "",
			[]int{0, 1, 4, 5},
			[]string{"mild: minutes", "drift", "from", "clients", "a legitimate"},
			write((*table).silence, generated),
		},
		{"Harm by the limits of real servers", "", []int{0, 1, 2, 3}, nil, write((*table).felt, scores)},
		{"Faults of the exposition", "", nil, nil, write(func(t *table, _ []Score) { t.expositions(records) }, nil)},
	}
	if o.Recorded {
		out = append(out, section{"Recorded traffic", "", nil, nil, write((*table).recorded, scores)})
	}
	if beside.Before != nil {
		out = append(out, section{"Before and after", "", nil, nil, write(func(t *table, _ []Score) { t.compared(o, beside.Before, records) }, nil)})
	}
	return out
}

// rightTitle is the name of the table of rightOf.
const rightTitle = "Right"

// rightOf is how often reports are right; the page for readers has a part of it.
func rightOf(scores []Score) section {
	var t table
	t.right(scores)
	return section{rightTitle, "", []int{0, 1, 2}, []string{"inferred causes: right |", "inferred causes: harm", "a named", "causes that"}, t.String()}
}

// Results writes the page of the lab: the tables that are read, and the definitions. The parts about recordings and GPUs, which
// others write, are taken from the old page.
func Results(o Origin, records []Record, all []section, old string) string {
	return compose(o.size(records), counted(Scores(records)), all, old)
}

func compose(size, counted string, all []section, old string) string {
	var t table
	t.line("<!-- Written by \"make accuracy\"; its prose is lab/test/accuracy/measure/results.go and notes.md. -->")
	t.line("# The diagnosis, measured\n")
	t.line("The tables behind [accuracy.md](../../../docs/why/accuracy.md). [results.tsv](results.tsv) has all rows and columns, families, what is reported for each cause,")
	t.line("what warnings report, faults of the exposition, recorded traffic, and before and after. %s", size)
	for i := range all {
		s := &all[i]
		if s.columns == nil || s.title == rightTitle { // That is on the other page.
			continue
		}
		t.line("\n## %s\n", s.title)
		if s.prose != "" {
			t.line("%s\n", s.prose)
		}
		s.short(&t)
		if s.title == "By cause" {
			t.line("\n%s", counted)
		}
	}
	for _, part := range []struct{ title, name string }{{"Recordings of real engines", "recordings"}, {"The evidence of GPUs", "gpus"}} {
		t.line("\n## %s\n", part.title)
		t.line("%s", kept(old, "<!-- "+part.name+": begin -->", "<!-- "+part.name+": end -->"))
	}
	t.line("\n## The stories\n")
	t.backgrounds()
	t.line("\n%s", strings.TrimSpace(notes))
	return t.String()
}

// cells are those of a line of a table; nil of other lines.
func cells(line string) []string {
	if !strings.HasPrefix(line, "| ") {
		return nil
	}
	return strings.Split(strings.TrimSuffix(strings.TrimPrefix(line, "| "), " |"), " | ")
}

// short writes the columns and rows of the page.
func (s *section) short(t *table) {
	head, write := true, t.head
	for line := range strings.Lines(s.table) {
		all := cells(strings.TrimSuffix(line, "\n"))
		if all == nil {
			continue
		}
		if head || s.rows == nil || slices.ContainsFunc(s.rows, func(name string) bool { return strings.HasPrefix(all[0]+" |", name) }) {
			var some []string
			for _, c := range s.columns {
				some = append(some, all[c])
			}
			write(some...)
		}
		head, write = false, t.row
	}
}

// Data has all tables as lines of table, row, column and value.
func Data(all []section) string {
	var b strings.Builder
	b.WriteString("table\trow\tcolumn\tvalue\n")
	for i := range all {
		var head []string
		for line := range strings.Lines(all[i].table) {
			row := cells(strings.TrimSuffix(line, "\n"))
			switch {
			case line == "\n":
				head = nil
			case row != nil && head == nil:
				head = row
			case row != nil:
				for c := 1; c < len(row); c++ {
					if row[c] != "" {
						fmt.Fprintf(&b, "%s\t%s\t%s\t%s\n", all[i].title, row[0], head[c], strings.Trim(row[c], "*"))
					}
				}
			}
		}
	}
	return b.String()
}

// kept is a part of the old page, with its marks.
func kept(old, from, to string) string {
	begin, end := strings.Index(old, from), strings.Index(old, to)
	if begin < 0 || end < begin {
		return from + "\n" + to
	}
	return old[begin : end+len(to)]
}

// recordingsRight counts the runs in the table of recordings whose verdict has nothing wrong, which is bold there, and all.
func recordingsRight(page string) (out [2]int) {
	const head = "| run | what happened | verdict |"
	_, rest, _ := strings.Cut(kept(page, "<!-- recordings: begin -->", "<!-- recordings: end -->"), head)
	for i, line := range strings.Split(rest, "\n") {
		if i < 2 {
			continue
		}
		row := cells(line)
		if len(row) != 3 {
			break
		}
		out[1]++
		if !strings.Contains(row[2], "**") {
			out[0]++
		}
	}
	return out
}

// recorded compares recorded with generated traffic.
func (t *table) recorded(scores []Score) {
	t.head("traffic", "stories", "minutes", "reported", "right", "hours without a fault", "warnings with nothing behind them", "in natural slow-downs", "pages")
	for _, kind := range stories.Traffics {
		for _, recorded := range []bool{false, true} {
			keep := func(s *Score) bool {
				return s.Traffic == kind.Name && s.Recorded == recorded && (s.Kind == stories.Single || s.Kind == stories.Healthy)
			}
			m := tally(scores, stories.Inferred, func(s *Score, v *Verdict) bool {
				return keep(s) && s.Kind == stories.Single && v.Effect >= strongEffect && v.Ours
			})
			a := alarmsIn(scores, func(s *Score) bool { return keep(s) && s.Kind == stories.Healthy })
			name := kind.Name + ", generated"
			if recorded {
				name = kind.Trace + ", recorded"
			}
			t.row(name, strconv.Itoa(len(m.byStory)), fmt.Sprintf("%.0f", m.minutes()), within(m.pooled(ofReported)), within(m.pooled(ofRight)),
				fmt.Sprintf("%.0f", a.sum[hours]), a.text(nothing), a.text(natural), a.text(paged))
		}
	}
}

// expositions counts the minutes with a fault of the exposition.
func (t *table) expositions(records []Record) {
	t.head("fault", "minutes", "reported")
	for _, kind := range []string{"unreachable", "restart", "frozen_gauges"} {
		said, of := 0, 0
		for i := range records {
			if r := &records[i]; r.Kind == stories.Exposition && r.Variant == kind {
				a, b := exposed(r)
				said, of = said+a, of+b
			}
		}
		t.row(kind, strconv.Itoa(of), strconv.Itoa(said))
	}
}

// exposed counts the minutes that end from a window after the beginning of a fault to its
// end, and those with the right report.
func exposed(r *Record) (said, of int) {
	for _, f := range r.Faults {
		for i := range r.Lines {
			l := &r.Lines[i]
			at := float64(l.Minute+1) * window
			if at <= f.At+window || at >= f.Until {
				continue
			}
			of++
			switch r.Variant {
			case "frozen_gauges":
				for _, c := range l.Causes {
					if c.Name == "frozen_gauges" {
						said++
						break
					}
				}
			default:
				if l.Condition == "unreachable" || l.Condition == "starting" {
					said++
				}
			}
		}
	}
	return said, of
}

func seedList(seeds []uint64) string {
	var out []string
	for _, s := range seeds {
		out = append(out, strconv.FormatUint(s, 10))
	}
	return strings.Join(out, ", ")
}

// backgrounds lists models, traffic and seeds.
func (t *table) backgrounds() {
	models, traffics := map[bool][]string{}, map[bool][]string{} // By whether they are tuned.
	for _, m := range stories.Models {
		models[m.Tuned] = append(models[m.Tuned], m.Name)
	}
	for _, k := range stories.Traffics {
		traffics[k.Tuned] = append(traffics[k.Tuned], k.Name)
	}
	t.line("- **Models** that the diagnosis can be tuned on: %s. Untuned: %s.", strings.Join(models[true], ", "), strings.Join(models[false], ", "))
	t.line("- **Traffic** for tuning: %s. Untuned: %s, and recorded traces.", strings.Join(traffics[true], ", "), strings.Join(traffics[false], ", "))
	t.line("- **Load**: 20 %% to 110 %% of the knee, the highest rate without a growing queue (`stories/knees_table.go`).")
	t.line("- **Seeds**: tuning from %d, held out from %d. Spent, because their rows were read: %s, and 1,000 to 8,000,000.", stories.FirstSeed(stories.Tuning), stories.FirstSeed(stories.HeldOut), seedList(stories.SpentSeeds))
}
