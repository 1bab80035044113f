package live

import (
	"fmt"
	"io"
	"strings"

	"github.com/rivo/uniseg"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/status"
)

// The rows that WritePlain explains below the table, and what it says of each.
const (
	MostExplained = 20
	mostEvidence  = 4
	mostSteps     = 2
)

// NeedsAction is the severity from which on a person has to act.
const NeedsAction = 2

// Status is the exit status of what a table shows: Failed if no server can be read or judged, Problem
// if an engine or a pool needs action or a server cannot be read. It is also Failed if all that is
// shown is well and something is not shown.
func (t *Table) Status() status.Status {
	if n, _ := t.notJudged(); t.Servers == t.Failing || n > 0 && n == len(t.Rows)-t.Pools {
		return status.Failed
	}
	for i := range t.Rows {
		if t.Rows[i].Urgent() {
			return status.Problem
		}
	}
	if t.LeftOut > 0 {
		return status.Failed
	}
	return status.OK
}

// Urgent reports whether a row asks for action.
func (r *Row) Urgent() bool { return r.Severity >= NeedsAction || r.Unread != "" }

// WritePlain writes the table once, the worst first, as text without control sequences. Below
// it is what has to be known of the rows that ask for action.
func (t *Table) WritePlain(out io.Writer, width int) error {
	Sort(t.Rows, Order{})
	var b strings.Builder
	fmt.Fprintln(&b, t.Summary(width))
	if remark := t.Remark(); remark != "" {
		writeWrapped(&b, "", strings.ReplaceAll(remark, " Enter shows why.", " The reasons are below."), width)
	}
	fmt.Fprintln(&b)
	layout := NewLayout(width, t.Rows, t.At)
	fmt.Fprintln(&b, layout.Head(Order{}))
	explained := 0
	for i := range t.Rows {
		fmt.Fprintln(&b, layout.Line(&t.Rows[i], t.At))
	}
	for i := range t.Rows {
		r := &t.Rows[i]
		if !r.Urgent() {
			continue
		}
		explained++
		if explained > MostExplained {
			continue
		}
		fmt.Fprintf(&b, "\n%s  %s\n", r.Name(), r.Verdict.String())
		for _, p := range r.short(t) {
			for n, text := range p.Texts {
				head := p.Head + ":"
				if n > 0 {
					head = ""
				}
				writeWrapped(&b, "  "+fit(head, 9, false)+" ", text, width)
			}
		}
	}
	if explained > MostExplained {
		fmt.Fprintf(&b, "\n%d more need action; --json explains all.\n", explained-MostExplained)
	}
	fmt.Fprintln(&b)
	writeWrapped(&b, "", "TTFT and ITL are means in ms. "+t.Learning(), width)
	_, err := io.WriteString(out, b.String())
	return err
}

// short is the part of the page of a row that WritePlain has.
func (r *Row) short(t *Table) (left []Paragraph) {
	for _, p := range r.Page(t.At) {
		switch p.Head {
		case "not read", "runbook":
		case "found":
			if r.Unread != "" {
				continue // The reason says more.
			}
		case "evidence":
			p.Texts = p.Texts[:min(mostEvidence, len(p.Texts))]
		case "next":
			if r.Severity < NeedsAction {
				continue
			}
			p.Texts = p.Texts[:min(mostSteps, len(p.Texts))]
		default:
			continue
		}
		left = append(left, p)
	}
	return left
}

// writeWrapped writes a paragraph in lines of a width, with a head before the first of them
// and as much space before all others.
func writeWrapped(b *strings.Builder, head, text string, width int) {
	for _, line := range Wrap(text, max(20, width-uniseg.StringWidth(head))) {
		b.WriteString(strings.TrimRight(head+line, " ") + "\n")
		head = strings.Repeat(" ", uniseg.StringWidth(head))
	}
}

// Wrap breaks a text into lines of at most so many cells at its spaces. A word that is longer
// stays whole, so that an address can be copied.
func Wrap(text string, width int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == "":
			line = word
		case uniseg.StringWidth(line)+1+uniseg.StringWidth(word) > width:
			lines = append(lines, line)
			line = word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}
