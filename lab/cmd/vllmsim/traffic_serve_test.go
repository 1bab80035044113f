package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

func TestServeReplaysATraceAndWritesRetriesIntoTheTruth(t *testing.T) {
	dir := t.TempDir()
	trace, story, truth := filepath.Join(dir, "t.csv"), filepath.Join(dir, "s.yaml"), filepath.Join(dir, "truth.jsonl")
	require.NoError(t, os.WriteFile(trace, []byte("arrival_s,prompt_tokens,output_tokens\n0,100,10\n1,200,20\n2,300,30\n"), 0o600))
	require.NoError(t, os.WriteFile(story, []byte(`about: x
length: 20m
workload: {trace: t.csv, rate: 7, retries: 1, retry_after: 1s}
changes: [{at: 1s, set: {error_rate: 1}}]
`), 0o600))
	var stdout, stderr bytes.Buffer
	args := []string{"serve", "--listen", "127.0.0.1:0", "--scenario", story, "--uptime", "1m", "--truth", truth}
	require.Zero(t, run(t.Context(), append(args, "--for", "10ms"), &stdout, &stderr), stderr.String())
	assert.Equal(t, "vllmsim: "+story+": workload.rate has no effect: the trace determines it\n", stderr.String())
	urls, stop := started(t, args...)
	fetch(t, urls[0])
	require.Zero(t, stop())
	written, err := os.ReadFile(truth)
	require.NoError(t, err)
	first := map[int]truthLine{}
	retries := 0
	for _, line := range bytes.Split(bytes.TrimSpace(written), []byte("\n")) {
		if bytes.Contains(line, []byte(`"injected"`)) {
			continue
		}
		var l truthLine
		require.NoError(t, json.Unmarshal(line, &l))
		if l.First == nil {
			first[l.ID] = l
			continue
		}
		retries++
		require.Less(t, l.ID, engine.ProcessIDs)
		require.Equal(t, first[*l.First].Prompt, l.Prompt)
		require.InDelta(t, first[*l.First].Ended+1, l.Arrived, 1e-9)
	}
	assert.Greater(t, retries, 20)
}
