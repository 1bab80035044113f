package vllmsim

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the generated bodies of testdata/")

const testdata = "../../testdata"

func TestCheckedInBodiesEqualAFreshGeneration(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("other processors round some operations differently, so the simulation differs there")
	}
	if *update {
		_, err := WriteBodies(testdata)
		require.NoError(t, err)
	}
	for _, s := range Scenarios() {
		t.Run(s.Name, func(t *testing.T) {
			files, err := s.Files()
			require.NoError(t, err)
			for name, want := range files {
				got, err := os.ReadFile(filepath.Join(testdata, s.Name, name))
				require.NoError(t, err)
				// Equal would print both bodies whole.
				assert.True(t, bytes.Equal(want, got), "%s differs; regenerate with -update and review the change", name)
			}
		})
	}
}

func TestTheReadmeDescribesEveryFolder(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(testdata, "README.md"))
	require.NoError(t, err)
	described := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(string(readme), -1) {
		described[m[1]] = true
	}
	for _, s := range Scenarios() {
		assert.True(t, described[s.Name], s.Name)
		delete(described, s.Name)
	}
	assert.Empty(t, described, "described and not there")
}
