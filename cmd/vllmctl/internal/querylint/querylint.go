// Package querylint finds mistakes in PromQL about the metrics of the catalogue: names,
// types, units, labels, buckets, matching and thresholds that cannot be what the author
// meant. It needs no server. It has no opinion on style.
//
// A Linter knows what the expressions have in common: the spelling of names, the recording
// rules, the labels of the deployment. Expr checks one expression in its context and
// returns findings, each with a stable code, a place and a sentence that says what to do.
//
// The checks infer for each part of an expression what its value is: a counter, a rate, a
// ratio, its unit, the labels that it can have and those that identify a series. Where the
// inference does not know, the checks are silent.
package querylint

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// Spelling is the way in which names of metrics and labels are written.
type Spelling string

// The spellings.
const (
	// Suffixed has underscores, units and types: vllm_prompt_tokens_total.
	Suffixed Spelling = "suffixed"
	// Unsuffixed has underscores only: vllm_prompt_tokens.
	Unsuffixed Spelling = "unsuffixed"
	// Dotted has the names of the catalogue: {"vllm.prompt_tokens"}.
	Dotted Spelling = "dotted"
	// Wire has the names that the programs themselves expose: vllm:prompt_tokens_total.
	Wire Spelling = "wire"
)

// Kind is what an expression is for.
type Kind string

// The kinds of expressions.
const (
	Alert  Kind = "alert"
	Record Kind = "record"
	Panel  Kind = "panel"
	// Threshold is a query of a panel that draws a limit.
	Threshold Kind = "threshold"
	// Condition is the query of an alert whose comparison is stored elsewhere, as Grafana's
	// alerts do it. Thresholds are the numbers that it compares with.
	Condition Kind = "condition"
	// Series names series only, as label_values of Grafana does: values do not matter.
	Series Kind = "series"
)

// Severity is how sure it is that a finding does harm.
type Severity string

// The severities of findings.
const (
	// Error means that the expression cannot do what it is for.
	Error Severity = "error"
	// Warning means that it gives wrong results in some situations.
	Warning Severity = "warning"
	// Info is worth a look.
	Info Severity = "info"
)

// Finding is one mistake.
type Finding struct {
	Code     Code
	Severity Severity
	// Start and End are the bytes of the expression that the finding is about. Both are 0
	// if it is about the whole rule or panel.
	Start, End int
	// Message is a sentence that says what is wrong, and one that says what to do.
	Message string
	// Suggestion replaces the bytes from Start to End; empty if there is none to show.
	Suggestion string
	// Certain is true if the suggestion is what the author meant whatever else is in the
	// expression, so that a program may write it.
	Certain bool
}

func (f Finding) String() string {
	return fmt.Sprintf("%d-%d %s (%s): %s", f.Start, f.End, f.Code, f.Severity, f.Message)
}

// Options are what all expressions of a Linter have in common. The zero value is usable.
type Options struct {
	// Spelling is Suffixed if empty.
	Spelling Spelling
	// Labels are labels that any series can have besides the usual ones: those of targets,
	// external labels, and further resource attributes, as they are spelled.
	Labels []string
	// Mixed accepts names in any spelling. Spelling is then the one that names without a
	// known meaning are measured by.
	Mixed bool
	// Version is the version of vLLM that the expressions are for; empty if there can be
	// several.
	Version string
	// Stable reports each name on the wire that has a name in this spelling, as the stable
	// one; empty reports none.
	Stable Spelling
}

// Context is what is particular about one expression.
type Context struct {
	Kind Kind
	// Unit is the UCUM unit that the panel or the record declares; empty if none.
	Unit string
	// Name is the name of the record or alert.
	Name string
	// Labels are the labels that the rule adds.
	Labels map[string]string
	// Templates are legends ({{label}}) and annotations ({{ $labels.label }}).
	Templates []string
	// Thresholds are the values from which a panel has another colour.
	Thresholds []float64
	// Extended is true for MetricsQL, which has more than PromQL.
	Extended bool
	// Single is true if whoever asks takes one series only, as KEDA does.
	Single bool
	// Described is what surrounds the expression in words: the titles and the description of
	// a panel and of its row.
	Described string
}

// Linter checks expressions. It is safe for concurrent use once Record is no longer called.
type Linter struct {
	options  Options
	names    *names
	recorded map[string]shape
	labels   map[string]bool
	// version is that of the options; versioned is false if there is none.
	version   catalog.Release
	versioned bool
}

// New returns a linter.
func New(o Options) *Linter {
	o.Spelling = cmp.Or(o.Spelling, Suffixed)
	l := &Linter{options: o, names: namesOf(o.Spelling), recorded: map[string]shape{}}
	l.labels = deploymentLabels(o.Spelling)
	l.version, l.versioned = catalog.ParseRelease(o.Version)
	if o.Mixed {
		for _, s := range Spellings() {
			maps.Copy(l.labels, deploymentLabels(s))
		}
	}
	for _, label := range o.Labels {
		l.labels[label] = true
	}
	return l
}

// Record makes a recording rule known, so that expressions may use its name. A rule that
// uses another recording rule must come after it. Findings about the rule itself are those
// of Expr.
func (l *Linter) Record(name, expr string, labels map[string]string) {
	c := &checker{linter: l, context: Context{Kind: Record, Name: name}}
	s := unknownShape()
	if root, err := c.parse(expr); err == nil {
		s = c.infer(root)
	}
	for label := range labels {
		if s.labels.closed {
			s.labels = s.labels.with(label)
		}
	}
	s.forget()
	if before, again := l.recorded[name]; again {
		// Several rules may have one name, with different labels.
		s = before.or(s)
	}
	l.recorded[name] = s
}

var errLong = errors.New("the expression is longer than 16 KiB")

// maxLength is the length in bytes of the longest expression that is checked. Longer ones are not
// written by hand, and the time of some checks grows with its square: it stays below a second.
const maxLength = 16 << 10

// Expr returns the findings about an expression, in the order of their places.
func (l *Linter) Expr(expr string, context Context) []Finding {
	c := &checker{linter: l, context: context}
	if len(expr) > maxLength {
		c.report(CodeSyntax, Error, nil, "The expression is longer than 16 KiB and was not checked. Split it into recording rules.")
		return c.findings
	}
	root, err := c.parse(expr)
	if errors.Is(err, errDeep) {
		c.report(CodeSyntax, Error, nil, "The expression is nested more than %d levels deep and was not checked. Split it into recording rules.", maxLevels)
		return c.findings
	}
	if err != nil {
		if context.Kind != Alert && context.Kind != Record && !mentionsOurs(expr) {
			// A dashboard can have queries of another language.
			return nil
		}
		if pipes(expr) {
			// Rules and panels of Loki have the same form.
			return nil
		}
		if context.Extended {
			c.report(CodeSyntax, Info, nil, "The expression was not checked, because it is not PromQL. It may be MetricsQL.")
			return c.findings
		}
		if c.free {
			c.report(CodeSyntax, Info, nil, "The expression was not checked: it does not parse without the value of a variable.")
			return c.findings
		}
		f := c.report(CodeSyntax, Error, nil, "The expression does not parse: %s.", strings.TrimRight(err.Error(), ". \n"))
		f.Start, f.End = errorPlace(err, len(expr))
		return c.findings
	}
	if !c.concerns(root) {
		return nil
	}
	result := c.infer(root)
	c.checkRoot(root, result)
	slices.SortStableFunc(c.findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End), cmp.Compare(a.Code, b.Code))
	})
	return slices.Compact(c.findings)
}

// checker is the state of one check.
type checker struct {
	linter   *Linter
	context  Context
	source   string
	findings []Finding
	// variables are the places, in their order, where a variable of Grafana was replaced by a
	// stand-in.
	variables []int
	// free is true if one of them is neither in a string nor in a range, a name or a list of
	// labels. It can be an operator, a function or a matcher, for which there is no stand-in.
	free bool
	// native is true within the argument of a function of native histograms.
	native bool
	// present are the wire families in the whole expression.
	present map[string]bool
	// divisors are the aggregations that are a whole divisor.
	divisors map[parser.Node]bool
	// flags are those that were reported.
	flags map[string]bool
}

// maxFindings is the number of findings about one expression; further ones are dropped.
const maxFindings = 100

// report adds a finding about a node; about the whole rule if node is nil.
func (c *checker) report(code Code, severity Severity, node parser.Node, format string, args ...any) *Finding {
	if len(c.findings) >= maxFindings {
		return &Finding{}
	}
	f := Finding{Code: code, Severity: severity, Message: fmt.Sprintf(format, args...)}
	if node != nil {
		at := node.PositionRange()
		f.Start, f.End = int(at.Start), int(at.End)
		if f.Start < 0 || f.End > len(c.source) || f.Start > f.End {
			f.Start, f.End = 0, len(c.source)
		}
	}
	c.findings = append(c.findings, f)
	return &c.findings[len(c.findings)-1]
}

// checkRoot checks what depends on the result of the whole expression.
func (c *checker) checkRoot(root parser.Expr, result shape) {
	c.checkTemplates(result)
	if c.context.Kind == Series {
		return
	}
	c.checkLifetime(&result)
	if !c.checkSum(root, &result) {
		c.checkUnit(root, result)
	}
	c.checkBucketUse(root, &result)
	c.checkSingle(root, &result)
	c.checkColours(root, result)
	c.checkPerEngine(result)
	c.checkSuccess(root)
	c.checkAdvice(root)
	if c.context.Kind == Alert {
		c.checkBurn(root)
		c.checkSilentWhenGone(root)
	}
}
