package plain_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/plain"
)

// A terminal that shows the document carries nothing out, and a program reads the same text.
func TestADocumentHasOnlyCharactersThatCanBePrinted(t *testing.T) {
	text := "a\u0085b\u009b2J\u202ec\x7f\x1b\u2066\ufeff\U000e0041 <é 漢 \U0001f600>\n"
	var b bytes.Buffer
	require.NoError(t, plain.JSON(&b, map[string]any{text: []string{text}}))
	for _, forbidden := range []string{"\u0085", "\u009b", "\u202e", "\x7f", "\x1b", "\u2066", "\ufeff", "\U000e0041"} {
		assert.NotContains(t, b.String(), forbidden, "%q", forbidden)
	}
	assert.Contains(t, b.String(), "é 漢 \U0001f600", "what can be printed stays")
	assert.Contains(t, b.String(), "\n  ", "it is indented")
	var again map[string][]string
	require.NoError(t, json.Unmarshal(b.Bytes(), &again))
	assert.Equal(t, map[string][]string{text: {text}}, again)
}
