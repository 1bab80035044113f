package collector

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/captures"
)

// Tool finds a program of Prometheus or HAProxy: on the path, or where "make prometheus haproxy" puts it. Its
// absence is a failure only for root on a machine with apt-get, where that can always fetch it.
func Tool(t *testing.T, name string) string {
	t.Helper()
	if file, err := exec.LookPath(name); err == nil {
		return file
	}
	found, err := filepath.Glob(filepath.Join(captures.Root(t), "bin", "tools", "*", "usr", "*bin", name))
	require.NoError(t, err)
	if len(found) == 0 {
		if _, none := exec.LookPath("apt-get"); none == nil && os.Geteuid() == 0 && os.Getenv("OTELCOL_VLLM_REQUIRED") != "" {
			require.FailNow(t, name+" is required; run make prometheus haproxy")
		}
		t.Skip(name, "is not installed; run make prometheus haproxy")
	}
	file, err := filepath.Abs(found[0])
	require.NoError(t, err)
	return file
}

// Prometheus runs a real server and returns its address. A history is what it has stored before, as
// text of OpenMetrics.
func Prometheus(t *testing.T, config string, history ...string) (*Process, string) {
	t.Helper()
	program := Tool(t, "prometheus")
	dir, addr := t.TempDir(), FreeAddr(t)
	for _, text := range history {
		before := filepath.Join(dir, "before.txt")
		require.NoError(t, os.WriteFile(before, []byte(text), 0o600))
		output, err := exec.CommandContext(t.Context(), Tool(t, "promtool"), //nolint:gosec // our own program and files
			"tsdb", "create-blocks-from", "openmetrics", before, filepath.Join(dir, "data")).CombinedOutput()
		require.NoError(t, err, string(output))
	}
	return start(t, program, dir, addr, config)
}

// Server finds a program that "make servers" builds, and skips the test without it.
func Server(t *testing.T, name string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(captures.Root(t), "bin", "tools", "servers", "*", name))
	require.NoError(t, err)
	if len(found) == 0 {
		t.Skip("no newest", name, "is built; run make servers")
	}
	file, err := filepath.Abs(found[len(found)-1])
	require.NoError(t, err)
	return file
}

// Newest runs the newest Prometheus, which takes OTLP and remote writes of both versions, and returns its address.
func Newest(t *testing.T, config string, flags ...string) (*Process, string) {
	t.Helper()
	return start(t, Server(t, "prometheus"), t.TempDir(), FreeAddr(t), config, append(flags, "--web.enable-otlp-receiver")...)
}

// VictoriaMetrics runs one of a single node and returns its address. Its answers have the newest
// series and samples, and look back as far as Prometheus's.
func VictoriaMetrics(t *testing.T, flags ...string) (*Process, string) {
	t.Helper()
	addr := FreeAddr(t)
	p := Start(t, nil, Server(t, "victoria-metrics"), append(flags, "-storageDataPath="+t.TempDir(), "-httpListenAddr="+addr,
		"-search.latencyOffset=0s", "-search.minStalenessInterval=5m", "-storage.cacheSizeIndexDBTagFilters=1", "-loggerLevel=WARN")...)
	p.WaitFor(t, "VictoriaMetrics", func() bool { return len(Get(t, "http://"+addr+"/health")) > 0 })
	return p, addr
}

// VMAlert evaluates rules on a VictoriaMetrics twice a second, and returns its address.
func VMAlert(t *testing.T, victoria, rules string, flags ...string) string {
	t.Helper()
	addr := FreeAddr(t)
	p := Start(t, nil, Server(t, "vmalert"), append(flags, "-rule="+rules, "-evaluationInterval=500ms", "-rule.evalDelay=0s",
		"-datasource.url=http://"+victoria, "-remoteWrite.url=http://"+victoria, "-httpListenAddr="+addr, "-loggerLevel=WARN")...)
	p.WaitFor(t, "vmalert", func() bool { return len(Get(t, "http://"+addr+"/health")) > 0 })
	return addr
}

// start runs a Prometheus of either version.
func start(t *testing.T, program, dir, addr, config string, flags ...string) (*Process, string) {
	t.Helper()
	file := filepath.Join(dir, "prometheus.yml")
	require.NoError(t, os.WriteFile(file, []byte(config), 0o600))
	p := Start(t, nil, program, append(flags, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+addr, "--web.enable-remote-write-receiver", "--log.level=warn")...)
	p.WaitFor(t, "Prometheus", func() bool { return len(Get(t, "http://"+addr+"/-/ready")) > 0 })
	return p, addr
}
