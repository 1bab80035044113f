package release

import (
	"archive/tar"
	"compress/gzip"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAnArchiveHasEveryExampleAndNoOtherFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "x_0.2.0_linux_amd64.tar.gz")
	out, err := os.Create(file)
	require.NoError(t, err)
	zipped := gzip.NewWriter(out)
	writer := tar.NewWriter(zipped)
	for _, name := range []string{"README.md", "examples/a b.yaml", "examples/deep/er/c.yaml", "content/.secret"} {
		require.NoError(t, writer.WriteHeader(&tar.Header{Name: "x_0.2.0_linux_amd64/" + name, Mode: 0o644, Size: 1, Typeflag: tar.TypeReg}))
		_, err := writer.Write([]byte("x"))
		require.NoError(t, err)
	}
	require.NoError(t, writer.Close())
	require.NoError(t, zipped.Close())
	require.NoError(t, out.Close())
	require.NoError(t, CheckWhole(file, []string{"examples/a b.yaml", "examples/deep/er/c.yaml", "content/.secret"}))
	err = CheckWhole(file, []string{"examples/a b.yaml", "examples/quickstart.yaml", "content/.secret"})
	require.ErrorContains(t, err, "lacks examples/quickstart.yaml")
	assert.ErrorContains(t, err, "has examples/deep/er/c.yaml, which is neither in git nor written")
}

func TestTheWholeFoldersAreThoseOfTheCheckout(t *testing.T) {
	t.Parallel()
	files, err := Whole("../../..")
	require.NoError(t, err)
	assert.Contains(t, files, "examples/quickstart.yaml")
	assert.Contains(t, files, "content/rules/suffixed/vllm.yaml")
	// The user of another spelling has no checkout.
	for _, other := range []string{
		"content/rules/dotted/vllm.yaml", "content/grafana/unsuffixed/kustomization.yaml", "content/perses/wire/vllm-wire.json",
		"content/kubernetes/vllm-raw-rules.yaml", "content/mixin/mixin-raw.libsonnet",
	} {
		assert.Contains(t, files, other)
	}
}
