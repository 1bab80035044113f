package builder

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/release"
)

// A release tags each module of the repository. From these tags, and without the checkout, anybody
// installs vllmctl. The modules of others come from this machine's cache.
func TestVllmctlIsInstalledByItsVersion(t *testing.T) {
	ocb(t)
	version, err := release.Version(root(t))
	require.NoError(t, err)
	version = "v" + version
	proxy := t.TempDir()
	for name, dir := range map[string]string{ours: ".", ours + "/cmd/vllmctl": "cmd/vllmctl", ours + "/lab": "lab"} {
		publish(t, proxy, module.Version{Path: name, Version: version}, filepath.Join(root(t), dir))
	}
	cache, err := exec.CommandContext(t.Context(), "go", "env", "GOMODCACHE").Output()
	require.NoError(t, err)
	bin := t.TempDir()
	install := exec.CommandContext(t.Context(), "go", "install", "-trimpath", ours+"/cmd/vllmctl@"+version)
	install.Dir = t.TempDir()
	install.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-modcacherw", "GOBIN="+bin, "GOMODCACHE="+t.TempDir(), "CGO_ENABLED=0",
		"GOPROXY=file://"+proxy+",file://"+filepath.Join(strings.TrimSpace(string(cache)), "cache", "download"), "GONOSUMDB=*", "GONOSUMCHECK=1")
	out, err := install.CombinedOutput()
	require.NoError(t, err, "%s", out)
	said, err := exec.CommandContext(t.Context(), filepath.Join(bin, "vllmctl"), "--version").CombinedOutput()
	require.NoError(t, err, "%s", said)
	assert.Equal(t, "vllmctl version "+version[1:]+"\n", string(said))
}

// publish puts a module into a folder that Go takes for a proxy.
func publish(t *testing.T, proxy string, m module.Version, dir string) {
	t.Helper()
	listed := exec.CommandContext(t.Context(), "git", "ls-files", "-co", "--exclude-standard")
	listed.Dir = dir
	names, err := listed.Output()
	require.NoError(t, err)
	var files []zip.File
	for name := range strings.FieldsSeq(string(names)) {
		inner := m.Path == ours && (strings.HasPrefix(name, "lab/") || strings.HasPrefix(name, "cmd/"))
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil && !inner {
			files = append(files, file{name, filepath.Join(dir, name)})
		}
	}
	escaped, err := module.EscapePath(m.Path)
	require.NoError(t, err)
	to := filepath.Join(proxy, escaped, "@v")
	require.NoError(t, os.MkdirAll(to, 0o755))
	archive, err := os.Create(filepath.Join(to, m.Version+".zip"))
	require.NoError(t, err)
	require.NoError(t, zip.Create(archive, m, files))
	require.NoError(t, archive.Close())
	manifest, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(to, m.Version+".mod"), manifest, 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(to, m.Version+".info"), fmt.Appendf(nil, `{"Version":%q}`, m.Version), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(to, "list"), []byte(m.Version+"\n"), 0o644))
}

// file is a file of a module: its name there, and where it is.
type file struct{ name, path string }

func (f file) Path() string                 { return f.name }
func (f file) Lstat() (os.FileInfo, error)  { return os.Lstat(f.path) }
func (f file) Open() (io.ReadCloser, error) { return os.Open(f.path) }
