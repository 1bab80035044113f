package querylint

import (
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/util/teststorage"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/content"
	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/internal/test/race"
)

// What the linter infers is compared with what Prometheus's engine computes from series of
// two servers, each with two values of every attribute: the labels of the result, the labels
// that identify a series, values between 0 and 1.

const (
	oracleEnd  = 2 * time.Hour
	oracleStep = time.Minute
)

type oracle struct {
	db     *teststorage.TestStorage
	engine *promql.Engine
}

func newOracle(t *testing.T, exprs map[Spelling][]string) *oracle {
	t.Helper()
	o := &oracle{
		db: teststorage.New(t),
		engine: promql.NewEngine(promql.EngineOpts{
			MaxSamples: 1e8, Timeout: time.Minute, EnableAtModifier: true, Parser: parser.NewParser(parser.Options{}),
			NoStepSubqueryIntervalFn: func(int64) int64 { return oracleStep.Milliseconds() },
		}),
	}
	written := map[string]bool{}
	app := o.db.Appender(t.Context())
	for spelling, all := range exprs {
		for _, expr := range all {
			root, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
			if err != nil {
				continue
			}
			parser.Inspect(root, func(node parser.Node, _ []parser.Node) error {
				s, is := node.(*parser.VectorSelector)
				if !is || written[selectorName(s)] {
					return nil
				}
				name := selectorName(s)
				e, known := namesOf(spelling).byName[name]
				if !known {
					return nil
				}
				written[name] = true
				for i, set := range seriesOf(name, e) {
					for at := time.Duration(0); at <= oracleEnd; at += oracleStep {
						_, err := app.Append(0, set, at.Milliseconds(), sampleOf(e, i, at))
						require.NoError(t, err)
					}
				}
				return nil
			})
		}
	}
	require.NoError(t, app.Commit())
	return o
}

// seriesOf returns the series of a name: two servers, two values of each attribute.
func seriesOf(name string, e entry) []labels.Labels {
	sets := []map[string]string{}
	for _, instance := range []string{"a:8000", "b:8000"} {
		sets = append(sets, map[string]string{
			"__name__": name, "job": "vllm", "instance": instance, "k8s_pod_name": "pod-" + instance[:1],
			"k8s_namespace_name": "llm", "k8s_cluster_name": "c", "service_version": "0.20.0",
		})
	}
	for _, attribute := range e.metric.Attributes {
		values := catalog.Values(attribute)
		if known := valuesOf[e.metric.Name+" "+attribute]; known != nil {
			values = known
		}
		switch {
		case attribute == "quantile":
			values = []string{"0.95", "0.99"}
		case attribute == "window":
			values = []string{"1h", "5m"}
		case len(values) < 2:
			values = []string{attribute + "-1", attribute + "-2"}
		}
		if attribute != "condition" && attribute != "finished_reason" {
			values = values[:2]
		}
		sets = multiply(sets, Suffixed.label(attribute), values)
	}
	if e.part == partBucket {
		var bounds []string
		for _, bound := range catalog.Bounds(e.metric.Name) {
			short, _ := boundTexts(bound)
			bounds = append(bounds, short)
		}
		sets = multiply(sets, "le", append(bounds, "+Inf"))
	}
	var all []labels.Labels
	for _, set := range sets {
		all = append(all, labels.FromMap(set))
	}
	return all
}

func multiply(sets []map[string]string, name string, values []string) []map[string]string {
	var all []map[string]string
	for _, set := range sets {
		for _, value := range values {
			more := maps.Clone(set)
			more[name] = value
			all = append(all, more)
		}
	}
	return all
}

// sampleOf is a value that fits the metric. Counters increase, some gauges are 0.
func sampleOf(e entry, i int, at time.Duration) float64 {
	if strings.HasSuffix(e.metric.Name, ".slo.valid") {
		return at.Seconds() * 10
	}
	switch e.part {
	case partTotal, partSum, partCount:
		return at.Seconds() * float64(1+i%3)
	case partBucket:
		return at.Seconds() * float64(1+i%23)
	case partValue:
	}
	switch classOf(e.metric) {
	case classState:
		return float64(i % 2)
	case classFraction:
		// The shares of one whole are at most 1 together.
		return float64(i%5) / 25
	case classLevel:
		return float64(i % 4)
	case classPlain:
		if strings.HasSuffix(e.metric.Name, ".slo.target") {
			return 0.9
		}
	default:
	}
	return float64(i%7) + 6*float64(i%2)
}

var quotedVariable = regexp.MustCompile(`\$\{?[A-Za-z_]+\}?`)

// executable replaces the variables of an expression.
func executable(l *Linter, expr string) string {
	c := &checker{linter: l}
	return quotedVariable.ReplaceAllString(c.withoutVariables(expr), ".*")
}

func (o *oracle) vector(t *testing.T, expr string) (promql.Vector, error) {
	t.Helper()
	query, err := o.engine.NewInstantQuery(t.Context(), o.db, nil, expr, time.UnixMilli(oracleEnd.Milliseconds()))
	require.NoError(t, err, expr)
	defer query.Close()
	result := query.Exec(t.Context())
	if result.Err != nil {
		return nil, result.Err
	}
	vector, err := result.Vector()
	if err != nil {
		return nil, nil // A number or a range.
	}
	return slices.Clone(vector), nil
}

func TestWhatTheLinterInfersIsWhatTheEngineComputes(t *testing.T) {
	race.SkipSequential(t)
	type expression struct {
		where, expr string
		spelling    Spelling
		bad         Code
	}
	var all []expression
	exprs := map[Spelling][]string{}
	add := func(where, expr string, spelling Spelling, bad Code) {
		expr = executable(New(Options{Spelling: spelling}), expr)
		all = append(all, expression{where, expr, spelling, bad})
		exprs[spelling] = append(exprs[spelling], expr)
	}
	for _, e := range examples {
		if e.spelling == "" {
			add(string(e.code), e.good, Suffixed, "")
			add(string(e.code), e.bad, Suffixed, e.code)
		}
	}
	for _, s := range shippedContent(t) {
		if s.set == content.Wire {
			add(s.where, s.expr, Wire, "")
		} else {
			add(s.where, s.expr, Suffixed, "")
		}
	}
	o := newOracle(t, exprs)
	results := 0
	for _, e := range all {
		l := New(Options{Spelling: e.spelling})
		c := &checker{linter: l, context: Context{Kind: Panel}}
		root, err := c.parse(e.expr)
		if err != nil {
			continue
		}
		shape := c.infer(root)
		vector, err := o.vector(t, e.expr)
		switch e.bad {
		case CodeManyToMany:
			require.Error(t, err, "%s", e.expr)
			assert.Contains(t, err.Error(), "many", e.expr)
			continue
		case CodeNeverMatches, CodeMissingTotal, CodeUnknownMetric, CodeLeUnknown, CodeUnknownValue:
			require.NoError(t, err, e.expr)
			if !strings.Contains(e.expr, "=~") {
				assert.Empty(t, vector, e.expr)
			}
			continue
		case "":
			require.NoError(t, err, "%s: %s", e.where, e.expr)
		default:
			if err != nil {
				continue
			}
		}
		if len(vector) > 0 {
			results++
		}
		o.compare(t, l, e.where+": "+e.expr, shape, vector)
	}
	t.Logf("%d expressions, %d with a result", len(all), results)
	assert.Greater(t, results, 150)
}

func (o *oracle) compare(t *testing.T, l *Linter, where string, s shape, vector promql.Vector) {
	t.Helper()
	seen := map[string]bool{}
	for _, sample := range vector {
		sample.Metric.Range(func(label labels.Label) {
			assert.True(t, s.labels.has(label.Name, l.labels), "%s: the result has the label %s", where, label.Name)
		})
		if s.class == classFraction && s.unit.equal(one) && !math.IsNaN(sample.F) {
			assert.LessOrEqual(t, sample.F, 1.0, where)
		}
		if s.ident != nil && s.labels.closed && !s.scalar {
			var key strings.Builder
			for label := range s.labels.own {
				if s.ident[label] || s.fixed[label] {
					key.WriteString(label + "=" + sample.Metric.Get(label) + ",")
				}
			}
			parts := strings.Split(key.String(), ",")
			parts = append(parts, "", "")
			if s.labels.deployment {
				parts = append(parts, "instance="+sample.Metric.Get("instance"), "job="+sample.Metric.Get("job"))
			}
			slices.Sort(parts)
			id := strings.Join(parts, ",")
			assert.False(t, seen[id], "%s: two series with %s", where, id)
			seen[id] = true
		}
	}
}
