package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/internal/vllmsim/scenario"
)

// incident is what is done to the simulated server: a scenario whose first change
// begins it and whose last one ends it.
type incident struct {
	// file is the scenario's.
	file string
	// done and undone say in words what the first change and the last one do, and
	// cause is the catalogue's name of that.
	done, undone, cause string
	// from and until are times since the start of the simulated server.
	from, until time.Duration
	// epilogue is how long the processor has for seeing the end before it is told
	// what was done.
	epilogue time.Duration
}

// slowMemory is an incident that nobody can overlook and that the server can bear.
var slowMemory = incident{
	file:   "examples/scenarios/one-minute.yaml",
	done:   "the GPU's memory is left 30 % of its bandwidth",
	undone: "the GPU's memory is as fast as before",
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

// narrator says in words what the processor says by numbers, and compares it in
// the end with what was done.
type narrator struct {
	out      io.Writer
	incident incident
	began    time.Time // When the simulated server started.
	last     verdict
	told     []change
	over     bool
}

// change is a verdict that differs from the one before.
type change struct {
	at time.Time
	verdict
}

// hear takes in a verdict at a time and tells of it if it is new.
func (n *narrator) hear(at time.Time, v verdict) {
	if v.condition == "" || v.is(n.last) {
		return
	}
	before := n.last
	n.last = v
	n.told = append(n.told, change{at, v})
	if before.condition == "" {
		return // What it says first is in the table, and no news.
	}
	fmt.Fprintf(n.out, "\n%s  now %s\n", at.Format(time.TimeOnly), v)
	sentence, next := v.words()
	n.paragraph("found:", sentence)
	for i, number := range v.evidence() {
		n.paragraph(first(i, "why:"), number)
	}
	for i, step := range next {
		n.paragraph(first(i, "next:"), step)
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

// paragraph writes text in lines of 80 columns beside a short head.
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

// summary is written once, when the story is over, and tells whether it was.
func (n *narrator) summary(now time.Time) bool {
	if n.over || now.Before(n.began.Add(n.incident.until+n.incident.epilogue)) {
		return false
	}
	n.over = true
	from, until := n.began.Add(n.incident.from), n.began.Add(n.incident.until)
	fmt.Fprintln(n.out, "\nWhat was done to the server, and what the processor said:")
	n.event(from, "done", n.incident.done)
	restored := false
	for _, c := range n.told {
		if c.at.Before(from) {
			continue
		}
		if !restored && !c.at.Before(until) {
			n.event(until, "done", n.incident.undone)
			restored = true
		}
		n.event(c.at, "said", c.String())
	}
	if !restored {
		n.event(until, "done", n.incident.undone)
	}
	n.paragraph("so:", n.judgement(from, until))
	fmt.Fprintln(n.out)
	return true
}

func (n *narrator) event(at time.Time, what, text string) {
	fmt.Fprintf(n.out, "  %s  %s  %s\n", at.Format(time.TimeOnly), what, text)
}

// judgement compares what was told with what was done.
func (n *narrator) judgement(from, until time.Time) string {
	var worse, better *change
	for i := range n.told {
		switch c := &n.told[i]; {
		case c.at.Before(from):
		case worse == nil && c.condition == "degraded":
			worse = c
		case worse != nil && c.condition == "healthy" && !c.at.Before(until):
			better = c
		}
	}
	switch {
	case len(n.told) == 0:
		return "The processor said nothing. That is wrong."
	case worse == nil:
		return "The processor did not notice. That is wrong."
	case worse.cause != n.incident.cause:
		return fmt.Sprintf("The processor noticed after %s, and called it %q, where it was %q.", after(from, worse), worse.cause, n.incident.cause)
	case better == nil:
		return fmt.Sprintf("The processor noticed after %s, with the right cause, and has not seen the end yet.", after(from, worse))
	}
	return fmt.Sprintf("The processor noticed after %s, with the right cause, and saw the end after %s.", after(from, worse), after(until, better))
}

func after(from time.Time, c *change) time.Duration { return c.at.Sub(from).Round(time.Second) }
