package main

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/backtest/report"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/status"
)

// A run that is interrupted in the middle says so, and prints no half of a result.
func TestBacktestThatIsInterrupted(t *testing.T) {
	f := newFakeAPI(t)
	ctx, cancel := context.WithCancel(t.Context())
	f.fail(func(_ http.ResponseWriter, r *http.Request, n int) bool {
		if n < 5 {
			return false
		}
		cancel()
		<-r.Context().Done()
		return true
	})
	code, stdout, stderr := vllmctlIn(ctx, f.args("--json", "--parallel", "1")...)
	assert.Equal(t, status.Failed, code)
	assert.Empty(t, stdout)
	assert.True(t, strings.HasSuffix(stderr, "vllmctl: the command was interrupted\n"), stderr)
}

// The page takes the place of an older one as a whole, behind a link as well, and is there
// for whom the umask says.
func TestBacktestReplacesAPage(t *testing.T) {
	f := newFakeAPI(t)
	folder := t.TempDir()
	page, link := filepath.Join(folder, "page.html"), filepath.Join(folder, "link.html")
	require.NoError(t, os.WriteFile(page, []byte("old"), 0o600))
	require.NoError(t, os.Symlink(page, link))
	f.fail(answerWith(401, "text/plain", ""))
	code, _, _ := vllmctl(t, f.args("--html", link)...)
	assert.Equal(t, status.Failed, code)
	data, err := os.ReadFile(page)
	require.NoError(t, err)
	assert.Equal(t, "old", string(data))
	f.fail(nil)
	code, _, stderr := vllmctl(t, f.args("--html", link)...)
	require.Equal(t, status.OK, code, stderr)
	data, err = os.ReadFile(page)
	require.NoError(t, err)
	assert.Contains(t, string(data), "<!DOCTYPE html>")
	info, err := os.Lstat(link)
	require.NoError(t, err)
	assert.NotZero(t, info.Mode()&os.ModeSymlink)
	files, err := os.ReadDir(folder)
	require.NoError(t, err)
	assert.Len(t, files, 2)
}

// An answer with a warning may be incomplete, which the report notes.
func TestBacktestNotesWarnings(t *testing.T) {
	f := newFakeAPI(t)
	f.fail(func(w http.ResponseWriter, r *http.Request, _ int) bool {
		if strings.HasSuffix(r.URL.Path, "/series") {
			return false
		}
		return answerWith(200, "application/json", `{"status":"success","warnings":["remote storage is away"],"data":{"resultType":"matrix","result":[]}}`)(w, r, 0)
	})
	code, stdout, stderr := vllmctl(t, f.args("--json")...)
	require.Equal(t, status.OK, code, stderr)
	assert.Contains(t, document(t, stdout).Notes, "the server warns: remote storage is away")
}

// content is a document without how it was read.
func content(t *testing.T, text string) report.Report {
	t.Helper()
	r := document(t, text)
	r.Read, r.Server = report.Read{}, ""
	return r
}
