package boards

import (
	"flag"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	page     = flag.String("boards.page", "", "directory of the bundled page; without it no picture is drawn")
	chromium = flag.String("boards.chromium", "", "directory that Chromium was unpacked to")
	images   = flag.String("boards.images", "", "directory that pictures are written to")
	only     = flag.String("boards.only", "", "part of the name of the dashboards to draw")
	source   = flag.String("boards.source", "", "directory of dashboards")
)

func newEngine() *promql.Engine {
	return promql.NewEngine(promql.EngineOpts{
		MaxSamples: 1e7, Timeout: time.Minute, LookbackDelta: 5 * time.Minute, Parser: parser.NewParser(parser.Options{}),
	})
}

func TestPictures(t *testing.T) {
	if *page == "" {
		t.Skip("make boards draws the pictures")
	}
	end := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	db, err := tsdb.Open(t.TempDir(), nil, nil, tsdb.DefaultOptions(), tsdb.NewDBStats())
	require.NoError(t, err)
	defer func() { assert.NoError(t, db.Close()) }()
	app := db.Appender(t.Context())
	for at := end.Add(-time.Hour); at.Before(end); at = at.Add(15 * time.Second) {
		for _, instance := range []string{"a", "b"} {
			_, err := app.Append(0, labels.FromStrings("__name__", "vllm_up", "instance", instance), at.UnixMilli(), 1)
			require.NoError(t, err)
		}
	}
	require.NoError(t, app.Commit())
	s := newSite(*page, *source, NewAPI(db, newEngine(), end))
	server := httptest.NewServer(s)
	defer server.Close()
	b, err := startBrowser(t.Context(), *chromium)
	require.NoError(t, err)
	defer b.stop()
	files, err := filepath.Glob(filepath.Join(*source, "*.json"))
	require.NoError(t, err)
	for _, f := range files {
		if !strings.Contains(f, *only) {
			continue
		}
		picture, page, err := b.draw(t.Context(), s, server.URL, shot{file: filepath.Base(f), start: end.Add(-time.Hour), end: end, width: 1280})
		require.NoError(t, err)
		t.Logf("%+v", page)
		require.NoError(t, os.WriteFile(filepath.Join(*images, strings.TrimSuffix(filepath.Base(f), ".json")+".png"), picture, 0o644))
	}
}
