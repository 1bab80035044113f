package main

import (
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/accuracy/stories"
)

// notes is the part of the page that is written by hand.
//
//go:embed notes.md
var notes string

// The marks of the parts of the page that others write: the replay of recordings, and the
// measure of the evidence of GPUs.
const (
	recordingsBegin = "<!-- recordings: begin -->"
	recordingsEnd   = "<!-- recordings: end -->"
	gpusBegin       = "<!-- gpus: begin -->"
	gpusEnd         = "<!-- gpus: end -->"
)

// Origin says where the numbers of a page come from.
type Origin struct {
	// Size is the name of the size, Command what was run.
	Size, Command string
	// Commit, Print, Machine and Date are of the run; Print is the fingerprint of the sources.
	Commit, Print, Machine, Date string
	// Planned is the number of stories of that size.
	Planned int
	// Recorded is whether ../shared was there.
	Recorded bool
}

// Page writes docs/why/accuracy.md. The part about recordings is taken from the old page.
func Page(o Origin, records []Record, beside Beside, old string) string {
	scores := Scores(records)
	generated := slices.DeleteFunc(slices.Clone(scores), func(s Score) bool { return s.Recorded })
	var t table
	t.line("<!-- Written by \"make accuracy\"; its prose is lab/test/accuracy/measure/page.go and notes.md. -->")
	t.line("# How accurate the diagnosis is\n")
	t.line("The diagnosis of the vllm processor, measured on a simulated engine whose truth is known")
	t.line("([simulator.md](../simulator.md)), and on a few recordings of real engines ([below](#recordings-of-real-engines)).")
	t.line("*Effect* is the harm to users as a multiple of the bar of harm ([definitions](#what-counts)): at 1 the harm just begins.")
	t.line("In brackets are 95 %% intervals over stories ([how](#what-counts)). *Untuned* models were never used while the diagnosis was")
	t.line("worked on: a server that the authors have not seen is like these. Six causes are *read off* a counter or a standstill of their")
	t.line("own; seven must be *inferred* from metrics that other causes move as well ([by cause](#by-cause)). Shares of minutes are means")
	t.line("over the causes of a group, each with the same weight. All of this is on generated traffic; [recorded](#recorded-traffic) is apart.\n")
	t.line("%s\n", inBrief(scores))
	t.headline(scores)
	t.line("\n%s\n", o.size(records))
	t.line("An earlier version of this page said 94.6 %% for 13 causes and two models. An audit of it found 89.9 %% for the seven causes")
	t.line("that must be inferred, and 77.8 %% (70 to 83) for these on the model that nothing was tuned on. That measure had no mild")
	t.line("faults, its faults had traffic without bursts, alarms were rare on the healthy servers that it had, and after a change of")
	t.line("the rate it compared different requests. Since then the measure and the method have changed; [before and after](#before-and-after) compares both methods.\n")

	t.line("## The bars\n")
	t.line("What the method of the diagnosis must reach. The first three rows are about minutes of effect 2 or more. The rows about")
	t.line("pages and warnings have recorded traffic as well, the headline has not. A fault counts as reported if harm was reported in any")
	t.line("minute in which it does harm, whatever the cause: with many false warnings, over the four hours of a drift that can be")
	t.line("chance. [Minutes reported](#mild-faults-drift-faults-from-the-start-silence) say more.\n")
	t.bars(Bars(scores))

	t.line("\nThe same stories by the limits of [real servers](real-vllm.md#how-it-is-judged), scraped every %d s. The usual is that of the run", scrapes)
	t.line("without a fault. Harm that ended before it had to be reported is not counted, unless it was reported.\n")
	t.felt(scores)

	if beside.Before != nil {
		t.line("\n## Before and after\n")
		t.compared(o, beside.Before, records)
	}
	t.line("\n## Detection by the size of the harm\n")
	t.line("![Share of harmful minutes that are reported, by effect](%s)\n", Picture)
	t.line("The effect of a story is that of its fault alone, over all requests while it lasts. Its value is sought, so that the effect is")
	t.line("1, 1.3, 2, 3, 5 or 10; where a fault cannot do so much harm, the story counts by what was reached, and below 0.87 not at all.")
	t.line("*Stories* are those whose fault did harm in a minute. *Minutes* are the harmful ones more than three windows after the onset, of")
	t.line("which the fault is a true cause; *ever reported* counts the stories in which harm was reported in any minute of that kind, or")
	t.line("in the three windows after the onset. Harm by traffic alone does not count here. *8B* is 8b-h100 with the traffic conversation,")
	t.line("both of which the diagnosis may be tuned on; the picture has these rows.\n")
	t.curve(generated)

	t.line("\n## By cause\n")
	t.line("Minutes of effect 2 or more, of all stories on generated traffic, as in the headline. Harm by a legitimate growth is not among")
	t.line("them; it has a [row of its own](#mild-faults-drift-faults-from-the-start-silence).\n")
	t.causes(scores)
	t.line("\n%s", demandBySource(generated))
	t.line("%s", withoutLong(generated))
	t.line("%s", counted(generated))

	t.line("\n## Time to detect\n")
	t.line("In windows of a minute, from the beginning of the first harmful minute (or the onset within it) to the first report of harm,")
	t.line("and to the first one with the right cause. Without a report the delay counts as infinite. It is 0 where harm was reported")
	t.line("already: because of the traffic, of a smaller harm by the same fault while it grows, or falsely. A column counts these stories.\n")
	t.delays(generated)

	t.line("\n## False warnings and pages\n")
	t.line("Changes of the severity to 2 (warning) or 3 (page) in 10,000 hours of one engine; of less than %d hours the", fewHours)
	t.line("number is given. Minutes with harm, the three minutes after them, and failed scrapes are left out: where traffic alone exceeds")
	t.line("what the server can do, an alarm is right. So it is where users wait in a burst, by the limits of [real servers](real-vllm.md); a page")
	t.line("needs great harm by these. A report that began rightly and goes on after the harm is no new warning: the share of")
	t.line("the time with a false report, in the headline, has it.\n")
	t.line("%s\n", healthyHours(generated))
	t.alarms(scores)
	t.cells(scores)
	t.line("\nBy what they report, at loads to 80 %% of the knee as in the bars:\n")
	t.falses(scores)
	t.examples(generated)

	t.line("\n## Mild faults, drift, faults from the start, silence\n")
	t.silence(generated)

	t.line("\n## Recorded traffic\n")
	t.recorded(scores, o.Recorded)

	t.line("\n## Confusion matrix\n")
	t.line("The minutes of the section [by cause](#by-cause): true causes are rows, and columns are what is reported as the primary cause at")
	t.line("the end of the minute, in percent of the row. *%s* means that no harm is reported. A condition is the column where a report has no", silent)
	t.line("cause; `degraded` is then harm whose cause is unknown. A report can be right beside the bold cells: some causes have")
	t.line("[other names that are right](#what-counts).\n")
	t.confusion(scores)

	t.line("\n## Faults of the exposition\n")
	t.line("Their truth is the fault itself, not the latency of requests: `unreachable` or `starting` for a server that does not answer,")
	t.line("and the notice `frozen_gauges` for a gauge that stands still. The notice is for a KV cache that seems more than half full without")
	t.line("requests: the gauge freezes in a burst, and all clients leave 30 seconds later. Until their last requests have ended, no notice")
	t.line("is possible, and these minutes are in the row.\n")
	t.expositions(records)

	t.line("\n## Recordings of real engines\n")
	t.line("%s\n", kept(old, recordingsBegin, recordingsEnd))

	t.line("## The evidence of GPUs\n")
	t.line("%s\n", kept(old, gpusBegin, gpusEnd))

	t.line("## The worst stories\n")
	t.line("To play one again: `go run ./lab/test/accuracy/measure -story NAME`.\n")
	t.worst(generated, 15)

	t.line("\n## The backgrounds\n")
	t.backgrounds(o)
	t.line("")
	t.WriteString(strings.NewReplacer(
		"docs/simulator.md", "[simulator.md](../simulator.md)", "docs/reference/judging.md", "[Judging](../reference/judging.md)",
		"docs/why/decisions.md", "[Decisions](decisions.md)",
	).Replace(notes))
	return t.String()
}

// inBrief is the headline as a sentence.
func inBrief(scores []Score) string {
	inferred := tally(scores, stories.Inferred, untuned)
	a := falseAlarms(scores, func(s *Score) bool { return !s.Recorded && !s.Objectives })
	every := "no false warning was seen"
	if a.warnings > 0 {
		every = fmt.Sprintf("there is a false warning every %.1f hours, and there were %d false pages in %.0f hours", a.hours/float64(a.warnings), a.pages, a.hours)
		every += fmt.Sprintf(";\nharm is reported in %s of this time", a.timeText())
	}
	return fmt.Sprintf(`**In brief:** on a model that nothing was tuned on, and where the cause must be inferred, the diagnosis reports harm in
%s of the minutes in which users clearly have harm, and names the right cause in %s. On
servers without a fault and without objectives %s.`, percent(inferred.macro(ofReported).Value), percent(inferred.macro(ofRight).Value), every)
}

// size says how large the run was.
func (o *Origin) size(records []Record) string {
	played, spent := len(records), 0.0
	for i := range records {
		spent += records[i].CPU / 3600
	}
	what := map[string]string{
		"tiny": "a first look (`ACCURACY=tiny`), whose intervals are wide", "sample": "the sample of `make accuracy`",
		"full": "the published size (`ACCURACY=full`)",
	}[o.Size]
	out := fmt.Sprintf("This is %s: %d of %d stories, at commit %s (fingerprint %s), on %s, %s.", what, played, o.Planned, o.Commit, o.Print, o.Machine, o.Date)
	out += fmt.Sprintf("\nIt took %.1f hours of a processor.", spent)
	if o.Recorded {
		return out + "\nStories on recorded traffic need `../shared`; they have a [part of their own](#recorded-traffic)."
	}
	return out + "\n`../shared` was not there, so nothing was played on recorded traffic."
}

// Scores scores records.
func Scores(records []Record) []Score {
	out := make([]Score, len(records))
	for i := range records {
		out[i] = score(&records[i])
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
	t.head("traffic", "stories", "minutes", "reported", "right", "hours without a fault", "warnings and pages", "pages")
	for _, kind := range stories.Traffics {
		for _, recorded := range []bool{false, true} {
			keep := func(s *Score) bool {
				return s.Traffic == kind.Name && s.Recorded == recorded && (s.Kind == stories.Single || s.Kind == stories.Healthy)
			}
			m := tally(scores, stories.Inferred, func(s *Score, v *Verdict) bool {
				return keep(s) && s.Kind == stories.Single && v.Effect >= strongEffect && v.Ours
			})
			a := falseAlarms(scores, func(s *Score) bool { return keep(s) && s.Kind == stories.Healthy })
			name := kind.Name + ", generated"
			if recorded {
				name = kind.Trace + ", recorded"
			}
			t.row(name, strconv.Itoa(len(m.byStory)), fmt.Sprintf("%.0f", m.minutes()), within(m.pooled(ofReported)), within(m.pooled(ofRight)),
				fmt.Sprintf("%.0f", a.hours), a.warningText(), a.pageText())
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

// kept is a part of the old page, with its marks.
func kept(old, from, to string) string {
	begin, end := strings.Index(old, from), strings.Index(old, to)
	if begin < 0 || end < begin {
		return from + "\n" + to
	}
	return old[begin : end+len(to)]
}

// worst lists the stories with the most wrong minutes.
func (t *table) worst(scores []Score, most int) {
	type row struct {
		s                 *Score
		of, right, silent int
		said              map[string]int
	}
	var rows []row
	for i := range scores {
		r := row{s: &scores[i], said: map[string]int{}}
		for _, v := range scores[i].Verdicts {
			if v.Phase != Counted || v.Effect < strongEffect {
				continue
			}
			r.of++
			r.said[v.Said]++
			if v.Right {
				r.right++
			}
			if !v.Reported {
				r.silent++
			}
		}
		if r.of > r.right && scores[i].Kind != stories.Healthy {
			rows = append(rows, r)
		}
	}
	slices.SortStableFunc(rows, func(a, b row) int { return (b.of - b.right) - (a.of - a.right) })
	t.head("story", "background", "load", "effect", "minutes", "right", "silent", "reported")
	for _, r := range rows[:min(most, len(rows))] {
		t.row(r.s.Name, r.s.Model+", "+r.s.Traffic, fmt.Sprintf("%.0f %%", 100*r.s.Load), number(math.Round(10*r.s.got())/10),
			strconv.Itoa(r.of), strconv.Itoa(r.right), strconv.Itoa(r.silent), mostOf(r.said, 3))
	}
}

// mostOf are the most frequent words with their numbers, at most so many.
func mostOf(counts map[string]int, most int) string {
	type pair struct {
		name string
		n    int
	}
	var all []pair
	for name, n := range counts {
		all = append(all, pair{name, n})
	}
	slices.SortFunc(all, func(a, b pair) int {
		if a.n != b.n {
			return b.n - a.n
		}
		return strings.Compare(a.name, b.name)
	})
	var out []string
	for _, p := range all[:min(most, len(all))] {
		out = append(out, fmt.Sprintf("%s %d", p.name, p.n))
	}
	return strings.Join(out, ", ")
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
	var used, held []string
	for _, m := range stories.Models {
		if m.Tuned {
			used = append(used, m.Name)
		} else {
			held = append(held, m.Name)
		}
	}
	t.line("\n- **Tuned models** (the diagnosis may be tuned on them): %s. **Untuned**: %s.", strings.Join(used, ", "), strings.Join(held, ", "))
	used, held = nil, nil
	for _, k := range stories.Traffics {
		if k.Tuned {
			used = append(used, k.Name)
		} else {
			held = append(held, k.Name)
		}
	}
	t.line("- **Tuned traffic**: %s. **Untuned**: %s. Recorded traces are never tuned on.", strings.Join(used, ", "), strings.Join(held, ", "))
	t.line("- **Seeds**: tuning from %d, held out from %d; a story's seed comes from its name. Everything on this page is held out by seed.", stories.FirstSeed(stories.Tuning), stories.FirstSeed(stories.HeldOut))
	t.line("- **What was looked at once is no longer held out.** The models 8b-h100, 70b-tp4-h100 and a 34B model on A100, and the seeds from")
	t.line("  1,000 to 8,000,000, were on earlier pages; no untuned model is among them. Three runs of this measure were looked at, with")
	t.line("  the seeds from %s: a pilot run, after which the stories and the scores were changed; a run that was", seedList(stories.SpentSeeds))
	t.line("  ended when a third of it was there; and a published run of an earlier method. Somebody who looked for mistakes had read the")
	t.line("  page of the second: harm by a legitimate growth left the headline, which was then 6 points higher on tuned models and 3 points")
	t.line("  lower on untuned ones, some minutes of grace count now, and what is harm with objectives was mended. None of their stories is")
	t.line("  here. The tables of the untuned models and traffic were read in all three. The diagnosis was not changed before the third.")
	t.line("  A prototype of the present method was played once on 64 of the stories of this page, and two of the figures were read; the")
	t.line("  rest was seen only when it was finished. Two stories are missing, `heldout-healthy-8b-a100-batch-2-3` and `-2-5`: more than")
	t.line("  500,000 requests are under way in them, more than the simulator holds.")
	t.line("  A method that is changed after reading the rows of this page about single stories needs new seeds.")
	t.line("- Made by `%s`. It can be ended and started again: finished stories are in `build/accuracy`.", o.Command)
}
