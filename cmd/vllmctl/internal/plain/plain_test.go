package plain_test

import (
	"encoding/json"
	"io"
	"math"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/plain"
)

func TestTextOfAnotherMachineBecomesOnePrintableLine(t *testing.T) {
	for text, want := range map[string]string{
		"vLLM 0.20": "vLLM 0.20", "a\x1b[2Jb": "a?[2Jb", "a\tb\nc\r": "a b c ", "\xff": "?", "a\u202eb": "a?b", "größer 模型": "größer 模型", "": "",
		"a\u2028b": "a b", "\ufffd": "?",
	} {
		assert.Equal(t, want, plain.Text(text, 0), "%q", text)
	}
	assert.Equal(t, "abcdefg...", plain.Text("abcdefghijk", 10))
	assert.Equal(t, "abcdefghij", plain.Text("abcdefghij", 10))
	assert.Equal(t, "模...", plain.Text("模型模型", 8), "cut between two characters")
}

func FuzzText(f *testing.F) {
	f.Add("a\x1b模\xff", 9)
	f.Fuzz(func(t *testing.T, text string, most int) {
		got := plain.Text(text, most)
		for _, r := range got {
			assert.True(t, unicode.IsPrint(r))
		}
		if most >= 4 {
			assert.LessOrEqual(t, len(got), most)
		}
		assert.True(t, utf8.ValidString(got))
		assert.Equal(t, got, plain.Text(got, most))
	})
}

// What is read back is what was written, and nothing in between acts on a terminal.
func TestJSONHasNoCharacterThatActsOnATerminal(t *testing.T) {
	value := map[string]string{"a\u009b2J": "\u0085\u202e\x7f\x1b\u2028\U000e0001 größer 模型 😀 <&>"}
	for _, indent := range []string{"", "  "} {
		var out strings.Builder
		require.NoError(t, plain.JSON(&out, value, indent))
		for _, r := range out.String() {
			assert.True(t, r == '\n' || unicode.IsPrint(r), "%U in %s", r, out.String())
		}
		assert.Contains(t, out.String(), "größer 模型 😀 <&>")
		var back map[string]string
		require.NoError(t, json.Unmarshal([]byte(out.String()), &back))
		assert.Equal(t, value, back)
	}
	assert.Error(t, plain.JSON(io.Discard, math.NaN(), ""))
}
