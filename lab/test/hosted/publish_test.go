package hosted

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The image would get another digest under the same tag before GitHub refuses the release.
func TestAReleaseThatIsThereIsNotPublishedAgain(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	called := filepath.Join(bin, "called")
	for name, script := range map[string]string{
		"gh":     "#!/bin/sh\n[ \"$1 $2\" = 'release view' ] || echo gh \"$@\" >> " + called + "\n",
		"docker": "#!/bin/sh\necho docker \"$@\" >> " + called + "\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(bin, name), []byte(script), 0o755))
	}
	command := exec.Command("make", "--no-print-directory", "release-publish")
	command.Dir = root
	command.Env = append(os.Environ(), "PATH="+bin+string(filepath.ListSeparator)+os.Getenv("PATH"), "MAKEFLAGS=")
	out, err := command.CombinedOutput()
	require.Error(t, err, string(out))
	assert.Contains(t, string(out), "is released already, and a version is never used twice")
	assert.NoFileExists(t, called)
}
