// Package lint checks rules and dashboards of users against the catalogue, or against what a
// server or a Prometheus really has, and writes what is certain.
package lint

import (
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/lint/document"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/plain"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/querylint"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/status"
)

// Report is the result of a check. It is what --json writes.
type Report struct {
	// Version is the version of this format.
	Version int `json:"version"`
	// Against is what the names were checked against: "catalogue", or the address of the
	// server or the Prometheus.
	Against string `json:"against"`
	// VLLM is the version of vLLM that was checked against; empty if none.
	VLLM string `json:"vllm_version,omitempty"`
	// Failure is why the comparison with the server or the Prometheus is incomplete.
	Failure string `json:"failure,omitempty"`
	// Files are the files in the order in which they were found.
	Files []File `json:"files"`
	// Summary has the counts.
	Summary Summary `json:"summary"`
}

// File is what was found in a file.
type File struct {
	// Name is the path as it was given; "-" for standard input.
	Name string `json:"name"`
	// Formats are the recognised formats.
	Formats []string `json:"formats,omitempty"`
	// Expressions is the number of expressions in it.
	Expressions int `json:"expressions"`
	// Error is why the file could not be checked.
	Error string `json:"error,omitempty"`
	// Skipped is why a file of a folder was skipped.
	Skipped string `json:"skipped,omitempty"`
	// Ignored are parts of the file that were not recognised.
	Ignored []string `json:"ignored,omitempty"`
	// Findings are the findings, in the order of the file.
	Findings []Finding `json:"findings,omitempty"`
	// Fixed is the number of findings whose replacement was written.
	Fixed int `json:"fixed,omitempty"`
	// NotFixed is why replacements were not written.
	NotFixed string `json:"not_fixed,omitempty"`

	// Before and After are the content without and with the replacements; After is nil if
	// there are none.
	Before, After []byte `json:"-"`
	lines         []string
}

// Finding is one mistake.
type Finding struct {
	// Line is the line of the file, from 1.
	Line int `json:"line"`
	// Column is the column in characters, from 1.
	Column int `json:"column"`
	// EndLine is the line of the character of the finding.
	EndLine int `json:"end_line"`
	// EndColumn is the column after the last character of the finding.
	EndColumn int `json:"end_column"`
	// Severity is "error", "warning" or "info".
	Severity querylint.Severity `json:"severity"`
	// Code is the stable name of the kind of mistake.
	Code querylint.Code `json:"code"`
	// Message is what is wrong and what to do.
	Message string `json:"message"`
	// Path is group/rule, or dashboard/panel/query.
	Path string `json:"path"`
	// Suggestion is the replacement of the place, without the escapes of the file.
	Suggestion string `json:"suggestion,omitempty"`
	// Fixable reports whether --fix writes the suggestion.
	Fixable bool `json:"fixable"`
	// Fixed reports whether it was written; the finding is not counted then.
	Fixed bool `json:"fixed,omitempty"`

	span document.Span
	edit *document.Edit
}

// Summary has counts.
type Summary struct {
	// Files is the number of files that were checked.
	Files int `json:"files"`
	// Unchecked is the number of files that could not be checked.
	Unchecked int `json:"unchecked"`
	// Skipped is the number of files in folders that are neither rules nor dashboards.
	Skipped int `json:"skipped"`
	// Expressions is the number of expressions in the files.
	Expressions int `json:"expressions"`
	// Errors is the number of errors that are not fixed.
	Errors int `json:"errors"`
	// Warnings is the number of warnings that are not fixed.
	Warnings int `json:"warnings"`
	// Infos is the number of infos that are not fixed.
	Infos int `json:"infos"`
	// Suppressed is the number of findings that a comment or --disable hides.
	Suppressed int `json:"suppressed"`
	// Fixable is the number of findings that --fix would write.
	Fixable int `json:"fixable"`
	// Fixed is the number of findings whose replacement was written.
	Fixed int `json:"fixed"`
}

// Status returns the exit status. A problem that was found counts more than a file that could
// not be checked.
func (r *Report) Status(strict bool) status.Status {
	switch s := r.Summary; {
	case s.Errors > 0:
		return status.Problem
	case s.Unchecked > 0 || s.Files == 0 || r.Failure != "":
		return status.Failed
	case strict && s.Warnings > 0:
		return status.Warning
	}
	return status.OK
}

// The sizes in bytes of texts of a report. A file can come from another person, and each finding repeats its
// path and parts of its expression.
const (
	maxPath       = 200
	maxMessage    = 1 << 10
	maxSuggestion = 4 << 10
)

// bound makes what was taken from files and servers printable and short. A replacement stays as it is,
// or is left out.
func (r *Report) bound() {
	r.Against, r.Failure = plain.Text(r.Against, maxMessage), plain.Text(r.Failure, maxMessage)
	for i := range r.Files {
		f := &r.Files[i]
		f.Error, f.Skipped = plain.Text(f.Error, maxMessage), plain.Text(f.Skipped, maxMessage)
		for _, all := range [][]string{f.Formats, f.Ignored} {
			for j := range all {
				all[j] = plain.Text(all[j], maxPath)
			}
		}
		for j := range f.Findings {
			x := &f.Findings[j]
			x.Path, x.Message = plain.Text(x.Path, maxPath), plain.Text(x.Message, maxMessage)
			if len(x.Suggestion) > maxSuggestion {
				x.Suggestion = ""
			}
		}
	}
}

// summarize counts the findings.
func (r *Report) summarize() {
	s := Summary{Suppressed: r.Summary.Suppressed}
	for i := range r.Files {
		f := &r.Files[i]
		switch {
		case f.Skipped != "":
			s.Skipped++
			continue
		case f.Error != "":
			s.Unchecked++
		default:
			s.Files++
		}
		s.Expressions += f.Expressions
		s.Fixed += f.Fixed
		for _, x := range f.Findings {
			switch {
			case x.Fixed:
				continue
			case x.Fixable:
				s.Fixable++
			}
			switch x.Severity {
			case querylint.Error:
				s.Errors++
			case querylint.Warning:
				s.Warnings++
			case querylint.Info:
				s.Infos++
			}
		}
	}
	r.Summary = s
}

// Line returns a line of a file, from 1, for the display of a finding.
func (f *File) Line(number int) string {
	if number < 1 || number > len(f.lines) {
		return ""
	}
	return f.lines[number-1]
}
