package querylint

import (
	"maps"
	"slices"
	"strings"

	"github.com/prometheus/prometheus/promql/parser"
)

// matched returns the labels of a match of two vectors and checks it.
func (c *checker) matched(e *parser.BinaryExpr, left, right *shape) (labels labelSet, ident, fixed map[string]bool) {
	m := e.VectorMatching
	c.checkMatchingLabels(e, left, right)
	switch m.Card {
	case parser.CardManyToOne:
		c.checkOneSide(e, right, "right")
		c.checkInclude(e, right)
		return withInclude(left.labels, m.Include), maps.Clone(left.ident), left.fixed
	case parser.CardOneToMany:
		c.checkOneSide(e, left, "left")
		c.checkInclude(e, left)
		return withInclude(right.labels, m.Include), maps.Clone(right.ident), right.fixed
	case parser.CardOneToOne, parser.CardManyToMany:
	}
	c.checkOneToOne(e, left, right)
	if !m.On {
		labels, ident = left.labels.without(m.MatchingLabels...), maps.Clone(left.ident)
		for _, label := range m.MatchingLabels {
			delete(ident, label)
		}
		return labels, ident, left.fixed
	}
	ident = map[string]bool{}
	for _, label := range m.MatchingLabels {
		if !left.fixed[label] && !right.fixed[label] {
			ident[label] = true
		}
	}
	return left.labels.only(m.MatchingLabels, c.linter.labels), ident, left.fixed
}

func withInclude(labels labelSet, include []string) labelSet {
	if !labels.closed || len(include) == 0 {
		return labels
	}
	return labels.with(include...)
}

// checkMatchingLabels reports labels of on that a side does not have, and sides whose
// labels differ.
func (c *checker) checkMatchingLabels(e *parser.BinaryExpr, left, right *shape) {
	m := e.VectorMatching
	if m.On {
		for _, label := range m.MatchingLabels {
			l, r := left.labels.has(label, c.linter.labels), right.labels.has(label, c.linter.labels)
			switch {
			case !l:
				c.unknownLabel(e, inner(e.LHS), label, left, "which on() matches by")
			case !r:
				c.unknownLabel(e, inner(e.RHS), label, right, "which on() matches by")
			}
		}
		return
	}
	for _, label := range m.MatchingLabels {
		if !left.labels.has(label, c.linter.labels) && !right.labels.has(label, c.linter.labels) {
			c.unknownLabel(e, inner(e.LHS), label, left, "")
		}
	}
	c.checkSameLabels(e, left, right)
}

// checkSameLabels reports sides that cannot match because one has a label that the other
// cannot have.
func (c *checker) checkSameLabels(e *parser.BinaryExpr, left, right *shape) {
	if !left.labels.closed || !right.labels.closed || left.scalar || right.scalar {
		return
	}
	l, r := c.certainLabels(left), c.certainLabels(right)
	for _, label := range e.VectorMatching.MatchingLabels {
		delete(l, label)
		delete(r, label)
	}
	var different []string
	for label := range l {
		if !right.labels.has(label, c.linter.labels) {
			different = append(different, label)
		}
	}
	for label := range r {
		if !left.labels.has(label, c.linter.labels) {
			different = append(different, label)
		}
	}
	if len(different) == 0 {
		return
	}
	slices.Sort(different)
	c.report(CodeNeverMatches, Error, e, "Only one side has the label %s, so no series of the two sides are equal and nothing matches. Write on(...) with the labels that both have.",
		strings.Join(slices.Compact(different), ", "))
}

// certainLabels are the labels that series of a shape certainly have.
func (c *checker) certainLabels(s *shape) map[string]bool {
	all := map[string]bool{}
	for label := range s.labels.own {
		if !c.linter.labels[label] || label == "job" || label == "instance" {
			all[label] = s.ident[label] || s.fixed[label]
		}
	}
	if s.labels.deployment {
		for _, label := range identifying {
			all[label] = !s.labels.gone[label]
		}
	}
	maps.DeleteFunc(all, func(_ string, certain bool) bool { return !certain })
	return all
}

// matchingSet returns the labels that identify a match on one side.
func (c *checker) matchingMissing(e *parser.BinaryExpr, s *shape) []string {
	m := e.VectorMatching
	if s.ident == nil || s.scalar {
		return nil
	}
	lost := s.lost(m.MatchingLabels, m.On, c.linter.labels)
	slices.Sort(lost)
	return lost
}

func (c *checker) checkOneToOne(e *parser.BinaryExpr, left, right *shape) {
	l, r := c.matchingMissing(e, left), c.matchingMissing(e, right)
	switch {
	case len(l) == 0 && len(r) == 0:
	case len(r) == 0:
		c.report(CodeManyToMany, Error, e,
			"Several series of the left side, which differ in %s, match one of the right side: the evaluation fails. Add group_left() after the matching labels, or aggregate the left side first.",
			strings.Join(l, ", "))
	case len(l) == 0:
		c.report(CodeManyToMany, Error, e,
			"Several series of the right side, which differ in %s, match one of the left side: the evaluation fails. Add group_right() after the matching labels, or aggregate the right side first.",
			strings.Join(r, ", "))
	default:
		c.report(CodeManyToMany, Error, e,
			"Several series of each side match: they differ in %s on the left and %s on the right. Match by more labels, or aggregate one side first.",
			strings.Join(l, ", "), strings.Join(r, ", "))
	}
}

// checkOneSide checks that the side which group_left or group_right calls "one" has one
// series for each match.
func (c *checker) checkOneSide(e *parser.BinaryExpr, s *shape, side string) {
	if missing := c.matchingMissing(e, s); len(missing) > 0 {
		c.report(CodeManyToMany, Error, e,
			"Several series of the %s side match, which differ in %s, but group_left and group_right need one: the evaluation fails. Aggregate that side first, or match by more labels.",
			side, strings.Join(missing, ", "))
	}
}

// checkInclude checks the labels that are copied from the "one" side.
func (c *checker) checkInclude(e *parser.BinaryExpr, s *shape) {
	expr := e.RHS
	if e.VectorMatching.Card == parser.CardOneToMany {
		expr = e.LHS
	}
	for _, label := range e.VectorMatching.Include {
		if !s.labels.has(label, c.linter.labels) {
			c.unknownLabel(e, inner(expr), label, s, "which is to be copied")
		}
	}
}

// checkSetMatching checks and, or and unless.
func (c *checker) checkSetMatching(e *parser.BinaryExpr, left, right *shape) {
	if e.VectorMatching == nil {
		return
	}
	if e.VectorMatching.On {
		c.checkMatchingLabels(e, left, right)
		return
	}
	if e.Op != parser.LOR {
		c.checkMatchingLabels(e, left, right)
	}
}
