package querylint

import (
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// Selector is a selector in an expression.
type Selector struct {
	// Name is the metric, empty if it is a pattern or a variable.
	Name string
	// Start and End are the bytes of the selector without its range.
	Start, End int
	// Matchers are those of the labels, without the name. Values can have variables.
	Matchers []*labels.Matcher
}

// Selectors returns the selectors of an expression, in which variables of Grafana may stand.
func Selectors(expr string) ([]Selector, error) {
	if len(expr) > maxLength {
		return nil, errLong
	}
	c := &checker{}
	root, err := c.parse(expr)
	if err != nil {
		return nil, err
	}
	var all []Selector
	parser.Inspect(root, func(node parser.Node, _ []parser.Node) error {
		n, is := node.(*parser.VectorSelector)
		if !is {
			return nil
		}
		at := n.PositionRange()
		s := Selector{Name: c.nameWithoutVariable(n), Start: int(at.Start), End: int(at.End)}
		if HasVariable(s.Name) {
			s.Name = ""
		}
		for _, m := range n.LabelMatchers {
			if m.Name != model.MetricNameLabel {
				s.Matchers = append(s.Matchers, m)
			}
		}
		all = append(all, s)
		return nil
	})
	return all, nil
}

// HasVariable reports whether a text has a variable of Grafana or Perses.
func HasVariable(text string) bool { return hasVariable(text) }

// Concerns reports whether a name begins like those of the catalogue.
func Concerns(name string) bool { return looksOurs(name) }

// Knows reports whether a name is that of a series in the spelling.
func (s Spelling) Knows(name string) bool {
	_, known := namesOf(s).byName[name]
	return known
}

// Metric returns the metric of the catalogue that a name in the spelling stands for, and the
// family on the wire if the spelling is Wire.
func (s Spelling) Metric(name string) (m *catalog.Metric, source *catalog.Source, known bool) {
	e, known := namesOf(s).byName[name]
	return e.metric, e.source, known
}

// Spellings are all spellings.
func Spellings() []Spelling { return []Spelling{Suffixed, Unsuffixed, Dotted, Wire} }

// mentionsOurs reports whether a text that cannot be parsed has a name of the catalogue.
func mentionsOurs(text string) bool {
	for _, prefix := range ourPrefixes {
		if strings.Contains(text, prefix) {
			return true
		}
	}
	return false
}

// TargetLabel reports whether a label is one that targets or resources have, and not the
// metrics of a server.
func TargetLabel(label string) bool {
	if label == "__name__" {
		return false
	}
	for _, s := range Spellings() {
		if labelsOfSpelling()[s][label] {
			return true
		}
	}
	return false
}
