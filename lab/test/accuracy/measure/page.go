package main

import (
	_ "embed"
	"fmt"
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
	var t table
	t.line("<!-- Written by \"make accuracy\"; its prose is lab/test/accuracy/measure/page.go. -->")
	t.line("# How accurate the diagnosis is\n")
	t.line("Measured on a simulated vLLM whose truth is known ([simulator.md](../simulator.md)), with stories that were not used to work on the")
	t.line("diagnosis. *Untuned* models were never used either: your server is like these. In brackets are 95 %% intervals over stories.")
	t.line("[All tables and definitions](%s), [a real vLLM](real-vllm.md).\n", fromDocs+resultsFile)
	t.week(scores)
	t.line("\nA warning is a change of the severity to 2 or 3. One while no fault does harm and traffic is not too much is in a **natural slow-down**")
	t.line("(users wait, because of the traffic itself) or has **nothing behind it**. A natural slow-down is two minutes in a row, of at least")
	t.line("three requests, in which the mean time to the first token is 30 %% and 100 ms above the usual of the server, or that of a further token")
	t.line("30 %% and 5 ms, or an objective is missed; or a wait of five times the usual and 0.5 s (50 ms a token); and the three minutes after. Loads")
	t.line("are 20 to 110 %% of what the server can do. A page needs great harm: ten times the usual and 5 s (five times and 0.3 s a token; with an")
	t.line("objective three times its threshold).\n")
	t.right(scores)
	t.line("\nA minute of at least 20 requests is harmful (effect 1) if first tokens come 30 %% and 100 ms later than without the fault, further tokens 30 %% and")
	t.line("5 ms later, or 5 %% fewer answers are complete; with an objective, if it is missed and would be met. A cause with 20 %% of the harm is true, and to")
	t.line("name one within 10 points of the largest is right. Families: the engine is slower (`slow_steps`, `frontend_bound`, `kv_pressure`,")
	t.line("`speculation_wasteful`), or the work grew. Silence is never right.\n")
	t.line("## The bars\n")
	t.bars(append(Bars(scores), elsewhere(beside)...))
	t.line("\nOf untuned models, unless all are said. The bars of drifts and pages are held only as far as measured with fewer stories or hours.")
	if beside.Before != nil {
		t.line("\n## Before and after\n")
		t.inShort(o, beside.Before, records)
	}
	if len(beside.Rivals) > 0 {
		t.line("\n## What others would take\n")
		t.rivals(beside.Rivals, records)
	}
	t.line("\n## What is not measured\n")
	t.line("Other versions than the V1 engine of `vllmsim`, gateways, imbalanced pools, other settings than the defaults, and learning over days. The")
	t.line("simulator has [errors](../simulator.md#how-close-it-is-to-real-engines) of its own.\n")
	t.line("%s", o.size(records))
	return t.String()
}

// elsewhere are the bars that other measures give.
func elsewhere(beside Beside) []Bar {
	right, of := beside.Recordings[0], beside.Recordings[1]
	recordings := Bar{Name: "[recordings](" + fromDocs + resultsFile + "#recordings-of-real-engines) of real engines right", Must: "18 of 20", Wish: "20", Seen: fmt.Sprintf("%d of %d", right, of), Unmeasured: of == 0}
	recordings.Held, recordings.Wished = of > 0 && 20*right >= 18*of, of > 0 && right == of
	return []Bar{recordings, {
		Name: "real vLLM, five times usual or more: minutes reported, of them right", Must: "90 %, 80 %", Wish: "98 %, 90 %", Seen: "see [its page](real-vllm.md)", Unmeasured: true,
	}}
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
	out := fmt.Sprintf("%s: %d of %d stories, at commit %s (fingerprint %s), on %s, %s.", what, played, o.Planned, o.Commit, o.Print, o.Machine, o.Date)
	out += fmt.Sprintf("\nIt took %.1f hours of a processor.", spent)
	if o.Recorded {
		return out + "\nStories on recorded traffic need `../shared`."
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
