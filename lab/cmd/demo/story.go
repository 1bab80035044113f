package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/verdict"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/scenario"
)

// incident is what is done to the server. That of the simulated one is a scenario whose
// first change begins it and whose last one ends it.
type incident struct {
	// server says what the server is, and within is the time in which the incident begins.
	server, within string
	// file is the scenario's; a real server has none, and says itself when it begins and ends.
	file string
	// done and undone say in words what the first change and the last one do, and
	// cause is the catalogue's name of that.
	done, undone, cause string
	// from and until are times since the start of the server; 0 is not known yet.
	from, until time.Duration
	// epilogue is how long the processor has to notice the end before the summary.
	epilogue time.Duration
}

// slowMemory is an incident that is clearly visible and that the server survives.
var slowMemory = incident{
	server: "A simulated vLLM server (Llama 3.1 8B on an H100, no GPU needed)",
	within: "a minute",

	file:   "examples/scenarios/one-minute.yaml",
	done:   "the GPU's memory bandwidth falls to 30 %",
	undone: "the GPU's memory bandwidth is back to normal",
	cause:  "slow_steps",

	epilogue: 14 * time.Second,
}

// uptime is for how long the simulated server has served when it starts, so that it
// is as a server in the middle of its life.
const uptime = 126 * time.Second

// read takes the times from the scenario.
func (i *incident) read() error {
	s, err := scenario.Load(i.file)
	if err != nil {
		return err
	}
	changes := s.Config.Changes
	if len(changes) < 2 {
		return fmt.Errorf("%s: want a change that begins an incident and one that ends it", i.file)
	}
	i.from = time.Duration(changes[0].At*float64(time.Second)) - uptime
	i.until = time.Duration(changes[len(changes)-1].At*float64(time.Second)) - uptime
	return nil
}

// narrator prints the verdicts of the processor in words, and at the end compares them
// with the incident.
type narrator struct {
	out      io.Writer
	incident incident
	began    time.Time // When the server started.
	last     verdict.Verdict
	changes  []change
	over     bool
	// lines gets the name of each verdict where it differs from the one before; nil for
	// none. lineErr is the first error of that.
	lines   io.Writer
	lineErr error
}

// change is a verdict that differs from the one before.
type change struct {
	at time.Time
	verdict.Verdict
}

// observe prints a verdict where it differs from the previous one.
func (n *narrator) observe(at time.Time, v *verdict.Verdict) {
	if v.Condition == "" || v.Is(&n.last) {
		return
	}
	before := n.last
	n.last = *v
	n.changes = append(n.changes, change{at, *v})
	if n.lines != nil && n.lineErr == nil {
		_, n.lineErr = fmt.Fprintln(n.lines, v)
	}
	if before.Condition == "" {
		return // The first verdict is in the table.
	}
	fmt.Fprintf(n.out, "\n%s  now %s\n", at.Format(time.TimeOnly), v)
	w, evidence := v.Words(), v.Evidence()
	n.paragraph("found:", w.Sentence)
	for i, number := range evidence[:min(mostEvidence, len(evidence))] {
		n.paragraph(first(i, "why:"), number)
	}
	for i, step := range w.Next[:min(mostSteps, len(w.Next))] {
		n.paragraph(first(i, "next:"), step)
	}
	if len(w.Next) > 0 {
		n.paragraph("read:", w.Runbook)
	}
	fmt.Fprintln(n.out)
}

// first is the head of the first of several paragraphs.
func first(i int, head string) string {
	if i == 0 {
		return head
	}
	return ""
}

// paragraph writes text in lines of 80 columns, with a short head to their left.
func (n *narrator) paragraph(head, text string) {
	const margin, width = 8, 70
	line := ""
	flush := func() {
		fmt.Fprintf(n.out, "  %-*s%s\n", margin, head, line)
		head, line = "", ""
	}
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > width {
			flush()
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	flush()
}

// summary prints the summary once, when the story is over. It reports whether it did.
func (n *narrator) summary(now time.Time) bool {
	if n.over || n.incident.until == 0 || now.Before(n.began.Add(n.incident.until+n.incident.epilogue)) {
		return false
	}
	n.over = true
	from, until := n.began.Add(n.incident.from), n.began.Add(n.incident.until)
	fmt.Fprintln(n.out, "\nWhat was changed on the server, and what the processor reported:")
	n.event(from, "changed", n.incident.done)
	restored := false
	for _, c := range n.changes {
		if c.at.Before(from) {
			continue
		}
		if !restored && !c.at.Before(until) {
			n.event(until, "changed", n.incident.undone)
			restored = true
		}
		n.event(c.at, "reported", c.String())
	}
	if !restored {
		n.event(until, "changed", n.incident.undone)
	}
	n.paragraph("result:", n.judgement(from, until))
	fmt.Fprintln(n.out)
	return true
}

func (n *narrator) event(at time.Time, what, text string) {
	fmt.Fprintf(n.out, "  %s  %-8s  %s\n", at.Format(time.TimeOnly), what, text)
}

// judgement compares the verdicts with the incident.
func (n *narrator) judgement(from, until time.Time) string {
	// Harm is reported before its cause is known.
	var worse, named, better *change
	for i := range n.changes {
		switch c := &n.changes[i]; {
		case c.at.Before(from):
		case worse == nil && (c.Condition == "degraded" || c.Condition == "critical"):
			worse = c
			if c.Cause != "" {
				named = c
			}
		case worse != nil && named == nil && c.Cause != "":
			named = c
		case worse != nil && c.Condition == "healthy" && !c.at.Before(until):
			better = c
		}
	}
	switch {
	case len(n.changes) == 0:
		return "The processor reported nothing. That is wrong."
	case worse == nil:
		return "The processor did not notice. That is wrong."
	case named == nil:
		return fmt.Sprintf("The processor noticed after %s, and named no cause, where it was %q.", after(from, worse), n.incident.cause)
	case named.Cause != n.incident.cause:
		return fmt.Sprintf("The processor noticed after %s, and called it %q, where it was %q.", after(from, worse), named.Cause, n.incident.cause)
	}
	noticed := fmt.Sprintf("The processor noticed after %s, with the right cause", after(from, worse))
	if named != worse {
		noticed = fmt.Sprintf("The processor noticed after %s, named the right cause after %s", after(from, worse), after(from, named))
	}
	if better == nil {
		return noticed + ", and has not seen the end yet."
	}
	return noticed + fmt.Sprintf(", and saw the end after %s.", after(until, better))
}

// lookAt prints where to read on: the runbook of what was found, the dashboards, and the
// metrics while they are there.
func (n *narrator) lookAt(metrics string) {
	fmt.Fprintln(n.out, "Look at:")
	for _, c := range slices.Backward(n.changes) {
		// The pages are in the checkout from which this program was started.
		if _, file, found := strings.Cut(c.Words().Runbook, "/blob/main/"); found && c.Cause == n.incident.cause {
			fmt.Fprintf(n.out, "  %-32s  the runbook of what was found\n", file)
			break
		}
	}
	fmt.Fprintf(n.out, "  %-32s  the dashboards, with pictures of such an incident\n", "docs/start/dashboards.md")
	if metrics != "" {
		fmt.Fprintf(n.out, "  %-32s  the metrics\n", metrics)
	}
}

func after(from time.Time, c *change) time.Duration { return c.at.Sub(from).Round(time.Second) }
