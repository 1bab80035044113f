package boards

import (
	"flag"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/history"
)

var (
	page     = flag.String("boards.page", "", "directory of the bundled page; without it no picture is drawn")
	chromium = flag.String("boards.chromium", "", "directory that Chromium was unpacked to")
	images   = flag.String("boards.images", "", "directory that pictures are written to")
	looks    = flag.String("boards.png", "", "directory that the pictures are also written to as PNG, to look at them")
	only     = flag.String("boards.only", "", "part of the name of the dashboards to draw")
	rules    = flag.String("boards.rules", "../../../content/rules/suffixed", "directory of the recording rules")
	source   = flag.String("boards.source", "", "directory of dashboards")
)

func newEngine() *promql.Engine {
	return promql.NewEngine(promql.EngineOpts{
		MaxSamples: 1e7, Timeout: time.Minute, LookbackDelta: 5 * time.Minute, EnableAtModifier: true, Parser: parser.NewParser(parser.Options{}),
	})
}

func TestPictures(t *testing.T) {
	if *page == "" {
		t.Skip("make boards draws the pictures")
	}
	b, err := startBrowser(t.Context(), *chromium)
	require.NoError(t, err)
	defer b.stop()
	wired := pictureStory()
	wired.Wire = true
	drawn := drawBoards(t, b, "suffixed", pictureStory()) + drawBoards(t, b, "wire", wired)
	require.Positive(t, drawn, "there is no such dashboard")
}

// drawBoards draws the boards of a folder from a story.
func drawBoards(t *testing.T, b *browser, folder string, story *history.Story) int {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(*source, folder, "*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, files, "there is no dashboard in %s", folder)
	files = slices.DeleteFunc(files, func(f string) bool { return !strings.Contains(filepath.Base(f), *only) })
	if len(files) == 0 {
		return 0
	}
	store := recorded(t, story)
	s := newSite(*page, *source, NewAPI(store.DB, store.Engine, drawnEnd))
	server := httptest.NewServer(s)
	defer server.Close()
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".json")
		t.Run(name, func(t *testing.T) {
			what := shot{
				file: folder + "/" + name + ".json", start: drawnEnd.Add(-shown), end: drawnEnd,
				width: 1400,
			}
			switch name {
			case "vllm-overview":
				what.before = "Traffic, errors and latency"
			case "vllm-engine":
				what.variables = map[string]string{"instance": restarted}
			case "vllm-features":
				// The simulator has no offloading and no images.
				what.open = []string{"Speculative decoding", "LoRA", "KV connector", "Work of the GPU", "Sleep"}
			}
			picture, page, err := b.draw(t.Context(), s, server.URL, what)
			require.NoError(t, err)
			check(t, page)
			assert.Equal(t, what.before != "", page.top != nil, "the row %q", what.before)
			write(t, name+".webp", picture)
			if page.top != nil {
				write(t, name+"-top.webp", page.top)
			}
			if *looks != "" {
				png, err := b.picture(t.Context(), what.width, page.Height+16, "png")
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(filepath.Join(*looks, name+".png"), png, 0o600))
			}
		})
	}
	return len(files)
}

// write writes a picture of a size that a repository can bear.
func write(t *testing.T, name string, picture []byte) {
	t.Helper()
	assert.Less(t, len(picture), 220_000, "%s is too large", name)
	require.NoError(t, os.WriteFile(filepath.Join(*images, name), picture, 0o600))
}

// recorded plays a story and moves it to the time of the pictures.
func recorded(t *testing.T, story *history.Story) *history.Store {
	t.Helper()
	began := time.Now()
	played := history.Play(t, story, history.Suffixed)
	to := history.NewStore(t, history.Suffixed)
	moved(t, played.Stores[0], to, drawnEnd.Sub(played.End))
	to.Rules(t, drawnEnd.Add(-length), drawnEnd, filepath.Join(*rules, "vllm.yaml"))
	t.Logf("the story took %s", time.Since(began).Round(time.Second))
	logReports(t, to)
	return to
}

// logReports logs what the processor reported, so that it can be compared with the story.
func logReports(t *testing.T, s *history.Store) {
	t.Helper()
	for _, query := range []string{`vllm_diagnosis_condition == 1`, `vllm_diagnosis_cause{role="primary"} == 1`} {
		all, err := s.Range(t.Context(), query, drawnEnd.Add(-length), drawnEnd, 15*time.Second)
		require.NoError(t, err)
		for _, series := range all {
			name := series.Metric.Get("condition") + series.Metric.Get("cause")
			t.Logf("%s %s: %d x 15 s from minute %.1f to %.1f", series.Metric.Get("instance"), name, len(series.Floats),
				time.UnixMilli(series.Floats[0].T).Sub(drawnEnd.Add(-length)).Minutes(),
				time.UnixMilli(series.Floats[len(series.Floats)-1].T).Sub(drawnEnd.Add(-length)).Minutes())
		}
	}
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
