package exposition

import (
	"bytes"
	"errors"
	"math"
	"strconv"
	"sync"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// batchBytes limits the text that waits for a parser, and with it the memory of the result.
const batchBytes = 64 << 10

// textLexer reads sample lines with expfmt.
//
// expfmt groups the lines of histograms and summaries and forgets which line a
// number is from. So it gets the sample lines without the comments, with each value
// replaced by the line's place in the batch plus one. It returns every line as an
// untyped metric whose value is this place.
type textLexer struct {
	parser expfmt.TextParser
	reader bytes.Reader
	words  words

	// buffer is the text for expfmt, lines are its lines as indices of raw lines,
	// and starts where each begins in the buffer.
	buffer        []byte
	lines, starts []int
	// failures counts the lines that expfmt refused.
	failures int
}

// add takes line i of raws. Its name and labels are read by the next flush.
func (l *textLexer) add(body []byte, raws []rawLine, i int) {
	raw := &raws[i]
	// expfmt reads a set of labels that lacks a name into the metric of the line
	// before. A line that begins with a brace is therefore read alone.
	alone := raw.nameEnd == raw.name
	if alone || len(l.buffer) > batchBytes {
		l.flush(body, raws)
	}
	l.starts = append(l.starts, len(l.buffer))
	l.lines = append(l.lines, i)
	l.buffer = append(l.buffer, body[raw.start:raw.number]...)
	l.buffer = append(l.buffer, ' ')
	l.buffer = strconv.AppendInt(l.buffer, int64(len(l.lines)), 10)
	l.buffer = append(l.buffer, body[raw.numberEnd:raw.end]...)
	l.buffer = append(l.buffer, '\n')
	if alone {
		l.flush(body, raws)
	}
}

// flush reads the queue with expfmt, which finishes all lines that were added. expfmt stops
// at the first bad line, so it is started again after each.
func (l *textLexer) flush(body []byte, raws []rawLine) {
	for next := 0; next < len(l.lines); {
		l.reader.Reset(l.buffer[l.starts[next]:])
		families, err := l.parser.TextToMetricFamilies(&l.reader)
		bad := len(l.lines)
		if err != nil {
			bad = next
			var parseError expfmt.ParseError
			if errors.As(err, &parseError) && parseError.Line >= 1 {
				bad = min(next+parseError.Line-1, len(l.lines)-1)
			}
		}
		for _, family := range families {
			l.collect(family, raws, next, bad)
		}
		for ; next < bad; next++ {
			if raw := &raws[l.lines[next]]; raw.sample.name == "" {
				// expfmt returned nothing for this line: no sample is better than a wrong one.
				raw.reason = ReasonBadLabels
			}
		}
		if bad < len(l.lines) {
			l.failures++
			raw := &raws[l.lines[bad]]
			raw.reason = l.reasonOf(body, raw)
			next = bad + 1
		}
	}
	l.buffer, l.lines, l.starts = l.buffer[:0], l.lines[:0], l.starts[:0]
}

// collect takes the lines from..to-1 of the queue out of a family.
func (l *textLexer) collect(family *dto.MetricFamily, raws []rawLine, from, to int) {
	name := l.words.intern(family.GetName())
	var last []Label
	for _, metric := range family.GetMetric() {
		if metric.GetUntyped() == nil {
			continue
		}
		place := metric.GetUntyped().GetValue()
		if place != math.Trunc(place) || place <= float64(from) || place > float64(to) {
			continue
		}
		raw := &raws[l.lines[int(place)-1]]
		if raw.sample.name != "" {
			continue
		}
		for _, label := range metric.GetLabel() {
			raw.sample.add(l.words, label.GetName(), label.GetValue())
		}
		last = raw.sample.shareLabels(l.words, last)
		raw.sample.name = name
	}
}

// reasonOf finds out what is wrong with a line whose value and timestamp are right: its
// name or its labels.
func (l *textLexer) reasonOf(body []byte, raw *rawLine) Reason {
	named := raw.nameEnd > raw.name
	// If expfmt refuses the name alone, the name is bad. If it accepts the labels after
	// another name, only the name is missing.
	alone := append([]byte(nil), body[raw.name:raw.nameEnd]...)
	if !named {
		alone = append([]byte("x"), body[raw.set:raw.setEnd]...)
	}
	l.reader.Reset(append(alone, " 1\n"...))
	_, err := l.parser.TextToMetricFamilies(&l.reader)
	if named == (err != nil) {
		return ReasonBadName
	}
	return ReasonBadLabels
}

// textTimestamp reports whether a value is followed by nothing, or by a timestamp of
// the text format: an integer.
func textTimestamp(rest []byte) bool {
	i := skipBlanks(rest, 0)
	if i == len(rest) {
		return true
	}
	_, err := strconv.ParseInt(string(rest[i:]), 10, 64)
	return err == nil
}

// parsing has the lines of one body that could not be replayed, and their parsers. It is
// pooled, because a target in its steady state does not need it.
type parsing struct {
	raws  []rawLine
	text  *textLexer
	lines lineLexer
	// bad counts the lines found bad before a lexer's flush.
	bad int
}

var parsingPool = sync.Pool{New: func() any {
	w := newWords()
	return &parsing{text: &textLexer{parser: expfmt.NewTextParser(model.UTF8Validation), words: w}, lines: lineLexer{words: w}}
}}

// lex reads the raw lines from the given index on. The samples of the text format are
// finished only by flush.
func (p *parsing) lex(body []byte, from int, d Dialect) {
	for i := from; i < len(p.raws) && p.bad <= maxBadLines; i++ {
		raw := &p.raws[i]
		switch raw.kind {
		case lineHelp, lineType, lineUnit:
			if raw.reason == ReasonNone {
				p.lines.comment(body, raw, d)
			}
		case lineSample:
			switch {
			case raw.reason != ReasonNone:
			case d == DialectOpenMetrics:
				p.lines.sampleLine(body, raw)
			default:
				p.text.add(body, p.raws, i)
			}
		}
		if raw.reason != ReasonNone {
			p.bad++
		}
	}
}

// tooBad reports whether so many lines are bad that the rest of the body is dropped.
func (p *parsing) tooBad() bool { return p.bad > maxBadLines || p.text.failures > maxBadLines }

// release returns the parsing to the pool.
func (p *parsing) release() {
	clear(p.raws)
	if cap(p.raws) > spare {
		p.raws = nil
	}
	p.raws, p.bad = p.raws[:0], 0
	p.text.failures = 0
	p.text.words = p.text.words.emptied()
	p.lines.words = p.text.words
	if cap(p.text.buffer) > 4*batchBytes {
		p.text.buffer = nil
	}
	p.lines.last = nil
	parsingPool.Put(p)
}
