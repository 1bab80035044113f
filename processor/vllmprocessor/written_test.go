package vllmprocessor

import (
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// Who searches for the name of a metric finds the line that computes it: no name is put together.
func TestEachMetricIsWrittenOutInTheCode(t *testing.T) {
	t.Parallel()
	var code strings.Builder
	tree := os.DirFS(".")
	require.NoError(t, fs.WalkDir(tree, ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			return err
		}
		text, err := fs.ReadFile(tree, name)
		code.Write(text)
		return err
	}))
	for i := range catalog.All() {
		if m := &catalog.All()[i]; m.EmittedBy == "processor" {
			assert.Contains(t, code.String(), `"`+m.Name+`"`)
		}
	}
}
