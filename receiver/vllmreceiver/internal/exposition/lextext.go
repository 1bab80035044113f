package exposition

import (
	"bytes"
	"errors"
	"math"
	"strconv"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

const (
	// batchBytes and batchLines bound how much waits for expfmt at a time, and so
	// what its result costs while it lives.
	batchBytes = 64 << 10
	batchLines = 4096
)

// textLexer reads sample lines with expfmt.
//
// expfmt groups the lines of histograms and summaries and forgets which line a
// number came from. So it gets the sample lines without the comments, with each
// value replaced by the line's place in the batch plus one: every line comes back
// as an untyped metric whose value says which line it was.
//
// Without TYPE lines, what expfmt makes of a name does not depend on the labels,
// nor the other way round. A body has few of either, so a line whose name and
// whose label set were both read in other lines is not read again.
type textLexer struct {
	parser expfmt.TextParser
	reader bytes.Reader
	words  words
	names  map[string]*nameToken
	sets   map[string]*setToken

	// buffer is the text for expfmt, lines are its lines as indices of raw lines,
	// and starts where each begins in the buffer.
	buffer        []byte
	lines, starts []int
	// waiting are lines that others will explain.
	waiting []int
	// failures counts the lines that expfmt refused.
	failures int
}

// nameToken is a metric name as a line writes it, and setToken a label set from
// brace to brace. They are known once expfmt has read a line with them.
type nameToken struct {
	name  string
	known bool
}

type setToken struct {
	sample sample
	known  bool
}

// noSet stands for the labels of lines without braces.
var noSet = &setToken{known: true}

func newTextLexer(w words) *textLexer {
	return &textLexer{
		parser: expfmt.NewTextParser(model.UTF8Validation),
		words:  w,
		names:  map[string]*nameToken{},
		sets:   map[string]*setToken{},
	}
}

// add takes line i of raws. Its name and labels are there after the next flush.
func (l *textLexer) add(body []byte, raws []rawLine, i int) {
	if len(l.buffer) > batchBytes || len(l.waiting) > batchLines {
		l.flush(body, raws)
	}
	raw := &raws[i]
	if raw.nameEnd == raw.name {
		// expfmt reads a set of labels that lacks a name into the metric of the line
		// before. A line that begins with a brace is therefore read alone.
		l.flush(body, raws)
		l.queue(body, raw, i)
		l.read(body, raws)
		return
	}
	fresh := false
	name := l.names[string(body[raw.name:raw.nameEnd])]
	if name == nil {
		name, fresh = &nameToken{}, true
		l.names[string(body[raw.name:raw.nameEnd])] = name
	}
	set := noSet
	if raw.setEnd > raw.set {
		if set = l.sets[string(body[raw.set:raw.setEnd])]; set == nil {
			set, fresh = &setToken{}, true
			l.sets[string(body[raw.set:raw.setEnd])] = set
		}
	}
	raw.nameToken, raw.setToken = name, set
	switch {
	case fresh:
		l.queue(body, raw, i)
	case !explain(raw):
		l.waiting = append(l.waiting, i)
	}
}

// explain fills in a line whose name and labels are known, and says whether they
// are.
func explain(raw *rawLine) bool {
	if !raw.nameToken.known || !raw.setToken.known {
		return false
	}
	raw.sample = raw.setToken.sample
	raw.sample.name = raw.nameToken.name
	return true
}

// queue adds a line to the text for expfmt.
func (l *textLexer) queue(body []byte, raw *rawLine, i int) {
	l.starts = append(l.starts, len(l.buffer))
	l.lines = append(l.lines, i)
	l.buffer = append(l.buffer, body[raw.start:raw.number]...)
	l.buffer = append(l.buffer, ' ')
	l.buffer = strconv.AppendInt(l.buffer, int64(len(l.lines)), 10)
	l.buffer = append(l.buffer, body[raw.numberEnd:raw.end]...)
	l.buffer = append(l.buffer, '\n')
}

// flush finishes all lines that were added. A line that waited for a bad one is
// read by itself.
func (l *textLexer) flush(body []byte, raws []rawLine) {
	l.read(body, raws)
	for _, i := range l.waiting {
		if !explain(&raws[i]) {
			l.queue(body, &raws[i], i)
		}
	}
	l.waiting = l.waiting[:0]
	l.read(body, raws)
}

// read lets expfmt read the queue. It stops at the first bad line, so it is
// started again after each.
func (l *textLexer) read(body []byte, raws []rawLine) {
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
				// expfmt kept silent about this line: better no sample than a wrong one.
				raw.reason = ReasonBadLabels
			}
		}
		if bad < len(l.lines) {
			l.failures++
			raw := &raws[l.lines[bad]]
			raw.reason = l.blame(body, raw)
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
		last = raw.sample.settle(last)
		if raw.setToken != nil && !raw.setToken.known {
			raw.setToken.sample, raw.setToken.known = raw.sample, true
		}
		if raw.nameToken != nil && !raw.nameToken.known {
			raw.nameToken.name, raw.nameToken.known = name, true
		}
		raw.sample.name = name
	}
}

// blame tells what is wrong with a line whose value and timestamp are right: its
// name or its labels.
func (l *textLexer) blame(body []byte, raw *rawLine) Reason {
	named := raw.nameEnd > raw.name
	// A name that expfmt refuses alone is bad. Labels that it accepts behind a name
	// only lack one.
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

// forget drops what belongs to one body.
func (l *textLexer) forget() {
	l.failures = 0
	l.words.forget()
	clear(l.names)
	clear(l.sets)
	if cap(l.buffer) > 4*batchBytes {
		l.buffer = nil
	}
}

// textTimestamp says whether what follows a value is nothing or a timestamp in
// the text format: an integer.
func textTimestamp(rest []byte) bool {
	i := skipBlanks(rest, 0)
	if i == len(rest) {
		return true
	}
	_, err := strconv.ParseInt(string(rest[i:]), 10, 64)
	return err == nil
}
