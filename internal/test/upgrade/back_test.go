//go:build e2e

package upgrade

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// unknownBefore are what the examples of this release have that the last one does not know, as it
// says itself. docs/start/upgrading.md has them.
var unknownBefore = []string{
	`unknown type: "storage_check"`,
	`'percentiles' has invalid keys: detailed`,
	`source: "dcgm" is unknown`,
}

// An operator who goes back also needs the former configuration: the program of the last release
// must name what it does not know.
func TestTheConfigurationsOfThisReleaseWithTheLastBinary(t *testing.T) {
	before := oldBinary(t)
	files, err := filepath.Glob(filepath.Join(root, "examples", "*.yaml"))
	require.NoError(t, err)
	more, err := filepath.Glob(filepath.Join(root, "examples", "backends", "*.yaml"))
	require.NoError(t, err)
	valid := 0
	for _, file := range append(files, more...) {
		command := exec.CommandContext(t.Context(), before, "validate", "--config", file)
		command.Env = append(os.Environ(), "SHARD=0", "SHARDS=4", "K8S_NODE_NAME=node-1", "POD_NAME=otelcol-vllm-0")
		output, err := command.CombinedOutput()
		if err == nil {
			valid++
			continue
		}
		known := false
		for _, sentence := range unknownBefore {
			known = known || strings.Contains(string(output), sentence)
		}
		assert.True(t, known, "%s: %s does not say what it does not know:\n%s", file, released, output)
	}
	t.Logf("%d of the %d configurations are valid with %s as well", valid, len(files)+len(more), released)
	assert.Positive(t, valid)
}
