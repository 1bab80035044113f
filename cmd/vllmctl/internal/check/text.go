package check

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Style says how the text is written.
type Style struct {
	// Color allows the control sequences of a terminal.
	Color bool
	// Verbose shows what is in order, infos, and all details.
	Verbose bool
}

// mark is how a line begins.
type mark struct{ word, color string }

var marks = map[string]mark{
	"":      {"ok", "32"},
	Info:    {"info", "36"},
	Warning: {"warning", "33"},
	Problem: {"problem", "31"},
}

// Write writes the report for people.
func (r *Report) Write(to io.Writer, style Style) error {
	out := &text{style: style}
	var well []string
	for i := range r.Targets {
		t := &r.Targets[i]
		title := t.Name
		if t.Receiver != "" {
			title += "  (receiver " + t.Receiver + ")"
		}
		if len(r.Targets) > mostWhole && !style.Verbose && !slices.ContainsFunc(t.Findings, style.shows) {
			well = append(well, fmt.Sprintf("  %s: %s %s, %d series, and %d of the processor\n", title, t.Kind, t.Version, t.Series, t.Added))
			continue
		}
		out.block(title, t.Findings, t.Passes)
	}
	if len(well) > 0 {
		out.b.WriteString("in order\n" + strings.Join(well, "") + "\n")
	}
	if len(r.Findings) > 0 || len(r.Passes) > 0 {
		out.block("configuration", r.Findings, r.Passes)
	}
	if len(r.Sent) > 0 {
		fmt.Fprintf(&out.b, "what will be sent, for %s\n", plural(len(r.Targets), "server"))
		for i := range r.Sent {
			fmt.Fprintf(&out.b, "  %-24s%s\n", r.Sent[i].Exporter, r.Sent[i].words(len(r.Targets)))
		}
		if slices.ContainsFunc(r.all(), func(f Finding) bool { return f.Code == CodeNoTraffic }) {
			fmt.Fprintf(&out.b, "%26s%s\n", "", "A server without traffic has fewer series than one with traffic.")
		}
		out.b.WriteString("\n")
	} else if r.configured {
		out.b.WriteString("What will be sent is not known, because no server could be read twice.\n\n")
	}
	fmt.Fprintf(&out.b, "%s, %s, %s in %.1f s.", plural(r.Problems, "problem"), plural(r.Warnings, "warning"), plural(r.Infos, "info"), r.Seconds)
	switch {
	case r.Problems+r.Warnings > 0:
		out.b.WriteString(" Each code has a heading in docs/reference/vllmctl.md.")
	case !style.Verbose && r.Infos > 0:
		out.b.WriteString(" --verbose shows the infos.")
	}
	out.b.WriteString("\n")
	if r.Paste != "" {
		which := ""
		if r.pasted < len(r.Targets) {
			which = fmt.Sprintf(", for %d of %s", r.pasted, plural(len(r.Targets), "target"))
		}
		out.b.WriteString("\nA configuration to begin with" + which + ":\n\n")
		for line := range strings.Lines(r.Paste) {
			out.b.WriteString("  " + line)
		}
	}
	_, err := io.WriteString(to, out.b.String())
	return err
}

// mostWhole is how many servers are shown with all that is in order.
const mostWhole = 5

// shows reports whether a finding is written.
func (s Style) shows(f Finding) bool {
	return s.Verbose || f.Severity != Info || slices.Contains(alwaysShown, f.Code)
}

// alwaysShown are the infos without which what was not judged would look like what is well.
var alwaysShown = []string{CodeGateway, CodeRouter, CodeSimulator, CodeAccelerator, CodeLMCache, CodeNotJudged, CodeExporterUnchecked, CodeExporterEmpty}

// text writes blocks of lines.
type text struct {
	style Style
	b     strings.Builder
}

// block writes one target, or the configuration.
func (t *text) block(title string, found []Finding, passed []Pass) {
	t.b.WriteString(title + "\n")
	for _, category := range Categories() {
		of := slices.DeleteFunc(slices.Clone(found), func(f Finding) bool {
			return f.Category != category || !t.style.shows(f)
		})
		var good []string
		for _, p := range passed {
			if p.Category == category {
				good = append(good, p.Text)
			}
		}
		each := slices.Contains([]string{Exporters, Queue, Kubernetes}, category) // Each is about something else.
		if len(of) == 0 && len(good) > 0 && !t.style.Verbose && !each {
			t.line("", category, good[len(good)-1])
			continue
		}
		if t.style.Verbose || each {
			for _, words := range good {
				t.line("", category, words)
			}
		}
		for i := range of {
			t.finding(&of[i])
		}
	}
	t.b.WriteString("\n")
}

// mostShown is how many details are shown without --verbose.
const mostShown = 3

func (t *text) finding(f *Finding) {
	t.line(f.Severity, f.Category, f.What+" ["+f.Code+"]")
	if f.Severity != Info || t.style.Verbose {
		t.below(f.Do)
	}
	for i, d := range f.Details {
		if i == mostShown && !t.style.Verbose && len(f.Details) > mostShown+1 {
			t.below(fmt.Sprintf("  and %d more (--verbose)", len(f.Details)-i))
			break
		}
		t.below("  " + d)
	}
	if t.style.Verbose {
		t.below(f.Link)
	}
}

// line writes one line with its mark: a word, so that it can be read without colours.
func (t *text) line(severity, category, words string) {
	m := marks[severity]
	word := fmt.Sprintf("%-8s", m.word)
	if t.style.Color {
		word = "\x1b[" + m.color + "m" + word + "\x1b[0m"
	}
	fmt.Fprintf(&t.b, "  %s%-14s%s\n", word, category, words)
}

// below writes a line that belongs to the one above.
func (t *text) below(words string) {
	fmt.Fprintf(&t.b, "%24s%s\n", "", words)
}

// plural writes a number with its word.
func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
