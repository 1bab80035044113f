package kubernetes

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/otelcol-vllm/otelcol-vllm/lab/content/shipped"
)

// "kubectl apply" writes an object into an annotation of itself, and all annotations of an
// object have at most this many bytes.
const maxAnnotations = 256 << 10

// Each folder of dashboards can be applied: one ConfigMap for each, with the label that
// Grafana's sidecar looks for, and small enough.
func TestTheDashboardsCanBeApplied(t *testing.T) {
	others := t.TempDir()
	require.NoError(t, shipped.WriteIn(others, shipped.Others...))
	for _, dir := range []string{
		filepath.Join(root, "content", "grafana", "suffixed"), filepath.Join(others, "grafana", "unsuffixed"),
		filepath.Join(others, "grafana", "dotted"), filepath.Join(others, "grafana", "wire"),
	} {
		all := mustDecode(t, build(t, filesys.MakeFsOnDisk(), dir))
		files, err := filepath.Glob(filepath.Join(dir, "*.json"))
		require.NoError(t, err)
		require.NotEmpty(t, files)
		found := map[string]bool{}
		for _, object := range all {
			config, is := object.(*corev1.ConfigMap)
			require.True(t, is, "%T", object)
			assert.Equal(t, "1", config.Labels["grafana_dashboard"], config.Name)
			assert.Len(t, config.Data, 1, config.Name)
			for name, text := range config.Data {
				assert.True(t, json.Valid([]byte(text)), name)
				found[name] = true
			}
			whole, err := json.Marshal(config)
			require.NoError(t, err)
			assert.Less(t, len(whole), maxAnnotations, "%s is too large for kubectl apply", config.Name)
		}
		for _, file := range files {
			assert.True(t, found[filepath.Base(file)], "%s is in no ConfigMap", file)
		}
		assert.Len(t, found, len(files))
	}
}
