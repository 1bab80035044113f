package remote

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTextIsOneLineWithoutSecrets(t *testing.T) {
	for in, want := range map[string]string{
		"plain words, 12 of them":               "plain words, 12 of them",
		"a\nb\rc\td\x1b[31me\u2028f\u202eg\x00": "a?b?c?d?[31me?f?g?",
		"\xff\xfe":                              "??",
		"Müller":                                "Müller",
		`Get "https://u:hunter2@h:1/p?t=hunter2": no`: `Get "https://h:1/p?...": no`,
		"see http://a@b@h/x and http://k:v@other":     "see http://h/x and http://other",
		"path /api?token=hunter2 failed":              "path /api?... failed",
	} {
		assert.Equal(t, want, Text(in), "%q", in)
	}
	long := Text(strings.Repeat("ä", 1<<20))
	assert.Equal(t, strings.Repeat("ä", 300)+"...", long)
}

func TestPrintable(t *testing.T) {
	assert.True(t, Printable("0.20.1 (ü)"))
	for _, text := range []string{"a\nb", "\x1b[2J", "\xff", "\u202e"} {
		assert.False(t, Printable(text), "%q", text)
	}
}
