package input

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// PatternMistake says what is wrong with a pattern that seems to be a regular expression; empty where
// nothing is.
func PatternMistake(pattern string) string {
	if i := strings.IndexAny(pattern, `[](){}|^$\`); i >= 0 {
		return fmt.Sprintf("the pattern %q has %q, and a pattern is not a regular expression: write * for any characters and ? for a single one", pattern, pattern[i])
	}
	return ""
}

// MatchPattern reports whether a pattern matches the whole text. "*" matches any number of
// characters, including "/", and "?" matches one. Case matters.
//
// On a mismatch it continues after the last star only, so that a hostile text costs at
// most len(pattern) * len(text).
func MatchPattern(pattern, text string) bool {
	p, t := 0, 0
	star, retry := -1, 0
	for t < len(text) {
		_, size := utf8.DecodeRuneInString(text[t:])
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, retry = p, t
			p++
		case p < len(pattern) && pattern[p] == '?':
			p++
			t += size
		case p < len(pattern) && pattern[p] == text[t]:
			p++
			t++
		case star >= 0:
			_, skipped := utf8.DecodeRuneInString(text[retry:])
			retry += skipped
			p, t = star+1, retry
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}
