package perses_test

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/content"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/spelling"
	"github.com/otelcol-vllm/otelcol-vllm/lab/content/perses"
)

type plugin struct {
	Kind string
	Spec map[string]any
}

type resource struct {
	Kind     string
	Metadata struct{ Name, Project string }
	Spec     struct {
		Variables []struct {
			Kind string
			Spec struct {
				Name, CustomAllValue string
				Plugin               plugin
			}
		}
		Panels map[string]struct {
			Kind string
			Spec struct {
				Display struct{ Name, Description string }
				Plugin  plugin
				Queries []struct {
					Kind string
					Spec struct{ Plugin plugin }
				}
				Links []struct{ URL string }
			}
		}
		Layouts []struct {
			Kind string
			Spec struct {
				Display struct {
					Title    string
					Collapse struct{ Open bool }
				}
				Items []struct {
					X, Y, Width, Height int
					Content             struct {
						Ref string `json:"$ref"`
					}
				}
			}
		}
	}
}

// Only these kinds exist in the plugins that docs/start/dashboards.md names.
var plugins = map[string]bool{
	"TimeSeriesChart": true, "StatChart": true, "Table": true, "StatusHistoryChart": true,
}

func TestDashboardsAreComplete(t *testing.T) {
	files := map[string][]byte{}
	for _, to := range append(spelling.All(), spelling.Wire) {
		built, err := perses.Files(to)
		require.NoError(t, err)
		require.NotEmpty(t, built)
		maps.Copy(files, built)
	}
	for name, text := range files {
		var r resource
		require.NoError(t, json.Unmarshal(text, &r), name)
		assert.Equal(t, "Dashboard", r.Kind)
		assert.True(t, strings.HasSuffix(name, "/"+r.Metadata.Name+".json"), name)
		assert.Equal(t, perses.Project, r.Metadata.Project)
		shown := map[string]bool{}
		for _, l := range r.Spec.Layouts {
			assert.Equal(t, "Grid", l.Kind)
			cells := map[[2]int]bool{}
			for _, item := range l.Spec.Items {
				assert.True(t, item.Width > 0 && item.Height > 0 && item.X+item.Width <= 24, "%s: %s", name, item.Content.Ref)
				key, is := strings.CutPrefix(item.Content.Ref, "#/spec/panels/")
				assert.True(t, is)
				assert.Contains(t, r.Spec.Panels, key, name)
				assert.False(t, shown[key], "%s: %s is there twice", name, key)
				shown[key] = true
				for x := item.X; x < item.X+item.Width; x++ {
					for y := item.Y; y < item.Y+item.Height; y++ {
						assert.False(t, cells[[2]int{x, y}], "%s: %s lies over another panel", name, key)
						cells[[2]int{x, y}] = true
					}
				}
			}
		}
		assert.Len(t, shown, len(r.Spec.Panels), name)
		for key, p := range r.Spec.Panels {
			assert.True(t, plugins[p.Spec.Plugin.Kind], "%s: %s: %s", name, key, p.Spec.Plugin.Kind)
			assert.NotEmpty(t, p.Spec.Display.Name)
			assert.Contains(t, p.Spec.Display.Description, "Without data: ", "%s: %s", name, key)
			for _, q := range p.Spec.Queries {
				assert.Equal(t, "PrometheusTimeSeriesQuery", q.Spec.Plugin.Kind)
				assert.NotEmpty(t, q.Spec.Plugin.Spec["query"])
			}
		}
		for _, v := range r.Spec.Variables {
			assert.Equal(t, "PrometheusLabelValuesVariable", v.Spec.Plugin.Kind)
			assert.Equal(t, ".*", v.Spec.CustomAllValue, "%s: all is also what has no such label", name)
		}
	}
}

// Units are those of the metrics, in the words of Perses.
func TestPanelsHaveTheirUnit(t *testing.T) {
	files, err := perses.Files(spelling.Suffixed)
	require.NoError(t, err)
	words := map[string]string{"s": "seconds", "1": "percent-decimal", "By": "bytes"}
	seen := map[string]int{}
	for _, b := range content.Boards() {
		if b.Set != content.Stable {
			continue
		}
		units := map[string]string{}
		for _, row := range b.Rows {
			for _, p := range row.Panels {
				if word, has := words[p.Unit]; has && p.Kind != content.Table {
					units[p.Title] = word
				}
			}
		}
		var r resource
		require.NoError(t, json.Unmarshal(files["content/perses/suffixed/"+b.UID+".json"], &r))
		for _, p := range r.Spec.Panels {
			want, has := units[p.Spec.Display.Name]
			if !has {
				continue
			}
			text, err := json.Marshal(p.Spec.Plugin.Spec)
			require.NoError(t, err)
			assert.Contains(t, string(text), `"unit":"`+want+`"`, "%s: %s", b.UID, p.Spec.Display.Name)
			seen[want]++
		}
	}
	assert.Len(t, seen, len(words))
}

// The rows of several queries are joined by the labels that all of them have, in each spelling; a label that only a
// matcher names is none of these. What no column shows is hidden.
func TestTablesJoinTheirQueries(t *testing.T) {
	joined := 0
	for to, cluster := range map[spelling.Spelling]string{spelling.Suffixed: "k8s_cluster_name", spelling.Dotted: "k8s.cluster.name"} {
		files, err := perses.Files(to)
		require.NoError(t, err)
		for board, want := range map[string]map[string][]string{
			"vllm-overview": {"Servers": {cluster, "instance", "model_name"}, "Models": {"model_name"}},
			"vllm-objectives": {"Objectives": {
				"objective", "model_name", "job", strings.Replace(cluster, "cluster", "namespace", 1), cluster,
			}},
		} {
			var r resource
			require.NoError(t, json.Unmarshal(files["content/perses/"+string(to)+"/"+board+".json"], &r))
			for _, p := range r.Spec.Panels {
				keys, is := want[p.Spec.Display.Name]
				if !is || p.Spec.Plugin.Kind != "Table" {
					continue
				}
				joined++
				var spec struct {
					ColumnSettings []struct{ Name string }
					Transforms     []struct {
						Kind string
						Spec struct{ Columns []string }
					}
				}
				text, err := json.Marshal(p.Spec.Plugin.Spec)
				require.NoError(t, err)
				require.NoError(t, json.Unmarshal(text, &spec))
				last := spec.Transforms[len(spec.Transforms)-1]
				assert.Equal(t, "JoinByColumnValue", last.Kind)
				assert.ElementsMatch(t, keys, last.Spec.Columns, "%s: %s", board, p.Spec.Display.Name)
				var values []string
				for _, c := range spec.ColumnSettings {
					if strings.HasPrefix(c.Name, "value") {
						values = append(values, c.Name)
					}
				}
				assert.Len(t, values, len(p.Spec.Queries), "%s: each value is shown or hidden", p.Spec.Display.Name)
			}
		}
	}
	assert.Equal(t, 6, joined)
}

// Two lines of one colour cannot be distinguished: a fixed colour is of one series, and stands once. Few series get
// colours by their order, because those by hash can be alike.
func TestColoursDoNotCollide(t *testing.T) {
	fixed, ordered := 0, 0
	for _, to := range append(spelling.All(), spelling.Wire) {
		files, err := perses.Files(to)
		require.NoError(t, err)
		for name, text := range files {
			var r resource
			require.NoError(t, json.Unmarshal(text, &r))
			for _, p := range r.Spec.Panels {
				if p.Spec.Plugin.Kind != "TimeSeriesChart" {
					continue
				}
				many := false
				for _, q := range p.Spec.Queries {
					many = many || strings.Contains(q.Spec.Plugin.Spec["query"].(string), "k(20, ")
				}
				mode := p.Spec.Plugin.Spec["visual"].(map[string]any)["palette"].(map[string]any)["mode"]
				assert.Equal(t, map[bool]string{true: "auto", false: "categorical"}[many], mode, "%s: %s", name, p.Spec.Display.Name)
				if !many {
					ordered++
				}
				seen := map[any]bool{}
				settings, _ := p.Spec.Plugin.Spec["querySettings"].([]any)
				for _, s := range settings {
					setting := s.(map[string]any)
					color, has := setting["colorValue"]
					if !has {
						continue
					}
					fixed++
					assert.False(t, seen[color], "%s: %s", name, p.Spec.Display.Name)
					seen[color] = true
					of := p.Spec.Queries[int(setting["queryIndex"].(float64))].Spec.Plugin.Spec["seriesNameFormat"]
					assert.NotContains(t, of, "{{", "%s: %s: several lines of one colour", name, p.Spec.Display.Name)
				}
			}
		}
	}
	assert.Positive(t, fixed)
	assert.Positive(t, ordered)
}

// A share below the start of its axis, as in an outage, would not be drawn.
func TestNoAxisCutsLowSharesOff(t *testing.T) {
	files, err := perses.Files(spelling.Suffixed)
	require.NoError(t, err)
	shares := 0
	for name, text := range files {
		var r resource
		require.NoError(t, json.Unmarshal(text, &r), name)
		for _, p := range r.Spec.Panels {
			axis, _ := p.Spec.Plugin.Spec["yAxis"].(map[string]any)
			if axis["max"] == 1.0 {
				shares++
				assert.Contains(t, []any{nil, 0.0}, axis["min"], "%s: %s", name, p.Spec.Display.Name)
			}
		}
	}
	assert.Greater(t, shares, 5)
}
