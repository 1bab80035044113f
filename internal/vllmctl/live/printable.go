package live

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxName is the longest name that is kept of a server, a model, a version and so on, in
// bytes. A name of vLLM is a path at most.
const maxName = 300

// printable is a text of another machine as one line of at most most bytes. What cannot be
// printed, as control characters and marks that change the direction, becomes a question
// mark.
func printable(text string, most int) string {
	const more = "..."
	if len(text) > most {
		cut := most - len(more)
		for cut > 0 && !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut] + more
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			return '?'
		}
		return r
	}, text)
}
