package lint

import (
	"fmt"
	"io"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/plain"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/querylint"
)

// Style is how a report is printed.
type Style struct {
	// Source prints the line of each finding with a mark below it.
	Source bool
	// Colour uses the control sequences of terminals.
	Colour bool
	// Skipped lists files of folders that are neither rules nor dashboards.
	Skipped bool
}

// Print writes a report as compilers do: file:line:column: severity: message [code].
func (r *Report) Print(w io.Writer, s Style) error {
	p := &printer{w: w, style: s}
	for i := range r.Files {
		p.file(&r.Files[i])
	}
	p.summary(r)
	return p.err
}

type printer struct {
	w     io.Writer
	style Style
	err   error
}

func (p *printer) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}

func (p *printer) colour(code, text string) string {
	if !p.style.Colour {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (p *printer) file(f *File) {
	name := Printable(f.Name)
	switch {
	case f.Skipped != "":
		if p.style.Skipped {
			p.printf("%s: skipped: %s\n", name, f.Skipped)
		}
		return
	case f.Error != "":
		p.printf("%s: %s: %s.\n", name, p.colour("31", "not checked"), f.Error)
		return
	}
	for _, x := range f.Findings {
		colour := map[querylint.Severity]string{querylint.Error: "31", querylint.Warning: "33", querylint.Info: "36"}[x.Severity]
		severity := string(x.Severity)
		if x.Fixed {
			severity, colour = "fixed", "32"
		}
		message := x.Message
		if x.Path != "" {
			message = x.Path + ": " + message
		}
		p.printf("%s:%d:%d: %s: %s [%s]\n", name, x.Line, x.Column, p.colour(colour, severity), message, x.Code)
		if p.style.Source {
			p.source(f, &x)
		}
	}
	if p.style.Skipped {
		for _, what := range f.Ignored {
			p.printf("%s: not recognised: %s\n", name, what)
		}
	}
	if f.NotFixed != "" {
		p.printf("%s: %s.\n", name, Printable(f.NotFixed))
	}
}

// widest is the number of characters of a line that are shown.
const widest = 160

// source writes the line of a finding and marks the part that it is about.
func (p *printer) source(f *File, x *Finding) {
	line := []rune(f.Line(x.Line))
	from, to := x.Column-1, x.EndColumn-1
	if x.EndLine != x.Line {
		to = len(line)
	}
	from = min(from, len(line))
	to = min(max(to, from+1), len(line)+1)
	if from > widest/2 && len(line) > widest {
		cut := from - widest/4
		line, from, to = line[cut:], from-cut, to-cut
	}
	if len(line) > widest {
		line = line[:widest]
		to = min(to, widest)
	}
	var mark strings.Builder
	for i := range from {
		if i < len(line) && line[i] == '\t' {
			mark.WriteByte('\t')
		} else {
			mark.WriteByte(' ')
		}
	}
	mark.WriteString("^" + strings.Repeat("~", max(0, to-from-1)))
	p.printf("  %s\n  %s\n", withTabs(string(line)), p.colour("32", mark.String()))
}

func (p *printer) summary(r *Report) {
	s := r.Summary
	p.printf("%s in %s: %s, %s, %s.", count(s.Expressions, "expression"), count(s.Files, "file"),
		count(s.Errors, "error"), count(s.Warnings, "warning"), count(s.Infos, "remark"))
	if s.Unchecked > 0 {
		p.printf(" %s not checked.", count(s.Unchecked, "file"))
	}
	if s.Skipped > 0 {
		p.printf(" %s skipped: neither rules nor dashboards.", count(s.Skipped, "file"))
	}
	if s.Suppressed > 0 {
		p.printf(" %s suppressed.", count(s.Suppressed, "finding"))
	}
	if s.Fixed > 0 {
		p.printf(" %s replaced.", count(s.Fixed, "finding"))
	} else if s.Fixable > 0 {
		p.printf(" --fix replaces %d; --diff shows them.", s.Fixable)
	}
	p.printf("\n")
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Printable returns text of a file as one printable line.
func Printable(text string) string { return plain.Text(text, 0) }

// withTabs is a printable line with its tabs, since the mark below it counts them.
func withTabs(line string) string {
	parts := strings.Split(line, "\t")
	for i := range parts {
		parts[i] = Printable(parts[i])
	}
	return strings.Join(parts, "\t")
}
