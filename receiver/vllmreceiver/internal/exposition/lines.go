package exposition

import (
	"bytes"
)

// lineKind is what a line is before it is read closely.
type lineKind uint8

const (
	lineBlank lineKind = iota
	// linePlain is a comment without a meaning for parsers.
	linePlain
	lineHelp
	lineType
	lineUnit
	lineSample
)

// rawLine is one line of the body while it is parsed.
type rawLine struct {
	kind   lineKind
	reason Reason
	// start and end are the line in the body, without its end.
	start, end int
	// name and nameEnd are the metric's name, in comments too, and set and setEnd
	// the labels from brace to brace.
	name, nameEnd, set, setEnd int
	// number and numberEnd are a sample's value, and hole is where the bytes
	// that change from scrape to scrape end: after the timestamp, if there is one.
	number, numberEnd, hole int
	value                   float64
	// loose lines are good, but the bytes before the value do not determine its place.
	loose bool
	// sample is what the parser made of a sample line, and meta of a comment.
	sample   sample
	meta     meta
	exemplar *Exemplar
}

// maxLabels limits the labels of one line, because the time of expfmt's check for duplicate
// names grows with the square of their number. vLLM's longest lines have about thirty.
const maxLabels = 128

// lineAt returns the end of the line that begins at pos, without "\n" or any number
// of "\r" before it, and the start of the next line.
func lineAt(body []byte, pos int) (end, next int) {
	end, next = len(body), len(body)
	if i := bytes.IndexByte(body[pos:], '\n'); i >= 0 {
		end, next = pos+i, pos+i+1
	}
	for end > pos && body[end-1] == '\r' {
		end--
	}
	return end, next
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

func skipBlanks(b []byte, i int) int {
	for i < len(b) && isBlank(b[i]) {
		i++
	}
	return i
}

func skipWord(b []byte, i int) int {
	for i < len(b) && !isBlank(b[i]) {
		i++
	}
	return i
}

// classify returns the kind of a line and, for HELP, TYPE and UNIT, where the metric's
// name begins. It draws the line between comments that mean
// something and others as expfmt does.
func classify(line []byte, d Dialect) (kind lineKind, name int) {
	i := skipBlanks(line, 0)
	if i == len(line) || line[i] == '\r' && len(bytes.Trim(line, " \t\r")) == 0 {
		return lineBlank, 0
	}
	if line[i] != '#' {
		return lineSample, 0
	}
	i = skipBlanks(line, i+1)
	word := i
	i = skipWord(line, i)
	switch string(line[word:i]) {
	case "HELP":
		kind = lineHelp
	case "TYPE":
		kind = lineType
	case "UNIT":
		// The text format has no units: there it is a comment like any other.
		if d != DialectOpenMetrics {
			return linePlain, 0
		}
		kind = lineUnit
	default:
		return linePlain, 0
	}
	if i = skipBlanks(line, i); i == len(line) {
		return linePlain, 0
	}
	return kind, i
}

// scanName returns the end of the metric name at i, or i where there is none. As in expfmt,
// a quote may open anywhere in a name, and its end ends the name.
func scanName(line []byte, i int) int {
	if i == len(line) || !(isNameByte(line[i]) || line[i] == '"') {
		return i
	}
	for i < len(line) {
		switch {
		case line[i] == '"':
			return scanQuoted(line, i)
		case isNameByte(line[i]) || line[i]-'0' <= 9:
			i++
		default:
			return i
		}
	}
	return i
}

func isNameByte(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c == ':'
}

// scanQuoted returns the index after the quoted string at i, or len(line)+1
// where the string does not end.
func scanQuoted(line []byte, i int) int {
	for i++; i < len(line); i++ {
		switch line[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(line) + 1
}

// braces has the size of a label set that is not yet read.
type braces struct {
	// end is the index after it; 0 if it does not end.
	end int
	// labels is about how many labels it has.
	labels int
	// name and value are the lengths of the longest of each.
	name, value int
}

// scanBraces measures the label set that opens at i.
func scanBraces(line []byte, i int) braces {
	var b braces
	i++
	begin, isValue := i, false
	for i < len(line) {
		switch line[i] {
		case '"':
			end := scanQuoted(line, i)
			if isValue {
				b.value = max(b.value, end-i-2)
			} else {
				b.name = max(b.name, end-i-2)
			}
			i = end
			continue
		case '=':
			b.labels++
			b.name = max(b.name, i-begin)
			isValue = true
		case ',':
			begin, isValue = i+1, false
		case '}':
			b.end = i + 1
			return b
		}
		i++
	}
	return b
}

// tooLong returns the reason if a part of a line is beyond the limits.
func tooLong(name int, b braces) Reason {
	switch {
	case name > MaxName:
		return ReasonNameTooLong
	case b.name > MaxName:
		return ReasonLabelNameTooLong
	case b.value > MaxLabelValue:
		return ReasonLabelValueTooLong
	}
	return ReasonNone
}

// scanSample finds the value of a sample line and what surrounds it. It checks everything
// except names and labels, which the parser checks. It finds the same positions as the
// parser: expfmt also takes the first brace outside quotes as the end of the labels.
func scanSample(body []byte, raw *rawLine, d Dialect) {
	line := body[raw.start:raw.end]
	for len(line) > 0 && (isBlank(line[len(line)-1]) || line[len(line)-1] == '\r') {
		// Prometheus accepts blanks at a line's end; expfmt alone would not.
		line = line[:len(line)-1]
	}
	raw.end = raw.start + len(line)
	first := skipBlanks(line, 0)
	i := scanName(line, first)
	if i > len(line) || i == first && line[i] != '{' {
		raw.reason = ReasonBadName
		return
	}
	raw.name, raw.nameEnd = raw.start+first, raw.start+i
	i = skipBlanks(line, i)
	hasSet := i < len(line) && line[i] == '{'
	var set braces
	if hasSet {
		set = scanBraces(line, i)
		if set.end == 0 || set.labels > maxLabels {
			raw.reason = ReasonBadLabels
			return
		}
		raw.set, raw.setEnd = raw.start+i, raw.start+set.end
		i = skipBlanks(line, set.end)
	}
	if raw.reason = tooLong(raw.nameEnd-raw.name, set); raw.reason != ReasonNone {
		return
	}
	if i == len(line) {
		raw.reason = ReasonBadValue
		return
	}
	raw.loose = !hasSet && !isBlank(line[i-1])
	raw.number = raw.start + i
	end := skipWord(line, i)
	raw.numberEnd, raw.hole = raw.start+end, raw.start+len(line)
	value, n := number(line[i:end])
	if n == 0 || n != end-i {
		raw.reason = ReasonBadValue
		return
	}
	raw.value = value
	if d == DialectText && !textTimestamp(line[end:]) {
		raw.reason = ReasonBadTimestamp
	}
}
