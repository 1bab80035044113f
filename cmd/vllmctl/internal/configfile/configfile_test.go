package configfile_test

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.uber.org/zap"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/configfile"
)

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "collector.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func read(t *testing.T, text string) *configfile.File {
	t.Helper()
	f, err := configfile.Read(t.Context(), write(t, text))
	require.NoError(t, err)
	return f
}

// service is a service that uses the receiver and the processor.
const service = `
exporters: {debug: }
service: {pipelines: {metrics: {receivers: [vllm], processors: [vllm], exporters: [debug]}}}
`

func TestAConfigurationIsReadAsTheCollectorReadsIt(t *testing.T) {
	t.Setenv("TOKEN", "t0p")
	t.Setenv("HOST", "vllm-7")
	f := read(t, `
receivers:
  vllm/a: {endpoint: "http://${env:HOST}:8000", collection_interval: 7s, auth: {authenticator: bearertokenauth}}
  vllm/unused: {endpoint: http://x:1}
  otlp: {protocols: {grpc: }}
processors:
  batch:
  vllm/p: {window: 2m}
exporters:
  otlphttp/x: {endpoint: "https://x", headers: {key: "${TOKEN}"}}
extensions:
  bearertokenauth: {token: "${TOKEN}"}
service:
  extensions: [bearertokenauth]
  pipelines:
    metrics/2: {receivers: [vllm/a, otlp], processors: [vllm/p, batch], exporters: [otlphttp/x]}
`)
	require.Empty(t, f.Problems)
	require.Len(t, f.Receivers, 1)
	assert.Equal(t, "vllm/a", f.Receivers[0].Name)
	assert.Equal(t, "http://vllm-7:8000", f.Receivers[0].Config.Client.Endpoint)
	assert.Equal(t, 7*time.Second, f.Receivers[0].Config.Controller.CollectionInterval)
	assert.Equal(t, 2*time.Minute, f.Processor("vllm/a").Window)
	assert.Nil(t, f.Processor("vllm/unused"))
	assert.Equal(t, []configfile.Pipeline{{
		Name: "metrics/2", Receivers: []string{"vllm/a", "otlp"}, Processors: []string{"vllm/p", "batch"}, Exporters: []string{"otlphttp/x"},
	}}, f.Pipelines)
	assert.Equal(t, "t0p", f.Exporters["otlphttp/x"]["headers"].(map[string]any)["key"])
	assert.Contains(t, f.Others, "receivers::otlp")
	assert.Contains(t, f.Others, "processors::batch")
	assert.Equal(t, []string{"No pipeline uses receivers::vllm/unused, so it does nothing"}, f.Warnings)
}

// Every mistake becomes one sentence, and what is right is still there.
func TestEachMistakeIsOneProblem(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"unknown setting":   {"receivers: {vllm: {endpoint: \"http://a:1\", intervall: 3s}}\nprocessors: {vllm: }" + service, "receivers::vllm: "},
		"invalid setting":   {"receivers: {vllm: {endpoint: \"http://a:1\"}}\nprocessors: {vllm: {window: -1s}}" + service, "processors::vllm: "},
		"no processor":      {"receivers: {vllm: {endpoint: \"http://a:1\"}}" + service, `the pipeline metrics names the processor "vllm", which has no section; add it under processors`},
		"no extension":      {"receivers: {vllm: {endpoint: \"http://a:1\", auth: {authenticator: basicauth}}}\nprocessors: {vllm: }" + service, `names the extension "basicauth", which service::extensions does not list`},
		"extension missing": {"receivers: {vllm: {endpoint: \"http://a:1\"}}\nprocessors: {vllm: }\nexporters: {debug: }\nservice: {extensions: [pprof], pipelines: {metrics: {receivers: [vllm], processors: [vllm], exporters: [debug]}}}", `service::extensions names "pprof", which has no section; add it under extensions`},
		"bad name":          {"receivers: {vllm: {endpoint: \"http://a:1\"}, \"vllm/\": }\nprocessors: {vllm: }" + service, "receivers::vllm/ is not the name of a component"},
	} {
		f := read(t, c.text)
		require.Len(t, f.Problems, 1, name)
		assert.ErrorContains(t, f.Problems[0], c.want, name)
	}
	f := read(t, "receivers: {vllm: {endpoint: \"http://a:1\"}}")
	require.Len(t, f.Problems, 1)
	assert.ErrorContains(t, f.Problems[0], "no pipeline")
	// A connector stands on both sides.
	f = read(t, "receivers: {vllm: {endpoint: \"http://a:1\"}}\nprocessors: {vllm: }\nconnectors: {vllm_diagnosis: }\nexporters: {debug: }\n"+
		"service: {pipelines: {metrics: {receivers: [vllm], processors: [vllm], exporters: [vllm_diagnosis]}, logs: {receivers: [vllm_diagnosis], exporters: [debug]}}}")
	assert.Empty(t, f.Problems)
	assert.Contains(t, f.Others, "connectors::vllm_diagnosis", "check looks there for what a pipeline without a processor exports to")
}

func TestWhatCannotBeReadIsAnErrorThatSaysWhatToDo(t *testing.T) {
	folder := t.TempDir()
	huge := filepath.Join(folder, "huge.yaml")
	require.NoError(t, os.WriteFile(huge, nil, 0o600))
	require.NoError(t, os.Truncate(huge, 5<<20))
	for path, want := range map[string]string{
		filepath.Join(folder, "none.yaml"): "does not exist; check the path",
		folder:                             "is a folder; name the file",
		huge:                               "is this the right file?",
		os.DevNull:                         "is not a regular file",
		write(t, "receivers: [unclosed"):   "cannot be read as a configuration",
		write(t, "a: ${file:/nowhere}"):    "cannot be read as a configuration",
	} {
		_, err := configfile.Read(t.Context(), path)
		assert.ErrorContains(t, err, want, path)
	}
}

func TestAVariableThatIsNotSetIsAWarning(t *testing.T) {
	f := read(t, "receivers: {vllm: {endpoint: \"http://a:1\", service_name: \"x${env:OTELCOL_VLLM_NOT_SET}\"}}\nprocessors: {vllm: }"+service)
	require.Len(t, f.Warnings, 1)
	assert.Contains(t, f.Warnings[0], "OTELCOL_VLLM_NOT_SET")
}

// The shipped examples are the independent oracle: CI runs the collector with each.
func TestEveryShippedExampleIsReadWithoutAProblem(t *testing.T) {
	t.Setenv("QUEUE_DIR", t.TempDir())
	t.Setenv("SHARD", "0")
	t.Setenv("SHARDS", "4")
	t.Setenv("K8S_NODE_NAME", "node-1")
	t.Setenv("POD_NAME", "collector-0")
	examples, err := filepath.Glob("../../../../examples/*.yaml")
	require.NoError(t, err)
	backends, err := filepath.Glob("../../../../examples/backends/*.yaml")
	require.NoError(t, err)
	ours := 0
	for _, path := range append(examples, backends...) {
		f, err := configfile.Read(t.Context(), path)
		require.NoError(t, err, path)
		assert.Empty(t, f.Problems, path)
		assert.NotEmpty(t, f.Pipelines, path)
		ours += len(f.Receivers)
	}
	assert.Greater(t, ours, 10)
}

func TestOnlyExtensionsThatAuthenticateAreStarted(t *testing.T) {
	var got string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header.Get("Authorization") }))
	defer server.Close()
	f := read(t, `
receivers: {vllm: {endpoint: "`+server.URL+`", auth: {authenticator: bearertokenauth/x}}}
processors: {vllm: }
exporters: {debug: }
extensions: {bearertokenauth/x: {token: abc}, file_storage: {directory: /nowhere}, basicauth/unlisted: {}}
service: {extensions: [bearertokenauth/x, file_storage], pipelines: {metrics: {receivers: [vllm], processors: [vllm], exporters: [debug]}}}
`)
	host, err := f.Host(t.Context(), zap.NewNop())
	require.NoError(t, err)
	require.Len(t, host.GetExtensions(), 1)
	client, err := f.Receivers[0].Config.Client.ToClient(t.Context(), host.GetExtensions(), componenttest.NewNopTelemetrySettings())
	require.NoError(t, err)
	response, err := client.Get(server.URL)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	assert.Equal(t, "Bearer abc", got)
	require.NoError(t, host.Shutdown(t.Context()))
	require.NoError(t, host.Shutdown(t.Context()), "again")
	assert.Empty(t, host.GetExtensions())
}

func TestAnExtensionThatCannotStartIsNamed(t *testing.T) {
	for name, settings := range map[string]map[string]any{
		"bearertokenauth/a": {"unknown": 1},
		"oauth2client":      {},
		"bearertokenauth/":  {},
	} {
		_, err := configfile.NewHost(t.Context(), map[string]map[string]any{name: settings}, zap.NewNop())
		assert.ErrorContains(t, err, "extensions::"+name+": ")
	}
	_, err := configfile.NewHost(t.Context(), map[string]map[string]any{"bearertokenauth": {"filename": t.TempDir() + "/token"}}, zap.NewNop())
	require.ErrorIs(t, err, fs.ErrNotExist, "the reason is not hidden")
	host, err := configfile.NewHost(t.Context(), nil, zap.NewNop())
	require.NoError(t, err)
	assert.Equal(t, map[component.ID]component.Component{}, host.GetExtensions())
}
