package datadog

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/content"
	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// ofResources are the attributes of resources that become tags.
var ofResources = []string{"service.name", "service.instance.id", "k8s.namespace.name"}

// mistakes returns what is wrong with a query, judged by the catalogue.
func mistakes(query string) (found []string) {
	uses, err := Uses(query)
	if err != nil {
		return []string{err.Error()}
	}
	if strings.Count(query, "{") != strings.Count(query, "}") || strings.Count(query, "(") != strings.Count(query, ")") {
		found = append(found, "parentheses do not match")
	}
	// What is left without the parts that are understood has no name of a metric.
	if rest := useForm.ReplaceAllString(query, ""); strings.ContainsAny(rest, "{}:") && !regexp.MustCompile(`^(sum|min|max|avg)\(last_\d+[mh]\):[^{}:]*$`).MatchString(rest) {
		found = append(found, "not understood: "+rest)
	}
	for _, use := range uses {
		metric, known := catalog.ByName(use.Metric)
		if !known {
			found = append(found, use.Metric+" is not in the catalogue")
			continue
		}
		switch {
		case metric.Kind == catalog.KindSum && !use.Counts:
			found = append(found, use.Metric+" is a count, so it needs as_count or as_rate")
		case metric.Kind == catalog.KindGauge && use.Counts:
			found = append(found, use.Metric+" is a gauge, which has no count")
		case metric.Kind != catalog.KindSum && metric.Kind != catalog.KindGauge:
			found = append(found, use.Metric+" is a distribution, whose percentiles must be switched on")
		}
		for _, tag := range slices.Concat(use.By, slices.Collect(maps.Keys(use.Filters))) {
			if !slices.Contains(metric.Attributes, tag) && !slices.Contains(ofResources, tag) {
				found = append(found, use.Metric+" has no tag "+tag)
			}
		}
	}
	return found
}

func TestEveryQueryFitsTheCatalogue(t *testing.T) {
	t.Parallel()
	queries, err := Queries()
	require.NoError(t, err)
	assert.Greater(t, len(queries), 40)
	for _, query := range queries {
		assert.Empty(t, mistakes(query), query)
	}
}

func TestMistakesInQueriesAreFound(t *testing.T) {
	t.Parallel()
	const right = "sum(last_5m):sum:vllm.num_preemptions{model_name:a} by {engine}.as_count() > 1"
	require.Empty(t, mistakes(right))
	for from, to := range map[string]string{
		"vllm.num_preemptions": "vllm.preemptions",
		".as_count()":          "",
		"model_name:a":         "model:a",
		"by {engine}":          "by {server}",
		"sum:vllm":             "total:vllm",
		"{model_name:a}":       "{model_name=a}",
		"{model_name:a} by":    "{$cluster} by",
		" by {engine}":         " by {engine",
		"last_5m":              "last_5x",
		"{model_name:a} ":      "{engine:0,model_name IN (a,b)} ",
		"sum:vllm.num_preemptions{model_name:a} by {engine}.as_count()": "sum:vllm.num_requests.running{*}.as_count()",
		"sum:vllm.num_preemptions{model_name:a}":                        "sum:vllm.e2e_request_latency{*}",
	} {
		assert.NotEmpty(t, mistakes(strings.Replace(right, from, to, 1)), to)
	}
}

// Datadog's documentation of the API has these forms: a window of 1 to 10080 minutes or 1 to
// 168 hours, and a comparison with the critical threshold.
var monitorForm = regexp.MustCompile(`^(avg|sum|min|max)\(last_([0-9]+)(m|h)\):.* (<|<=|>|>=|==|!=) ([0-9.]+)$`)

func TestAMonitorHasTheFormOfTheAPI(t *testing.T) {
	t.Parallel()
	files, err := Files()
	require.NoError(t, err)
	tags := regexp.MustCompile(`\{\{(?:\[([a-z.]+)\]|([a-z_]+))\.name\}\}`)
	for _, a := range monitored() {
		var got map[string]any
		require.NoError(t, json.Unmarshal(files["content/datadog/monitors/"+a.Name+".json"], &got))
		assert.ElementsMatch(t, []string{"name", "type", "query", "message", "tags", "priority", "options", "assets"}, slices.Collect(maps.Keys(got)))
		assert.Equal(t, "query alert", got["type"])
		query := got["query"].(string)
		form := monitorForm.FindStringSubmatch(query)
		require.NotNil(t, form, query)
		options := got["options"].(map[string]any)
		assert.Equal(t, form[5], fmt.Sprint(options["thresholds"].(map[string]any)["critical"]), "the API refuses another threshold than that of the query")
		assert.Contains(t, []string{"default", "show_no_data", "show_and_notify_no_data", "resolve"}, options["on_missing_data"])
		assert.Contains(t, got["message"], a.RunbookURL())
		assert.Equal(t, a.Severity == content.Page, got["priority"] == 1.0)
		uses, err := Uses(query)
		require.NoError(t, err)
		for _, named := range tags.FindAllStringSubmatch(a.Monitor.Text, -1) {
			assert.Contains(t, uses[0].By, named[1]+named[2], "%s names a tag that the query does not group by", a.Name)
		}
		rest := tags.ReplaceAllString(a.Monitor.Text, "")
		for _, other := range regexp.MustCompile(`\{\{[^}]*\}\}`).FindAllString(rest, -1) {
			assert.Contains(t, []string{"{{value}}", "{{#is_no_data}}", "{{/is_no_data}}"}, other)
		}
	}
}

// Two windows in one query: the smaller burn rate exceeds the factor only where both do. They
// are the windows of the alert.
func TestABurnMonitorHasTheWindowsOfItsAlert(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, m := range monitored() {
		if !strings.HasPrefix(m.Name, "VLLMBudgetBurn") {
			continue
		}
		seen++
		query, err := query(&m)
		require.NoError(t, err)
		uses, err := Uses(query)
		require.NoError(t, err)
		assert.Contains(t, query, ":min:vllm.slo.burn_rate")
		assert.Equal(t, []string{"lower"}, uses[0].Filters["bound"])
		require.Len(t, uses[0].Filters["window"], 2)
		for _, window := range uses[0].Filters["window"] {
			assert.Contains(t, m.Expr, "vllm_slo:error_ratio_lower:rate"+window+" > ")
		}
		factor := query[strings.LastIndex(query, "> ")+2:]
		assert.GreaterOrEqual(t, strings.Count(m.Expr, "> clamp_max("+factor+" * (1 - vllm_slo:target:last1h)"), 2, "%s: the same factor", m.Expr)
	}
	assert.Equal(t, 4, seen)
}

func TestTheDashboardHasTheFormOfTheAPI(t *testing.T) {
	t.Parallel()
	board := dashboard()
	assert.Equal(t, "ordered", board.LayoutType)
	titles := map[string]bool{}
	bottom := 0
	for _, g := range board.Widgets {
		assert.Equal(t, "group", g.Definition.Type)
		assert.Equal(t, layout{0, bottom, 12, g.Layout.Height}, *g.Layout, "groups stand below each other")
		bottom += g.Layout.Height
		for _, w := range g.Definition.Widgets {
			d := w.Definition
			assert.False(t, titles[d.Title], d.Title)
			titles[d.Title] = true
			assert.LessOrEqual(t, w.Layout.X+w.Layout.Width, 12)
			assert.Less(t, w.Layout.Y+w.Layout.Height, g.Layout.Height, "below the title of the group")
			assert.Contains(t, []string{"timeseries", "query_value", "toplist"}, d.Type)
			for _, r := range d.Requests {
				assert.Equal(t, d.Type == "timeseries", r.ResponseFormat == "timeseries")
				for _, q := range r.Queries {
					assert.Contains(t, q.Query, "{"+scope, "%s follows the choices", d.Title)
					assert.Regexp(t, `\b`+q.Name+`\b`, r.Formulas[0].Formula+" "+d.Requests[0].Formulas[0].Formula)
				}
			}
		}
	}
	assert.Greater(t, len(titles), 20)
}

// A quantile, a mean or a ratio of several servers is never averaged or added up.
func TestNothingIsAveragedOverServers(t *testing.T) {
	t.Parallel()
	queries, err := Queries()
	require.NoError(t, err)
	for _, query := range queries {
		assert.NotContains(t, query, "avg:")
		for _, found := range useForm.FindAllStringSubmatch(query, -1) {
			metric, _ := catalog.ByName(found[2])
			if metric != nil && (metric.Unit == "1" || metric.Unit == "s") {
				assert.NotEqual(t, "sum", found[1], query)
			}
		}
	}
}

func TestTheTableNamesEachAlertOnce(t *testing.T) {
	t.Parallel()
	table := Parts()["content/datadog/README.md"]["monitors"]
	for _, a := range stableAlerts() {
		assert.Equal(t, 1, strings.Count(table, "\n| "+a.Name+" |")+strings.Count(table, "\n| ["+a.Name+"]("), a.Name)
	}
}

// Level 3 of the severity is a server or a pool that does not serve, level 2 one that is
// degraded.
func TestAMonitorOnTheSeverityHasTheLevelOfItsAlert(t *testing.T) {
	t.Parallel()
	levels := map[string]string{
		"VLLMPoolNotServing": " >= 3", "VLLMServerNotServing": " >= 3", "VLLMPoolDegraded": " == 2", "VLLMServerDegraded": " == 2",
	}
	for _, m := range monitored() {
		if level, is := levels[m.Name]; is {
			assert.True(t, strings.HasSuffix(m.Monitor.Query, level), m.Monitor.Query)
			delete(levels, m.Name)
		}
	}
	assert.Empty(t, levels)
}

// Where nothing is reported there is nothing to compare: only what is about that must fire.
func TestOnlyMonitorsOfWhatIsMissingFireWithoutData(t *testing.T) {
	t.Parallel()
	for _, m := range monitored() {
		missing := m.Name == "VLLMTooFewServers" || m.Name == "VLLMCollectorSilent"
		assert.Equal(t, missing, m.Monitor.FiresWithoutData, m.Name)
	}
}
