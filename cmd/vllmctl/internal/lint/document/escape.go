package document

import (
	"strconv"
	"strings"
	"unicode/utf16"
)

// short are the escapes of one character: those of JSON, and those that only YAML has.
var (
	shortJSON = map[byte]string{'"': `"`, '\\': `\`, '/': "/", 'b': "\b", 'f': "\f", 'n': "\n", 'r': "\r", 't': "\t"}
	shortYAML = map[byte]string{
		'0': "\x00", 'a': "\a", 'v': "\v", 'e': "\x1b", ' ': " ", '\t': "\t", 'N': "\u0085", '_': "\u00a0", 'L': "\u2028", 'P': "\u2029",
	}
)

// quoted reads a text in double quotes.
func (s *scanner) quoted(quote byte, json bool) bool {
	if s.rest() == "" || s.raw[s.at] != quote {
		return false
	}
	s.at++
	s.m.from = s.at
	for s.at < len(s.raw) {
		switch c := s.raw[s.at]; {
		case c == quote:
			return s.done == len(s.want)
		case c == '\\':
			if !s.escape(json) {
				return false
			}
			continue
		}
		if !json {
			more, ok := s.fold()
			if !ok {
				return false
			}
			if more {
				continue
			}
		}
		if !s.char() {
			return false
		}
	}
	return false
}

func (s *scanner) escape(json bool) bool {
	rest := s.rest()
	if len(rest) < 2 {
		return false
	}
	if text, known := shortJSON[rest[1]]; known {
		return s.take(2, text)
	}
	if json {
		if rest[1] != 'u' {
			return false
		}
		return s.unicodeJSON(rest)
	}
	if text, known := shortYAML[rest[1]]; known {
		return s.take(2, text)
	}
	if length := lineBreak(rest[1:]); length > 0 {
		// The line continues: neither the break nor the blanks after it are part of the text.
		s.at += 1 + length
		for {
			blank := blanks(s.rest())
			next := lineBreak(s.rest()[blank:])
			if next == 0 {
				s.at += blank
				return true
			}
			// An empty line after a continued one is a line break.
			if !s.take(blank+next, "\n") {
				return false
			}
		}
	}
	digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[rest[1]]
	r, ok := hex(rest, digits)
	return ok && s.take(2+digits, string(r))
}

func (s *scanner) unicodeJSON(rest string) bool {
	r, ok := hex(rest, 4)
	if !ok {
		return false
	}
	if !utf16.IsSurrogate(r) {
		return s.take(6, string(r))
	}
	if len(rest) > 6 && rest[6] == '\\' && len(rest) > 7 && rest[7] == 'u' {
		if low, ok := hex(rest[6:], 4); ok && utf16.DecodeRune(r, low) != '\ufffd' {
			return s.take(12, string(utf16.DecodeRune(r, low)))
		}
	}
	return s.take(6, "\ufffd")
}

// hex returns the character of an escape with a number of digits.
func hex(rest string, digits int) (rune, bool) {
	if digits == 0 || len(rest) < 2+digits {
		return 0, false
	}
	v, err := strconv.ParseUint(rest[2:2+digits], 16, 32)
	if err != nil || v > 0x10ffff {
		return 0, false
	}
	return rune(v), true
}

// encode writes a text of one line in a style.
func encode(text string, as style) string {
	switch as {
	case styleSingle:
		return strings.ReplaceAll(text, "'", "''")
	case styleJSON, styleDouble:
		return strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text)
	case styleNone, stylePlain, styleLiteral, styleFolded:
	}
	return text
}
