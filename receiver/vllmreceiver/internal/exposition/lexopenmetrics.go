package exposition

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
)

// openMetricsLexer reads lines with Prometheus's OpenMetrics parser, each as a
// body of its own: the parser does not notice every error before the next line,
// and a quoted name may run over a line's end.
type openMetricsLexer struct {
	buffer []byte
	words  words
	last   []Label
}

var eofLine = []byte("# EOF")

// parse returns the parser after its first entry, or nil where the line does not
// hold exactly one entry of the wanted kind.
func (l *openMetricsLexer) parse(line []byte, want textparse.Entry) textparse.Parser {
	l.buffer = append(l.buffer[:0], line...)
	l.buffer = append(l.buffer, "\n# EOF\n"...)
	parser := textparse.NewOpenMetricsParser(l.buffer, nil)
	if entry, err := parser.Next(); err != nil || entry != want {
		return nil
	}
	return parser
}

// sampleLine reads one sample line with its exemplar.
func (l *openMetricsLexer) sampleLine(body []byte, raw *rawLine) {
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
func (l *openMetricsLexer) take(set labels.Labels, s *sample) Reason {
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
	l.last = s.sortLabels(l.last)
	return reason
}

// reasonOf finds out what is wrong with a line whose value is right, by parsing its
// parts.
func (l *openMetricsLexer) reasonOf(body []byte, raw *rawLine) Reason {
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
func (l *openMetricsLexer) comment(line []byte, raw *rawLine) {
	want := textparse.EntryHelp
	switch raw.kind {
	case lineType:
		want = textparse.EntryType
	case lineUnit:
		want = textparse.EntryUnit
	}
	parser := l.parse(line, want)
	if parser == nil {
		raw.reason = ReasonBadComment
		return
	}
	var name, text []byte
	switch raw.kind {
	case lineType:
		var kind model.MetricType
		name, kind = parser.Type()
		text = []byte(kind)
	case lineUnit:
		name, text = parser.Unit()
	default:
		name, text = parser.Help()
	}
	raw.meta.name = commentName(name, line[raw.name-raw.start] == '"')
	raw.meta.text = cutHelp(text)
	checkComment(raw)
}

// endsWithEOF reports whether the body's last line is OpenMetrics' end mark. Blank lines
// after it are ignored.
func endsWithEOF(body []byte) bool {
	body = bytes.TrimRight(body, " \t\r\n")
	return bytes.HasSuffix(body, eofLine) &&
		(len(body) == len(eofLine) || body[len(body)-len(eofLine)-1] == '\n')
}
