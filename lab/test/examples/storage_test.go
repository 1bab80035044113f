package examples

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// stored is the part of a configuration about storage on disk.
type stored struct {
	Extensions map[string]struct {
		Recreate   bool
		Compaction struct {
			OnRebound      bool `yaml:"on_rebound"`
			CleanupOnStart bool `yaml:"cleanup_on_start"`
		}
	}
	Processors map[string]struct{ Storage string }
	Service    struct {
		Extensions []string
		Pipelines  map[string]struct{ Processors []string }
	}
}

// With a queue on disk, users expect that the collector starts again after a crash of the
// machine and that a restart loses nothing.
func TestWhatIsOnDiskIsCheckedAndUsedByAll(t *testing.T) {
	var files []string
	for _, pattern := range []string{"*.yaml", "backends/*.yaml", "kubernetes/base/*/collector.yaml"} {
		found, err := filepath.Glob(filepath.Join(root, "examples", pattern))
		require.NoError(t, err)
		files = append(files, found...)
	}
	onDisk := 0
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		var c stored
		require.NoError(t, yaml.Unmarshal(content, &c), file)
		checked := false
		var storages []string
		for _, name := range c.Service.Extensions {
			kind, _, _ := strings.Cut(name, "/")
			checked = checked || kind == "storage_check"
			if kind != "file_storage" {
				continue
			}
			storages = append(storages, name)
			assert.True(t, c.Extensions[name].Recreate, "%s: %s does not allow a damaged file to be set aside", file, name)
			compaction := c.Extensions[name].Compaction
			assert.Equal(t, compaction.OnRebound, compaction.CleanupOnStart, "%s: what a crash during a compaction leaves stays for ever", file)
		}
		if len(storages) == 0 {
			continue
		}
		onDisk++
		assert.True(t, checked, "%s: a damaged file ends the collector", file)
		for pipeline, p := range c.Service.Pipelines {
			for _, name := range p.Processors {
				if kind, _, _ := strings.Cut(name, "/"); kind == "vllm" {
					assert.Contains(t, storages, c.Processors[name].Storage, "%s: %s in %s forgets what it learned with a restart", file, name, pipeline)
				}
			}
		}
	}
	assert.GreaterOrEqual(t, onDisk, 18, "there were so many when this was written; what agent, gateway and pool add is checked in lab/test/kubernetes")
}
