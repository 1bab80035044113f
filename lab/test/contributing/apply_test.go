package contributing

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

var runAll = flag.Bool("contributing.run", false, "run each command of the examples as well, which takes minutes")

// mostTime bounds one block of an example.
const mostTime = 20 * time.Minute

// tracked lists the files of the tree that git knows or would add.
func tracked(t *testing.T) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", "-C", root, "ls-files", "-co", "--exclude-standard").Output()
	if err != nil {
		t.Skip("the files of the tree are listed by git, which cannot read this checkout: " + err.Error())
	}
	var files []string
	for file := range strings.SplitSeq(strings.TrimSpace(string(out)), "\n") {
		if info, err := os.Stat(filepath.Join(root, file)); err == nil && info.Mode().IsRegular() {
			files = append(files, file)
		}
	}
	return files
}

// copyOfTree copies the tree into a new folder, with the tools that were built.
func copyOfTree(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for _, file := range tracked(t) {
		text, err := os.ReadFile(filepath.Join(root, file))
		require.NoError(t, err)
		to := filepath.Join(folder, file)
		require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o755))
		info, err := os.Stat(filepath.Join(root, file))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(to, text, info.Mode().Perm()))
	}
	if tools, err := filepath.Abs(filepath.Join(root, "bin", "tools")); err == nil {
		require.NoError(t, os.MkdirAll(filepath.Join(folder, "bin"), 0o755))
		_ = os.Symlink(tools, filepath.Join(folder, "bin", "tools"))
	}
	return folder
}

// shell runs a block as a reader does who pastes it.
func shell(t *testing.T, folder, script string) (output string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), mostTime)
	defer cancel()
	command := exec.CommandContext(ctx, "bash", "-e", "-u", "-o", "pipefail", "-c", script)
	command.Dir = folder
	command.WaitDelay = 10 * time.Second
	// The copy is no repository of its own, and lies perhaps within one that ignores it: git
	// would then apply nothing and say nothing.
	command.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(folder), "GIT_DIR="+filepath.Join(folder, "no-repository"))
	if !*runAll {
		// With -trimpath Go's cache does not depend on the folder, so that a run compiles only
		// what the example changes. A reader compiles without it.
		command.Env = append(command.Env, "GOFLAGS=-trimpath")
	}
	out, err := command.CombinedOutput()
	return string(out), err
}

// applied returns a copy of the tree with all edits of an example. With -contributing.run its
// commands have been run as well, each at its place.
func applied(t *testing.T, name string) string {
	t.Helper()
	e := named(t, name)
	folder := copyOfTree(t)
	failing := map[string]bool{}
	for _, b := range e.blocks {
		if !b.edits() && !*runAll {
			continue
		}
		began := time.Now()
		out, err := shell(t, folder, string(b))
		require.NoError(t, err, "the example %q of CONTRIBUTING.md cannot be followed any more: %s\n%s", name, b, out)
		if !b.edits() {
			t.Logf("%s: %.0f s", strings.TrimSpace(string(b)), time.Since(began).Seconds())
		}
		if strings.HasPrefix(string(b), "! ") {
			found := regexp.MustCompile(`(?m)^--- FAIL: (\w+)`).FindAllStringSubmatch(out, -1)
			require.NotEmpty(t, found, "it fails, but no test does: %s", out)
			for _, test := range found {
				failing[test[1]] = true
			}
		}
	}
	if *runAll && len(e.rows) > 0 {
		said := map[string]bool{}
		for _, row := range e.rows {
			said[row] = true
		}
		assert.Equal(t, said, failing, "the tests that fail on the way, and those of the table of the example %q", name)
	}
	return folder
}

// generated returns a file that cataloggen of this tree writes for another one.
func generated(t *testing.T, folder, file string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "run", "./lab/cmd/cataloggen", "-root", folder)
	command.Dir = root
	out, err := command.CombinedOutput()
	require.NoError(t, err, "%s", out)
	text, err := os.ReadFile(filepath.Join(folder, file))
	require.NoError(t, err)
	return string(text)
}

func TestTheExampleOfAMetric(t *testing.T) {
	const name = "vllm.structured_output_timeouts"
	const table = "internal/catalog/catalog_generated.go"
	before, err := os.ReadFile(filepath.Join(root, table))
	require.NoError(t, err)
	require.NotContains(t, string(before), name, "the metric of the example exists now, so the page needs another one")
	entry := entryOf(generated(t, applied(t, "metric"), table), name)
	require.NotEmpty(t, entry, "%s is not in the table", name)
	assert.Regexp(t, `Unit: +"\{request\}"`, entry)
	assert.Regexp(t, `Kind: +KindSum\b`, entry)
	assert.Regexp(t, `Preset: +Standard`, entry)
	assert.Regexp(t, `Family: +"vllm:structured_output_timeouts_total", +Since: +"0\.31\.0"`, entry)
	assert.Regexp(t, `Attributes: +\[\]string\{"engine", "model_name"\}`, entry)
}

// entryOf returns the lines of one metric in the generated table.
func entryOf(table, name string) string {
	_, entry, found := strings.Cut(table, `"`+name+`"`)
	if !found {
		return ""
	}
	entry, _, _ = strings.Cut(entry, "Name:")
	return entry
}

func TestTheExampleOfADetail(t *testing.T) {
	folder := applied(t, "detail")
	table := generated(t, folder, "internal/catalog/diagnosis_generated.go")
	assert.Contains(t, table, `"all_requests"`)
	page, err := os.ReadFile(filepath.Join(folder, "docs", "diagnosis.md"))
	require.NoError(t, err)
	assert.Contains(t, string(page), "all_requests")
	// These hold the catalogue and the code together; the last is its own.
	out, err := shell(t, folder, "go test -vet=off ./internal/catalog ./processor/vllmprocessor/internal/diagnose -v -run '"+
		"^(TestTheCausesAreComplete|TestTheDiagnosisIsTheYAML|TestDetailsAreTheCatalogues|TestCorruptedOutputSaysWhenItIsEveryRequest)$'")
	require.NoError(t, err, "%s", out)
	assert.Len(t, regexp.MustCompile(`(?m)^--- PASS`).FindAllString(out, -1), 4, "%s", out)
}

func TestTheExampleOfABackend(t *testing.T) {
	folder := applied(t, "backend")
	text, err := os.ReadFile(filepath.Join(folder, "examples", "backends", "acme.yaml"))
	require.NoError(t, err)
	assert.NotContains(t, strings.ToLower(string(text)), "honeycomb", "something of the other vendor is left")
	var config struct {
		Exporters map[string]struct {
			Endpoint string
			Headers  map[string]string
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &config))
	exporter := config.Exporters["otlp_http"]
	assert.Equal(t, "${env:ACME_ENDPOINT:-https://otlp.acme.example}", exporter.Endpoint)
	assert.Equal(t, map[string]string{"api-key": "${env:ACME_API_KEY:-replace-me}"}, exporter.Headers)
	// The table is compiled and read only with the tag e2e: gofmt parses it.
	out, err := shell(t, folder, "gofmt -l lab/test/backends")
	require.NoError(t, err, "%s", out)
	assert.Empty(t, out)
	rows, err := os.ReadFile(filepath.Join(folder, "docs", "reference", "backends.md"))
	require.NoError(t, err)
	assert.Contains(t, string(rows), "| [Acme](../../examples/backends/acme.yaml) | ")
}
