package audit

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
)

// label is one name and value; label lists are sorted by name.
type label struct{ name, value string }

// sample is one line of a body that could be read.
type sample struct {
	// line counts from 1.
	line     int
	name     string
	labels   []label
	value    float64
	exemplar *exemplar.Exemplar
}

// declaration is one TYPE line.
type declaration struct{ name, kind string }

// body is a page of metrics. Its lines are read one by one.
type body struct {
	openMetrics bool
	samples     []sample
	types       []declaration
	units       map[string]string
	// bad are the lines that look like samples and cannot be read.
	bad []int
	// badComments is the number of HELP, TYPE and UNIT lines that cannot be read.
	badComments int
}

// readBody reads a page in the format of its content type; an unknown one means text.
func readBody(data []byte, contentType string) *body {
	media, _, _ := strings.Cut(contentType, ";")
	b := &body{
		openMetrics: strings.EqualFold(strings.TrimSpace(media), "application/openmetrics-text"),
		units:       map[string]string{},
	}
	number := 0
	for line := range bytes.Lines(data) {
		number++
		text := strings.TrimRight(string(line), "\r\n")
		switch trimmed := strings.TrimLeft(text, " \t"); {
		case trimmed == "":
		case trimmed[0] == '#':
			b.readComment(trimmed)
		default:
			b.readSample(number, text)
		}
	}
	return b
}

// kinds are the types of a TYPE line, in both dialects.
var kinds = []string{
	"counter", "gauge", "histogram", "summary", "untyped", "unknown", "info", "stateset", "gaugehistogram",
}

func (b *body) readComment(text string) {
	word, rest, _ := strings.Cut(strings.TrimLeft(text[1:], " \t"), " ")
	if word != "TYPE" && word != "UNIT" {
		return
	}
	name, value, ok := cutName(strings.TrimSpace(rest))
	if word == "UNIT" {
		b.units[name] = value
		return
	}
	if value == "untyped" {
		value = "unknown"
	}
	if !ok || !slices.Contains(kinds, value) {
		b.badComments++
		return
	}
	b.types = append(b.types, declaration{name, value})
}

// cutName splits a comment's text behind the metric's name, which is quoted
// where it has other characters than the classic ones.
func cutName(text string) (name, rest string, ok bool) {
	if !strings.HasPrefix(text, `"`) {
		name, rest, ok = strings.Cut(text, " ")
		return name, strings.TrimSpace(rest), ok && name != ""
	}
	quoted, err := strconv.QuotedPrefix(text)
	if err != nil {
		return "", "", false
	}
	name, err = strconv.Unquote(quoted)
	return name, strings.TrimSpace(text[len(quoted):]), err == nil
}

// readSample parses one line alone, so that it does not affect any other.
func (b *body) readSample(number int, text string) {
	var p textparse.Parser
	if b.openMetrics {
		p = textparse.NewOpenMetricsParser([]byte(text+"\n# EOF\n"), labels.NewSymbolTable())
	} else {
		p = textparse.NewPromParser([]byte(text+"\n"), labels.NewSymbolTable(), false)
	}
	entry, err := p.Next()
	if err == nil && !b.openMetrics {
		// The other parser of the text format is stricter about commas.
		strict := expfmt.NewTextParser(model.UTF8Validation)
		_, err = strict.TextToMetricFamilies(strings.NewReader(text + "\n"))
	}
	if err != nil || entry != textparse.EntrySeries {
		b.bad = append(b.bad, number)
		return
	}
	s := sample{line: number}
	_, _, s.value = p.Series()
	var set labels.Labels
	p.Labels(&set)
	set.Range(func(l labels.Label) {
		if l.Name == model.MetricNameLabel {
			s.name = l.Value
			return
		}
		// In Prometheus an empty label is the same as a missing one.
		if l.Value == "" {
			return
		}
		s.labels = append(s.labels, label{strings.Clone(l.Name), strings.Clone(l.Value)})
	})
	s.name = strings.Clone(s.name)
	sortLabels(s.labels)
	var e exemplar.Exemplar
	if p.Exemplar(&e) {
		s.exemplar = &e
	}
	b.samples = append(b.samples, s)
}

func sortLabels(list []label) {
	slices.SortFunc(list, func(a, b label) int { return strings.Compare(a.name, b.name) })
}

// get returns a label's value; empty if it is missing.
func get(list []label, name string) string {
	for _, l := range list {
		if l.name == name {
			return l.value
		}
	}
	return ""
}

// without returns all labels except one.
func without(list []label, names ...string) []label {
	out := make([]label, 0, len(list))
	for _, l := range list {
		if !slices.Contains(names, l.name) {
			out = append(out, l)
		}
	}
	return out
}

// labelKey writes labels as {a="1",b="2"}: a key, and readable in a violation.
func labelKey(list []label) string {
	var out strings.Builder
	out.WriteByte('{')
	for i, l := range list {
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteString(l.name + "=" + strconv.Quote(l.value))
	}
	out.WriteByte('}')
	return out.String()
}
