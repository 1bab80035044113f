package querylint

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/content"
	"github.com/otelcol-vllm/otelcol-vllm/internal/test/race"
)

// A mutant is a copy of an expression with one mistake.
type mutant struct {
	kind, expr string
	context    Context
}

// mutants returns all copies of an expression with one mistake each. They are made from the
// text, so that variables stay.
func mutants(t *testing.T, l *Linter, s shipped) []mutant {
	t.Helper()
	c := &checker{linter: l, context: s.context}
	root, err := c.parse(s.expr)
	require.NoError(t, err, s.where)
	m := &mutation{checker: c, source: s.expr}
	parser.Inspect(root, func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.VectorSelector:
			m.selector(n)
		case *parser.AggregateExpr:
			m.aggregation(n)
		case *parser.BinaryExpr:
			m.operation(n)
		case *parser.Call:
			m.function(n)
		}
		return nil
	})
	m.windows(s.context)
	for i := range m.all {
		m.all[i].context = s.context
	}
	return append(m.all, contexts(s)...)
}

type mutation struct {
	checker *checker
	source  string
	all     []mutant
}

// replace adds a copy in which the text of a node is another one.
func (m *mutation) replace(kind string, node parser.Node, text string) {
	at := node.PositionRange()
	changed := m.source[:at.Start] + text + m.source[at.End:]
	if changed != m.source {
		m.all = append(m.all, mutant{kind: kind, expr: changed})
	}
}

func (m *mutation) text(node parser.Node) string {
	at := node.PositionRange()
	return m.source[at.Start:at.End]
}

func (m *mutation) selector(n *parser.VectorSelector) {
	text, name := m.text(n), selectorName(n)
	rename := func(kind, to string) { m.replace(kind, n, strings.Replace(text, name, to, 1)) }
	if base, has := strings.CutSuffix(name, "_total"); has {
		rename("no _total", base)
	}
	for _, part := range []string{"_bucket", "_sum", "_count"} {
		if base, has := strings.CutSuffix(name, part); has && !strings.HasSuffix(name, "_lookup_count") {
			rename("no part of the histogram", base)
		}
	}
	if len(name) > 6 {
		rename("misspelt metric", name[:len(name)/2]+"qq"+name[len(name)/2:])
	}
	for _, matcher := range n.LabelMatchers {
		if matcher.Name == model.MetricNameLabel {
			continue
		}
		m.replace("unknown label in a matcher", n, regexp.MustCompile(`\b`+matcher.Name+`\s*(=|!)`).ReplaceAllString(text, "no_such_label$1"))
		if matcher.Name == "le" {
			m.replace("wrong le", n, strings.Replace(text, `"`+strings.ReplaceAll(matcher.Value, `\`, `\\`)+`"`, `"0.33"`, 1))
			m.replace("le in one form only", n, regexp.MustCompile(`le=~"[^"]*"`).ReplaceAllString(text, `le="1.0"`))
			continue
		}
		e, ours := m.checker.linter.names.byName[name]
		if !ours || variable.MatchString(matcher.Value) {
			continue
		}
		shape := m.checker.shapeOf(e)
		if m.checker.values(&shape, matcher.Name) != nil {
			m.replace("unknown value", n, strings.Replace(text, `"`+matcher.Value+`"`, `"no_such_value"`, 1))
		}
	}
}

var byList = regexp.MustCompile(`\b(by|without|on|ignoring|group_left|group_right)\s*\(([^()]*)\)`)

// lists replaces each label of the lists that belong to a node itself.
func (m *mutation) lists(node parser.Node, keywords, names []string) {
	text := m.text(node)
	for _, place := range byList.FindAllStringSubmatchIndex(text, -1) {
		keyword, list := text[place[2]:place[3]], text[place[4]:place[5]]
		var own []string
		for _, label := range strings.Split(list, ",") {
			own = append(own, strings.TrimSpace(label))
		}
		if !slices.Contains(keywords, keyword) || !slices.Equal(own, names) {
			continue
		}
		for i, label := range own {
			if label == "" {
				continue
			}
			changed := slices.Clone(own)
			changed[i] = "no_such_label"
			m.replace("unknown label in "+keyword, node, text[:place[4]]+strings.Join(changed, ", ")+text[place[5]:])
			if label == "le" {
				m.replace("no le in by", node, text[:place[4]]+strings.Join(slices.Delete(slices.Clone(own), i, i+1), ", ")+text[place[5]:])
			}
		}
		return
	}
}

func (m *mutation) aggregation(n *parser.AggregateExpr) {
	m.lists(n, []string{"by", "without"}, n.Grouping)
}

func (m *mutation) operation(n *parser.BinaryExpr) {
	if v := n.VectorMatching; v != nil {
		m.lists(n, []string{"on", "ignoring"}, v.MatchingLabels)
		if v.Card == parser.CardManyToOne || v.Card == parser.CardOneToMany {
			text := m.text(n)
			between := text[n.LHS.PositionRange().End-n.PositionRange().Start : n.RHS.PositionRange().Start-n.PositionRange().Start]
			m.replace("no group_left", n, strings.Replace(text, between, regexp.MustCompile(`group_(left|right)\s*(\([^()]*\))?`).ReplaceAllString(between, ""), 1))
		}
	}
	if n.ReturnBool {
		text := m.text(n)
		from := int(n.LHS.PositionRange().End - n.PositionRange().Start)
		m.replace("no bool", n, text[:from]+strings.Replace(text[from:], "bool ", "", 1))
	}
	if n.Op == parser.DIV || n.Op == parser.MOD {
		m.divisor(n.RHS)
	}
	if n.Op == parser.LAND && m.checker.context.Kind == Alert {
		guard, is := inner(n.RHS).(*parser.BinaryExpr)
		// Comparisons with 0 or of two series say what the alert is about.
		limit := 0.0
		if is {
			limit, is = number(guard.RHS)
		}
		if is && guard.Op == parser.GTE && limit > 0 && !sameButWindow(m.checker, n.LHS, guard) {
			m.replace("no guard on the traffic", n, m.text(n.LHS))
		}
	}
}

// sameButWindow reports whether a comparison is the second window of a pair.
func sameButWindow(c *checker, left parser.Expr, guard *parser.BinaryExpr) bool {
	_, kind := c.windowOf(guard.LHS)
	for _, other := range c.conditions(left) {
		if other.kind == kind {
			return true
		}
	}
	return false
}

// divisor removes what keeps a divisor from being 0.
func (m *mutation) divisor(expr parser.Expr) {
	switch n := inner(expr).(type) {
	case *parser.BinaryExpr:
		if limit, is := number(n.RHS); is && n.Op == parser.GTR && limit == 0 {
			m.replace("no guard", expr, "("+m.text(n.LHS)+")")
		}
	case *parser.Call:
		if n.Func.Name == "clamp_min" {
			m.replace("no guard", expr, "("+m.text(n.Args[0])+")")
		}
	}
}

func (m *mutation) function(n *parser.Call) {
	switch n.Func.Name {
	case "rate", "increase", "irate":
		if matrix, is := inner(n.Args[0]).(*parser.MatrixSelector); is {
			m.replace("no rate", n, m.text(matrix.VectorSelector))
			m.replace("delta instead of rate", n, strings.Replace(m.text(n), n.Func.Name, "delta", 1))
			m.replace("short range", n, regexp.MustCompile(`\[[^\]]*\]`).ReplaceAllString(m.text(n), "[30s]"))
		}
	case "histogram_quantile":
		m.replace("quantile in percent", n.Args[0], "95")
		m.replace("mean over quantiles", n, "avg("+m.text(n)+")")
	}
}

var windowText = regexp.MustCompile(`(\[|:[a-z_]+)(\d+[smhdw])\b`)

// windows exchanges the two windows of an alert on two, and changes that of a record.
func (m *mutation) windows(context Context) {
	found := map[string]bool{}
	for _, place := range windowText.FindAllStringSubmatch(m.source, -1) {
		if place[1] != ":last" {
			found[place[2]] = true
		}
	}
	swap := func(a, b string) {
		m.all = append(m.all, mutant{kind: "swapped window", expr: windowText.ReplaceAllStringFunc(m.source, func(text string) string {
			parts := windowText.FindStringSubmatch(text)
			switch {
			case parts[1] == ":last":
				return text
			case parts[2] == a:
				return parts[1] + b
			case parts[2] == b:
				return parts[1] + a
			}
			return text
		})})
	}
	all := slices.Sorted(maps.Keys(found))
	switch {
	case context.Kind == Alert && len(all) == 2 && len(windowed(m.checker, m.source)) > 1:
		swap(all[0], all[1])
	case context.Kind == Record && len(all) == 1:
		if _, _, has := windowOfName(context.Name); has {
			swap(all[0], "7m")
		}
	}
}

// contexts returns copies with a mistake in what surrounds the expression.
func contexts(s shipped) []mutant {
	var all []mutant
	for i, text := range s.context.Templates {
		for _, label := range templateLabels(text, s.context.Kind) {
			c := s.context
			c.Templates = slices.Clone(c.Templates)
			c.Templates[i] = regexp.MustCompile(`(\{\{-?\s*|\$labels\.)`+label+`\b`).ReplaceAllString(text, "${1}no_such_label")
			all = append(all, mutant{"unknown label in a text", s.expr, c})
			for _, list := range []string{", " + label, label + ", "} {
				if strings.Count(s.expr, list) == 1 && strings.Count(s.expr, " by ") == 1 && !strings.Contains(s.expr, " on ") {
					all = append(all, mutant{"label of a text removed", strings.Replace(s.expr, list, "", 1), s.context})
					break
				}
			}
		}
	}
	wrong := map[string]string{"s": "ms", "1": "%", "{token}/s": "{token}", "{request}/s": "s", "By": "{byte}", "{token}": "{token}/s", "{request}": "{request}/s"}
	if other := wrong[s.context.Unit]; other != "" {
		c := s.context
		c.Unit = other
		all = append(all, mutant{"wrong unit", s.expr, c})
	}
	return all
}

// windowed returns the conditions of an alert that have a window.
func windowed(c *checker, expr string) []condition {
	root, err := c.parse(expr)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(c.conditions(root), func(x condition) bool { return x.window == 0 })
}

// codesOf are the codes by which mutants must be found, so that none is found by chance.
var codesOf = map[string][]Code{
	"delta instead of rate":      {CodeDeltaOfCounter},
	"le in one form only":        {CodeLeFormat, CodeLeUnknown},
	"mean over quantiles":        {CodeAggregatedRatio},
	"misspelt metric":            {CodeUnknownMetric},
	"no _total":                  {CodeMissingTotal, CodeRateOfGauge},
	"no bool":                    {CodeWithoutBool},
	"no group_left":              {CodeManyToMany},
	"no guard":                   {CodeDivision, CodeDivisionNaN},
	"no guard on the traffic":    {CodeLowTraffic, CodeCoverage},
	"no le in by":                {CodeQuantileWithoutLe, CodeBucketUse},
	"no part of the histogram":   {CodeHistogramPart},
	"no rate":                    {CodeCounterWithoutRate, CodeLifetimeRatio, CodeQuantileLifetime},
	"quantile in percent":        {CodeQuantileRange},
	"short range":                {CodeShortRange},
	"swapped window":             {CodeBurnWindows, CodeRecordWindow, CodeRateFactor},
	"unknown label in a matcher": {CodeUnknownLabel},
	"unknown label in by":        {CodeUnknownLabel, CodeLostLabel},
	"unknown label in without":   {CodeUnknownLabel},
	"unknown label in on":        {CodeUnknownLabel},
	"unknown label in ignoring":  {CodeUnknownLabel},
	"unknown value":              {CodeUnknownValue},
	"unknown label in a text":    {CodeTemplateLabel},
	"label of a text removed":    {CodeTemplateLabel},
	"wrong unit":                 {CodeUnit},
	"wrong le":                   {CodeLeUnknown},
}

// excused gives the reason why a mutant does the same as the original, or why no linter can
// know that its unit is wrong; "" if there is none.
func excused(l *Linter, s shipped, m mutant) string {
	switch m.kind {
	case "no guard":
		if strings.Contains(m.expr, "/ (1 - vllm_slo:target:last1h)") {
			return "the processor refuses a target of 1, so the budget is never 0"
		}
		if s.context.Kind == Alert && regexp.MustCompile(`and .*_(count|total)\[[0-9a-z]+\]\)\) \* \d+ >= \d+$`).MatchString(m.expr) {
			return "the alert requires events in its short window, which are in the long one as well"
		}
	case "wrong unit":
		if strings.HasPrefix(s.expr, "vector(") {
			return "a number has any unit"
		}
		if strings.Contains(s.expr, ":1m])) * 60") {
			return "60 can be seconds or a factor, so the unit of the product is not known"
		}
		if strings.Contains(s.expr, "DCGM_FI_DEV_THERMAL_VIOLATION") {
			return "the exporter does not declare the unit"
		}
	case "mean over quantiles":
		c := &checker{linter: l, context: s.context}
		root, err := c.parse(s.expr)
		if err == nil && len(c.infer(root).ident) == 0 {
			return "the mean of a single series is the series"
		}
	}
	return ""
}

func TestEachMutantOfTheShippedContentIsFound(t *testing.T) {
	race.SkipSequential(t)
	start := time.Now()
	stable, wire := contentLinter(content.Stable, Suffixed), contentLinter(content.Wire, Wire)
	found, total, same := map[string]int{}, map[string]int{}, map[string]int{}
	for _, s := range shippedContent(t) {
		l := stable
		if s.set == content.Wire {
			l = wire
		}
		for _, m := range mutants(t, l, s) {
			total[m.kind]++
			findings := slices.DeleteFunc(l.Expr(m.expr, m.context), harmless)
			if slices.ContainsFunc(findings, func(f Finding) bool { return slices.Contains(codesOf[m.kind], f.Code) }) {
				found[m.kind]++
				continue
			}
			if reason := excused(l, s, m); reason != "" {
				same[m.kind+": "+reason]++
				total[m.kind]--
				continue
			}
			assert.Fail(t, "the mutant is not found", "%s: %s\n%s", m.kind, s.where, m.expr)
		}
	}
	all, hits := 0, 0
	for _, kind := range slices.Sorted(maps.Keys(total)) {
		t.Logf("%5d of %5d  %s", found[kind], total[kind], kind)
		all, hits = all+total[kind], hits+found[kind]
	}
	for _, reason := range slices.Sorted(maps.Keys(same)) {
		t.Logf("%5d excused, %s", same[reason], reason)
	}
	t.Logf("%5d of %5d  in all, in %v", hits, all, time.Since(start).Round(time.Millisecond))
}
