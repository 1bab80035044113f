// Package remote makes text that came from another machine fit for a log: a
// certificate, an API server or a discovery endpoint must not be able to forge a
// line, to fill the log or to make it repeat a secret of an address.
package remote

import (
	"regexp"
	"strings"
	"unicode"
)

// maxText is the most characters of a text that a log line repeats.
const maxText = 300

// address is a URL in a text, and query what may follow one without its host.
var (
	address = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^\s"'<>]*`)
	query   = regexp.MustCompile(`\?[^\s"]*`)
)

// Text returns a text as one line of at most 300 characters that can be printed,
// whose addresses have neither credentials nor a query.
func Text(text string) string {
	if len(text) > 16*maxText {
		text = text[:16*maxText]
	}
	text = address.ReplaceAllStringFunc(text, withoutSecrets)
	text = query.ReplaceAllString(text, "?...")
	var out strings.Builder
	n := 0
	for _, r := range text {
		n++
		if n > maxText {
			return out.String() + "..."
		}
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			r = '?'
		}
		out.WriteRune(r)
	}
	return out.String()
}

func withoutSecrets(text string) string {
	scheme, rest, _ := strings.Cut(text, "://")
	host, path := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		host, path = rest[:i], rest[i:]
	}
	if i := strings.LastIndex(host, "@"); i >= 0 {
		host = host[i+1:]
	}
	return scheme + "://" + host + path
}

// Printable reports whether every character of a text can be printed on a line.
func Printable(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar })
}
