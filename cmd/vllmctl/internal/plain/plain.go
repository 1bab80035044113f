// Package plain makes text of other machines and files fit for a terminal.
package plain

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text returns a text as one line without characters that a terminal would carry out or hide:
// white space becomes a space, and what cannot be printed a question mark. A text of more
// than most bytes is cut between two characters and ends with "..."; most 0 means no limit.
func Text(text string, most int) string {
	const more = "..."
	if most > len(more) && len(text) > most {
		cut := most - len(more)
		for cut > 0 && !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut] + more
	}
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r) || r == unicode.ReplacementChar:
			return '?'
		}
		return r
	}, text)
}
