package grafana_test

import (
	"encoding/json"
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/content"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/spelling"
	"github.com/otelcol-vllm/otelcol-vllm/lab/content/grafana"
)

// dashboard is what the tests read of Grafana's JSON.
type dashboard struct {
	UID, Title    string
	SchemaVersion int
	Inputs        []any `json:"__inputs"`
	Panels        []drawn
	Links         []struct {
		Type, URL             string
		KeepTime, IncludeVars bool
	}
	Templating struct {
		List []struct {
			Name, Type, AllValue, Definition string
			Query                            any
		}
	}
	Annotations struct {
		List []struct {
			Name            string
			UseValueForTime any
			Target          struct{ Expr string }
		}
	}
}

type drawn struct {
	ID                       int
	Type, Title, Description string
	Repeat                   string
	Collapsed                bool
	Panels                   []drawn
	GridPos                  struct{ X, Y, W, H int }
	Datasource               struct{ Type, UID string }
	Targets                  []struct {
		RefID, Expr, Format, LegendFormat string
		Instant                           bool
	}
	Links   []struct{ Title, URL string }
	Options struct {
		SortBy []struct {
			DisplayName string
			Desc        bool
		}
	}
	Transformations []struct {
		ID      string
		Options struct {
			RenameByName  map[string]string
			ExcludeByName map[string]bool
			Include       struct{ Names []string }
		}
	}
	FieldConfig struct {
		Defaults struct {
			Unit, NoValue string
			Color         struct{ Mode string }
			Min, Max      *float64
			Custom        struct {
				ShowPoints  string
				AxisSoftMin *float64
			}
			Thresholds struct {
				Steps []struct {
					Color string
					Value *float64
				}
			}
		}
		Overrides []struct {
			Matcher    struct{ ID, Options string }
			Properties []struct {
				ID    string
				Value any
			}
		}
	}
}

var written = sync.OnceValues(func() (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, to := range append(spelling.All(), spelling.Wire) {
		boards, err := grafana.Files(to)
		if err != nil {
			return nil, err
		}
		maps.Copy(files, boards)
	}
	return files, nil
})

// all returns every dashboard by its path.
func all(t *testing.T) map[string]dashboard {
	t.Helper()
	files, err := written()
	require.NoError(t, err)
	boards := map[string]dashboard{}
	for name, text := range files {
		if path.Ext(name) != ".json" {
			continue
		}
		var d dashboard
		require.NoError(t, json.Unmarshal(text, &d), name)
		boards[name] = d
	}
	return boards
}

// flat returns the panels without rows, those inside of collapsed rows too.
func flat(d dashboard) []drawn {
	var panels []drawn
	for _, p := range d.Panels {
		if p.Type == "row" {
			panels = append(panels, p.Panels...)
		} else {
			panels = append(panels, p)
		}
	}
	return panels
}

func TestEachBoardIsWrittenInEachSpelling(t *testing.T) {
	files := all(t)
	want := 0
	for _, b := range content.Boards() {
		folders := []string{"suffixed", "unsuffixed", "dotted"}
		if b.Set == "wire" {
			folders = []string{"wire"}
		}
		for _, folder := range folders {
			want++
			d, written := files["content/grafana/"+folder+"/"+b.UID+".json"]
			require.True(t, written, "%s/%s", folder, b.UID)
			assert.Equal(t, b.UID, d.UID, "the address of a board is the same in each spelling")
			panels := 0
			for _, row := range b.Rows {
				panels += len(row.Panels)
			}
			assert.Len(t, flat(d), panels, b.UID)
		}
	}
	assert.Len(t, files, want)
}

// Each cell of the grid belongs to one panel, and no panel is outside of it.
func TestPanelsDoNotOverlap(t *testing.T) {
	for name, d := range all(t) {
		cells := map[[2]int]string{}
		place := func(p drawn) {
			assert.True(t, p.GridPos.W > 0 && p.GridPos.H > 0 && p.GridPos.X >= 0 && p.GridPos.X+p.GridPos.W <= 24, "%s: %s", name, p.Title)
			for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
				for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
					assert.Empty(t, cells[[2]int{x, y}], "%s: %s lies over it", name, p.Title)
					cells[[2]int{x, y}] = p.Title
				}
			}
		}
		for _, p := range d.Panels {
			place(p)
		}
		for _, row := range d.Panels {
			// When a row is opened, its panels push everything below down.
			cells = map[[2]int]string{}
			for _, p := range row.Panels {
				assert.Greater(t, p.GridPos.Y, row.GridPos.Y, "%s: %s", name, p.Title)
				place(p)
			}
			assert.Equal(t, row.Collapsed, len(row.Panels) > 0, "%s: %s", name, row.Title)
		}
	}
}

func TestPanelsAreComplete(t *testing.T) {
	for name, d := range all(t) {
		assert.GreaterOrEqual(t, d.SchemaVersion, 39)
		assert.Empty(t, d.Inputs, "a variable chooses the data source")
		ids := map[int]bool{}
		number := func(p drawn) {
			assert.False(t, p.ID == 0 || ids[p.ID], "%s: %s has the number of another panel", name, p.Title)
			ids[p.ID] = true
		}
		for _, p := range d.Panels {
			number(p)
			for _, inside := range p.Panels {
				number(inside)
			}
		}
		for _, p := range flat(d) {
			at := name + ": " + p.Title
			assert.NotEmpty(t, p.Title, at)
			assert.Greater(t, len(p.Description), 20, at)
			assert.NotContains(t, p.Description, "Like `", "%s: the reader has no list of metrics at hand", at)
			assert.NotEmpty(t, p.FieldConfig.Defaults.Unit, at)
			assert.NotEmpty(t, p.FieldConfig.Defaults.NoValue, at)
			assert.Equal(t, "${datasource}", p.Datasource.UID, at)
			refs := map[string]bool{}
			for _, target := range p.Targets {
				assert.False(t, refs[target.RefID], at)
				refs[target.RefID] = true
				assert.NotEmpty(t, target.Expr, at)
				assert.Equal(t, p.Type == "table", target.Format == "table", at)
			}
			if len(p.FieldConfig.Defaults.Thresholds.Steps) > 0 {
				assert.Nil(t, p.FieldConfig.Defaults.Thresholds.Steps[0].Value, "%s: the lowest step has no end", at)
			}
		}
		assert.Equal(t, "datasource", d.Templating.List[0].Name)
		for _, v := range d.Templating.List[1:] {
			assert.Equal(t, ".*", v.AllValue, "%s: $%s: all is also what has no such label", name, v.Name)
		}
	}
}

// Limits are drawn dashed and nothing else is; a table has its columns, under their titles, and
// the links of a column are on the column with its title.
func TestPanelsAreDrawnAsTheyAreDefined(t *testing.T) {
	boards := all(t)
	limits, tables, timelines := 0, 0, 0
	for _, b := range content.Boards() {
		if b.Set != content.Stable {
			continue
		}
		drawnPanels := flat(boards["content/grafana/suffixed/"+b.UID+".json"])
		i := 0
		for _, row := range b.Rows {
			for _, p := range row.Panels {
				of := drawnPanels[i]
				i++
				require.True(t, strings.HasPrefix(of.Title, p.Title), "%s is not %s", of.Title, p.Title)
				if p.Kind == content.StateTimeline {
					// Grafana merges the values of a timeline by its thresholds where these give the colours.
					timelines++
					assert.Equal(t, "fixed", of.FieldConfig.Defaults.Color.Mode, "%s: %s", b.UID, p.Title)
				}
				styled := map[string][]string{}
				for _, o := range of.FieldConfig.Overrides {
					for _, property := range o.Properties {
						styled[o.Matcher.Options] = append(styled[o.Matcher.Options], property.ID)
					}
				}
				for j, q := range p.Queries {
					assert.Equal(t, q.AsThreshold, slices.Contains(styled[of.Targets[j].RefID], "custom.lineStyle"), "%s: %s, query %d", b.UID, p.Title, j)
					if q.AsThreshold {
						limits++
						assert.Equal(t, !strings.Contains(q.Legend, "{{"), slices.Contains(styled[of.Targets[j].RefID], "color"),
							"%s: %s: several limits have a colour each", b.UID, p.Title)
					}
				}
				if p.Kind != content.Table {
					continue
				}
				tables++
				titles, labels := map[string]string{}, []string{}
				for _, c := range p.Columns {
					field := c.Label
					if field == content.ValueColumn && len(p.Queries) > 1 {
						field += " #" + of.Targets[c.Query].RefID
					}
					titles[field] = c.Title
					labels = append(labels, field)
					assert.Equal(t, c.Unit != "", slices.Contains(styled[c.Title], "unit"), "%s: %s, %s", b.UID, p.Title, c.Title)
					assert.Equal(t, len(c.Mappings) > 0, slices.Contains(styled[c.Title], "mappings"), "%s: %s, %s", b.UID, p.Title, c.Title)
					assert.Equal(t, c.Runbook || c.Board != "", slices.Contains(styled[c.Title], "links"), "%s: %s, %s", b.UID, p.Title, c.Title)
				}
				var steps []string
				for _, step := range of.Transformations {
					steps = append(steps, step.ID)
				}
				want, kept := []string{"filterFieldsByName", "organize"}, labels
				if len(p.Queries) > 1 {
					// Of a query without a result Grafana knows the time and no label. Without it nothing would be merged.
					want, kept = []string{"filterFieldsByName", "merge", "organize"}, append(slices.Clone(labels), "Time")
				}
				require.Equal(t, want, steps, "%s: %s", b.UID, p.Title)
				assert.Equal(t, kept, of.Transformations[0].Options.Include.Names, "%s: %s", b.UID, p.Title)
				assert.Equal(t, len(p.Queries) > 1, of.Transformations[len(steps)-1].Options.ExcludeByName["Time"], "%s: %s", b.UID, p.Title)
				assert.Equal(t, titles, of.Transformations[len(steps)-1].Options.RenameByName, "%s: %s", b.UID, p.Title)
			}
		}
	}
	assert.Greater(t, limits, 2)
	assert.Greater(t, tables, 1)
	assert.Greater(t, timelines, 3)
}

var choice = regexp.MustCompile(`\$\{(\w+):queryparam\}`)

// Links lead to boards of the same folder, and keep the time and the choices.
func TestLinksKeepWhatWasChosen(t *testing.T) {
	boards := all(t)
	internal := 0
	for name, d := range boards {
		folder := path.Dir(name)
		others := 0
		for _, l := range d.Links {
			if uid, is := strings.CutPrefix(l.URL, "/d/"); is {
				others++
				assert.Contains(t, boards, folder+"/"+uid+".json", name)
				assert.True(t, l.KeepTime && l.IncludeVars, name)
			}
		}
		siblings := 0
		for other := range boards {
			if path.Dir(other) == folder && other != name {
				siblings++
			}
		}
		assert.Equal(t, siblings, others, "%s links to all others", name)
		known := map[string]bool{}
		for _, v := range d.Templating.List {
			known[v.Name] = true
		}
		check := func(link string) {
			uid, is := strings.CutPrefix(link, "/d/")
			if !is {
				u, err := url.Parse(strings.ReplaceAll(link, "${__value.text}", "x"))
				require.NoError(t, err)
				assert.Equal(t, "https", u.Scheme, name)
				return
			}
			internal++
			uid, query, _ := strings.Cut(uid, "?")
			assert.Contains(t, boards, folder+"/"+uid+".json", name)
			assert.Contains(t, query, "${__url_time_range}", name)
			for _, match := range choice.FindAllStringSubmatch(query, -1) {
				assert.True(t, known[match[1]], "%s: $%s", name, match[1])
			}
		}
		for _, p := range flat(d) {
			for _, l := range p.Links {
				check(l.URL)
			}
			for _, o := range p.FieldConfig.Overrides {
				for _, property := range o.Properties {
					if property.ID == "links" {
						for _, l := range property.Value.([]any) {
							check(l.(map[string]any)["url"].(string))
						}
					}
				}
			}
		}
	}
	assert.Greater(t, internal, 10)
}

// Grafana writes the text for missing values also into each empty cell of a table. "No cause is
// present" beside a cause is false.
func TestEmptyCellsDoNotSayThatNothingIsThere(t *testing.T) {
	cells := 0
	for name, d := range all(t) {
		for _, p := range flat(d) {
			if p.Type != "table" {
				continue
			}
			titles := map[string]bool{}
			for _, o := range p.FieldConfig.Overrides {
				for _, property := range o.Properties {
					if property.ID == "noValue" {
						cells++
						titles[o.Matcher.Options] = true
						assert.Equal(t, "-", property.Value, "%s: %s", name, p.Title)
					}
				}
			}
			for _, s := range p.Options.SortBy {
				assert.True(t, titles[s.DisplayName] && s.Desc, "%s: %s", name, p.Title)
			}
			b, _ := content.BoardByUID(d.UID)
			for _, row := range b.Rows {
				for _, drawn := range row.Panels {
					for _, c := range drawn.Columns {
						assert.True(t, drawn.Title != p.Title || titles[c.Title], "%s: %s: %s", name, p.Title, c.Title)
					}
				}
			}
		}
	}
	assert.Greater(t, cells, 50)
}

// The attainment is between two bounds. Grafana fills down to a series by its whole name, so
// each objective has a panel, and the name has no label.
func TestTheAttainmentIsABand(t *testing.T) {
	bands := 0
	for name, d := range all(t) {
		for _, p := range flat(d) {
			for _, o := range p.FieldConfig.Overrides {
				for _, property := range o.Properties {
					if property.ID != "custom.fillBelowTo" {
						continue
					}
					bands++
					assert.Equal(t, "byFrameRefID", o.Matcher.ID)
					down := 0
					for _, target := range p.Targets {
						assert.NotContains(t, target.LegendFormat, "{{", "%s: %s", name, p.Title)
						assert.True(t, target.RefID != o.Matcher.Options || target.LegendFormat == "at most", "%s: %s", name, p.Title)
						if target.LegendFormat == property.Value {
							down++
						}
					}
					assert.Equal(t, 1, down, "%s: %s is filled down to %s", name, p.Title, property.Value)
					assert.Equal(t, "objective", p.Repeat, name)
					assert.Contains(t, p.Title, "$"+p.Repeat, "%s: which one is it?", name)
				}
			}
		}
	}
	assert.Equal(t, 3, bands, "one in each spelling")
}

// A value between two gaps is a point and no line. Without points it would look like no data.
func TestSingleValuesAreDrawn(t *testing.T) {
	for name, d := range all(t) {
		for _, p := range flat(d) {
			if p.Type == "timeseries" {
				assert.Equal(t, "auto", p.FieldConfig.Defaults.Custom.ShowPoints, "%s: %s", name, p.Title)
				// Shares that are all near 1 are not drawn from 0.
				near := p.FieldConfig.Defaults.Min == nil && p.FieldConfig.Defaults.Max != nil
				assert.Equal(t, near, p.FieldConfig.Defaults.Custom.AxisSoftMin == nil, "%s: %s", name, p.Title)
				assert.Equal(t, near, strings.Contains(p.Title, "ttainment") || p.Title == "All objectives together", "%s: %s", name, p.Title)
			}
		}
	}
}

// Events are marked where a condition begins.
func TestBoardsMarkChanges(t *testing.T) {
	boards := all(t)
	for _, uid := range []string{"vllm-overview", "vllm-engine", "vllm-objectives", "vllm-pool"} {
		d := boards["content/grafana/suffixed/"+uid+".json"]
		require.Greater(t, len(d.Annotations.List), 1, uid)
		assert.Contains(t, d.Annotations.List[1].Target.Expr, "diagnosis_condition")
		for _, a := range d.Annotations.List[1:] {
			// Over a week Grafana asks for a point in ten minutes: what began between two points and
			// more than a minute before the second one would have no mark.
			assert.Contains(t, a.Target.Expr, "offset $__interval", uid)
		}
		// Grafana's types know the texts "on" and "off", its code takes any text for true: then the
		// events would be in 1970, because their value is 1.
		assert.Nil(t, d.Annotations.List[1].UseValueForTime)
	}
}
