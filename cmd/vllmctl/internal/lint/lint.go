package lint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/lint/document"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/lint/format"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/lint/live"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/querylint"
)

// Options are what a check needs besides the files. The zero value is usable.
type Options struct {
	// Spelling is that of all names; empty means that it is found out for each file.
	Spelling querylint.Spelling
	// Disable are codes that are not reported.
	Disable []querylint.Code
	// Labels are further labels that the series of the deployment have.
	Labels []string
	// Version is the version of vLLM that the files are for; empty if there are several.
	Version string
	// Stable is the spelling of the stable names that names on the wire shall be replaced by;
	// empty if they shall stay.
	Stable querylint.Spelling
	// Live is what is really there; nil if the catalogue alone counts.
	Live live.Source
}

// maxFindings is the number of findings that are reported of one file.
const maxFindings = 5_000

const errInterrupted = "the check was interrupted"

// loaded is a file that was read.
type loaded struct {
	file     *File
	document *document.Document
	content  *format.File
	spelling querylint.Spelling
}

// Check checks files. Recording rules of all files are known in each of them. When the context ends,
// it returns at once, and no file counts as checked.
func Check(ctx context.Context, inputs []Input, o Options) *Report {
	done := make(chan *Report, 1)
	go func() { done <- check(ctx, inputs, o) }()
	select {
	case r := <-done:
		return r
	case <-ctx.Done():
		r := &Report{Version: 1, Against: "catalogue"}
		for _, in := range inputs {
			r.Files = append(r.Files, File{Name: in.Name, Error: errInterrupted})
		}
		r.summarize()
		return r
	}
}

func check(ctx context.Context, inputs []Input, o Options) *Report {
	r := &Report{Version: 1, Against: "catalogue", Files: make([]File, len(inputs))}
	if o.Live != nil {
		r.Against = o.Live.Where()
		o.Version = cmp.Or(o.Version, o.Live.Version())
	}
	r.VLLM = o.Version
	var all []*loaded
	for i, in := range inputs {
		alone(ctx, &r.Files[i], func() {
			if one := load(in, &r.Files[i]); one != nil {
				all = append(all, one)
			}
		})
	}
	c := newChecker(o, all)
	for _, one := range all {
		alone(ctx, one.file, func() { c.check(ctx, one) })
	}
	if c.failed != nil {
		r.Failure = c.failed.Error()
	}
	r.Summary.Suppressed = c.suppressed
	r.summarize()
	r.bound()
	return r
}

// alone does something with a file so that a mistake of this program ends the check of that file only.
func alone(ctx context.Context, f *File, do func()) {
	defer func() {
		if p := recover(); p != nil {
			f.Findings, f.Error = nil, fmt.Sprintf("vllmctl failed on this file; please report it with the file: %v", p)
		}
	}()
	if ctx.Err() != nil {
		f.Error = errInterrupted
		return
	}
	do()
}

// load reads a file; nil if it cannot be checked.
func load(in Input, into *File) *loaded {
	into.Name = in.Name
	fail := func(err error) *loaded {
		into.Error = err.Error()
		return nil
	}
	if in.Err != nil {
		return fail(in.Err)
	}
	d, err := document.Parse(in.Content)
	if err != nil {
		if strings.Contains(string(in.Content), "{{") && strings.Contains(string(in.Content), "}}") && filepath.Ext(in.Name) != ".json" {
			err = fmt.Errorf("%w; it looks like a template: check what \"helm template\" makes of it", err)
		}
		return fail(err)
	}
	content := format.Read(d)
	if len(content.Kinds) == 0 {
		what := "it has nothing in it"
		if len(content.Ignored) > 0 {
			what = "it is " + content.Ignored[0]
		}
		err := errors.New("no rules or dashboard of a known format: " + what)
		if !in.Listed {
			into.Skipped = err.Error()
			return nil
		}
		return fail(err)
	}
	if content.Truncated {
		return fail(fmt.Errorf("it has more than %d expressions", format.MaxExpressions))
	}
	into.Formats, into.Ignored, into.Expressions = content.Kinds, content.Ignored, len(content.Expressions)
	into.Before = in.Content
	into.lines = d.Lines()
	return &loaded{file: into, document: d, content: content}
}

// checker has what the files have in common.
type checker struct {
	options    Options
	records    records
	suppressed int
	// failed is the first error of Live; then nothing more is asked.
	failed error
}

func newChecker(o Options, all []*loaded) *checker {
	for _, one := range all {
		one.spelling = cmp.Or(o.Spelling, usual(one.content.Expressions))
	}
	return &checker{options: o, records: recordsOf(all)}
}

// linters returns a linter for each spelling that knows the recording rules that a file uses.
func (c *checker) linters(one *loaded) map[querylint.Spelling]*querylint.Linter {
	all := map[querylint.Spelling]*querylint.Linter{}
	for _, s := range querylint.Spellings() {
		all[s] = querylint.New(querylint.Options{Spelling: s, Mixed: c.options.Spelling == "", Labels: c.options.Labels, Version: c.options.Version, Stable: c.options.Stable})
	}
	for _, e := range c.records.usedBy(one) {
		for _, l := range all {
			l.Record(e.Context.Name, e.Text(), e.Context.Labels)
		}
	}
	return all
}

// check adds the findings of a file.
func (c *checker) check(ctx context.Context, one *loaded) {
	hidden := newSuppressions(one)
	linters := c.linters(one)
	for _, p := range one.content.Problems {
		c.add(one, hidden, nil, p.Node, Finding{Code: CodeFormat, Severity: querylint.Error, Path: p.Path, Message: sentence(p.Message)})
	}
	for _, e := range one.content.Expressions {
		if ctx.Err() != nil {
			one.file.Error, one.file.Findings = errInterrupted, nil
			return
		}
		spelling := c.spellingOf(one, e.Text())
		all := append(linters[spelling].Expr(e.Text(), e.Context), vanishing(e)...)
		for _, f := range c.compared(ctx, e, spelling, all) {
			c.add(one, hidden, e, e.Node, c.finding(e, f))
		}
	}
	for _, f := range hidden.unknown() {
		c.add(one, hidden, nil, nil, f)
	}
	slices.SortStableFunc(one.file.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.span.From, b.span.From), cmp.Compare(a.span.To, b.span.To), cmp.Compare(a.Code, b.Code))
	})
	if len(one.file.Findings) > maxFindings {
		one.file.Ignored = append(one.file.Ignored, fmt.Sprintf("%d more findings", len(one.file.Findings)-maxFindings))
		one.file.Findings = one.file.Findings[:maxFindings]
	}
}

// compared adds what is found by comparing with what is really there, and removes what that
// shows to be wrong.
func (c *checker) compared(ctx context.Context, e *format.Expression, spelling querylint.Spelling, all []querylint.Finding) []querylint.Finding {
	if c.options.Live == nil || c.failed != nil {
		return all
	}
	found, err := live.Check(ctx, c.options.Live, e.Text(), spelling, c.options.Labels)
	if err != nil {
		c.failed = err
		return all
	}
	return found.Merge(all)
}

// finding gives a finding of the linter its place in the file.
func (c *checker) finding(e *format.Expression, f querylint.Finding) Finding {
	x := Finding{Code: f.Code, Severity: f.Severity, Path: e.Path, Message: f.Message}
	from, to := e.From+f.Start, e.From+f.End
	if f.End == 0 || e.Expanded != "" {
		from, to = e.From, e.To
	}
	x.span = e.Node.Place(from, to)
	if e.Expanded != "" {
		return x // A replacement would be one of what is not in the file.
	}
	x.Suggestion = f.Suggestion
	if f.Certain && f.Suggestion != "" {
		if edit := narrow(e.Node, from, to, f.Suggestion); edit != nil {
			x.edit, x.Fixable = edit, true
		}
	}
	return x
}

// narrow returns the edit that leaves alone what the old and the new text have in common.
func narrow(n *document.Node, from, to int, text string) *document.Edit {
	old := n.Text[from:to]
	begin := 0
	for begin < len(old) && begin < len(text) && old[begin] == text[begin] {
		begin++
	}
	end := 0
	for end < len(old)-begin && end < len(text)-begin && old[len(old)-1-end] == text[len(text)-1-end] {
		end++
	}
	if begin+end == len(old) {
		// Only an insertion: keep one character, so that there is something to replace.
		switch {
		case begin > 0:
			begin--
		case end > 0:
			end--
		default:
			return nil
		}
	}
	return &document.Edit{Node: n, From: from + begin, To: to - end, New: text[begin : len(text)-end]}
}

// add adds a finding unless it is suppressed.
func (c *checker) add(one *loaded, hidden *suppressions, e *format.Expression, n *document.Node, f Finding) {
	if slices.Contains(c.options.Disable, f.Code) || hidden.hides(e, n, f.Code) {
		c.suppressed++
		return
	}
	if f.span == (document.Span{}) && n != nil {
		f.span = document.Span{From: n.Start(), To: n.Start()}
	}
	f.Line, f.Column = one.document.Position(f.span.From)
	f.EndLine, f.EndColumn = one.document.Position(f.span.To)
	one.file.Findings = append(one.file.Findings, f)
}

// sentence begins with a capital letter and ends with a full stop.
func sentence(text string) string {
	text = strings.TrimRight(strings.TrimSpace(text), ".")
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:] + "."
}
