package main

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// incident is what is done to the simulated server, as times since its start.
type incident struct {
	from, until time.Duration
	// change is what "vllmsim serve -change" is told at from, restore what at until.
	change, restore string
	// done says it in words, cause is the catalogue's name of what it is.
	done, cause string
	// end is when it is told what it was.
	end time.Duration
}

// slowMemory leaves the server three tenths of its memory bandwidth, with which it
// can still do its work: each step takes three times as long, and nothing else.
var slowMemory = incident{
	from: 34 * time.Second, until: 49 * time.Second,
	change: "bandwidth=0.3", restore: "bandwidth=1",
	done:  "the GPU's memory is left 30 % of its bandwidth",
	cause: "slow_steps",
	end:   63 * time.Second,
}

// uptime is for how long the simulated server has served when it starts, so that it
// is as a server in the middle of its life.
const uptime = 2 * time.Minute

// changes are the arguments of vllmsim.
func (i incident) changes() []string {
	return []string{
		"--change", fmt.Sprintf("%s:%s", uptime+i.from, i.change),
		"--change", fmt.Sprintf("%s:%s", uptime+i.until, i.restore),
	}
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
	n.paragraph("found:", v.found())
	for i, number := range v.evidence() {
		n.paragraph(first(i, "why:"), number)
	}
	for i, step := range v.next() {
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
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > width {
			flush()
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	flush()
}

// summary is written once, when the story is over, and tells whether it was.
func (n *narrator) summary(now time.Time) bool {
	if n.over || now.Before(n.began.Add(n.incident.end)) {
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
			n.event(until, "done", "its memory is as fast as before")
			restored = true
		}
		n.event(c.at, "said", c.String())
	}
	if !restored {
		n.event(until, "done", "its memory is as fast as before")
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
