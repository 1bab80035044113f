package page_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/pageparts"
	"github.com/otelcol-vllm/otelcol-vllm/internal/test/race"
	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/compare"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/conform"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/page"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/run"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/said"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/sim"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/story"
)

const (
	root = "../../../"
	// most is how many bytes all recordings together may take.
	most = 5 << 20
)

var update = flag.Bool("update", false, "write the generated parts of both pages real-vllm.md")

// The recordings are of real servers, and what must be said follows from what their clients
// felt, by the rules of said.Misses. What is missed today is published on the page: a change
// that misses more, or less, must change it.
func TestThePageIsWhatIsSaidOfRealServers(t *testing.T) {
	race.SkipSequential(t)
	files, err := filepath.Glob(root + "testdata/vllm/*.tar.zst")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	book, err := story.Shipped()
	require.NoError(t, err)
	var plays []page.Played
	var beside []compare.Both
	size := int64(0)
	for _, file := range files {
		info, err := os.Stat(file)
		require.NoError(t, err)
		size += info.Size()
		r, err := run.Read(file)
		require.NoError(t, err)
		one := page.Played{Run: r}
		for _, interval := range []time.Duration{5 * time.Second, 15 * time.Second} {
			all, err := said.Replay(t.Context(), r, interval, root+"content/rules/suffixed/vllm.yaml")
			require.NoError(t, err)
			for i := range all.Heard {
				h := &all.Heard[i]
				assert.LessOrEqual(t, h.Denied, 1.0, "%s, every %s: said to be well while users felt %s harm (%s) for %.0f s", file, interval, h.Level, h.What, h.To-h.From)
			}
			one.Said = append(one.Said, all)
		}
		plays = append(plays, one)
		beside = append(beside, simulated(t, book, one))
	}
	assert.Less(t, size, int64(most))

	results, err := filepath.Glob("../conform/results/*.json")
	require.NoError(t, err)
	var releases []*conform.Release
	for _, file := range results {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		one := &conform.Release{}
		require.NoError(t, json.Unmarshal(raw, one))
		releases = append(releases, one)
	}
	for name, parts := range map[string]map[string]string{
		"docs/why/real-vllm.md": {"summary": page.Summary(book, plays)},
		"lab/docs/real-vllm.md": {
			"stories": page.Table(book, plays), "misses": page.Misses(book, plays),
			"conformance": page.Conformance(releases, false), "simulator": compare.Summary(beside),
		},
	} {
		if *update {
			require.NoError(t, pageparts.Rewrite(root+name, parts))
			continue
		}
		published, err := os.ReadFile(root + name)
		require.NoError(t, err)
		current, err := pageparts.Replace(published, parts)
		require.NoError(t, err)
		assert.Equal(t, strings.Split(string(published), "\n"), strings.Split(string(current), "\n"),
			"what is said of real servers has changed; look at each line, then run make real-page")
	}
}

// simulated lets the simulator play what a real server has played, and compares both. Of stories that it
// cannot play it plays the requests alone.
func simulated(t *testing.T, book *story.Book, played page.Played) compare.Both {
	t.Helper()
	from := played.Run
	play := from.Play
	play.Stories, play.Phases = slices.Clone(play.Stories), slices.Clone(play.Phases)
	for i := range book.Stories {
		one := &book.Stories[i]
		if one.NotSimulated == "" {
			continue
		}
		play.Stories = slices.DeleteFunc(play.Stories, func(name string) bool { return name == one.Name })
		for j := range play.Phases {
			if phase := &play.Phases[j]; strings.HasPrefix(phase.Name, one.Name+"/") {
				phase.Grammar, phase.Fault = 0, nil
			}
		}
	}
	r, err := sim.Play(t.Context(), &play, sim.Options{Book: book, Version: from.Version, Capacity: from.Capacity, Seed: from.Seed})
	require.NoError(t, err)
	all, err := said.Replay(t.Context(), r, 5*time.Second, root+"content/rules/suffixed/vllm.yaml")
	require.NoError(t, err)
	return compare.Both{Runs: [2]*run.Run{from, r}, Heard: [2][]judge.Heard{played.Said[0].Heard, all.Heard}}
}
