package lint

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/lint/document"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/lint/format"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/querylint"
)

// directive is a comment that suppresses findings, in YAML or within an expression.
var directive = regexp.MustCompile(`#\s*vllmctl-lint:\s*disable=([A-Za-z0-9,_-]*)`)

// suppression is one such comment.
type suppression struct {
	codes []querylint.Code
	// line is the one that the comment is about: its own, or the next one that is not a comment.
	line int
	span document.Span
	// whole is true for a comment before everything else in a document.
	whole bool
}

// suppressions are the comments of a file, by the document that they are in.
type suppressions struct {
	of map[*document.Document][]suppression
}

func newSuppressions(one *loaded) *suppressions {
	s := &suppressions{of: map[*document.Document][]suppression{}}
	s.read(one.document, nil)
	for _, e := range one.content.Expressions {
		s.read(e.Node.Document(), e.Node)
	}
	for _, p := range one.content.Problems {
		s.read(p.Node.Document(), p.Node)
	}
	return s
}

// read finds the comments of a document. JSON has none; an expression in it can.
func (s *suppressions) read(d *document.Document, at *document.Node) {
	if _, known := s.of[d]; known {
		return
	}
	s.of[d] = nil
	if d.JSON || !strings.Contains(d.Text(), "vllmctl-lint:") {
		return
	}
	lines := d.Lines()
	begun := false
	for i, line := range lines {
		trimmed := strings.TrimSpace(line)
		comment := strings.HasPrefix(trimmed, "#")
		if found := directive.FindStringSubmatchIndex(line); found != nil {
			x := suppression{line: i + 1, whole: !begun && comment}
			for code := range strings.SplitSeq(line[found[2]:found[3]], ",") {
				x.codes = append(x.codes, querylint.Code(code))
			}
			if comment {
				for x.line <= len(lines) && isComment(lines[x.line-1]) {
					x.line++
				}
			}
			x.span = placeOf(d, at, i, found[0])
			s.of[d] = append(s.of[d], x)
		}
		begun = begun || !comment && trimmed != "" && trimmed != "---"
	}
}

func isComment(line string) bool {
	line = strings.TrimSpace(line)
	return line == "" || strings.HasPrefix(line, "#")
}

// placeOf returns where a comment is in the file.
func placeOf(d *document.Document, at *document.Node, line, column int) document.Span {
	return d.PlaceOfLine(line+1, column, at)
}

// hides reports whether a comment suppresses a code for an expression or a value.
func (s *suppressions) hides(e *format.Expression, n *document.Node, code querylint.Code) bool {
	if n == nil {
		return false
	}
	for _, x := range s.of[n.Document()] {
		if !slices.Contains(x.codes, code) {
			continue
		}
		if x.whole || x.line == n.Line() {
			return true
		}
		if e != nil && (within(x.line, e.Scope) || within(x.line, e.Head)) {
			return true
		}
	}
	if e != nil {
		for _, found := range directive.FindAllStringSubmatch(e.Text(), -1) {
			if slices.Contains(strings.Split(found[1], ","), string(code)) {
				return true
			}
		}
	}
	return false
}

func within(line int, in format.Lines) bool {
	return in.First > 0 && in.First <= line && line <= in.Last
}

// unknown returns the comments with codes that do not exist.
func (s *suppressions) unknown() []Finding {
	var all []Finding
	for _, list := range s.of {
		for _, x := range list {
			for _, code := range x.codes {
				if !Known(code) {
					all = append(all, Finding{
						Code: CodeSuppression, Severity: querylint.Warning, span: x.span,
						Message: fmt.Sprintf("The comment disables %q, which is not a code. \"vllmctl lint --codes\" lists all codes.", code),
					})
				}
			}
		}
	}
	return all
}
