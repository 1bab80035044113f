package plain_test

import (
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"

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
