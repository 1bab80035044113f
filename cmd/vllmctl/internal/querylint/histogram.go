package querylint

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// histogramCall returns the shape of a function of native histograms.
func (c *checker) histogramCall(e *parser.Call) shape {
	defer c.expectHistograms(true)()
	return c.otherCall(e)
}

// expectHistograms allows selectors of native histograms, which have the name of the whole
// histogram, until the returned function is called.
func (c *checker) expectHistograms(expected bool) func() {
	before := c.native
	c.native = expected
	return func() { c.native = before }
}

// mentionsLe reports whether an expression has the label of buckets, which native histograms
// do not have.
func mentionsLe(expr parser.Expr) bool {
	found := false
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.AggregateExpr:
			found = found || !n.Without && slices.Contains(n.Grouping, "le")
		case *parser.VectorSelector:
			found = found || slices.ContainsFunc(n.LabelMatchers, func(m *labels.Matcher) bool { return m.Name == "le" })
		}
		return nil
	})
	return found
}

// quantile returns the shape of histogram_quantile.
func (c *checker) quantile(e *parser.Call) shape {
	c.infer(e.Args[0])
	restore := c.expectHistograms(!mentionsLe(e.Args[1]))
	s := c.infer(e.Args[1])
	restore()
	if s.raw != nil {
		c.report(CodeQuantileLifetime, Error, e, "Without rate the quantile covers the whole life of the servers. Write rate(...[5m]) around the buckets.")
	}
	s.raw = nil
	s.labels = s.labels.without("le")
	delete(s.ident, "le")
	s.unit, s.bounds, s.bucket, s.leLost, s.class, s.typ = s.bounds, unit{}, false, false, classQuantile, typGauge
	s.native = false
	s.filter = nil
	return s
}

// checkLe reports values of le that no bucket has, and those that depend on the way of
// ingestion.
func (c *checker) checkLe(e *parser.VectorSelector, m *labels.Matcher, s *shape) {
	if hasVariable(m.Value) {
		return
	}
	if m.Type == labels.MatchEqual || m.Type == labels.MatchNotEqual {
		c.checkBound(e, m, s)
		return
	}
	if m.Type == labels.MatchNotRegexp {
		return
	}
	if s.metric == nil || len(catalog.Bounds(s.metric.Name)) == 0 {
		if !m.Matches("+Inf") {
			// How many of the unknown bounds it matches is not known.
			s.fixed["le"] = true
		}
		return
	}
	selected := 0
	if m.Matches("+Inf") {
		selected = 1
	}
	var halves [][2]string
	for _, bound := range catalog.Bounds(s.metric.Name) {
		short, long := boundTexts(bound)
		switch a, b := m.Matches(short), m.Matches(long); {
		case a && b:
			selected++
		case b:
			selected++
			c.leFormat(e, m, short, long)
		case a:
			halves = append(halves, [2]string{short, long})
		}
	}
	for _, half := range halves {
		if selected == 0 || !strings.Contains(m.Value, ".") {
			c.leFormat(e, m, half[0], half[1])
			continue
		}
		c.report(CodeLeFormat, Warning, e, "A dot in a pattern stands for any character, so %s also matches the bound %q, where it is not written %q. Write \\\\. for a dot.", m, half[0], half[1])
	}
	switch {
	case selected == 0 && len(halves) == 0:
		c.report(CodeLeUnknown, Error, e, "No bucket of %s matches %s. Its bounds are %s.", s.metric.Name, m, boundList(s.metric))
	case selected == 1 || selected == 0 && len(halves) == 1:
		// A server writes a bound in one form, so the pattern selects one bucket.
		s.fixed["le"] = true
		delete(s.ident, "le")
	}
}

func (c *checker) checkBound(e *parser.VectorSelector, m *labels.Matcher, s *shape) {
	if m.Value == "+Inf" || m.Value == "" {
		return
	}
	bound, err := strconv.ParseFloat(m.Value, 64)
	if err != nil || math.IsNaN(bound) || math.IsInf(bound, 0) {
		c.report(CodeLeUnknown, Error, e, "%q is not a bound of a bucket: le is a number or \"+Inf\".", m.Value)
		return
	}
	if s.metric != nil {
		all := catalog.Bounds(s.metric.Name)
		known := len(all) == 0
		for _, candidate := range all {
			known = known || candidate == bound
		}
		if !known {
			c.report(CodeLeUnknown, Error, e, "%s has no bucket with the bound %s. Its bounds are %s.", s.metric.Name, m.Value, boundList(s.metric))
			return
		}
	}
	short, long := boundTexts(bound)
	if m.Value != short && m.Value != long {
		c.report(CodeLeUnknown, Error, e, "The bound is never written %q. Write %q.", m.Value, short)
		return
	}
	if short != long {
		c.leFormat(e, m, short, long)
	}
}

func (c *checker) leFormat(e *parser.VectorSelector, m *labels.Matcher, short, long string) {
	severity := Error
	if c.linter.names.spelling == Wire && m.Matches(long) {
		// What a scrape stores, which is where the names on the wire mostly come from.
		severity = Warning
	}
	f := c.report(CodeLeFormat, severity, e,
		"%s matches only one of %q and %q: a scrape stores %q, and OTLP and remote write of the collector store %q. Write le=~%q.",
		m, long, short, long, short, short+`(\.0)?`)
	f.Suggestion = eitherBound(c.text(e), m, short)
	f.Certain = f.Suggestion != ""
}

// eitherBound returns a selector whose matcher of le matches both forms of a bound; "" if the
// matcher is not found in it once.
func eitherBound(text string, m *labels.Matcher, short string) string {
	pattern := regexp.MustCompile(`\ble\s*(=|!=)\s*("` + regexp.QuoteMeta(m.Value) + `"|'` + regexp.QuoteMeta(m.Value) + `')`)
	found := pattern.FindAllStringSubmatchIndex(text, -1)
	if len(found) != 1 {
		return ""
	}
	op := "=~"
	if m.Type == labels.MatchNotEqual {
		op = "!~"
	}
	return text[:found[0][2]] + op + `"` + short + `(\\.0)?"` + text[found[0][5]:]
}

// boundTexts returns the two ways in which a bound is stored: by OTLP and by a scrape.
func boundTexts(bound float64) (short, long string) {
	short = strconv.FormatFloat(bound, 'g', -1, 64)
	long = short
	if bound == math.Trunc(bound) && bound < 1e6 {
		long = strconv.FormatFloat(bound, 'f', 1, 64)
	}
	return short, long
}

func boundList(m *catalog.Metric) string {
	var all []string
	for _, bound := range catalog.Bounds(m.Name) {
		short, _ := boundTexts(bound)
		all = append(all, short)
	}
	return strings.Join(append(all, "+Inf"), ", ")
}
