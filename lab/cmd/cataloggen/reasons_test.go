package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const smallReasons = `attributes:
  reason_lost:
    name_override: reason
    description: >-
      Why it is lost.<br>
      ` + "`late`" + `: after the bell<br>
      ` + "`torn`" + `: in two
    type: string
    enum: [late, torn]
  stage: {description: A stage., type: string}
telemetry:
  metrics:
    processor_vllm_lost_points: {attributes: [reason_lost]}
    processor_vllm_stages: {attributes: [stage]}
`

func TestReasonsBecomeATableOfTheReadme(t *testing.T) {
	root := t.TempDir()
	file := filepath.Join(root, "c", "metadata.yaml")
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(t, os.WriteFile(file, []byte(smallReasons), 0o600))
	parts, err := reasonParts(root, "c")
	require.NoError(t, err)
	assert.Equal(t, map[string]string{
		"reason_lost": "| Reason of `_lost_points` | What it means |\n|---|---|\n| `late` | after the bell |\n| `torn` | in two |\n",
	}, parts)
	for _, enum := range []string{"[late]", "[torn, late]", "[late, torn, wet]"} {
		require.NoError(t, os.WriteFile(file, []byte(strings.Replace(smallReasons, "[late, torn]", enum, 1)), 0o600))
		_, err = reasonParts(root, "c")
		assert.ErrorContains(t, err, "c/metadata.yaml: attribute reason_lost: its description needs a line", enum)
	}
}
