// Package remote makes text from other machines safe for a log. The text of a
// certificate, an API server or a discovery endpoint must not forge a line, fill the
// log or reveal a secret in an address.
package remote

import (
	"net/url"
	"regexp"
	"strings"
	"unicode"
)

// maxText is how many characters of a text a log line repeats at most.
const maxText = 300

// MaxInstance is how many bytes the host and the path of a target may have together. They name it
// in each line of the log. DNS allows 253 for a host.
const MaxInstance = 1 << 10

// address matches a URL in a text, and query the query of a URL without its host.
var (
	address = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^\s"'<>]*`)
	query   = regexp.MustCompile(`\?[^\s"]+`)
)

// Text returns a text as one printable line of at most 300 characters. Its addresses
// have neither credentials nor a query.
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
	if _, err := url.Parse(text); err != nil && strings.Contains(rest, "@") {
		return scheme + "://..." // The password may have a slash.
	}
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
