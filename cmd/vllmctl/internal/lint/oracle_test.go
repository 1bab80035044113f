package lint_test

import (
	"fmt"
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

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/lint"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/lint/document"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/lint/format"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/querylint"
	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/internal/test/race"
)

// The judge is Prometheus's own engine on the series that servers of vLLM 0.20 have: two
// servers with two engines each, read by a scrape and by OTLP.

const (
	end  = 2 * time.Hour
	step = time.Minute
)

func stored(t *testing.T) func(expr string) (promql.Vector, error) {
	t.Helper()
	db := teststorage.New(t)
	app := db.Appender(t.Context())
	version, _ := catalog.ParseRelease("0.20.0")
	add := func(name string, counter bool, more ...string) {
		for _, instance := range []string{"a:8000", "b:8000"} {
			for _, engine := range []string{"0", "1"} {
				set := labels.FromStrings(append([]string{"__name__", name, "job", "llm", "instance", instance, "pod", "p" + instance[:1], "engine", engine, "model_name", "llama"}, more...)...)
				for at := time.Duration(0); at <= end; at += step {
					value := 0.5
					if counter {
						value = at.Seconds()
					}
					_, err := app.Append(0, set, at.Milliseconds(), value)
					require.NoError(t, err)
				}
			}
		}
	}
	all := catalog.All()
	for i := range all {
		m := &all[i]
		for j := range m.Sources {
			s := &m.Sources[j]
			family := s.Family
			if s.Label != "" || s.Since == "" || family[:5] != "vllm:" || !version.Within(s.Since, s.Until) {
				continue
			}
			switch {
			case m.Kind == catalog.KindHistogram:
				add(family+"_sum", true)
				add(family+"_count", true)
				for _, bound := range catalog.Bounds(m.Name) {
					for _, le := range slices.Compact([]string{fmt.Sprint(bound), fmt.Sprintf("%g", bound)}) {
						add(family+"_bucket", true, "le", le)
					}
				}
				add(family+"_bucket", true, "le", "+Inf")
			case slices.Contains(m.Attributes, "finished_reason"):
				add(family, true, "finished_reason", "stop")
				add(family, true, "finished_reason", "error")
			default:
				add(family, m.Kind == catalog.KindSum)
			}
		}
	}
	require.NoError(t, app.Commit())
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e8, Timeout: time.Minute, Parser: parser.NewParser(parser.Options{})})
	return func(expr string) (promql.Vector, error) {
		query, err := engine.NewInstantQuery(t.Context(), db, nil, expr, time.UnixMilli(end.Milliseconds()))
		if err != nil {
			return nil, err
		}
		defer query.Close()
		result := query.Exec(t.Context())
		if result.Err != nil {
			return nil, result.Err
		}
		vector, _ := result.Vector()
		return slices.Clone(vector), nil
	}
}

var variables = regexp.MustCompile(`\$__(rate_)?interval`)

// expressionsOf returns the expressions of a file by their paths.
func expressionsOf(t *testing.T, content []byte) map[string]string {
	t.Helper()
	d, err := document.Parse(content)
	require.NoError(t, err)
	all := map[string]string{}
	for _, e := range format.Read(d).Expressions {
		all[e.Path] = variables.ReplaceAllString(e.Text(), "5m")
	}
	return all
}

// emptyCodes are those that say that an expression, or the part of it, is always empty.
var emptyCodes = []querylint.Code{
	querylint.CodeMissingTotal, querylint.CodeUnknownMetric, querylint.CodeRemovedMetric, querylint.CodeLeUnknown, querylint.CodeHistogramPart, querylint.CodeNeverMatches,
}

// What is said to be always empty is empty for the engine, and what --fix has made of it has
// a result.
func TestWhatIsSaidToBeEmptyIsEmptyForTheEngine(t *testing.T) {
	race.SkipSequential(t)
	query := stored(t)
	comparison := regexp.MustCompile(`\s*(>|<|==)\s*-?[0-9.]+\s*$`)
	empty, cured := 0, 0
	for _, folder := range scenarios(t) {
		o := lint.Options{Version: "0.20.0"}
		report := lint.Check(t.Context(), lint.Collect(t.Context(), []string{folder}, nil), o)
		report.Plan(t.Context(), o)
		f := &report.Files[0]
		before := expressionsOf(t, f.Before)
		after := map[string]string{}
		if f.After != nil {
			after = expressionsOf(t, f.After)
		}
		for _, x := range f.Findings {
			if !slices.Contains(emptyCodes, x.Code) || x.Severity != querylint.Error {
				continue
			}
			expr := before[x.Path]
			vector, err := query(expr)
			require.NoError(t, err, expr)
			assert.Empty(t, vector, "%s: %s", folder, expr)
			empty++
			if changed := after[x.Path]; x.Fixable && changed != "" && changed != expr && !strings.Contains(changed, "kserve_") {
				// Whether the value is above a threshold is not the question.
				vector, err := query(comparison.ReplaceAllString(changed, ""))
				require.NoError(t, err, changed)
				assert.NotEmpty(t, vector, "%s: %s", folder, changed)
				cured++
			}
		}
	}
	assert.Greater(t, empty, 12)
	assert.Greater(t, cured, 6)
	t.Logf("%d empty, %d cured", empty, cured)
}

// A match that the linter calls many-to-many fails in the engine, a rate of a gauge and the
// like do not: so the linter has to say it.
func TestTheEngineRefusesWhatIsCalledManyToMany(t *testing.T) {
	race.SkipSequential(t)
	query := stored(t)
	l := querylint.New(querylint.Options{Spelling: querylint.Wire})
	for expr, fails := range map[string]bool{
		`vllm:num_requests_waiting * on (instance) vllm:num_requests_running`:                                   true,
		`vllm:num_requests_waiting * on (instance) group_left () vllm:num_requests_running`:                     true,
		`vllm:num_requests_waiting * on (job, instance, engine, model_name) vllm:num_requests_running`:          false,
		`vllm:num_requests_waiting / ignoring (engine) vllm:num_requests_running`:                               true,
		`vllm:num_requests_waiting * on (instance) group_left () sum by (instance) (vllm:num_requests_running)`: false,
	} {
		_, err := query(expr)
		said := false
		for _, f := range l.Expr(expr, querylint.Context{Kind: querylint.Panel}) {
			said = said || f.Code == querylint.CodeManyToMany
		}
		assert.Equal(t, fails, said, expr)
		assert.Equal(t, fails, err != nil, "%s: %v", expr, err)
	}
}
