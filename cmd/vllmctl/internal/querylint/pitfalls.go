package querylint

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// This file has the mistakes that are about what vLLM's metrics mean. Each has been found in
// public rules or dashboards.

// quotients are divisions that do not give what they look like, by the metrics of the two
// sides, with the reason and what to write instead.
var quotients = map[[2]string]string{
	{"vllm.prompt_tokens", "vllm.request.success"}:                                    tokensOfOthers + "Divide request_prompt_tokens_sum by request_prompt_tokens_count.",
	{"vllm.generation_tokens", "vllm.request.success"}:                                tokensOfOthers + "Divide request_generation_tokens_sum by request_generation_tokens_count.",
	{"inference_gateway.epp.request.input_tokens", "inference_gateway.epp.requests"}:  tokensOfFew,
	{"inference_gateway.epp.request.output_tokens", "inference_gateway.epp.requests"}: tokensOfFew,
	{"inference_gateway.epp.request.errors", "inference_gateway.epp.requests"}: "Requests that are refused before they are scheduled count as errors only, so the ratio can exceed 1. " +
		"Divide by the requests and the errors with error_code!=\"ModelServerError\" together.",
}

const (
	tokensOfOthers = "The tokens of aborted and of running requests are in the dividend only, so the mean is too high. "
	tokensOfFew    = "Tokens are counted for fewer requests than the divisor has, so the mean is too low. Divide the _sum of the tokens by their own _count."
)

// overlaps are metrics of which one contains the other.
var overlaps = map[[2]string]bool{
	{"vllm.num_requests.waiting", "vllm.num_requests.waiting_by_reason"}: true,
	{"vllm.prompt_tokens", "vllm.prompt_tokens_by_source"}:               true,
	{"vllm.prompt_tokens", "vllm.prompt_tokens_cached"}:                  true,
}

// checkQuotient reports divisions whose result is constant or another one than it seems.
func (c *checker) checkQuotient(e *parser.BinaryExpr, left, right *shape) {
	if left.scalar || right.scalar {
		return
	}
	if same, why := constantQuotient(e.LHS, unguarded(e.RHS)); same {
		c.report(CodeConstantRatio, Error, e, "Both sides are made of the same series, so the result is %s whatever the values are. For a mean, divide the _sum of a histogram by its _count.", why)
		return
	}
	if len(left.metrics) != 1 || len(right.metrics) != 1 {
		return
	}
	for pair, instead := range quotients {
		if left.metrics[pair[0]] && right.metrics[pair[1]] {
			c.report(CodeWrongDenominator, Warning, e, "The two sides count different requests. %s", instead)
		}
	}
}

// unguarded returns a divisor without the comparison that keeps it from being 0.
func unguarded(expr parser.Expr) parser.Expr {
	if e, is := inner(expr).(*parser.BinaryExpr); is && e.Op == parser.GTR {
		if limit, literal := number(e.RHS); literal && limit == 0 {
			return e.LHS
		}
	}
	return expr
}

// constantQuotient reports whether two expressions are the same, or the sum and the mean of
// the same.
func constantQuotient(left, right parser.Expr) (same bool, why string) {
	left, right = inner(left), inner(right)
	if left.String() == right.String() {
		return true, "always 1"
	}
	l, one := left.(*parser.AggregateExpr)
	r, two := right.(*parser.AggregateExpr)
	if !one || !two || l.Without != r.Without || !slices.Equal(l.Grouping, r.Grouping) || l.Expr.String() != r.Expr.String() {
		return false, ""
	}
	if l.Op == parser.AVG && r.Op == parser.SUM || l.Op == parser.SUM && r.Op == parser.AVG {
		return true, "only the number of the series"
	}
	return false, ""
}

// checkDoubleCount reports a sum of two metrics that count the same.
func (c *checker) checkDoubleCount(e *parser.BinaryExpr) {
	left, right := c.entriesIn(e.LHS), c.entriesIn(e.RHS)
	for lname, l := range left {
		for rname, r := range right {
			twins := l.metric == r.metric && l.part == r.part && l.source != nil && r.source != nil && l.source.Family != r.source.Family && l.source.Label == ""
			if twins || overlaps[[2]string{l.metric.Name, r.metric.Name}] || overlaps[[2]string{r.metric.Name, l.metric.Name}] {
				c.report(CodeDoubleCount, Error, e, "%s and %s count the same: a server that has both is counted twice. Write \"or\" for one or the other, or use one of them.",
					min(lname, rname), max(lname, rname))
				return
			}
		}
	}
}

// entriesIn returns the names of the catalogue in an expression that is a sum or a single
// value. Within products and quotients, a name does not stand for a count of its own.
func (c *checker) entriesIn(expr parser.Expr) map[string]entry {
	all := map[string]entry{}
	parser.Inspect(expr, func(node parser.Node, path []parser.Node) error {
		s, is := node.(*parser.VectorSelector)
		if !is || slices.ContainsFunc(path, func(n parser.Node) bool {
			b, is := n.(*parser.BinaryExpr)
			return is && b.Op != parser.ADD
		}) {
			return nil
		}
		if e, known := c.linter.lookup(selectorName(s)); known && e.metric != nil {
			all[selectorName(s)] = e
		}
		return nil
	})
	return all
}

// checkTwins reports a sum over a pattern of names that matches several generations of one
// metric, which newer gateways and servers between two versions expose at once.
func (c *checker) checkTwins(e *parser.AggregateExpr) {
	if e.Op != parser.SUM {
		return
	}
	parser.Inspect(e.Expr, func(node parser.Node, _ []parser.Node) error {
		s, is := node.(*parser.VectorSelector)
		if !is {
			return nil
		}
		for _, m := range s.LabelMatchers {
			if m.Name != model.MetricNameLabel || m.Type != labels.MatchRegexp || hasVariable(m.Value) {
				continue
			}
			if one, other := c.linter.twins(m); other != "" {
				c.report(CodeDoubleCount, Error, s, "The pattern matches %s and %s, which count the same: a program that has both is counted twice. Match one of them, or write \"or\".", one, other)
			}
		}
		return nil
	})
}

// twins returns two names of one metric that a pattern matches.
func (l *Linter) twins(m *labels.Matcher) (one, other string) {
	byMetric := map[string]string{}
	for _, name := range sortedKeys(l.names.byName) {
		e := l.names.byName[name]
		if e.source == nil || e.source.Label != "" || prefixOf(name) != "vllm:" || !m.Matches(name) {
			continue
		}
		key := fmt.Sprint(e.metric.Name, e.part)
		if before, has := byMetric[key]; has && l.names.byName[before].source.Family != e.source.Family {
			return before, name
		}
		byMetric[key] = name
	}
	return "", ""
}

// checkStamp reports the use of a time as if it were a count.
func (c *checker) checkStamp(e *parser.AggregateExpr, s *shape) {
	if !s.stamp {
		return
	}
	switch e.Op {
	case parser.SUM, parser.AVG, parser.COUNT, parser.STDDEV, parser.STDVAR, parser.QUANTILE:
		c.stampUse(e, "used by "+e.Op.String())
		s.stamp = false
	}
}

func (c *checker) stampUse(node parser.Node, how string) {
	c.report(CodeInfoValue, Warning, node,
		"The value of %s is the timestamp of its last change, and it is %s. Former sets of adapters stay as series with older timestamps. Use topk(1, ...) for the current set; its labels name the adapters.", loraFamily, how)
}

// perEngine returns the aggregation if its result is that of one engine where people mean a
// server: the mean of a count over engines, or its maximum within a server.
func (c *checker) perEngine(e *parser.AggregateExpr, s *shape) parser.Node {
	engine := "engine"
	if s.typ != typGauge || s.class != classPlain || s.metric == nil || !strings.HasPrefix(s.metric.Unit, "{") || !s.ident[engine] || s.stamp {
		return nil
	}
	if !slices.Contains(c.removedIdent(e, s), engine) {
		return nil
	}
	within := false
	for _, label := range e.Grouping {
		within = within || !e.Without && (label == "pod" || label == "instance" || strings.HasSuffix(label, "pod_name") || strings.HasSuffix(label, "pod.name"))
	}
	within = within || e.Without && len(e.Grouping) == 1 && e.Grouping[0] == engine
	if e.Op == parser.AVG || (e.Op == parser.MAX || e.Op == parser.MIN) && within {
		return e
	}
	return nil
}

func (c *checker) checkPerEngine(result shape) {
	e, is := result.perEngine.(*parser.AggregateExpr)
	if !is {
		return
	}
	c.report(CodePerEngine, Warning, e,
		"A server with data parallelism has one series for each engine, so the result is that of an engine and not of a server. Add up the engines first: %s.",
		ofServers(e, c.text(inner(e.Expr))))
}

// ofServers returns an aggregation of engines as one of the servers whose engines they are.
func ofServers(e *parser.AggregateExpr, of string) string {
	servers := "sum without (engine) (" + of + ")"
	outer := *e
	outer.Expr = &parser.StringLiteral{}
	if e.Without {
		outer.Grouping = slices.DeleteFunc(slices.Clone(e.Grouping), func(label string) bool { return label == "engine" })
		if len(outer.Grouping) == 0 {
			return servers
		}
	}
	return strings.TrimSpace(strings.TrimSuffix(outer.String(), `("")`)) + " (" + servers + ")"
}

// fullCache are the metrics of the share of the KV cache that is in use.
var fullCache = []string{"vllm.kv_cache.utilization", "inference_gateway.pool.kv_cache.average_utilization"}

// urgent are values of the label severity that wake people.
var urgent = []string{"critical", "page", "pager", "p1", "sev1", "emergency"}

// checkFullCache reports a page, or a colour for danger, because of a full KV cache alone.
func (c *checker) checkFullCache(root parser.Expr, result shape) {
	all := c.metricsIn(root)
	if len(all) != 1 || !all[fullCache[0]] && !all[fullCache[1]] {
		return
	}
	page := c.context.Kind == Alert && slices.Contains(urgent, strings.ToLower(c.context.Labels["severity"]))
	for _, limit := range c.context.Thresholds {
		page = page || limit >= 0.9 && limit <= 1 && result.class == classFraction
	}
	if page {
		c.report(CodeFullCache, Info, root,
			"A full KV cache is normal for a busy server. Also require waiting requests or preemptions, or alert on the time to the first token.")
	}
}

var successWord = regexp.MustCompile(`(?i)\b(success|successes|successful|succeeded)\b`)

// checkSuccess reports request_success under a name that takes it for successes.
func (c *checker) checkSuccess(root parser.Expr) {
	if !successWord.MatchString(c.context.Name) {
		return
	}
	parser.Inspect(root, func(node parser.Node, path []parser.Node) error {
		s, is := node.(*parser.VectorSelector)
		if !is {
			return nil
		}
		e, known := c.linter.lookup(selectorName(s))
		if !known || e.metric == nil || e.metric.Name != "vllm.request.success" {
			return nil
		}
		apart := slices.ContainsFunc(s.LabelMatchers, func(m *labels.Matcher) bool { return m.Name == "finished_reason" })
		for _, n := range path {
			if agg, is := n.(*parser.AggregateExpr); is && !agg.Without && slices.Contains(agg.Grouping, "finished_reason") {
				apart = true
			}
		}
		if !apart {
			c.report(CodeNotSuccess, Info, s,
				"%s counts all requests that ended in the engine, also aborted and failed ones. Select finished_reason=~\"stop|length\" for successes.", selectorName(s))
		}
		return nil
	})
}

var lessMemory = regexp.MustCompile(`(?i)\b(decreas|lower|reduc)\w*\b[^.;]{0,60}gpu[-_ ]memory[-_ ]utili[sz]ation`)

// checkAdvice reports an advice that makes matters worse.
func (c *checker) checkAdvice(root parser.Expr) {
	if c.context.Kind != Alert && c.context.Kind != Condition {
		return
	}
	metrics := c.metricsIn(root)
	if !metrics["vllm.num_preemptions"] && !metrics[fullCache[0]] {
		return
	}
	for _, text := range c.context.Templates {
		if lessMemory.MatchString(text) {
			c.report(CodeWrongAdvice, Warning, nil,
				"The text advises a smaller --gpu-memory-utilization. That makes the KV cache smaller and preemptions more frequent: advise a larger one, or fewer or shorter requests at a time.")
		}
	}
}

var interval = regexp.MustCompile(`\[\s*(\$__interval|\$\{__interval\})\s*\]`)

// checkInterval reports a rate over the step of a graph, which is shorter than two scrapes
// when one looks at a short time.
func (c *checker) checkInterval(e *parser.Call) {
	text := c.text(e)
	found := interval.FindStringIndex(text)
	if found == nil {
		return
	}
	f := c.report(CodeShortRange, Warning, e,
		"$__interval becomes shorter than two scrapes when the graph shows a short time, and the result is empty then. Write $__rate_interval, which is at least four scrapes.")
	f.Suggestion = text[:found[0]] + "[$__rate_interval]" + text[found[1]:]
	f.Certain = e.Func.Name != "increase"
}

// checkSum reports a panel of what all requests have together, which grows with their number, where
// the time or the limit of one request is meant. It returns true if it does.
func (c *checker) checkSum(root parser.Expr, result *shape) bool {
	if result.sum == nil || c.context.Kind != Panel && c.context.Kind != Condition || strings.Contains(c.source, "_count") {
		return false
	}
	severity := Warning
	if unit := parseUnit(c.context.Unit); unit.known && unit.seconds == 1 {
		severity = Error // The panel itself calls it a time.
	}
	f := c.report(CodeSumWithoutCount, severity, root,
		"The rate of _sum covers all requests together, and grows with the traffic. Divide it by the same expression with _count in place of _sum.")
	if _, binary := root.(*parser.BinaryExpr); !binary && strings.Count(c.text(root), "_sum") == 1 {
		text := c.text(root)
		f.Suggestion = text + " / " + strings.Replace(text, "_sum", "_count", 1)
	}
	return true
}

// checkSingle reports a query with a series for each server for a program that takes only one.
func (c *checker) checkSingle(root parser.Expr, result *shape) {
	if agg, is := inner(root).(*parser.AggregateExpr); is && (agg.Op == parser.TOPK || agg.Op == parser.BOTTOMK || agg.Op == parser.LIMITK) || result.fixed["instance"] || result.fixed["pod"] {
		return // The number of series is chosen, or the server is.
	}
	if labels := sortedKeys(result.ident); c.context.Single && !result.scalar && len(labels) > 0 {
		c.report(CodeSeveralSeries, Warning, root, "The query has a series for each %s, but KEDA takes one: the scaler fails with two. Aggregate it, for example with sum.",
			strings.Join(labels, ", "))
	}
}
