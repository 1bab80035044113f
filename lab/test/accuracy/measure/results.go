package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/accuracy/stories"
)

// Results writes the page of the lab: all tables, and the definitions. The parts about recordings and GPUs, which others write,
// are taken from the old page.
func Results(o Origin, records []Record, beside Beside, old string) string {
	scores := Scores(records)
	generated := make([]Score, 0, len(scores))
	for i := range scores {
		if !scores[i].Recorded {
			generated = append(generated, scores[i])
		}
	}
	var t table
	section := func(title, prose string, write func([]Score), of []Score) {
		t.line("\n## %s\n", title)
		if prose != "" {
			t.line("%s\n", prose)
		}
		write(of)
	}
	t.line("<!-- Written by \"make accuracy\"; its prose is lab/test/accuracy/measure/results.go and notes.md. -->")
	t.line("# The diagnosis, measured: all tables\n")
	t.line("The page for readers is [accuracy.md](../../../docs/why/accuracy.md). %s", o.size(records))
	section("By cause", "Counted minutes of effect 2 or more on generated traffic.", t.causes, scores)
	t.line("\n%s", counted(generated))
	section("How often a name is right", "The same minutes by the inferred cause that is named.", t.names, scores)
	section("What is reported for each cause", "The same minutes: columns are what is reported as the primary cause, in percent of the row. *silent* means that no harm is\nreported, and `degraded` that it has no name. A report can be right beside the bold cells.", t.confusion, scores)
	section("Hours without a fault", "What is counted in 10,000 hours.", t.alarms, scores)
	section("What warnings report", "At loads to 80 % of the knee.", t.falses, generated)
	section("Time to detect", "In minutes from the beginning of the harm. Without a report it counts as infinite; it is 0 where harm was reported already.", t.delays, generated)
	section("Mild faults, drift, faults from the start, silence", "", t.silence, generated)
	section("Harm by the limits of real servers", "", t.felt, scores)
	t.line("\n## Recorded traffic\n")
	t.recorded(scores, o.Recorded)
	t.line("\n## Faults of the exposition\n")
	t.line("`unreachable` or `starting` for a server that does not answer, and the notice `frozen_gauges` for a gauge that stands still.\n")
	t.expositions(records)
	if beside.Before != nil {
		t.line("\n## Before and after\n")
		t.compared(o, beside.Before, records)
	}
	for _, part := range []struct{ title, name string }{{"Recordings of real engines", "recordings"}, {"The evidence of GPUs", "gpus"}} {
		t.line("\n## %s\n", part.title)
		t.line("%s", kept(old, "<!-- "+part.name+": begin -->", "<!-- "+part.name+": end -->"))
	}
	t.line("\n## The backgrounds\n")
	t.backgrounds(o)
	t.line("\n%s", strings.TrimSpace(notes))
	return t.String()
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
	const head = "| run | what happened | reported, in minutes | first alarm | all-clear | verdict |"
	_, rest, _ := strings.Cut(kept(page, "<!-- recordings: begin -->", "<!-- recordings: end -->"), head)
	for i, line := range strings.Split(rest, "\n") {
		cells := strings.Split(line, " | ")
		if i < 2 {
			continue
		}
		if len(cells) < 6 {
			break
		}
		out[1]++
		if !strings.Contains(cells[5], "**") {
			out[0]++
		}
	}
	return out
}

// recorded compares recorded with generated traffic.
func (t *table) recorded(scores []Score, there bool) {
	if !there {
		t.line("Not measured: `../shared/traces` was not there.")
		return
	}
	t.line("Stories with one inferred cause, on windows of the traces themselves, brought to the wanted load by their speed, and healthy")
	t.line("servers on the same. The generator's stories, which anybody can play, are beside them.\n")
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

// backgrounds lists models, traffic, knees and seeds.
func (t *table) backgrounds(o Origin) {
	t.line("Stories with a fault and healthy ones share them: a model, traffic, and a load of 20 %% to 110 %% of the *knee*, the highest")
	t.line("rate without a growing queue, which a simulation finds (`go run ./lab/test/accuracy/measure -knees`). For a closed loop it")
	t.line("is the number of clients with which nine tenths of the greatest throughput are reached.\n")
	t.head("model", "traffic", "knee", "first token p95 at half of it", "gap p90, at most")
	for _, k := range stories.Knees() {
		unit := "/s"
		if stories.Closed(k.Traffic) {
			unit = " clients"
		}
		t.row(k.Model, k.Traffic, number(k.Rate)+unit, fmt.Sprintf("%.2f s", k.FirstToken), fmt.Sprintf("%.1f ms", 1000*k.Gap))
	}
	models, traffics := map[bool][]string{}, map[bool][]string{} // By whether they are tuned.
	for _, m := range stories.Models {
		models[m.Tuned] = append(models[m.Tuned], m.Name)
	}
	for _, k := range stories.Traffics {
		traffics[k.Tuned] = append(traffics[k.Tuned], k.Name)
	}
	t.line("\n- **Tuned models** (the diagnosis may be tuned on them): %s. **Untuned**: %s.", strings.Join(models[true], ", "), strings.Join(models[false], ", "))
	t.line("- **Tuned traffic**: %s. **Untuned**: %s. Recorded traces are never tuned on.", strings.Join(traffics[true], ", "), strings.Join(traffics[false], ", "))
	t.line("- **Seeds**: tuning from %d, held out from %d; a story's seed comes from its name. Everything on this page is held out by seed.", stories.FirstSeed(stories.Tuning), stories.FirstSeed(stories.HeldOut))
	t.line("- **Spent**: the first seeds %s were looked at, in a pilot, two runs that were ended or mended, and a published run of the method of", seedList(stories.SpentSeeds))
	t.line("  before, and 1,000 to 8,000,000 on earlier pages; the untuned models were read in aggregate in all of them.")
	t.line("  A method that is changed after reading rows about single stories needs new seeds.")
	t.line("- Made by `%s`. It continues where it was ended.", o.Command)
}
