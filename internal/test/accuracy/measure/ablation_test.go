package main

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const root = "../../../.."

// The names and the variable are those of package diagnose, which measure cannot import. The
// linker ignores a variable that does not exist, and would leave out nothing.
func TestTheAblationsAreThePartsOfTheMethod(t *testing.T) {
	const folder = "processor/vllmprocessor/internal/diagnose"
	text, err := os.ReadFile(filepath.Join(root, folder, "ablation.go"))
	require.NoError(t, err)
	var names, ours []string
	for _, m := range regexp.MustCompile(`(?m)^\tpart\w+ part = "(\w+)"$`).FindAllStringSubmatch(string(text), -1) {
		names = append(names, m[1])
	}
	for _, a := range ablations {
		ours = append(ours, a.Name)
	}
	assert.Equal(t, ours, names)
	assert.Contains(t, string(text), "\nvar without string\n")
	module, err := os.ReadFile(filepath.Join(root, "go.mod"))
	require.NoError(t, err)
	first, _, _ := strings.Cut(string(module), "\n")
	assert.Equal(t, linked, strings.TrimPrefix(first, "module ")+"/"+folder+".without")
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	require.NoError(t, err)
	assert.Contains(t, string(makefile), "-X "+linked+"=", "make ablations sets it")
}

func TestTheBuildSaysWhatIsLeftOut(t *testing.T) {
	for flags, want := range map[string]string{
		"": "", "-s -w": "", "-X " + linked + "=lindley": "lindley", "-s -X '" + linked + "=peers' -w": "peers", "-X " + linked + "=floor -s": "floor",
	} {
		got, err := leftOut([]debug.BuildSetting{{Key: "-ldflags", Value: flags}, {Key: "GOOS", Value: "linux"}})
		require.NoError(t, err, flags)
		assert.Equal(t, want, got, flags)
	}
	_, err := leftOut([]debug.BuildSetting{{Key: "-ldflags", Value: "-X " + linked + "=lindly"}})
	require.ErrorContains(t, err, "lindly")
	_, err = leftOut([]debug.BuildSetting{{Key: "-trimpath", Value: "true"}})
	require.ErrorContains(t, err, "-trimpath")
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
