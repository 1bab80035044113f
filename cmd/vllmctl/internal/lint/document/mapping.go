package document

import (
	"strings"
	"unicode/utf8"
)

// style is how a scalar is written.
type style uint8

const (
	styleNone style = iota // A number or another scalar without places.
	styleJSON
	stylePlain
	styleSingle
	styleDouble
	styleLiteral
	styleFolded
)

// mapping says where each byte of a scalar's text is in the text of the document. A byte
// that is part of an escape has the place of the whole escape.
type mapping struct {
	// exact is false where the places are not known. Then nothing can be changed.
	exact      bool
	start, end []int32
	// from and to are the limits of the scalar.
	from, to int
}

func (m *mapping) add(start, end, bytes int) {
	for range bytes {
		m.start = append(m.start, int32(start))
		m.end = append(m.end, int32(end))
	}
	m.to = end
}

// mapping finds the places by reading the scalar again beside the text that the library has
// read. If the two differ, the places are not known.
func (n *Node) mapping() *mapping {
	if n.where != nil {
		return n.where
	}
	s := &scanner{raw: n.doc.text, at: n.start, want: n.Text}
	s.m = &mapping{from: n.start, to: n.start}
	if n.style != styleJSON && n.style != styleNone {
		s.properties()
		s.m.from, s.m.to = s.at, s.at
	}
	ok := false
	switch n.style {
	case styleJSON:
		ok = s.quoted('"', true)
	case styleDouble:
		ok = s.quoted('"', false)
	case styleSingle:
		ok = s.single()
	case stylePlain:
		ok = s.plain()
	case styleLiteral:
		ok = s.literal()
	case styleFolded:
		ok = s.folded()
	case styleNone:
	}
	s.m.exact = ok && len(s.m.start) == len(n.Text)
	n.where = s.m
	return s.m
}

// scanner reads a scalar and compares it with the wanted text.
type scanner struct {
	raw  string
	at   int
	want string
	done int
	m    *mapping
}

func (s *scanner) rest() string { return s.raw[min(s.at, len(s.raw)):] }

// properties skips the anchor and the tag of a scalar.
func (s *scanner) properties() {
	for strings.HasPrefix(s.rest(), "&") || strings.HasPrefix(s.rest(), "!") {
		for s.at < len(s.raw) && !strings.ContainsRune(" \t\r\n", rune(s.raw[s.at])) {
			s.at++
		}
		for s.at < len(s.raw) && strings.ContainsRune(" \t\r\n", rune(s.raw[s.at])) {
			s.at++
		}
	}
}

// take accepts bytes of the wanted text that are written as the next length bytes.
func (s *scanner) take(length int, text string) bool {
	if !strings.HasPrefix(s.want[s.done:], text) {
		return false
	}
	s.m.add(s.at, s.at+length, len(text))
	s.at += length
	s.done += len(text)
	return true
}

// lineBreak returns the length of the line break that a text begins with.
func lineBreak(text string) int {
	switch {
	case strings.HasPrefix(text, "\r\n"):
		return 2
	case strings.HasPrefix(text, "\n"), strings.HasPrefix(text, "\r"):
		return 1
	}
	return 0
}

func blanks(text string) int { return len(text) - len(strings.TrimLeft(text, " \t")) }

// fold accepts the end of a line in a quoted or plain scalar, with the blanks around it.
// more is false if there is none here.
func (s *scanner) fold() (more, ok bool) {
	at := s.at + blanks(s.rest())
	if lineBreak(s.raw[at:]) == 0 {
		return false, true
	}
	breaks := 0
	for {
		length := lineBreak(s.raw[at:])
		if length == 0 {
			break
		}
		at += length
		breaks++
		at += blanks(s.raw[at:])
	}
	text := " "
	if breaks > 1 {
		text = strings.Repeat("\n", breaks-1)
	}
	return true, s.take(at-s.at, text)
}

func (s *scanner) char() bool {
	_, size := utf8.DecodeRuneInString(s.rest())
	return size > 0 && s.take(size, s.rest()[:size])
}

func (s *scanner) plain() bool {
	for s.done < len(s.want) {
		more, ok := s.fold()
		if !ok {
			return false
		}
		if !more && !s.char() {
			return false
		}
	}
	return true
}

func (s *scanner) single() bool {
	if !strings.HasPrefix(s.rest(), "'") {
		return false
	}
	s.at++
	s.m.from = s.at
	for {
		switch {
		case strings.HasPrefix(s.rest(), "''"):
			if !s.take(2, "'") {
				return false
			}
			continue
		case strings.HasPrefix(s.rest(), "'"):
			return s.done == len(s.want)
		case s.rest() == "":
			return false
		}
		more, ok := s.fold()
		if !ok || !more && !s.char() {
			return false
		}
	}
}

// literal compares line by line: what precedes the wanted line is the indentation.
func (s *scanner) literal() bool {
	if !s.header() {
		return false
	}
	for s.done < len(s.want) {
		line, _, _ := strings.Cut(s.want[s.done:], "\n")
		raw := s.rest()
		if end := strings.IndexAny(raw, "\r\n"); end >= 0 {
			raw = raw[:end]
		}
		spaces := len(raw) - len(line)
		switch {
		case line == "" && strings.Trim(raw, " ") == "":
			spaces = len(raw)
		case spaces < 0 || raw[spaces:] != line || strings.Trim(raw[:spaces], " ") != "":
			return false
		}
		s.at += spaces
		for range line {
			if !s.char() {
				return false
			}
		}
		if s.done < len(s.want) {
			if !s.take(lineBreak(s.rest()), "\n") {
				return false
			}
		}
	}
	return true
}

// header skips the indicator of a block scalar and what follows it on its line.
func (s *scanner) header() bool {
	if !strings.HasPrefix(s.rest(), "|") && !strings.HasPrefix(s.rest(), ">") {
		return false
	}
	end := strings.IndexAny(s.rest(), "\r\n")
	if end < 0 {
		return s.want == ""
	}
	s.at += end
	s.at += lineBreak(s.rest())
	s.m.from, s.m.to = s.at, s.at
	return true
}

func (s *scanner) folded() bool {
	if !s.header() {
		return false
	}
	for s.take(lineBreak(s.rest()), "\n") {
		continue
	}
	leading := len(s.want[s.done:]) - len(strings.TrimLeft(s.want[s.done:], " "))
	indent := len(s.rest()) - len(strings.TrimLeft(s.rest(), " ")) - leading
	if indent < 0 {
		return s.done == len(s.want)
	}
	for s.done < len(s.want) {
		if len(s.rest()) < indent || strings.Trim(s.rest()[:indent], " ") != "" {
			return false
		}
		s.at += indent
		for s.done < len(s.want) && lineBreak(s.rest()) == 0 {
			if !s.char() {
				return false
			}
		}
		if s.done < len(s.want) && !s.foldedBreaks() {
			return false
		}
	}
	return true
}

// foldedBreaks accepts the breaks between two lines of a folded scalar. One break is a blank,
// more are one less, and beside indented lines all of them stay.
func (s *scanner) foldedBreaks() bool {
	begin, at, breaks := s.at, s.at, 0
	for {
		length := lineBreak(s.raw[at:])
		if length == 0 {
			break
		}
		breaks++
		at += length
		line := s.raw[at:]
		if empty := len(line) - len(strings.TrimLeft(line, " ")); lineBreak(line[empty:]) > 0 {
			at += empty
		}
	}
	wanted := len(s.want[s.done:]) - len(strings.TrimLeft(s.want[s.done:], "\n"))
	switch {
	case breaks == 0:
		return false
	case wanted == 0 && breaks == 1:
		return s.take(at-begin, " ")
	case wanted == breaks || wanted == breaks-1 && wanted > 0:
		return s.take(at-begin, strings.Repeat("\n", wanted))
	}
	return wanted > 0 && s.done+wanted == len(s.want) && s.take(at-begin, strings.Repeat("\n", wanted))
}
