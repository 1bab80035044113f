package exposition

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
)

// lineLexer reads the lines of OpenMetrics with Prometheus's parser, each as a body of its own:
// the parser does not notice every error before the next line, and a quoted name may run over
// a line's end. It also reads the comments of the text format, which expfmt cannot: that refuses
// the second HELP line of a family, and Ray's agents write one.
type lineLexer struct {
	buffer []byte
	words  words
	last   []Label
}

var eofLine = []byte("# EOF")

// parse returns the parser after its first entry, or nil where the line does not
// hold exactly one entry of the wanted kind.
func (l *lineLexer) parse(line []byte, want textparse.Entry) textparse.Parser {
	l.buffer = append(l.buffer[:0], line...)
	l.buffer = append(l.buffer, "\n# EOF\n"...)
	parser := textparse.NewOpenMetricsParser(l.buffer, nil)
	if entry, err := parser.Next(); err != nil || entry != want {
		return nil
	}
	return parser
}

// sampleLine reads one sample line with its exemplar.
func (l *lineLexer) sampleLine(body []byte, raw *rawLine) {
	parser := l.parse(body[raw.start:raw.end], textparse.EntrySeries)
	if parser == nil {
		raw.reason = l.reasonOf(body, raw)
		return
	}
	var set labels.Labels
	parser.Labels(&set)
	_, _, value := parser.Series()
	var found exemplar.Exemplar
	hasExemplar := parser.Exemplar(&found)
	if _, err := parser.Next(); !errors.Is(err, io.EOF) {
		raw.reason = ReasonBadTimestamp
		return
	}
	if math.Float64bits(value) != math.Float64bits(raw.value) {
		raw.reason = ReasonBadValue
		return
	}
	if raw.reason = l.take(set, &raw.sample); raw.reason != ReasonNone {
		return
	}
	if hasExemplar {
		raw.exemplar = &Exemplar{Value: found.Value, Timestamp: found.Ts, HasTimestamp: found.HasTs}
		found.Labels.Range(func(label labels.Label) {
			raw.exemplar.Labels = append(raw.exemplar.Labels,
				Label{Name: strings.Clone(label.Name), Value: strings.Clone(label.Value)})
		})
		if tooManyCharacters(raw.exemplar.Labels) {
			raw.exemplar.Labels = nil
		}
	}
}

// take copies a label set. It checks what textparse leaves to the scrape loop: that names
// are valid and unique.
func (l *lineLexer) take(set labels.Labels, s *sample) Reason {
	reason, before := ReasonNone, ""
	set.Range(func(label labels.Label) {
		switch {
		case label.Name == before || !model.UTF8Validation.IsValidLabelName(label.Name):
			reason = ReasonBadLabels
		case label.Name == model.MetricNameLabel:
			s.name = l.words.intern(label.Value)
		default:
			s.add(l.words, label.Name, label.Value)
		}
		before = label.Name
	})
	if reason == ReasonNone && !model.UTF8Validation.IsValidMetricName(s.name) {
		reason = ReasonBadName
	}
	l.last = s.shareLabels(l.words, l.last)
	return reason
}

// reasonOf finds out what is wrong with a line whose value is right, by parsing its
// parts.
func (l *lineLexer) reasonOf(body []byte, raw *rawLine) Reason {
	good := func(parts ...[]byte) bool {
		return l.parse(bytes.Join(parts, nil), textparse.EntrySeries) != nil
	}
	name, set, value := body[raw.name:raw.nameEnd], body[raw.set:raw.setEnd], []byte(" 1")
	switch {
	case good(body[raw.start:raw.numberEnd]):
		return ReasonBadTimestamp
	case raw.name > raw.start, len(name) > 0 && !good(name, value):
		return ReasonBadName
	case len(name) == 0 && good([]byte("x"), set, value):
		return ReasonBadName
	case len(set) > 0 && !good([]byte("x"), set, value):
		return ReasonBadLabels
	}
	// The remaining cause is a wrong number of blanks.
	return ReasonBadValue
}

// comment reads a HELP, TYPE or UNIT line.
func (l *lineLexer) comment(body []byte, raw *rawLine, d Dialect) {
	var name, text []byte
	var good bool
	if d == DialectText {
		name, text, good = textComment(body[raw.name:raw.end])
	} else {
		name, text, good = l.openMetricsComment(body[raw.start:raw.end], raw.kind)
	}
	if raw.kind == lineType {
		text = bytes.TrimRight(text, " \t")
	}
	raw.meta = meta{line: raw.kind, name: string(name), text: cutHelp(text)}
	if body[raw.name] == '"' {
		raw.meta.name = unescapeName.Replace(raw.meta.name)
	}
	good = good && model.UTF8Validation.IsValidMetricName(raw.meta.name)
	switch {
	case !good:
	case raw.kind == lineUnit:
		good = unitFits(raw.meta.text)
	case raw.kind == lineType && raw.meta.text == "":
		// As with expfmt, a TYPE line without a type is a plain comment, not an error.
		raw.kind = linePlain
	case raw.kind == lineType:
		raw.meta.kind, good = kindOf(raw.meta.text)
	}
	if !good {
		raw.reason = ReasonBadComment
	}
}

// openMetricsComment returns the name, with its escapes if it was quoted, and the text of a comment.
func (l *lineLexer) openMetricsComment(line []byte, kind lineKind) (name, text []byte, good bool) {
	want := map[lineKind]textparse.Entry{lineHelp: textparse.EntryHelp, lineType: textparse.EntryType, lineUnit: textparse.EntryUnit}[kind]
	parser := l.parse(line, want)
	if parser == nil {
		return nil, nil, false
	}
	switch kind {
	case lineType:
		name, kind := parser.Type()
		return name, []byte(kind), true
	case lineUnit:
		name, text = parser.Unit()
	default:
		name, text = parser.Help()
	}
	return name, text, true
}

// textComment is the same for what follows the keyword in the text format. It draws the lines as
// Prometheus's parser does.
func textComment(line []byte) (name, text []byte, good bool) {
	end := 0
	if line[0] == '"' {
		if end = scanQuoted(line, 0); end > len(line) {
			return nil, nil, false
		}
		name = line[1 : end-1]
	} else {
		for end < len(line) && (isNameByte(line[end]) || end > 0 && line[end]-'0' <= 9) {
			end++
		}
		name = line[:end]
	}
	// The parser takes whatever byte follows the name as the blank.
	text = bytes.TrimLeft(line[min(end+1, len(line)):], " \t")
	good = utf8.Valid(text) && bytes.IndexByte(line[:min(end+1, len(line))], 0) < 0
	if bytes.IndexByte(text, '\\') >= 0 {
		text = []byte(unescapeHelp.Replace(string(text)))
	}
	return name, text, good
}

var (
	unescapeName = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\"`, `"`)
	unescapeHelp = strings.NewReplacer(`\\`, `\`, `\n`, "\n")
)

// WholeLines returns the complete lines of a body whose sender did not declare its end. A
// last line without a line end may be cut within its number, and such a number cannot be
// recognized. Only OpenMetrics marks the end of a body; complete reports whether the mark
// is present.
func WholeLines(body []byte, d Dialect) (whole []byte, complete bool) {
	if d == DialectOpenMetrics && endsWithEOF(body) {
		return body, true
	}
	return body[:bytes.LastIndexByte(body, '\n')+1], false
}

// endsWithEOF reports whether the body's last line is OpenMetrics' end mark. Blank lines
// after it are ignored.
func endsWithEOF(body []byte) bool {
	body = bytes.TrimRight(body, " \t\r\n")
	return bytes.HasSuffix(body, eofLine) &&
		(len(body) == len(eofLine) || body[len(body)-len(eofLine)-1] == '\n')
}
