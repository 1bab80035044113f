package contributing

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tasks are the eight changes that a newcomer makes, as patches; two are examples of the page as well.
var tasks = []string{"default", "limit", "ratio", "percentile", "reason", "alert", "detail", "backend"}

// editsOf returns what a person edits for a task; what "make generate" writes is not in it.
func editsOf(t *testing.T, task string) (files []string) {
	t.Helper()
	patch, err := os.ReadFile(filepath.Join("testdata", task+".patch"))
	require.NoError(t, err)
	for _, file := range regexp.MustCompile(`(?m)^\+{3} b/(\S+)$`).FindAllStringSubmatch(string(patch), -1) {
		files = append(files, file[1])
	}
	return files
}

// One fact is written in one place, so that a change is small and nothing is forgotten.
func TestATaskTakesThreeFilesAtMost(t *testing.T) {
	_, table, found := strings.Cut(page(t), "## What to edit\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n## ")
	said := map[string]bool{}
	for _, file := range regexp.MustCompile("`([a-z_]+/[^`]+|metadata.yaml)`").FindAllStringSubmatch(table, -1) {
		said[file[1]] = true
	}
	edited := map[string]bool{}
	for _, task := range tasks {
		files := editsOf(t, task)
		require.NotEmpty(t, files, task)
		assert.LessOrEqual(t, len(files), 3, "%s: %v", task, files)
		if task == "detail" || task == "backend" {
			continue // The example on the page says which.
		}
		for _, file := range files {
			edited[file] = true
		}
	}
	assert.Equal(t, said, edited, "the files of the table, and those of the patches in testdata")
}

// Nothing but the files of the patches is needed: the generators accept them, and the tests that
// hold code, catalogue and pages together pass.
func TestTheTasksCanBeDone(t *testing.T) {
	folder := copyOfTree(t)
	for _, task := range tasks {
		if task == "detail" || task == "backend" {
			continue // an example of the page, which has a test of its own
		}
		patch, err := filepath.Abs(filepath.Join("testdata", task+".patch"))
		require.NoError(t, err)
		out, err := shell(t, folder, "git apply '"+patch+"'")
		require.NoError(t, err, "the task %q: correct its patch in testdata\n%s", task, out)
	}
	table := generated(t, folder, "internal/catalog/catalog_generated.go")
	for _, metric := range []string{
		"vllm.generation_tokens_per_prompt_token", "vllm.request.inference_time_quantile", "vllm.request.inference_time_quantile_bound",
	} {
		assert.NotEmpty(t, entryOf(table, metric), metric)
	}
	out, err := shell(t, folder, "go run ./lab/cmd/contentgen")
	require.NoError(t, err, "%s", out)
	rules, err := os.ReadFile(filepath.Join(folder, "content", "rules", "suffixed", "vllm.yaml"))
	require.NoError(t, err)
	assert.Contains(t, string(rules), "alert: VLLMServerAsleep\n")
	assert.FileExists(t, filepath.Join(folder, "docs", "runbooks", "VLLMServerAsleep.md"))
	tests := "go test -vet=off ./internal/catalog ./lab/cmd/cataloggen ./lab/content/datadog ./processor/vllmprocessor/internal/derive " +
		"./processor/vllmprocessor/internal/gpu -run '^(TestTheTableIsTheYAML|TestOnlyCostlyOrUncertainMetricsAreOffByDefault|" +
		"TestEveryPairOfASubjectAndADefectIsDecided|TestTheTableNamesEachAlertOnce|TestTheTableIsTheCatalogues|TestAGPUWithALongNameIsNotKept)$'"
	if *runAll {
		tests = "go test ./internal/catalog ./cmd/... ./lab/content/... ./lab/test/content ./lab/test/truth ./processor/... ./receiver/vllmreceiver"
	}
	out, err = shell(t, folder, tests)
	require.NoError(t, err, "%s", out)
}
