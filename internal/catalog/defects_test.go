package catalog

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

func read(t *testing.T, file string) map[string]any {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	var doc map[string]any
	require.NoError(t, yaml.Unmarshal(content, &doc))
	return doc
}

// The test decodes the files without the generator's schema, so that a field which the
// generator forgets is a difference.
func TestTheDefectsAreTheYAML(t *testing.T) {
	doc := read(t, "defects.yaml")
	var wantedSetups []Setup
	for _, s := range mapsOf(doc["setups"]) {
		wantedSetups = append(wantedSetups, Setup{Name: text(s["name"]), Meaning: text(s["meaning"]), Visible: text(s["visible"])})
	}
	assert.Equal(t, wantedSetups, Setups())
	var wanted []Defect
	for _, d := range mapsOf(doc["defects"]) {
		wanted = append(wanted, Defect{
			ID: DefectID(text(d["id"])), Title: text(d["title"]), Metrics: stringsOf(d["metrics"]),
			Since: text(d["since"]), Until: text(d["until"]), Change: d["change"] == true, Setups: stringsOf(d["setups"]),
			Engines: stringsOf(d["engines"]),
		})
	}
	assert.Equal(t, wanted, Defects())
}

func TestTheDecisionsAreTheYAML(t *testing.T) {
	doc := read(t, "decisions.yaml")
	groups, _ := doc["groups"].(map[string]any)
	wanted := []Decision{}
	for _, row := range mapsOf(doc["decisions"]) {
		d := Decision{Verdict: text(row["decision"])}
		for _, subject := range stringsOf(row["of"]) {
			if members, is := groups[subject]; is {
				d.Of = append(d.Of, stringsOf(members)...)
			} else {
				d.Of = append(d.Of, subject)
			}
		}
		// The diagnosis looks up what concerns its signals, and what it has learned of them.
		d.Of = slices.DeleteFunc(d.Of, func(subject string) bool {
			return subject != "rule:learned" && !strings.HasPrefix(subject, "signal:")
		})
		if len(d.Of) == 0 {
			continue
		}
		for _, id := range stringsOf(row["defects"]) {
			d.Defects = append(d.Defects, DefectID(id))
		}
		wanted = append(wanted, d)
	}
	assert.Equal(t, wanted, Decisions())
}

func TestADefectAffectsTheVersionsOfItsRange(t *testing.T) {
	before := defects
	t.Cleanup(func() { defects = before })
	defects = []Defect{
		{ID: "ended", Since: "0.8.0", Until: "0.10.2"},
		{ID: "open", Since: "0.17.0"},
		{ID: "ever"},
	}
	for version, want := range map[string][]DefectID{
		"0.7.3":        {"ever"},
		"0.8.0":        {"ended", "ever"},
		"v0.10.1.1":    {"ended", "ever"},
		"0.10.2":       {"ever"},
		"0.17.0rc1":    {"open", "ever"},
		"1.0.0":        {"open", "ever"},
		"":             {"ended", "open", "ever"},
		"not a number": {"ended", "open", "ever"},
	} {
		var got []DefectID
		for _, d := range Defects() {
			if d.ID.Affects(version) {
				got = append(got, d.ID)
			}
		}
		assert.Equal(t, want, got, "%q", version)
	}
	assert.False(t, DefectID("unknown").Affects(""))
}
