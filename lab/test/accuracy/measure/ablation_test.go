package main

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor"
)

// An ablation that leaves out nothing would be measured as a part without effect.
func TestEachAblationLeavesOutItsPart(t *testing.T) {
	saved := judge.Adjust
	t.Cleanup(func() { judge.Adjust = saved })
	parts := reflect.TypeFor[vllmprocessor.Config]()
	method, _ := parts.FieldByName("Diagnosis")
	without, _ := method.Type.FieldByName("Without")
	require.Len(t, ablations, without.Type.NumField())
	for _, a := range ablations {
		require.NoError(t, leaveOut(a.Name))
		var config vllmprocessor.Config
		judge.Adjust(&config)
		values := reflect.ValueOf(config.Diagnosis.Without)
		for i := range values.NumField() {
			is := strings.EqualFold(without.Type.Field(i).Name, strings.ReplaceAll(a.Name, "_", ""))
			assert.Equal(t, is, values.Field(i).Bool(), "%s: %s", a.Name, without.Type.Field(i).Name)
		}
	}
	assert.ErrorContains(t, leaveOut("lindly"), "lindly")
}

// Journals of ablations do not mix with that of the whole method, and their results are
// compared on the stories that all have played.
func TestTheTableOfAblations(t *testing.T) {
	dir := t.TempDir()
	put := func(set, ablation, sources, said string, names ...string) {
		j := open(t, journalPath(dir, set, ablation), printOf(sources, ablation))
		for _, name := range names {
			m := meta()
			m.Name, m.Load = name, 0.5
			require.NoError(t, j.Put(newRecord(m, played("slow_steps", said))))
		}
		require.NoError(t, j.Close())
	}
	none, err := readAblations(dir, "sources")
	require.NoError(t, err)
	assert.Empty(t, none)
	put("tuning", "", "sources", "slow_steps", "a", "b", "c", "d")
	put("tuning", "fixed_point", "sources", "decode_load", "d", "a", "b")
	put("tuning", "peers", "sources", "slow_steps", "b", "c", "a")
	put("tuning", "floor", "other sources", "slow_steps", "a", "b")
	// A record of the whole method in the journal of an ablation would be a mistake.
	j := open(t, journalPath(dir, "tuning", "lindley"), "sources")
	require.NoError(t, j.Put(newRecord(meta(), played("slow_steps", "slow_steps"))))
	require.NoError(t, j.Close())

	got, err := readAblations(dir, "sources")
	require.NoError(t, err)
	require.Len(t, got, 1)
	a := got[0]
	assert.Equal(t, []string{"fixed_point", "peers"}, []string{a.Of[0].Name, a.Of[1].Name})
	assert.Equal(t, 2, a.Left, "c and d lack one each")
	for i := range 2 {
		require.Len(t, a.Parts[i], 2)
		for k, name := range []string{"a", "b"} {
			assert.Equal(t, []string{name, name}, []string{a.Full[k].Name, a.Parts[i][k].Name})
		}
	}
	page := Page(origin(), a.Full, Beside{Ablations: got}, "")
	section := page[strings.Index(page, "## What each part"):strings.Index(page, "## Detection by")]
	assert.Contains(t, section, "Stories of the set **tuning**: 2 that")
	lines := strings.Split(section, "\n")
	row := func(name string) []string {
		for _, l := range lines {
			if strings.HasPrefix(l, "| "+name+" |") {
				return strings.Split(strings.Trim(l, "| "), " | ")
			}
		}
		t.Fatalf("no row %s in\n%s", name, section)
		return nil
	}
	// Of 16 minutes that count in each story, those before minute 26 are silent: 14 are right.
	// The alarm of minute 26 is 26*60+15-20.5*60 = 345 s after the onset.
	assert.Contains(t, section, "| nothing: the whole method | 87.5 % | 87.5 % | - | 0 | - | 5.8 | - | - |")
	assert.Equal(t, "0.0 %, -87.5 points (-87.5 to -87.5)", row("`fixed_point`")[2])
	assert.Equal(t, "never, to never", row("`fixed_point`")[7])
	assert.Equal(t, "87.5 %, 0.0 points (0.0 to 0.0)", row("`peers`")[2])
	assert.Contains(t, section, "Not played: `conditional_gates`, `lindley`")
	assert.Contains(t, section, "worked out on this set")
	assert.NotContains(t, section, "NaN")
	assert.NotContains(t, section, "%!")
}
