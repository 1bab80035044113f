package replay

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/backtest/history"
	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// body writes the text of scrapes again, in the order of their times. A history has no TYPE
// lines. They follow from the names; where they do not, the catalogue decides in the
// receiver, and there is no line.
type body struct {
	lines []line
	out   []byte
}

// line is one series of the text.
type line struct {
	// head is the TYPE line of its family; the same string for all lines of a family,
	// empty for none.
	head string
	// family is the name of the family.
	family string
	// text is all before the number.
	text   string
	times  []int64
	values []float64
	// next is the index of the sample to write next.
	next int

	name   string
	bucket float64
}

// newBody returns the text of a part. prefixes are those of the deployment.
func newBody(p *history.Part, prefixes []string) *body {
	families := familiesOf(p)
	b := &body{lines: make([]line, 0, len(p.Series))}
	for i := range p.Series {
		s := &p.Series[i]
		name := s.Labels.Get("__name__")
		family, kind := families.of(name, s.Labels, prefixes)
		l := line{family: family, name: name, times: s.Times, values: s.Values}
		if kind != "" {
			l.head = "# TYPE " + family + " " + kind + "\n"
		}
		if le := s.Labels.Get("le"); le != "" {
			l.bucket, _ = strconv.ParseFloat(le, 64)
		}
		l.text = name + shown(s.Labels, p.Target) + " "
		b.lines = append(b.lines, l)
	}
	slices.SortStableFunc(b.lines, func(x, y line) int {
		return cmp.Or(strings.Compare(x.family, y.family), strings.Compare(x.name, y.name))
	})
	// The buckets of one series are next to each other, the lowest first.
	for from := 0; from < len(b.lines); {
		to := from
		for to < len(b.lines) && b.lines[to].name == b.lines[from].name {
			to++
		}
		if strings.HasSuffix(b.lines[from].name, "_bucket") {
			slices.SortStableFunc(b.lines[from:to], func(x, y line) int {
				return cmp.Or(strings.Compare(withoutBucket(x.text), withoutBucket(y.text)), cmp.Compare(x.bucket, y.bucket))
			})
		}
		from = to
	}
	return b
}

// withoutBucket cuts the label le, which shown writes last.
func withoutBucket(text string) string {
	before, _, _ := strings.Cut(text, `le="`)
	return before
}

// shown writes the labels that the server itself had shown: without those of the target, and
// with those that Prometheus had renamed because the target has the same. le is the last.
func shown(all, target labels.Labels) string {
	var b strings.Builder
	put := func(name, value string) {
		if b.Len() == 0 {
			b.WriteByte('{')
		} else {
			b.WriteByte(',')
		}
		b.WriteString(name)
		b.WriteString(`="`)
		b.WriteString(escape.Replace(value))
		b.WriteByte('"')
	}
	all.Range(func(l labels.Label) {
		name := l.Name
		if original, renamed := strings.CutPrefix(name, "exported_"); renamed && target.Has(original) && !target.Has(name) {
			name = original
		} else if target.Get(name) == l.Value && target.Has(name) {
			return
		}
		if name == "__name__" || name == "le" || !legacy(name) {
			return
		}
		put(name, l.Value)
	})
	if le := all.Get("le"); le != "" {
		put("le", le)
	}
	if b.Len() == 0 {
		return ""
	}
	b.WriteByte('}')
	return b.String()
}

var escape = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

// legacy reports whether the text format can have a label of this name. vLLM has no others.
func legacy(name string) bool {
	for i := range len(name) {
		c := name[i]
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9' || i == 0) {
			return false
		}
	}
	return name != ""
}

// families has the families of a part that consist of several names.
type families struct{ histograms, summaries map[string]bool }

func familiesOf(p *history.Part) families {
	f := families{map[string]bool{}, map[string]bool{}}
	sums, counts := map[string]bool{}, map[string]bool{}
	for i := range p.Series {
		name := p.Series[i].Labels.Get("__name__")
		if base, is := strings.CutSuffix(name, "_bucket"); is && p.Series[i].Labels.Has("le") {
			f.histograms[base] = true
		}
		if p.Series[i].Labels.Has("quantile") {
			f.summaries[name] = true
		}
		if base, is := strings.CutSuffix(name, "_sum"); is {
			sums[base] = true
		}
		if base, is := strings.CutSuffix(name, "_count"); is {
			counts[base] = true
		}
	}
	for base := range sums {
		if counts[base] && !f.histograms[base] {
			f.summaries[base] = true
		}
	}
	return f
}

// of returns the family of a name and its type; the type is empty where the catalogue knows
// it better than the name.
func (f families) of(name string, l labels.Labels, prefixes []string) (family, kind string) {
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		base, is := strings.CutSuffix(name, suffix)
		switch {
		case is && f.histograms[base]:
			return base, "histogram"
		case is && f.summaries[base]:
			return base, "summary"
		}
	}
	switch {
	case f.summaries[name] && l.Has("quantile"):
		return name, "summary"
	case strings.HasSuffix(name, "_created"):
		return name, "gauge"
	}
	total := strings.HasSuffix(name, "_total")
	if known := catalog.BySource(wireName(name, prefixes)); len(known) > 0 {
		if total && known[0].Metric.Kind == catalog.KindSum {
			return name, "counter"
		}
		return name, ""
	}
	if total {
		return name, "counter"
	}
	return name, "gauge"
}

// wireName is the name of a family without what a deployment puts before it.
func wireName(name string, prefixes []string) string {
	for _, p := range prefixes {
		if rest, is := strings.CutPrefix(name, p); is {
			name = rest
			break
		}
	}
	for _, p := range catalog.Prefixes {
		if rest, is := strings.CutPrefix(name, p); is {
			return "vllm:" + rest
		}
	}
	return name
}

// at returns the text of the scrape at a time, and how many of its samples there are. Times
// only grow. The text is overwritten by the next call.
func (b *body) at(t int64) (text []byte, samples int) {
	b.out = b.out[:0]
	head := ""
	for i := range b.lines {
		l := &b.lines[i]
		for l.next < len(l.times) && l.times[l.next] < t {
			l.next++
		}
		if l.next == len(l.times) || l.times[l.next] != t {
			continue
		}
		if l.head != head {
			head = l.head
			b.out = append(b.out, head...)
		}
		b.out = append(b.out, l.text...)
		b.out = appendNumber(b.out, l.values[l.next])
		b.out = append(b.out, '\n')
		samples++
	}
	return b.out, samples
}

// appendNumber writes a number so that it is read back exactly.
func appendNumber(out []byte, v float64) []byte {
	if v == math.Trunc(v) && math.Abs(v) < 1e15 {
		return strconv.AppendInt(out, int64(v), 10)
	}
	return strconv.AppendFloat(out, v, 'g', -1, 64)
}
