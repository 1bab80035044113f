package content

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/history"
	"github.com/otelcol-vllm/otelcol-vllm/internal/test/race"
)

// data is a storage, and the part of its story that dashboards show.
type data struct {
	store    *history.Store
	from, to time.Time
}

// filledPanels returns for each panel of a spelling whether one of its queries has data.
func filledPanels(t *testing.T, spelling string, all ...data) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	for _, d := range dashboards(t, root, spelling) {
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

// Each panel has data in the minutes before an incident and in its first ones, in each
// spelling, except those that need what the simulator does not have.
func TestEveryPanelHasData(t *testing.T) {
	race.SkipSequential(t)
	faulty := history.Play(t, history.Showcase(true), history.Suffixed, history.Unsuffixed, history.Dotted)
	wire := history.Showcase(true)
	wire.Wire = true
	wired := history.Play(t, wire, history.Suffixed)
	last := func(h *history.History, i int) data {
		return data{h.Stores[i], h.Begin.Add(history.IncidentFrom - 5*time.Minute), h.Begin.Add(history.IncidentFrom + 8*time.Minute)}
	}
	for i, spelling := range []string{"suffixed", "unsuffixed", "dotted"} {
		check(t, spelling, filledPanels(t, spelling, last(faulty, i)))
	}
	check(t, "wire", filledPanels(t, "wire", last(wired, 0)))
}

// On a deployment where nothing happens, only panels about what happens are empty.
func TestPanelsOfAHealthyDeployment(t *testing.T) {
	race.SkipSequential(t)
	h := history.Play(t, history.Showcase(false), history.Suffixed)
	got := filledPanels(t, "suffixed", data{h.Stores[0], h.End.Add(-20 * time.Minute), h.End})
	for _, name := range slices.Sorted(maps.Keys(got)) {
		_, never := withoutData[name]
		_, calm := withoutDataWhenHealthy[name]
		assert.Equal(t, !never && !calm, got[name], name)
	}
}

func check(t *testing.T, spelling string, got map[string]bool) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(got)) {
		reason, known := withoutData[name]
		switch {
		case got[name]:
			assert.False(t, known, "%s, %s: it has data, although %s", spelling, name, reason)
		default:
			assert.True(t, known, "%s, %s: no query has data", spelling, name)
		}
	}
}

// A panel without data says what it needs.
func TestEveryPanelSaysWhatItNeeds(t *testing.T) {
	for _, spelling := range []string{"suffixed", "unsuffixed", "dotted", "wire"} {
		for _, d := range dashboards(t, root, spelling) {
			for _, p := range d.all() {
				assert.NotEmpty(t, p.FieldConfig.Defaults.NoValue, "%s, %s: %s", spelling, d.UID, p.Title)
			}
		}
	}
}

var labelValues = regexp.MustCompile(`^label_values\((.*),\s*(.*)\)$`)

// Each variable has values, also while a server is down; and with the first value of each,
// in the order of the board, the next one still has some.
func TestEveryVariableHasValues(t *testing.T) {
	race.SkipSequential(t)
	h := history.Play(t, history.Showcase(true), history.Suffixed)
	at := h.Begin.Add(history.IncidentFrom + 8*time.Minute)
	for _, d := range dashboards(t, root, "suffixed") {
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
				// Grafana escapes a choice for the regular expression and for the string.
				chosen[v.Name] = strings.ReplaceAll(regexp.QuoteMeta(slices.Sorted(maps.Keys(found))[0]), `\`, `\\`)
			}
			if v.Name == "instance" && !strings.Contains(v.definition(t), "otelcol") {
				vector, err := h.Stores[0].Instant(t.Context(), filled(parts[1], nil), at)
				require.NoError(t, err)
				assert.True(t, slices.ContainsFunc(vector, func(s sample) bool { return s.Metric.Get("instance") == "chat-b-0:8000" }),
					"%s: a server that is down can be chosen: %s", d.UID, fmt.Sprint(vector))
			}
		}
	}
}
