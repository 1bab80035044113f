package exposition

import (
	"bytes"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/textparse"
)

// commentLexer reads the HELP and TYPE lines of the text format with Prometheus's parser.
// It gets a TYPE line as HELP, because only the name is checked: kindOf knows more kinds.
// expfmt cannot be used: it refuses the second HELP line of a family, and Ray's agents
// write one.
type commentLexer struct {
	buffer        []byte
	lines, starts []int
}

// add takes line i of raws. The line is read by the next flush.
func (l *commentLexer) add(body []byte, raws []rawLine, i int) {
	raw := &raws[i]
	// A quoted name without an end would swallow the lines after it.
	alone := body[raw.name] == '"'
	if alone || len(l.buffer) > batchBytes {
		l.flush(body, raws)
	}
	l.starts = append(l.starts, len(l.buffer))
	l.lines = append(l.lines, i)
	l.buffer = append(l.buffer, "# HELP "...)
	l.buffer = append(l.buffer, body[raw.name:raw.end]...)
	l.buffer = append(l.buffer, '\n')
	if alone {
		l.flush(body, raws)
	}
}

// flush finishes all lines that were added. The parser stops at the first bad
// line, so it is started again after each.
func (l *commentLexer) flush(body []byte, raws []rawLine) {
	var parser textparse.Parser
	for n, i := range l.lines {
		raw := &raws[i]
		if parser == nil {
			// The parser appends a line end if there is none.
			parser = textparse.NewPromParser(l.buffer[l.starts[n]:len(l.buffer)-1], nil, false)
		}
		entry, err := parser.Next()
		if err != nil || entry != textparse.EntryHelp {
			raw.reason, parser = ReasonBadComment, nil
			continue
		}
		name, text := parser.Help()
		raw.meta.name = commentName(name, body[raw.name] == '"')
		text = bytes.TrimLeft(text, " \t")
		if raw.kind == lineHelp {
			raw.meta.text = cutHelp(text)
		} else {
			raw.meta.text = string(text)
		}
		if raw.kind == lineType {
			raw.meta.text = strings.TrimRight(raw.meta.text, " \t")
		}
		checkComment(raw)
	}
	l.buffer, l.lines, l.starts = l.buffer[:0], l.lines[:0], l.starts[:0]
}

// checkComment checks a comment's name, and the word of a TYPE line.
func checkComment(raw *rawLine) {
	raw.meta.line = raw.kind
	if !model.UTF8Validation.IsValidMetricName(raw.meta.name) {
		raw.reason = ReasonBadComment
		return
	}
	if raw.kind == lineUnit && !unitFits(raw.meta.text) {
		raw.reason = ReasonBadComment
		return
	}
	if raw.kind != lineType {
		return
	}
	if raw.meta.text == "" {
		// As with expfmt, a TYPE line without a type is a plain comment, not an error.
		raw.kind = linePlain
		return
	}
	var ok bool
	if raw.meta.kind, ok = kindOf(raw.meta.text); !ok {
		raw.reason = ReasonBadComment
	}
}

var unescapeName = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\"`, `"`)

// commentName undoes the escapes of a quoted name, which textparse leaves.
func commentName(name []byte, quoted bool) string {
	if quoted {
		return unescapeName.Replace(string(name))
	}
	return string(name)
}
