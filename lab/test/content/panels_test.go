package content

import (
	"context"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/spelling"
	"github.com/otelcol-vllm/otelcol-vllm/internal/test/race"
	"github.com/otelcol-vllm/otelcol-vllm/lab/test/history"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// data is what answers queries, and the part of its story that dashboards show.
type data struct {
	store interface {
		Instant(ctx context.Context, query string, at time.Time) (promql.Vector, error)
		Range(ctx context.Context, query string, from, to time.Time, step time.Duration) (promql.Matrix, error)
	}
	from, to time.Time
}

// filledPanels returns for each panel of a spelling whether one of its queries has data.
func filledPanels(t *testing.T, to spelling.Spelling, all ...data) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	for _, d := range dashboards(t, to) {
		for _, p := range d.all() {
			name := d.UID + ": " + p.Title
			for _, one := range p.Targets {
				for _, over := range all {
					out[name] = values(t, name, one, over) > 0 || out[name]
				}
			}
		}
		for _, a := range d.Annotations.List {
			if a.Target.Expr != "" {
				for _, over := range all {
					values(t, d.UID+": annotation "+a.Name, target{Expr: a.Target.Expr}, over)
				}
			}
		}
	}
	return out
}

// values returns how many values a query has. It must be possible to evaluate it.
func values(t *testing.T, name string, of target, over data) (n int) {
	t.Helper()
	expr := filled(of.Expr, nil)
	if of.Instant {
		vector, err := over.store.Instant(t.Context(), expr, over.to)
		if assert.NoError(t, err, "%s: %s", name, expr) {
			for _, sample := range vector {
				if !math.IsNaN(sample.F) {
					n++
				}
			}
		}
		return n
	}
	matrix, err := over.store.Range(t.Context(), expr, over.from, over.to, 30*time.Second)
	if assert.NoError(t, err, "%s: %s", name, expr) {
		for _, series := range matrix {
			for _, p := range series.Floats {
				if !math.IsNaN(p.F) {
					n++
				}
			}
		}
	}
	return n
}

// incidentSeen is the last time of the incident that is looked at.
const incidentSeen = history.IncidentFrom + 12*time.Minute

// Dashboards and runbooks are executed on one simulated incident, because playing it takes
// most of the time.
func TestOnAnIncident(t *testing.T) {
	race.SkipSequential(t)
	story := history.Showcase(true)
	// Nothing later is looked at.
	story.Length = incidentSeen + time.Minute
	faulty := history.Play(t, story, history.Suffixed, history.Unsuffixed, history.Dotted)
	story.Wire = true
	wired := history.Play(t, story, history.Suffixed)
	t.Run("panels", func(t *testing.T) { eachPanel(t, faulty, wired) })
	t.Run("panels before it", func(t *testing.T) { eachHealthyPanel(t, faulty) })
	t.Run("variables", func(t *testing.T) { eachVariable(t, faulty) })
	t.Run("truth", func(t *testing.T) { panelsShowTheTruth(t, faulty) })
	t.Run("runbooks", func(t *testing.T) { eachRunbook(t, faulty, wired) })
}

// eachPanel holds that each panel has data in the minutes before an incident and in its
// first ones, in each spelling, except those that need what the simulator does not have.
func eachPanel(t *testing.T, faulty, wired *history.History) {
	t.Helper()
	last := func(h *history.History, i int) data {
		return data{h.Stores[i], h.Begin.Add(history.IncidentFrom - 5*time.Minute), h.Begin.Add(history.IncidentFrom + 8*time.Minute)}
	}
	for i, to := range spelling.All() {
		check(t, to, filledPanels(t, to, last(faulty, i)))
	}
	check(t, spelling.Wire, filledPanels(t, spelling.Wire, last(wired, 0)))
}

// eachHealthyPanel holds that only panels about what happens are empty while nothing happens.
func eachHealthyPanel(t *testing.T, h *history.History) {
	t.Helper()
	got := filledPanels(t, spelling.Suffixed, data{h.Stores[0], h.Begin.Add(5 * time.Minute), h.Begin.Add(history.IncidentFrom - time.Minute)})
	for _, name := range slices.Sorted(maps.Keys(got)) {
		_, never := withoutData[name]
		_, calm := withoutDataWhenHealthy[name]
		assert.Equal(t, !never && !calm, got[name], name)
	}
}

func check(t *testing.T, to spelling.Spelling, got map[string]bool) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(got)) {
		reason, known := withoutData[name]
		switch {
		case got[name]:
			assert.False(t, known, "%s, %s: it has data, although %s", to, name, reason)
		default:
			assert.True(t, known, "%s, %s: no query has data", to, name)
		}
	}
}

// A panel without data says what it needs.
func TestEveryPanelSaysWhatItNeeds(t *testing.T) {
	for _, to := range append(spelling.All(), spelling.Wire) {
		for _, d := range dashboards(t, to) {
			for _, p := range d.all() {
				assert.NotEmpty(t, p.FieldConfig.Defaults.NoValue, "%s, %s: %s", to, d.UID, p.Title)
			}
		}
	}
}

var labelValues = regexp.MustCompile(`^label_values\((.*),\s*(.*)\)$`)

// eachVariable holds that each variable has values, also while a server is down; and with
// the first value of each, in the order of the board, the next one still has some.
func eachVariable(t *testing.T, h *history.History) {
	t.Helper()
	at := h.Begin.Add(history.IncidentFrom + 8*time.Minute)
	for _, d := range dashboards(t, spelling.Suffixed) {
		chosen := map[string]string{}
		for _, v := range d.Templating.List {
			if v.Type != "query" {
				continue
			}
			parts := labelValues.FindStringSubmatch(v.definition(t))
			require.NotNil(t, parts, "%s: %s", d.UID, v.definition(t))
			found := map[string]bool{}
			for _, with := range []map[string]string{nil, chosen} {
				vector, err := h.Stores[0].Instant(t.Context(), filled(parts[1], with), at)
				require.NoError(t, err, "%s: %s", d.UID, v.definition(t))
				found = map[string]bool{}
				for _, sample := range vector {
					if value := sample.Metric.Get(parts[2]); value != "" {
						found[value] = true
					}
				}
				assert.NotEmpty(t, found, "%s: $%s, %s", d.UID, v.Name, filled(parts[1], with))
			}
			if len(found) > 0 {
				chosen[v.Name] = chosenValue(slices.Sorted(maps.Keys(found))[0])
			}
			if v.Name == "instance" && !strings.Contains(v.definition(t), "otelcol") {
				vector, err := h.Stores[0].Instant(t.Context(), filled(parts[1], nil), at)
				require.NoError(t, err)
				assert.True(t, slices.ContainsFunc(vector, func(s sample) bool { return s.Metric.Get("instance") == "chat-b-0:8000" }),
					"%s: a server that is down can be chosen: %s", d.UID, vector.String())
			}
		}
	}
}

// panelsShowTheTruth compares what some panels show with what happened to the simulated
// requests.
func panelsShowTheTruth(t *testing.T, h *history.History) {
	t.Helper()
	// Before the incident.
	from, to := history.IncidentFrom-6*time.Minute, history.IncidentFrom-time.Minute
	var finished, first, inEngine float64
	var waits []float64
	for host, outcomes := range h.Outcomes {
		if !strings.HasPrefix(host, "chat-") {
			continue
		}
		for _, o := range outcomes {
			ended := time.Duration(o.Ended * float64(time.Second))
			began := time.Duration((o.Arrived + o.FirstToken) * float64(time.Second))
			if ended > from && ended <= to && (o.End == engine.EndStop || o.End == engine.EndLength) {
				finished++
			}
			admitted := time.Duration((o.Arrived + o.Queue) * float64(time.Second))
			inEngine += max(0, min(ended, to)-max(admitted, from)).Seconds()
			if o.FirstToken > 0 && began > from && began <= to {
				first++
				waits = append(waits, o.FirstToken)
			}
		}
	}
	seconds := (to - from).Seconds()
	slices.Sort(waits)
	p95 := waits[int(0.95*float64(len(waits)))]
	mean := func(board, title, legend string) float64 {
		t.Helper()
		for _, d := range dashboards(t, spelling.Suffixed) {
			for _, p := range d.all() {
				if d.UID != board || p.Title != title {
					continue
				}
				for _, one := range p.Targets {
					if legend != "" && !strings.HasPrefix(one.LegendFormat, legend) {
						continue
					}
					expr := filled(one.Expr, map[string]string{"model": chosenValue(history.ChatModel)})
					matrix, err := h.Stores[0].Range(t.Context(), expr, h.Begin.Add(from+time.Minute), h.Begin.Add(to), 15*time.Second)
					require.NoError(t, err)
					sum, n := 0.0, 0.0
					for _, series := range matrix {
						if model := series.Metric.Get("model_name"); model != "" && model != history.ChatModel {
							continue
						}
						for _, p := range series.Floats {
							sum += p.F
						}
						n = max(n, float64(len(series.Floats)))
					}
					require.Positive(t, n, "%s: %s", board, title)
					return sum / n
				}
			}
		}
		require.Fail(t, "no such panel", "%s: %s", board, title)
		return 0
	}
	assert.InEpsilon(t, first/seconds, mean("vllm-overview", "Requests", "first token"), 0.1)
	assert.InEpsilon(t, finished/seconds, mean("vllm-overview", "Requests", "ended"), 0.1)
	assert.InEpsilon(t, inEngine/seconds, mean("vllm-overview", "Running and waiting requests", "running"), 0.25, "Little's law")
	bounds := []float64{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5}
	i, _ := slices.BinarySearch(bounds, p95)
	shown := mean("vllm-overview", "Time to first token", "p95")
	assert.GreaterOrEqual(t, shown, 0.9*bounds[i-1], "the truth is %g", p95)
	assert.LessOrEqual(t, shown, 1.1*bounds[i], "the truth is %g", p95)
	assert.InDelta(t, 5, mean("vllm-overview", "Servers up", ""), 0)
	theTableOfServers(t, h)
}

// theTableOfServers holds that each query has one value for a server, and that those that are harmed, and no others,
// say for how long: since some time of the incident.
func theTableOfServers(t *testing.T, h *history.History) {
	t.Helper()
	const after = 8 * time.Minute
	table := dashboards(t, spelling.Suffixed)[slices.IndexFunc(dashboards(t, spelling.Suffixed), func(d dashboard) bool { return d.UID == "vllm-overview" })].all()
	servers := table[slices.IndexFunc(table, func(p panel) bool { return p.Title == "Servers" })].Targets
	rows := make([]map[string]float64, len(servers))
	for i, one := range servers {
		rows[i] = map[string]float64{}
		vector, err := h.Stores[0].Instant(t.Context(), filled(one.Expr, nil), h.Begin.Add(history.IncidentFrom+after))
		require.NoError(t, err, one.Expr)
		for _, sample := range vector {
			name := sample.Metric.Get("instance") + " " + sample.Metric.Get("model_name")
			assert.NotContains(t, rows[i], name, one.Expr)
			rows[i][name] = sample.F
		}
	}
	harmed := 0
	for name, severity := range rows[0] {
		since, bad := rows[2][name]
		assert.Equal(t, severity >= 2, bad, name)
		if bad {
			harmed++
			assert.Positive(t, since, name)
			assert.Less(t, since, after.Seconds(), name)
		}
	}
	assert.Positive(t, harmed)
	assert.Less(t, harmed, len(rows[0]))
}
