package main

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/vllmctl/backtest/report"
	"github.com/otelcol-vllm/otelcol-vllm/internal/vllmctl/status"
)

// A run that is interrupted in the middle says so and how to go on; the next run reads only
// the rest, and its result is that of a run without a break.
func TestBacktestGoesOnWhereItWasInterrupted(t *testing.T) {
	f := newFakeAPI(t)
	code, whole, stderr := vllmctl(t, f.args("--json")...)
	require.Equal(t, status.OK, code, stderr)
	all := f.queries

	resume := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	f.queries = 0
	f.fail(func(_ http.ResponseWriter, r *http.Request, n int) bool {
		if n < 5 {
			return false
		}
		cancel()
		<-r.Context().Done()
		return true
	})
	code, stdout, stderr := vllmctlIn(ctx, f.args("--json", "--resume", resume, "--parallel", "1")...)
	require.Equal(t, status.Failed, code)
	assert.Empty(t, stdout)
	assert.Contains(t, stderr, "the command was interrupted; 3 parts of the history are kept: the same command goes on from there")

	f.fail(nil)
	f.queries = 0
	code, stdout, stderr = vllmctl(t, f.args("--json", "--resume", resume)...)
	require.Equal(t, status.OK, code, stderr)
	assert.Equal(t, all-3, f.queries)
	assert.Equal(t, content(t, whole), content(t, stdout))

	// Files that are damaged are read again.
	files, err := filepath.Glob(filepath.Join(resume, "*", "*", "*.zst"))
	require.NoError(t, err)
	require.Len(t, files, all-1)
	for i, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		switch i % 4 {
		case 0:
			data = data[:len(data)/2]
		case 1:
			data[len(data)/2] ^= 0x55
		case 2:
			data = nil
		case 3:
			data = []byte("<html>")
		}
		require.NoError(t, os.WriteFile(file, data, 0o600))
	}
	f.queries = 0
	code, stdout, stderr = vllmctl(t, f.args("--json", "--resume", resume)...)
	require.Equal(t, status.OK, code, stderr)
	assert.Equal(t, all, f.queries)
	assert.Equal(t, content(t, whole), content(t, stdout))

	// Without a folder nothing can be kept, and the sentence says what to do.
	ctx, cancel = context.WithCancel(t.Context())
	f.queries = 0
	f.fail(func(_ http.ResponseWriter, r *http.Request, n int) bool {
		if n < 5 {
			return false
		}
		cancel()
		<-r.Context().Done()
		return true
	})
	code, _, stderr = vllmctlIn(ctx, f.args("--parallel", "1")...)
	assert.Equal(t, status.Failed, code)
	assert.Contains(t, stderr, "nothing was kept: with --resume default another run goes on")
	// Before anything was read there is nothing to say about it.
	code, _, stderr = vllmctlIn(ctx, f.args()...)
	assert.Equal(t, status.Failed, code)
	assert.Equal(t, "vllmctl: the command was interrupted\n", stderr)
}

// A tenant is chosen by a header or by who asks. What was kept of one is not another's.
func TestBacktestKeepsWhatTenantsSeeApart(t *testing.T) {
	f := newFakeAPI(t)
	resume := t.TempDir()
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte("s3cret"), 0o600))
	address := strings.Replace(f.url, "http://", "http://a:s3cret@", 1)
	for name, more := range map[string][]string{
		"none": nil, "a": {"--header", "X-Scope-OrgID: a"}, "b": {"--header", "X-Scope-OrgID: b"}, "token": {"--token-file", token},
		"user": {"--prometheus", address}, "query": {"--prometheus", f.url + "?tenant=a"},
	} {
		for again, kept := range []bool{false, true} {
			code, stdout, stderr := vllmctl(t, f.args(append(more, "--json", "--resume", resume)...)...)
			require.Equal(t, status.OK, code, stderr)
			assert.Equal(t, kept, document(t, stdout).Read.Kept > 0, "%s %d", name, again)
		}
	}
	require.NoError(t, filepath.WalkDir(resume, func(path string, entry os.DirEntry, err error) error {
		assert.NotContains(t, path, "s3cret")
		if err == nil && !entry.IsDir() {
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			assert.NotContains(t, string(data), "s3cret")
		}
		return err
	}))
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

// What a server answered with a warning may be incomplete, so the next run asks again.
func TestBacktestDoesNotKeepAnswersWithWarnings(t *testing.T) {
	f := newFakeAPI(t)
	f.fail(func(w http.ResponseWriter, r *http.Request, _ int) bool {
		if strings.HasSuffix(r.URL.Path, "/series") {
			return false
		}
		return answerWith(200, "application/json", `{"status":"success","warnings":["remote storage is away"],"data":{"resultType":"matrix","result":[]}}`)(w, r, 0)
	})
	resume := t.TempDir()
	code, stdout, stderr := vllmctl(t, f.args("--json", "--resume", resume)...)
	require.Equal(t, status.OK, code, stderr)
	assert.Contains(t, document(t, stdout).Notes, "the server warns: remote storage is away")
	f.fail(nil)
	code, stdout, stderr = vllmctl(t, f.args("--json", "--resume", resume)...)
	require.Equal(t, status.OK, code, stderr)
	assert.Equal(t, 480, document(t, stdout).Targets[0].Coverage.Scrapes)
}

// content is a document without how it was read.
func content(t *testing.T, text string) report.Report {
	t.Helper()
	r := document(t, text)
	r.Read, r.Server = report.Read{}, ""
	return r
}

// Two runs at once share a folder.
func TestTwoBacktestsShareAFolder(t *testing.T) {
	f := newFakeAPI(t)
	resume := t.TempDir()
	var wg sync.WaitGroup
	results := make([]string, 3)
	for i := range results {
		wg.Go(func() {
			code, stdout, stderr := vllmctlIn(t.Context(), f.args("--json", "--resume", resume, "--rules", "builtin-raw")...)
			assert.Equal(t, status.OK, code, stderr)
			results[i] = stdout
		})
	}
	wg.Wait()
	for _, r := range results[1:] {
		assert.Equal(t, content(t, results[0]), content(t, r))
	}
	left, err := filepath.Glob(filepath.Join(resume, "vllmctl-rules-*"))
	require.NoError(t, err)
	assert.Empty(t, left)
}

// A folder that cannot be written is refused at once. One that becomes full or unwritable
// changes nothing but what is kept.
func TestBacktestWithAFolderThatCannotBeWritten(t *testing.T) {
	f := newFakeAPI(t)
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	code, _, stderr := vllmctl(t, f.args("--resume", filepath.Join(file, "folder"))...)
	assert.Equal(t, status.Failed, code)
	assert.Contains(t, stderr, "the folder of --resume cannot be used")

	if runtime.GOOS != "linux" {
		t.Skip("needs a file in the place of a folder")
	}
	resume := t.TempDir()
	code, _, stderr = vllmctl(t, f.args("--resume", resume)...)
	require.Equal(t, status.OK, code, stderr)
	folders, err := filepath.Glob(filepath.Join(resume, "*", "*"))
	require.NoError(t, err)
	require.NotEmpty(t, folders)
	for _, folder := range folders {
		// Root may write everywhere, so a file stands where the folder should be.
		require.NoError(t, os.RemoveAll(folder))
		require.NoError(t, os.WriteFile(folder, nil, 0o400))
	}
	code, stdout, stderr := vllmctl(t, f.args("--resume", resume, "--json")...)
	require.Equal(t, status.OK, code, stderr)
	r := document(t, stdout)
	assert.True(t, slices.ContainsFunc(r.Notes, func(n string) bool { return strings.Contains(n, "could not be kept for another run") }), r.Notes)
	assert.Equal(t, 480, r.Targets[0].Coverage.Scrapes)
}
