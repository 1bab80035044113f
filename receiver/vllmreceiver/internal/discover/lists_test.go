package discover

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// heapPeak measures the largest heap until the returned function is called.
func heapPeak(t *testing.T) func() uint64 {
	t.Helper()
	runtime.GC()
	var peak atomic.Uint64
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			peak.Store(max(peak.Load(), m.HeapInuse))
			select {
			case <-done:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	return func() uint64 { close(done); <-ended; return peak.Load() }
}

// The collector reads an endless list and a good one: it logs the first, and scrapes the
// targets of the second.
func TestAnEndlessListHarmsNoOtherList(t *testing.T) {
	var written atomic.Int64
	endless := func(before, chunk string) http.HandlerFunc {
		return func(w http.ResponseWriter, request *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, before)
			for request.Context().Err() == nil {
				n, err := io.WriteString(w, chunk)
				written.Add(int64(n))
				if err != nil {
					return
				}
			}
		}
	}
	var bomb bytes.Buffer
	zip := gzip.NewWriter(&bomb)
	spaces := bytes.Repeat([]byte(" "), 1<<20)
	for range 128 {
		_, err := zip.Write(spaces)
		require.NoError(t, err)
	}
	require.NoError(t, zip.Close())
	for name, handler := range map[string]http.HandlerFunc{
		"spaces":    endless("[", strings.Repeat(" ", 64<<10)),
		"addresses": endless(`[{"targets": [`, strings.Repeat(`"a",`, 16<<10)),
		"groups":    endless(`[`, strings.Repeat(`{},`, 16<<10)),
		"labels":    endless(`[{"labels": {"a": "`, strings.Repeat(`b`, 64<<10)),
		"gzip that was not asked for": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Encoding", "gzip")
			// 128 MiB of spaces, which must not be decompressed.
			_, _ = w.Write(bomb.Bytes())
		},
	} {
		t.Run(name, func(t *testing.T) {
			written.Store(0)
			bad := httptest.NewServer(handler)
			t.Cleanup(func() { bad.CloseClientConnections(); bad.Close() })
			good := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json; charset=utf-8")
				_, _ = io.WriteString(w, `[{"targets": ["vllm-0:8000"]}]`)
			}))
			t.Cleanup(good.Close)
			peak := heapPeak(t)
			r := run(t, 10, "http_sd_configs: [{url: '"+bad.URL+"', refresh_interval: 1h}, {url: '"+good.URL+"', refresh_interval: 1h}]")
			r.waitForLog("stay as they are")
			r.waitFor("the other list", "http://vllm-0:8000/metrics")
			assert.Less(t, peak(), uint64(200<<20))
			// The sockets of both sides hold some megabytes.
			assert.Less(t, written.Load(), int64(64<<20), "the rest is not read")
		})
	}
}

func TestAListIsBoundedByItsMemory(t *testing.T) {
	many := `[{"targets": ["a"` + strings.Repeat(`,"a"`, maxAddresses) + `]}]`
	labels := `[{"labels": {"x": "` + strings.Repeat("y", 1<<20) + `"}, "targets": ["a"` + strings.Repeat(`,"a"`, 100) + `]}]`
	for name, tt := range map[string]struct{ content, want string }{
		"addresses": {many, "the limit of 50000 groups and addresses"},
		"groups":    {`[{}` + strings.Repeat(`,{}`, maxAddresses) + `]`, "the limit of 50000 groups and addresses"},
		"labels":    {labels, "the labels of its addresses exceed"},
		"null":      {`[null]`, "a group of the list is null"},
		"an object": {`{"targets": ["a"]}`, "not a"},
		"a key":     {`[{"target": ["a"]}]`, "not a"},
		"a number":  {`[{"targets": [1.5, {}]}]`, "not a"},
	} {
		t.Run(name, func(t *testing.T) {
			require.LessOrEqual(t, len(tt.content), maxListBytes)
			peak := heapPeak(t)
			_, err := decodeJSON([]byte(tt.content))
			require.ErrorContains(t, err, tt.want)
			_, err = decodeYAML([]byte(tt.content))
			require.ErrorContains(t, err, tt.want)
			assert.Less(t, peak(), uint64(400<<20))
		})
	}
	for _, cut := range []string{`[{"targets": ["a"]}`, `[{"targets": ["a"]}] x`, ``} {
		_, err := decodeJSON([]byte(cut))
		require.Error(t, err, cut)
	}
	found, err := decodeJSON([]byte(`[{"targets": ["a:1", "b:2"], "labels": {"x": "y"}}, {}]`))
	require.NoError(t, err)
	require.Len(t, found.groups, 2)
	assert.Len(t, found.groups[0].Targets, 2)
	assert.EqualValues(t, "y", found.groups[0].Labels["x"])
}

func TestAFileThatCannotBeReadChangesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := filepath.Join(dir, "targets.json")
	replace := func(text string) {
		require.NoError(t, os.WriteFile(name+".next", []byte(text), 0o600))
		require.NoError(t, os.Rename(name+".next", name))
	}
	replace(`[{"targets": ["vllm-0:8000"]}]`)
	r := run(t, 10, "file_sd_configs: [{files: ["+name+"], refresh_interval: 1h}]")
	r.waitFor("the file", "http://vllm-0:8000/metrics")

	replace(`[{"targets": ["` + strings.Repeat("a", maxListBytes) + `"]}]`)
	r.waitForLog("larger than the limit of 4194304 bytes")
	// The name is always there, because a file that is gone has no targets.
	require.NoError(t, syscall.Mkfifo(name+".next", 0o600))
	require.NoError(t, os.Rename(name+".next", name))
	r.waitForLog("not a regular file")
	r.waitFor("as it was", "http://vllm-0:8000/metrics")
	require.NoError(t, os.Remove(name))
	r.waitFor("gone")
}

func TestARefreshIntervalMustNotBeTooShort(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"http_sd_configs: [{url: 'http://a', refresh_interval: 0s}]",
		"file_sd_configs: [{files: [a.json], refresh_interval: 0s}]",
		"dns_sd_configs: [{names: [a], refresh_interval: 0s}]",
	} {
		_, mistakes := Parse(section(t, text))
		require.Len(t, mistakes, 1, text)
		assert.ErrorContains(t, mistakes[0], "refresh_interval 0s is too short")
	}
}
