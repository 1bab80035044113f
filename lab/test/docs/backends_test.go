package docs

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Without this test, an example of a backend that nothing links to is noticed only by those who
// list the folder.
func TestThePageOfBackendsHasARowForEachExample(t *testing.T) {
	page := read(t, "docs/reference/backends.md")
	examples, err := filepath.Glob(filepath.Join(root, "examples", "backends", "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, examples)
	for _, example := range examples {
		target := strings.TrimPrefix(filepath.ToSlash(example), root+"/")
		if !strings.Contains(page, "](../../"+target+") | ") {
			t.Errorf("docs/reference/backends.md needs a row for %s", target)
		}
	}
}
