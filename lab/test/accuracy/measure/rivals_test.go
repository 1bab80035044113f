package main

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

const repository = "../../../.."

// Each rival judges the tape of a story, and what it says is read beside the results of the processor. What other
// sources gave, or another set, is not.
func TestRivalsAreReadBesideTheProcessor(t *testing.T) {
	t.Parallel()
	kept, err := newTapes(t.TempDir(), repository)
	require.NoError(t, err)
	story := &judge.Story{
		Name: "a story", Servers: []engine.Config{{
			Model: engine.Llama8B(), FrontEnd: engine.DefaultFrontEnd(), Workload: engine.Chat(2), Semantics: judge.Semantics(),
		}},
		Length: 14 * time.Minute,
	}
	_, err = kept.play(t.Context(), story)
	require.NoError(t, err)
	folder := t.TempDir()
	for flag, want := range map[string][2]string{
		// After 12 minutes only the one of ten minutes knows what is usual.
		"nsigma": {"unknown", "unknown"}, "nsigma-quiet": {"unknown", "healthy"}, "wire": {"healthy", "healthy"},
	} {
		rival, err := rivalOf(flag)
		require.NoError(t, err)
		kept.open = rival.open
		played, err := kept.replay(t.Context(), story)
		require.NoError(t, err)
		require.Len(t, played.Lines, 14)
		assert.Equal(t, want, [2]string{played.Lines[5].Condition, played.Lines[13].Condition}, flag)
		made, err := rival.fingerprint(repository)
		require.NoError(t, err)
		if flag == "nsigma" {
			made = "other sources"
		}
		j := open(t, rival.journal(folder, "tuning"), made)
		require.NoError(t, j.Put(newRecord(meta(), played)))
	}
	got, err := readRivals(folder, "tuning", repository)
	require.NoError(t, err)
	require.Len(t, got, 2)
	assert.Equal(t, "NSigma of 10 quiet minutes", got[0].Name)
	assert.Equal(t, "rules on vLLM's own names", got[1].Name)
	assert.Equal(t, meta().Name, got[1].Records[0].Name)
	got, err = readRivals(folder, "heldout", repository)
	require.NoError(t, err)
	assert.Empty(t, got)
	path := rivalMethods[0].journal(folder, "heldout")
	require.NoError(t, os.WriteFile(path, []byte("broken\n"), 0o600))
	_, err = readRivals(folder, "heldout", repository)
	require.ErrorContains(t, err, path)
}

func TestAMethodIsARivalOrTheProcessor(t *testing.T) {
	t.Parallel()
	rival, err := rivalOf("")
	require.NoError(t, err)
	assert.Nil(t, rival)
	_, err = rivalOf("other")
	require.ErrorContains(t, err, `-method "other"`)
}
