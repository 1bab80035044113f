package release

import (
	"bytes"
	"encoding/base64"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	oci "github.com/google/go-containerregistry/pkg/registry"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v4/pkg/chart/common"
	chartutil "helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"helm.sh/helm/v4/pkg/registry"
	"sigs.k8s.io/yaml"
)

var commitTime = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// registryServer is a registry on loopback that wants a user and a password, which docker login has
// written; pushes counts the manifests that it took.
func registryServer(t *testing.T) (repository string, client *registry.Client, pushes *int) {
	t.Helper()
	pushes = new(int)
	memory := oci.New(oci.Logger(slog.NewLogLogger(slog.DiscardHandler, 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "actor" || password != "token" {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/manifests/") {
			*pushes++
		}
		memory.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	config := t.TempDir()
	t.Setenv("DOCKER_CONFIG", config)
	require.NoError(t, os.WriteFile(filepath.Join(config, "config.json"), []byte(
		`{"auths":{"`+host+`":{"auth":"`+base64.StdEncoding.EncodeToString([]byte("actor:token"))+`"}}}`), 0o600))
	client, err := registry.NewClient(registry.ClientOptPlainHTTP(), registry.ClientOptWriter(io.Discard),
		registry.ClientOptCredentialsFile(filepath.Join(config, "helm.json")))
	require.NoError(t, err)
	return host + "/otelcol-vllm/charts", client, pushes
}

func pack(t *testing.T, from string) (dist, version string) {
	t.Helper()
	dist = t.TempDir()
	version, err := Version(root)
	require.NoError(t, err)
	_, err = PackCharts(from, dist, version, commitTime)
	require.NoError(t, err)
	return dist, version
}

// Files of another checkout have other times.
func TestTheChartsArePackedToTheSameBytes(t *testing.T) {
	dist, version := pack(t, root)
	other := t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(other, "examples", "helm"), os.DirFS(filepath.Join(root, "examples", "helm"))))
	again, _ := pack(t, other)
	for _, name := range []string{"otelcol-vllm", "otelcol-vllm-sidecar"} {
		file := name + "-" + version + ".tgz"
		assert.Equal(t, read(t, filepath.Join(dist, file)), read(t, filepath.Join(again, file)), file)
	}
	check := exec.Command("sha256sum", "--check", "--strict", "otelcol-vllm_"+version+"_checksums.txt")
	check.Dir = dist
	out, err := check.CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Equal(t, "otelcol-vllm-"+version+".tgz: OK\notelcol-vllm-sidecar-"+version+".tgz: OK\n", string(out))

	_, err = PackCharts(root, dist, "9.9.9", commitTime)
	assert.ErrorContains(t, err, "the release is 9.9.9")
}

// render is what "helm template" writes, by the template's name.
func render(t *testing.T, c *chart.Chart, values map[string]any) map[string]string {
	t.Helper()
	capabilities := common.DefaultCapabilities.Copy()
	capabilities.KubeVersion = common.KubeVersion{Version: "v1.35.0", Major: "1", Minor: "35"}
	all, err := chartutil.ToRenderValues(c, values,
		common.ReleaseOptions{Name: "otelcol-vllm", Namespace: "otelcol-vllm", Revision: 1, IsInstall: true}, capabilities)
	require.NoError(t, err)
	files, err := engine.Render(c, all)
	require.NoError(t, err)
	return files
}

func read(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(content)
}

func load(t *testing.T, folder string) *chart.Chart {
	t.Helper()
	c, err := loader.Load(filepath.Join(root, "examples", "helm", folder))
	require.NoError(t, err)
	return c
}

func TestPulledChartsRenderWhatTheCheckoutRenders(t *testing.T) {
	repository, client, _ := registryServer(t)
	dist, version := pack(t, root)
	require.NoError(t, PushCharts(client, dist, version, repository, commitTime))
	pulled := func(name string) *chart.Chart {
		result, err := client.Pull(repository + "/" + name + ":" + version)
		require.NoError(t, err)
		assert.Contains(t, string(result.Manifest.Data), `"org.opencontainers.image.created":"2026-11-30T12:00:00Z"`)
		c, err := loader.LoadArchive(bytes.NewReader(result.Chart.Data))
		require.NoError(t, err)
		return c
	}

	files, err := filepath.Glob(filepath.Join(root, "examples", "helm", "otelcol-vllm", "ci", "*-values.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		var values map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(read(t, file)), &values))
		want := render(t, load(t, "otelcol-vllm"), values)
		assert.Contains(t, want["otelcol-vllm/templates/configuration.yaml"], "kind: ConfigMap", file)
		assert.Equal(t, want, render(t, pulled("otelcol-vllm"), values), file)
	}

	sidecar := func(library *chart.Chart) map[string]string {
		example := load(t, "vllm-with-sidecar")
		example.AddDependency(library)
		return render(t, example, map[string]any{})
	}
	assert.Equal(t, sidecar(load(t, "otelcol-vllm-sidecar")), sidecar(pulled("otelcol-vllm-sidecar")))
}

// A repeated publication is no error; another content of the version is, and changes nothing.
func TestAVersionOfAChartIsNotPublishedTwice(t *testing.T) {
	repository, client, pushes := registryServer(t)
	dist, version := pack(t, root)
	require.NoError(t, PushCharts(client, dist, version, repository, commitTime))
	first := *pushes
	assert.Positive(t, first)
	require.NoError(t, PushCharts(client, dist, version, repository, commitTime))
	assert.Equal(t, first, *pushes, "what is there stays")

	// The sidecar's alone differs, so the first chart is not pushed either.
	changed := t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(changed, "examples", "helm"), os.DirFS(filepath.Join(root, "examples", "helm"))))
	page := filepath.Join(changed, "examples", "helm", "otelcol-vllm-sidecar", "README.md")
	require.NoError(t, os.WriteFile(page, []byte("other\n"), 0o600))
	other, _ := pack(t, changed)
	assert.ErrorContains(t, PushCharts(client, other, version, repository, commitTime),
		"/otelcol-vllm-sidecar:"+version+" is published already with another content")
	assert.Equal(t, first, *pushes)

	t.Setenv("DOCKER_CONFIG", t.TempDir())
	stranger, err := registry.NewClient(registry.ClientOptPlainHTTP(), registry.ClientOptWriter(io.Discard),
		registry.ClientOptCredentialsFile(filepath.Join(t.TempDir(), "helm.json")))
	require.NoError(t, err)
	assert.ErrorContains(t, PushCharts(stranger, dist, version, repository, commitTime), "cannot see whether",
		"a registry that does not answer may have another content")
}

// A chart that is refused must stop the release before the image gets another digest under its tag.
func TestTheChartsArePublishedFirstAndUploaded(t *testing.T) {
	command := exec.Command("make", "--no-print-directory", "-n", "release-publish")
	command.Dir = root
	command.Env = append(os.Environ(), "MAKEFLAGS=")
	out, err := command.CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Regexp(t, `(?s)/run push-charts dist ghcr\.io/otelcol-vllm/charts\n.*docker buildx build .*gh release create [^\n]*\n[^\n]* dist/\*\.tgz `, string(out))
}
