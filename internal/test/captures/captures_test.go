package captures

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFilesAreTheModelServersBodies(t *testing.T) {
	files := Files(t)
	assert.IsIncreasing(t, files)
	var generated int
	for _, file := range files {
		assert.Equal(t, ".txt", filepath.Ext(file))
		folder, err := filepath.Rel(Dir(t), filepath.Dir(file))
		assert.NoError(t, err)
		assert.Contains(t, []string{".", "generated"}, folder)
		if folder == "generated" {
			generated++
		}
	}
	assert.Positive(t, generated)
	assert.Greater(t, len(files), generated)
}

// bodyNames checks each body and returns the names.
func bodyNames(t *testing.T, bodies []Body) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, b := range bodies {
		require.False(t, names[b.Name], b.Name)
		names[b.Name] = true
		assert.True(t, bytes.Contains(b.Text, []byte("# TYPE ")), b.Name)
		assert.Equal(t, bytes.HasSuffix(bytes.TrimSpace(b.Text), []byte("# EOF")), b.OpenMetrics(), b.Name)
	}
	return names
}

func TestBodiesAreTheOwnAndTheRecordedOnes(t *testing.T) {
	names := bodyNames(t, Bodies(t))
	for _, own := range []string{
		"v0-0.5.0", "v0-0.6.6", "v1-0.8.5", "v1-multiproc-0.10.2", "v1-0.13.0", "v1-0.20.0", "v1-0.24.0",
		"ray-old-0.6.3", "ray-new-0.20.0", "rust-0.24.0",
	} {
		assert.Contains(t, names, own+"/metrics.txt")
		delete(names, own+"/metrics.txt")
	}
	recorded := Files(t)
	assert.Len(t, names, len(recorded))
	for name := range names {
		assert.FileExists(t, filepath.Join(Dir(t), strings.TrimPrefix(name, "captures/")))
	}
}

func TestOddBodiesHaveTheirContentTypes(t *testing.T) {
	types := map[string]string{}
	for _, b := range Odd(t) {
		types[b.Name] = b.ContentType
	}
	assert.Equal(t, text, types["odd/bad-lines.txt"])
	assert.Equal(t, "text/html; charset=utf-8", types["odd/html.txt"])
	assert.True(t, strings.HasPrefix(types["odd/exemplars.txt"], "application/openmetrics-text"))
	assert.Contains(t, types, "odd/empty.txt")
}

// A checkout without the captures folder has the project's own bodies. A test
// about recorded ones is skipped there.
func TestBodiesWithoutTheCapturesFolder(t *testing.T) {
	want := bodyNames(t, Own(t))
	require.NotEmpty(t, want)
	checkout := filepath.Join(t.TempDir(), "checkout")
	require.NoError(t, os.CopyFS(filepath.Join(checkout, "testdata"), os.DirFS(filepath.Join(Root(t), "testdata"))))
	require.NoError(t, os.WriteFile(filepath.Join(checkout, "go.work"), nil, 0o644))
	t.Chdir(checkout)
	assert.Equal(t, want, bodyNames(t, Bodies(t)))
	skipped := false
	t.Run("recorded", func(t *testing.T) {
		defer func() { skipped = t.Skipped() }()
		Files(t)
	})
	assert.True(t, skipped)
}
