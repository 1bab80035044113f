package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// A story is played once. Then its tape is what is played, also where the story would be
// another one now; a tape that is broken is an error that names it.
func TestAStoryIsPlayedOnceAndThenFromItsTape(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	kept, err := newTapes(folder, "../../../..")
	require.NoError(t, err)
	story := &judge.Story{
		Name: "a/b", Servers: []engine.Config{{
			Model: engine.Llama8B(), FrontEnd: engine.DefaultFrontEnd(), Workload: engine.Chat(2), Semantics: judge.Semantics(),
		}},
		Length: 3 * time.Minute,
	}
	first, err := kept.play(t.Context(), story)
	require.NoError(t, err)
	require.Len(t, first.Lines, 3)
	story.Length = time.Hour
	second, err := kept.play(t.Context(), story)
	require.NoError(t, err)
	assert.Equal(t, first, second)
	assert.True(t, kept.has("a/b"))
	assert.False(t, kept.has("other"))
	story.Name = "other"
	_, err = kept.replay(t.Context(), story)
	require.ErrorIs(t, err, os.ErrNotExist, "only stories with a tape are replayed")
	story.Name = "a/b"
	files, err := filepath.Glob(filepath.Join(folder, "*", "*"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	require.NoError(t, os.WriteFile(files[0], []byte("broken"), 0o600))
	_, err = kept.play(t.Context(), story)
	require.ErrorContains(t, err, files[0])
	require.ErrorContains(t, err, "remove it")
	story.Name, story.Length = "invalid", 0
	_, err = kept.play(t.Context(), story)
	require.Error(t, err)
	files, err = filepath.Glob(filepath.Join(folder, "*", "*"))
	require.NoError(t, err)
	assert.Len(t, files, 1, "nothing is left of a story that cannot be played")
}
