package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	families = "../families.tsv"
	routers  = "../router.tsv"
)

// What is new in a program is added to metadata.yaml; what differs is corrected there.
func TestTheCatalogueAgreesWithTheSource(t *testing.T) {
	for file, least := range map[string]struct{ releases, families int }{families: {30, 150}, routers: {6, 150}} {
		read := tableOf(t, file)
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.GreaterOrEqual(t, len(read.releases), least.releases)
		assert.GreaterOrEqual(t, len(read.families), least.families)
		for _, finding := range compare(read) {
			t.Error(finding)
		}
		var written bytes.Buffer
		require.NoError(t, read.write(&written))
		assert.Equal(t, string(content), written.String(), "the file is not as make writes it")
	}
}

// The table of a test has the families that it is about, and of the others what the catalogue has.
func findings(t *testing.T, lines string) []string {
	t.Helper()
	read := tableOf(t, families)
	require.NoError(t, read.add(bytes.NewReader([]byte(lines))))
	return compare(read)
}

func tableOf(t *testing.T, file string) *table {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	read, err := readTable(bytes.NewReader(content))
	require.NoError(t, err)
	return read
}

func TestWhatDiffersIsFound(t *testing.T) {
	for name, test := range map[string]struct{ line, want string }{
		"unknown": {
			"0.33.0\tvllm:new_total\tcounter\tengine,kind\ta.py\thelp",
			"vllm:new_total is unknown to the catalogue: a counter by engine, kind, from vLLM 0.33.0 on",
		},
		"type": {
			"0.33.0\tvllm:num_requests_running\tcounter\tengine\ta.py\thelp",
			"vllm:num_requests_running is a counter or gauge in the source, and a gauge in the catalogue",
		},
		"label": {
			"0.33.0\tvllm:num_requests_running\tgauge\tpriority\ta.py\thelp",
			"vllm:num_requests_running has the label priority in the source, and not in the catalogue",
		},
		"since": {
			"0.31.0\tvllm:watermark_requests_total\tcounter\tengine\ta.py\thelp",
			"vllm:watermark_requests_total is in the source from vLLM 0.31.0 to 0.33.0, and the catalogue says of 0.31.0: false",
		},
		"until": {
			"0.33.0\tvllm:gpu_cache_usage_perc\tgauge\tengine\ta.py\thelp",
			"vllm:gpu_cache_usage_perc is in the source from vLLM 0.8.5 to 0.33.0, and the catalogue says of 0.12.0: false",
		},
	} {
		assert.Equal(t, []string{test.want}, findings(t, test.line+"\n"), name)
	}
	assert.Empty(t, findings(t, "0.33.0\tvllm:cache_config_info\tgauge\t?\ta.py\thelp\n"))
}

// A family that a later release does not have any more needs an end in the catalogue.
func TestWhatIsGoneIsFound(t *testing.T) {
	got := findings(t, "9.0.0\tvllm:num_requests_running\tgauge\tengine\ta.py\thelp\n")
	assert.Contains(t, got, "vllm:num_requests_waiting is in the source from vLLM 0.8.5 to 0.33.0, and the catalogue says of 9.0.0: true")
	assert.NotContains(t, got, "vllm:num_requests_running is in the source from vLLM 0.8.5 to 9.0.0, and the catalogue says of 9.0.0: true")
}

// The source of a release is read once more, and the table stays.
func TestALineThatIsThereChangesNothing(t *testing.T) {
	folder := t.TempDir()
	table, lines := filepath.Join(folder, "families.tsv"), filepath.Join(folder, "new.tsv")
	content, err := os.ReadFile(families)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(table, content, 0o600))
	require.NoError(t, os.WriteFile(lines, []byte("0.30.0\tvllm:num_requests_running\tgauge\tengine,model_name\ta.py\thelp\n"), 0o600))
	found, err := work(table, lines, "", "")
	require.NoError(t, err)
	assert.Empty(t, found)
	again, err := os.ReadFile(table)
	require.NoError(t, err)
	assert.Equal(t, string(content), string(again))
}

func TestWhatIsNoTableIsRefused(t *testing.T) {
	for _, line := range []string{"vllm:a\tgauge\t\t0.1.0", "vllm:a\tgauge\t\t0.1.0\t0.1.0"} {
		_, err := readTable(bytes.NewReader([]byte(line)))
		assert.ErrorContains(t, err, "not a line of the table")
	}
	empty := &table{families: map[string]*family{}}
	assert.ErrorContains(t, empty.add(bytes.NewReader([]byte("0.1.0\tvllm:a"))), "not a line of families.py")
	assert.ErrorContains(t, empty.add(bytes.NewReader([]byte("new\tvllm:a\tgauge\t\ta.py\thelp"))), "not a release")
}
