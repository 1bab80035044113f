// Package format finds the expressions of PromQL in files of rules and dashboards: of
// Prometheus, of the Prometheus operator, of Grafana and of Perses, alone, in lists, and in
// ConfigMaps.
package format

import (
	"slices"
	"strconv"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/lint/document"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/querylint"
)

// MaxExpressions is the number of expressions that are read from one file.
const MaxExpressions = 20_000

// maxRules is the number of rules that are looked at, those of aliases included.
const maxRules = 10 * MaxExpressions

// File is what a file holds.
type File struct {
	// Kinds are the formats that were recognised, "Prometheus rules" for example, in the
	// order of the file and each once.
	Kinds []string
	// Expressions are all expressions in the order of the file.
	Expressions []*Expression
	// Problems are violations of a format that Prometheus itself would refuse.
	Problems []Problem
	// Ignored are parts that were not recognised, each with a reason.
	Ignored []string
	// Truncated reports whether there were more than MaxExpressions.
	Truncated bool
}

// Expression is an expression with its place and what is known about it.
type Expression struct {
	// Node is the text in the file that has the expression, as its bytes From to To.
	Node     *document.Node
	From, To int
	// Expanded is what a program makes of the text where that is a template; empty if it is none. A
	// finding is then about the whole text.
	Expanded string
	// Path is group/rule, or dashboard/panel/query.
	Path    string
	Context querylint.Context
	// Scope are the lines of the document that the rule takes, and Head those of its group
	// before the first rule: a comment there is about this expression.
	Scope, Head Lines
	// Board is the dashboard; nil for a rule.
	Board *Board
}

// Text returns the expression.
func (e *Expression) Text() string {
	if e.Expanded != "" {
		return e.Expanded
	}
	return e.Node.Text[e.From:e.To]
}

// Lines are the first and the last line of something, from 1; 0 if not known.
type Lines struct{ First, Last int }

// Problem is a violation of a format.
type Problem struct {
	Node    *document.Node
	Path    string
	Message string
}

// Board is a dashboard.
type Board struct {
	Name string
	// Variables are those that read metrics, by name.
	Variables map[string]Variable
}

// Variable is a variable of a dashboard.
type Variable struct {
	// Metric is the selector that its values come from.
	Metric string
	// All is the pattern that "All" stands for; empty if it stands for the list of values.
	All string
}

// reader collects what a file holds.
type reader struct {
	file *File
	seen map[*document.Node]bool
	// prefix is put before paths: the key of a ConfigMap.
	prefix string
	depth  int
	// extended is true within an object whose expressions are of MetricsQL.
	extended bool
	// rulesSeen counts rules, also those that an alias repeats.
	rulesSeen int
}

// Read finds the expressions of a document. The File has no Kinds if the format is not one
// of those that this package knows.
func Read(d *document.Document) *File {
	r := &reader{file: &File{}, seen: map[*document.Node]bool{}}
	for _, root := range d.Roots {
		r.value(root)
	}
	return r.file
}

// value reads one document of a file, or one object of a list.
func (r *reader) value(n *document.Node) {
	r.depth++
	if r.depth > 8 {
		r.depth--
		return
	}
	defer func() { r.depth-- }()
	switch {
	case !n.Is(document.Map):
		if n.Is(document.List) && r.list(n) {
			return
		}
		if n.String() != "" || n.Is(document.List) {
			r.ignore("a document that is not an object")
		}
	case n.Get("apiVersion").String() != "" && n.Get("kind").String() != "", n.Get("kind").String() == persesKind:
		// A PersesDashboard is often written without its apiVersion.
		r.kubernetes(n)
	case r.rules(n), r.perses(n), r.dashboard(n), r.adapter(n):
	default:
		r.ignore("an object with the keys " + keys(n))
	}
}

// list reads a list of dashboards or panels.
func (r *reader) list(n *document.Node) bool {
	found := false
	for _, item := range n.Items {
		if item.Is(document.Map) && (item.Get("panels") != nil || item.Get("targets") != nil || item.Get("groups") != nil || item.Get("kind") != nil) {
			found = true
			r.value(item)
		}
	}
	return found
}

func keys(n *document.Node) string {
	var all []string
	for _, p := range n.Pairs {
		if len(all) == 5 {
			all = append(all, "...")
			break
		}
		all = append(all, strconv.Quote(p.Key))
	}
	return strings.Join(all, ", ")
}

func (r *reader) ignore(what string) {
	if len(r.file.Ignored) < 20 {
		r.file.Ignored = append(r.file.Ignored, r.prefix+what)
	}
}

func (r *reader) kind(name string) {
	if !slices.Contains(r.file.Kinds, name) {
		r.file.Kinds = append(r.file.Kinds, name)
	}
}

// add adds an expression, once for each place in the file.
func (r *reader) add(e Expression) {
	if !e.Node.Is(document.Scalar) || !e.Node.IsText || strings.TrimSpace(e.Node.Text) == "" || r.seen[e.Node] {
		return
	}
	r.seen[e.Node] = true
	if e.To == 0 {
		e.To = len(e.Node.Text)
	}
	if len(r.file.Expressions) >= MaxExpressions {
		r.file.Truncated = true
		return
	}
	e.Path = r.prefix + e.Path
	r.file.Expressions = append(r.file.Expressions, &e)
}

// texts returns the texts of a map.
func texts(n *document.Node) []string {
	var all []string
	if n.Is(document.Map) {
		for _, p := range n.Pairs {
			if p.Value.IsText {
				all = append(all, p.Value.Text)
			}
		}
	}
	return all
}

// number returns the number of a scalar.
func number(n *document.Node) (float64, bool) {
	if n == nil || n.Kind != document.Scalar || n.IsText || n.Text == "" {
		return 0, false
	}
	v, err := strconv.ParseFloat(n.Text, 64)
	return v, err == nil
}

// named returns the first text that is not empty.
func named(all ...string) string {
	for _, name := range all {
		if name = strings.TrimSpace(name); name != "" {
			return name
		}
	}
	return "?"
}
