package main

import (
	_ "embed"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// notes is the part of the results that is written by hand.
//
//go:embed notes.md
var notes string

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

// Page writes docs/why/accuracy.md: what a reader must know. All else is in Results.
func Page(o Origin, records []Record, beside Beside) string {
	scores := Scores(records)
	was := beside.Before.paired(records)
	var t table
	t.line("<!-- Written by \"make accuracy\"; its prose is lab/test/accuracy/measure/page.go. -->")
	t.line("# How accurate the diagnosis is\n")
	t.line("Measured on a [simulated vLLM](simulator.md) whose truth is known. Neither stories nor *untuned* models were used to work on the diagnosis.")
	t.line("In brackets are 95 %% intervals over stories. Elsewhere: [all tables and definitions](%s), a [real vLLM](real-vllm.md).", fromDocs+resultsFile)
	if was != nil {
		t.line("A *difference* is from the method of commit %s, on the %d of %d stories that both played, with the same truth.", beside.Before.Commit, len(was.to), len(records))
	}
	t.line("")
	t.week(scores, was)
	t.line("\nLoads are 20 to 110 %% of what the server can do. A warning is a change of the severity to 2 or 3. Without harm by a fault or too much traffic")
	t.line("it is in a **natural slow-down** or has **nothing behind it**. Slow are minutes, of at least 3 requests, in which the mean time to the first token")
	t.line("is 30 %% and 100 ms above the server's usual, or that of a further one 30 %% and 5 ms, or an objective is missed: two in a row; a wait of five")
	t.line("times the usual and 0.5 s (50 ms a token); and the three minutes after. A page needs ten times and 5 s (five times and 0.3 s a token; with an")
	t.line("objective three times its threshold), or half of the answers as errors.\n")
	t.right(scores)
	t.line("\nA minute of at least 20 requests is harmful (effect 1) if first tokens come 30 %% and 100 ms later than without the fault, further ones 30 %% and")
	t.line("5 ms, or 5 %% fewer answers are complete; or an objective is missed that was met. A cause with 20 %% of the harm and within 10 points of the")
	t.line("largest is right. Families: the engine is slower (`slow_steps`, `frontend_bound`, `kv_pressure`, `speculation_wasteful`), or the work grew.\n")
	t.line("## The bars\n")
	t.line("Of untuned models, unless all are said.\n")
	t.bars(append(Bars(scores), elsewhere(beside)...), was)
	if len(beside.Rivals) > 0 {
		t.line("\n## What others would take\n")
		t.rivals(beside.Rivals, records)
	}
	t.line("\n## What is not measured\n")
	t.line("Other engines than V1, gateways, imbalanced pools, other settings than the defaults, learning over days. The simulator has")
	t.line("[errors](simulator.md#how-close-it-is-to-real-engines).\n")
	t.line("%s", o.size(records))
	return t.String()
}

// elsewhere are the bars that other measures give.
func elsewhere(beside Beside) []Bar {
	right, of := beside.Recordings[0], beside.Recordings[1]
	recordings := Bar{Name: "[recordings](" + fromDocs + resultsFile + "#recordings-of-real-engines) right", Must: "18 of 20", Wish: "20", Seen: fmt.Sprintf("%d of %d", right, of), Unmeasured: of == 0}
	recordings.Held, recordings.Wished = of > 0 && 20*right >= 18*of, of > 0 && right == of
	played := Bar{Name: "[real vLLM](real-vllm.md), five times usual: minutes reported, right", Must: "90 %, 80 %", Wish: "98 %, 90 %", Unmeasured: len(beside.Real) == 0}
	played.Held, played.Wished = !played.Unmeasured, !played.Unmeasured
	var seen []string
	for _, one := range beside.Real {
		seen = append(seen, fmt.Sprintf("%d %%, %d %%", one[0], one[1]))
		played.Held = played.Held && one[0] >= 90 && one[1] >= 80
		played.Wished = played.Wished && one[0] >= 98 && one[1] >= 90
	}
	played.Seen = strings.Join(seen, "; ")
	return []Bar{recordings, played}
}

// realMinutes matches what the page of the real vLLM says of the minutes with harm.
var realMinutes = regexp.MustCompile(`were reported then \((\d+) %\), \d+ of these with the right reason \((\d+) %\)`)

// realShares are the shares on that page, in percent.
func realShares(page string) (out [][2]int) {
	for _, m := range realMinutes.FindAllStringSubmatch(page, -1) {
		reported, _ := strconv.Atoi(m[1]) // They are digits.
		right, _ := strconv.Atoi(m[2])
		out = append(out, [2]int{reported, right})
	}
	return out
}

// size says how large the run was.
func (o *Origin) size(records []Record) string {
	played, spent := len(records), 0.0
	for i := range records {
		spent += records[i].CPU / 3600
	}
	what := map[string]string{
		"tiny": "A first look (`ACCURACY=tiny`), whose intervals are wide", "published": "Made by `make accuracy`",
	}[o.Size]
	out := fmt.Sprintf("%s: %d of %d stories in %.1f hours of a processor, commit %s, fingerprint %s, %s, %s.", what, played, o.Planned, spent, o.Commit, o.Print, o.Machine, o.Date)
	if o.Recorded {
		return out
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
