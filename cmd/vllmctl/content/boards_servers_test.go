package content_test

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/content"
)

// unchosen fills in a refresh of three hours, with nothing chosen.
var unchosen = strings.NewReplacer("$__rate_interval", "1m", "$__range", "3h", "$__interval", "15s",
	"$cluster", ".*", "$namespace", ".*", "$job", ".*", "$version", ".*", "$pod", ".*", "$instance", ".*", "$model", ".*",
	"$objective", ".*", "$scrapejob", ".*", "$collector", ".*")

// shown asks the queries of a panel at a time of a story.
func (p *player) shown(name string, at time.Duration) (all []promql.Vector) {
	p.Helper()
	uid, title, _ := strings.Cut(name, " / ")
	board, _ := content.BoardByUID(uid)
	for _, row := range board.Rows {
		for _, panel := range row.Panels {
			if panel.Title != title {
				continue
			}
			for _, q := range panel.Queries {
				query, err := p.engine.NewInstantQuery(p.Context(), p.storage, nil, unchosen.Replace(q.Expr), epoch.Add(at))
				require.NoError(p, err)
				result := query.Exec(p.Context())
				require.NoError(p, result.Err, q.Expr)
				vector, err := result.Vector()
				require.NoError(p, err)
				all = append(all, vector)
			}
		}
	}
	require.NotEmpty(p, all, name)
	return all
}

// Two clusters have the same addresses. A server has two engines: what is bad about one is not said with the cause of
// the other.
func TestServersAreNotMixedUp(t *testing.T) {
	p := newPlayer(t)
	of := func(cluster, engine, more string) string {
		return `{job="vllm",instance="10.0.0.7:8000",model_name="m",k8s_cluster_name="` + cluster + `",engine="` + engine + `"` + more + `}`
	}
	write := func(cluster, engine, condition, cause string, severity float64) []series {
		return []series{
			constant("vllm_diagnosis_severity"+of(cluster, engine, ""), severity),
			constant("vllm_diagnosis_condition"+of(cluster, engine, `,condition="`+condition+`"`), 1),
			constant("vllm_diagnosis_cause"+of(cluster, engine, `,cause="`+cause+`",role="primary",detail="d"`), 1),
		}
	}
	all := append(write("a", "0", "healthy", "workload_shift", 1), write("a", "1", "stalled", "engine_hang", 3)...)
	p.play(3*time.Minute, 15*time.Second, append(all, write("b", "0", "degraded", "slow_steps", 2)...)...)

	servers := p.shown("vllm-overview / Servers", 3*time.Minute)
	rows := map[string][]string{}
	for i, label := range []string{"condition", "cause"} {
		for _, s := range servers[i] {
			cluster := s.Metric.Get("k8s_cluster_name")
			rows[cluster] = append(rows[cluster], s.Metric.Get(label))
		}
	}
	assert.Equal(t, map[string][]string{"a": {"stalled", "engine_hang"}, "b": {"degraded", "slow_steps"}}, rows)
	models := p.shown("vllm-overview / Models", 3*time.Minute)
	assert.InDelta(t, 2, models[0][0].F, 0, "servers")
	assert.InDelta(t, 2, models[1][0].F, 0, "bad servers")
	assert.Len(t, p.shown("vllm-overview / Servers by condition", 3*time.Minute)[0], 3)
}

// A wall without the cause of a pool would say that a person is needed, and not for what.
func TestTheWallNamesTheCausesOfPools(t *testing.T) {
	p := newPlayer(t)
	p.play(time.Minute, 15*time.Second,
		constant(`vllm_pool_diagnosis_cause{model_name="m",cause="servers_lost",role="primary"}`, 1),
		constant(`vllm_diagnosis_cause{instance="a",model_name="m",cause="slow_steps",role="primary"}`, 1),
		constant(`vllm_diagnosis_cause{instance="b",model_name="m",cause="slow_steps",role="primary"}`, 1))
	causes := map[string]float64{}
	for _, s := range p.shown("vllm-wall / Primary causes", time.Minute)[0] {
		causes[s.Metric.Get("cause")] = s.F
	}
	assert.Equal(t, map[string]float64{"servers_lost": 1, "slow_steps": 2}, causes)
}

// Grafana shows a NaN as such, and then not what the panel says without data.
func TestWithoutTrafficAPercentileHasNoValue(t *testing.T) {
	p := newPlayer(t)
	const bucket = `vllm_time_to_first_token_seconds_bucket{job="vllm",instance="a",model_name="m",engine="0",le=`
	p.play(10*time.Minute, 15*time.Second, counter(bucket+`"1"}`, 1, 5*time.Minute, 0), counter(bucket+`"+Inf"}`, 1, 5*time.Minute, 0))
	assert.Len(t, p.shown("vllm-overview / Time to first token, p95", 4*time.Minute)[0], 1)
	assert.Empty(t, p.shown("vllm-overview / Time to first token, p95", 9*time.Minute)[0])
}

// read is how many values of one series a query reads at each step, if a server is scraped every 15 s.
func read(node parser.Node) (n int) {
	switch e := node.(type) {
	case *parser.VectorSelector:
		return 1
	case *parser.MatrixSelector:
		if e.VectorSelector.(*parser.VectorSelector).StartOrEnd != 0 {
			return 1 // once for all steps.
		}
		return int(e.Range / (15 * time.Second))
	case *parser.SubqueryExpr:
		return int(e.Range/e.Step) * read(e.Expr)
	}
	for child := range parser.ChildrenIter(node) {
		n += read(child)
	}
	return n
}

// With a thousand servers, 20,000 values of each are 20 million; Prometheus refuses to hold more than 50 million. A
// picture of three hours has 720 steps.
func TestQueriesAreCheapForAThousandServers(t *testing.T) {
	most := map[bool]int{true: 20_000, false: 500}
	for _, b := range content.Boards() {
		for _, row := range b.Rows {
			for _, p := range row.Panels {
				for _, q := range p.Queries {
					expr, err := parser.NewParser(parser.Options{}).ParseExpr(unchosen.Replace(q.Expr))
					require.NoError(t, err, q.Expr)
					assert.LessOrEqual(t, read(expr), most[q.Instant], "%s / %s", b.UID, p.Title)
				}
			}
		}
	}
}
