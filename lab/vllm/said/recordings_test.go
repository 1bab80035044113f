package said_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/run"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/said"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/story"
)

const (
	recordings = "../../../testdata/vllm"
	rules      = "../../../content/rules/suffixed/vllm.yaml"
	// most is how many bytes all recordings together may take.
	most = 5 << 20
)

var update = flag.Bool("update", false, "write testdata/vllm/misses.txt")

// The recordings are of real servers, and what must be said follows from what their clients
// felt, by the rules of said.Misses. What is missed today is published in misses.txt: a change
// that misses more, or less, must change that file.
func TestWhatIsSaidOfRealServers(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(recordings, "*.tar.zst"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	book, err := story.Shipped()
	require.NoError(t, err)
	var lines []string
	size := int64(0)
	for _, file := range files {
		info, err := os.Stat(file)
		require.NoError(t, err)
		size += info.Size()
		r, err := run.Read(file)
		require.NoError(t, err)
		for _, interval := range []time.Duration{5 * time.Second, 15 * time.Second} {
			all, err := said.Replay(t.Context(), r, said.Options{Interval: interval, Rules: rules})
			require.NoError(t, err)
			for _, m := range said.Misses(book, r, all) {
				lines = append(lines, fmt.Sprintf("%s: %s", strings.TrimSuffix(filepath.Base(file), ".tar.zst"), m))
			}
		}
	}
	assert.Less(t, size, int64(most))
	published := filepath.Join(recordings, "misses.txt")
	got := strings.Join(lines, "\n") + "\n"
	if *update {
		require.NoError(t, os.WriteFile(published, []byte(got), 0o600))
	}
	want, err := os.ReadFile(published)
	require.NoError(t, err)
	assert.Equal(t, strings.Split(string(want), "\n"), strings.Split(got, "\n"),
		"what is missed has changed; look at each line, then run this test with -update")
}
