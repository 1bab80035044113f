package pageparts_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/pageparts"
)

// What cannot be written leaves the file as it was.
func TestAFileIsRewrittenOrAsBefore(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "page.md")
	require.NoError(t, os.WriteFile(file, []byte("a\n<!-- x: begin -->\nold\n<!-- x: end -->\n"), 0o600))
	require.NoError(t, pageparts.Rewrite(file, map[string]string{"x": "new\n"}))
	const want = "a\n<!-- x: begin -->\nnew\n<!-- x: end -->\n"
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, want, string(content))
	require.ErrorContains(t, pageparts.Rewrite(file, map[string]string{"y": "new\n"}), "page.md")
	content, err = os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, want, string(content))
	require.Error(t, pageparts.Rewrite(file+"x", nil))
}
