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
		`Get "http://u:hunter2/x@host/p": no`:         `Get "http://...": no`,
		"see http://a@b@h/x and http://k:v@other":     "see http://h/x and http://other",
		"path /api?token=hunter2 failed":              "path /api?... failed",
		"did you mean a? Or b?":                       "did you mean a? Or b?",
		"ask http://@host/x":                          "ask http://host/x",
		"ask http://u:hunter2@":                       "ask http://",
		"a http:///path of no host":                   "a http:///path of no host",
		"a http:///a@b of no host":                    "a http:///a@b of no host",
		"a http://?hunter2":                           "a http://?...",
		"a http://host/a@b of a path":                 "a http://host/a@b of a path",
		"a http://host#u:x@y":                         "a http://host#u:x@y",
		"git+ssh://u:hunter2@host":                    "git+ssh://host",
	} {
		assert.Equal(t, want, Text(in), "%q", in)
	}
	assert.Equal(t, strings.Repeat("ä", 300), Text(strings.Repeat("ä", 300)))
	assert.Equal(t, strings.Repeat("ä", 300)+"...", Text(strings.Repeat("ä", 301)))
	assert.Equal(t, strings.Repeat("ä", 300)+"...", Text(strings.Repeat("ä", 1<<20)))
}

// Only the first 4800 bytes are looked at, so that a long text costs little. A secret
// behind them is cut off as well.
func TestTheRestOfALongTextIsIgnored(t *testing.T) {
	address := "http://host/" + strings.Repeat("?", 4700)
	assert.Equal(t, "http://host/?...", Text(address))
	// 12 bytes, then 4788 of the query, which are the last that count.
	assert.Equal(t, "http://host/?...", Text("http://host/"+strings.Repeat("?", 4788)+" end"))
	assert.Equal(t, "http://host/?... end", Text("http://host/"+strings.Repeat("?", 4784)+" end"))
}

func TestPrintable(t *testing.T) {
	assert.True(t, Printable("0.20.1 (ü)"))
	for _, text := range []string{"a\nb", "\x1b[2J", "\xff", "\u202e"} {
		assert.False(t, Printable(text), "%q", text)
	}
}
