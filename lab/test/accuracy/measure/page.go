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
	// Size is the name of the size.
	Size string
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
	var t table
	t.line("<!-- Written by \"make accuracy\"; its prose is lab/test/accuracy/measure/page.go. -->")
	t.line("# How accurate the diagnosis is\n")
	t.line("How often a report is right, and how often a healthy fleet gets a warning, on a [simulated vLLM](simulator.md). The diagnosis was not")
	t.line("tuned on these stories or on *untuned* models. In brackets: 95 %% intervals. [All tables](%s).\n", fromDocs+resultsFile)
	t.week(scores)
	t.line("\nA warning is a change to severity 2 or 3. Without harm by a fault or overload it is in a **natural slow-down** or has **nothing behind it**.")
	t.line("In a slow-down the mean time to the first token is 30 %% and 100 ms above the usual for two minutes (a further token: 30 %% and 5 ms), one wait is")
	t.line("five times the usual and 0.5 s (50 ms), or an objective is missed. A page needs ten times and 5 s (five times and 0.3 s), three times an")
	t.line("objective, or half of the answers as errors.\n")
	all := rightOf(scores)
	all.short(&t)
	t.line("\nA harmful minute (effect 1) has first tokens 30 %% and 100 ms later than without the fault, further ones 30 %% and 5 ms, 5 %% fewer complete")
	t.line("answers, or a missed objective.\n")
	t.line("## The bars\n")
	t.bars(append(Bars(scores), elsewhere(beside)...))
	if len(beside.Rivals) > 0 {
		t.line("\n## Other methods\n")
		t.rivals(beside.Rivals, records)
	}
	t.line("\n## What is not measured\n")
	t.line("Engines other than V1, gateways, imbalanced pools, other settings, learning over days, the [errors of the simulator](simulator.md#how-close-it-is-to-real-engines).\n")
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
	what := map[string]string{
		"tiny": "A first look (`ACCURACY=tiny`), whose intervals are wide", "published": "Made by `make accuracy`",
	}[o.Size]
	out := fmt.Sprintf("%s: %d of %d stories, commit %s, fingerprint %s, %s, %s.", what, len(records), o.Planned, o.Commit, o.Print, o.Machine, o.Date)
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
