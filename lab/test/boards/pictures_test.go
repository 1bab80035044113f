package boards

import (
	"flag"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/browser"
	"github.com/otelcol-vllm/otelcol-vllm/lab/test/history"
)

var (
	page     = flag.String("boards.page", "", "directory of the bundled page; without it no picture is drawn")
	chromium = flag.String("boards.chromium", "", "directory that Chromium was unpacked to")
	images   = flag.String("boards.images", "", "directory that pictures are written to")
	looks    = flag.String("boards.png", "", "directory that the pictures are also written to as PNG, to look at them")
	only     = flag.String("boards.only", "", "part of the name of the dashboards to draw")
	rules    = flag.String("boards.rules", "../../../content/rules/suffixed", "directory of the recording rules")
	day      = flag.String("boards.day", "", "directory with the pages of a day on a real vLLM")
	source   = flag.String("boards.source", "", "directory of dashboards")
)

func newEngine() *promql.Engine {
	return promql.NewEngine(promql.EngineOpts{
		MaxSamples: 1e7, Timeout: time.Minute, LookbackDelta: 5 * time.Minute, EnableAtModifier: true, Parser: parser.NewParser(parser.Options{}),
	})
}

// pictures are the screens of the boards that docs/start/dashboards.md shows, by name.
var pictures = []struct {
	name, board, server string
	// words are in the title of the row at which the picture begins. Rows are open then.
	words  string
	screen int
}{
	{name: "vllm-overview", board: "vllm-overview"},
	{name: "vllm-overview-2", board: "vllm-overview", screen: 1},
	{name: "vllm-overview-3", board: "vllm-overview", screen: 2},
	{name: "vllm-engine", board: "vllm-engine", server: asRecorded},
	{name: "vllm-engine-gpu", board: "vllm-engine", server: simulated, words: "GPU"},
	{name: "vllm-pool", board: "vllm-pool"},
	{name: "vllm-objectives", board: "vllm-objectives"},
	{name: "vllm-features", board: "vllm-features", server: simulated, words: "Speculative"},
	{name: "vllm-collector", board: "vllm-collector"},
	{name: "vllm-wall", board: "vllm-wall"},
	{name: "vllm-wire", board: "vllm-wire"},
}

func TestPictures(t *testing.T) {
	if *page == "" {
		t.Skip("make boards draws the pictures")
	}
	chrome, err := browser.Start(t.Context(), *chromium)
	require.NoError(t, err)
	defer chrome.Stop()
	b := &drawer{chrome}
	sites := map[string]*site{}
	drawn := 0
	for _, p := range pictures {
		if !strings.Contains(p.name, *only) {
			continue
		}
		drawn++
		folder := "suffixed"
		if p.board == "vllm-wire" {
			folder = "wire"
		}
		if sites[folder] == nil {
			store := recorded(t, folder == "wire")
			sites[folder] = newSite(*page, *source, NewAPI(store.DB, store.Engine, end))
		}
		t.Run(p.name, func(t *testing.T) {
			server := httptest.NewServer(sites[folder])
			defer server.Close()
			what := shot{file: folder + "/" + p.board + ".json", start: end.Add(-shown), end: end, width: 1400}
			if p.server != "" {
				what.variables = map[string]string{"instance": p.server}
			}
			if p.words != "" {
				what.open = []string{""}
			}
			page, err := b.draw(t.Context(), sites[folder], server.URL, what)
			require.NoError(t, err)
			check(t, page)
			screens := page.screens(p.words)
			t.Logf("%d screens, %d points high", len(screens), page.Height)
			require.Greater(t, len(screens), p.screen)
			picture, err := b.Picture(t.Context(), what.width, screens[p.screen], "webp")
			require.NoError(t, err)
			// A repository must bear it.
			assert.Less(t, len(picture), 120_000)
			require.NoError(t, os.WriteFile(filepath.Join(*images, p.name+".webp"), picture, 0o600))
			if *looks != "" {
				png, err := b.Picture(t.Context(), what.width, [2]int{0, page.Height + 16}, "png")
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(filepath.Join(*looks, p.name+".png"), png, 0o600))
			}
		})
	}
	require.Positive(t, drawn, "there is no such picture")
}

// recorded plays the story of the pictures, and the rules.
func recorded(t *testing.T, wire bool) *history.Store {
	t.Helper()
	began := time.Now()
	story := pictureStory(*day)
	story.Wire = wire
	store := history.Play(t, story, history.Suffixed).Stores[0]
	store.Rules(t, story.Begin, end, filepath.Join(*rules, "vllm.yaml"))
	t.Logf("the story took %s", time.Since(began).Round(time.Second))
	for _, query := range []string{`vllm_diagnosis_condition{condition!="healthy"} == 1`, `vllm_diagnosis_cause{role="primary"} == 1`, `ALERTS{alertstate="firing"}`} {
		all, err := store.Range(t.Context(), query, story.Begin, end, 15*time.Second)
		require.NoError(t, err)
		for _, s := range all {
			at := func(i int) string { return time.UnixMilli(s.Floats[i].T).UTC().Format(time.TimeOnly) }
			t.Logf("%s %s%s%s %s: %d x 15 s from %s to %s", s.Metric.Get("instance"), s.Metric.Get("condition"), s.Metric.Get("cause"), s.Metric.Get("detail"),
				s.Metric.Get("alertname"), len(s.Floats), at(0), at(len(s.Floats)-1))
		}
	}
	return store
}

// check reports what a reader of the board would stumble over.
func check(t *testing.T, page seen) {
	t.Helper()
	assert.Empty(t, page.Failed)
	for _, p := range page.Panels {
		assert.Empty(t, p.Errors, "errors of panel %q", p.Title)
		if p.Empty {
			t.Logf("EMPTY %q", p.Title)
		}
		assert.Empty(t, p.Cut, "panel %q does not fit", p.Title)
	}
}
