package fleet

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Template is the body of a server whose counters grow.
type Template struct {
	Name, ContentType string
	// ManyEngines is false for a server that cannot have more than one.
	ManyEngines bool
	lines       []line
	byName      map[string]int
	// tail are the comments after the last sample.
	tail string
}

// line is a sample. Those with the label engine are repeated for each engine.
type line struct {
	name, series string
	// comments are the lines above it.
	comments  string
	pieces    []piece
	perEngine bool
	growth    growth
	// whole is a number without a fraction.
	whole bool
	// first is the value at the beginning and step what is added in each; of a bucket without those before it.
	first, step float64
	// opens is the first bucket of a histogram. buckets are all of them, by their number; only the count has them.
	opens   bool
	buckets []int
}

// growth is how a line moves.
type growth uint8

const (
	// alternating has one of two values.
	alternating growth = iota
	// started is a unix time of the start of the process.
	started
	// rising is a counter, or the sum of a histogram.
	rising
	// bucket is a count of a histogram that has those before it in it, total the count of all.
	bucket
	total
)

// piece is a text and what follows it: the name of the model, the number of the engine, or nothing.
type piece struct {
	text string
	then byte
}

const modelHole, engineHole = 'm', 'e'

// State is what a body shows.
type State struct {
	// Engines is how many engines there are, 0 for one. Model takes the place of each model's name where it is not empty.
	Engines int
	Model   string
	// Steps is how far the counters are. Odd bodies have the other value of what does not grow.
	Steps float64
	Odd   bool
	// Start is the unix time of the start of the process; 0 leaves that of the body.
	Start float64
}

// Load reads the two bodies of a server in a folder of testdata; what lies between them is one step. Families whose names
// begin with one of these are left out.
func Load(folder string, without ...string) (*Template, error) {
	var texts [3]string
	for i, name := range []string{"metrics.txt", "metrics-2.txt", "content-type"} {
		content, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			return nil, err
		}
		texts[i] = string(content)
	}
	t, err := Between(texts[0], texts[1], without...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", folder, err)
	}
	t.Name, t.ContentType = filepath.Base(folder), strings.TrimSpace(texts[2])
	return t, nil
}

// Growing is the template of one body, of which each step adds a part of every counter.
func Growing(text string, part float64) (*Template, error) {
	t, err := Between(text, text)
	if err != nil {
		return nil, err
	}
	for i := range t.lines {
		if l := &t.lines[i]; l.growth >= rising {
			l.step = l.first * part
		}
	}
	return t, nil
}

// Between is the template of two bodies of one server, a step apart.
func Between(first, second string, without ...string) (*Template, error) {
	before, after := strings.Split(strings.TrimSpace(first), "\n"), strings.Split(strings.TrimSpace(second), "\n")
	if len(before) != len(after) {
		return nil, errors.New("the two bodies have different lines")
	}
	t := &Template{byName: map[string]int{}}
	types, comments := map[string]string{}, ""
	for i, text := range before {
		if slices.ContainsFunc(without, func(name string) bool { return strings.HasPrefix(text, name) || strings.Contains(text, " "+name) }) {
			continue
		}
		if strings.HasPrefix(text, "#") {
			if fields := strings.Fields(text); len(fields) > 3 && fields[1] == "TYPE" {
				types[fields[2]] = fields[3]
			}
			if text != "# EOF" { // Who adds lines writes it at the end.
				comments += text + "\n"
			}
			continue
		}
		l, err := newLine(text, after[i], types)
		if err != nil {
			return nil, err
		}
		if other := engineLabel.FindStringSubmatch(l.series); l.perEngine && other[1] != "0" {
			continue // Those of the first are repeated for each.
		}
		t.ManyEngines = t.ManyEngines || l.perEngine
		l.comments, comments = comments, ""
		if _, known := t.byName[l.name]; !known {
			t.byName[l.name] = len(t.lines)
		}
		t.lines = append(t.lines, l)
	}
	t.tail = comments
	t.divide()
	return t, nil
}

var (
	modelLabel  = regexp.MustCompile(`model_name="[^"]*"`)
	engineLabel = regexp.MustCompile(`engine="(\d+)"`)
	boundLabel  = regexp.MustCompile(`,?le="([^"]*)"`)
)

func newLine(text, next string, types map[string]string) (l line, err error) {
	cut, nextCut := strings.LastIndexByte(text, ' '), strings.LastIndexByte(next, ' ')
	if cut < 0 || nextCut < 0 || text[:cut] != next[:nextCut] {
		return l, fmt.Errorf("the two bodies differ in more than values: %q and %q", text, next)
	}
	l.series = text[:cut]
	l.name, _, _ = strings.Cut(l.series, "{")
	first, err1 := strconv.ParseFloat(text[cut+1:], 64)
	second, err2 := strconv.ParseFloat(next[nextCut+1:], 64)
	l.first, l.step, l.whole = first, second-first, first == math.Trunc(first) && second == math.Trunc(second)
	l.growth, l.perEngine = growthOf(l.name, types), engineLabel.MatchString(l.series)
	series := modelLabel.ReplaceAllString(l.series, "model_name=\"\x00m$0\x00\"")
	series = engineLabel.ReplaceAllString(series, "engine=\"\x00e$0\x00\"")
	// Every second part is a hole: its kind, and what stood there.
	for i, part := range strings.Split(series+" ", "\x00") {
		if i%2 == 0 {
			l.pieces = append(l.pieces, piece{text: part})
		} else {
			l.pieces[len(l.pieces)-1].then = part[0]
			_, was, _ := strings.Cut(part[1:], `"`)
			l.pieces = append(l.pieces, piece{text: strings.TrimSuffix(was, `"`)})
		}
	}
	return l, errors.Join(err1, err2)
}

// growthOf is how a sample grows.
func growthOf(name string, types map[string]string) growth {
	if strings.HasSuffix(name, "_created") || name == "process_start_time_seconds" {
		return started
	}
	for suffix, how := range map[string]growth{"_bucket": bucket, "_count": total, "_sum": rising, "_total": rising, "": rising} {
		if base, is := strings.CutSuffix(name, suffix); is {
			switch kind := types[base]; {
			case kind == "histogram", kind == "counter" && how == rising:
				return how
			case kind == "summary":
				return rising
			}
		}
	}
	return alternating
}

// divide makes buckets of their own out of those that include the ones before: each of them is rounded, and not the sum.
// The difference of two rounded sums would fall now and then, which only a restart explains.
func (t *Template) divide() {
	buckets := map[string][]int{}
	histogram := func(l *line, suffix string) string {
		return strings.NewReplacer(l.name, strings.TrimSuffix(l.name, suffix), "{,", "{", "{}", "").Replace(boundLabel.ReplaceAllString(l.series, ""))
	}
	var before line
	for i := range t.lines {
		l := &t.lines[i]
		if l.growth != bucket {
			continue
		}
		key := histogram(l, "_bucket")
		if l.opens = len(buckets[key]) == 0; l.opens {
			before = line{}
		}
		buckets[key] = append(buckets[key], i)
		was := *l
		l.first, l.step = l.first-before.first, l.step-before.step
		before = was
	}
	for i := range t.lines {
		if l := &t.lines[i]; l.growth == total {
			l.buckets = buckets[histogram(l, "_count")]
		}
	}
}

// Late is the template of a server whose histogram counts half of what comes in the bucket of a later bound.
func (t *Template) Late(family string, bound float64) *Template {
	out := *t
	out.lines = slices.Clone(t.lines)
	moved := 0.0
	of := out.lines[t.byName[family+"_count"]].buckets
	for _, i := range of {
		moved += out.lines[i].step / 2
		out.lines[i].step /= 2
	}
	for _, i := range of {
		if at := boundLabel.FindStringSubmatch(out.lines[i].series); at[1] == strconv.FormatFloat(bound, 'f', 1, 64) {
			out.lines[i].step += moved
		}
	}
	out.lines[t.byName[family+"_sum"]].step += moved * bound * 0.9
	return &out
}

// Value is the number of the first series of a name after so many steps.
func (t *Template) Value(name string, steps float64) float64 {
	return t.value(&t.lines[t.byName[name]], State{Steps: steps})
}

// at is the number of a line; of a bucket without those before it.
func (l *line) at(steps float64) float64 {
	v := l.first + l.step*steps
	if l.whole {
		return math.Floor(v)
	}
	return v
}

func (t *Template) value(l *line, s State) float64 {
	switch l.growth {
	case started:
		return cmp.Or(s.Start, l.first)
	case alternating:
		if s.Odd {
			return l.first + l.step
		}
		return l.first
	case total:
		sum := 0.0
		for _, i := range l.buckets {
			sum += t.lines[i].at(s.Steps)
		}
		return sum
	default:
		return l.at(s.Steps)
	}
}

// Append appends the body.
func (t *Template) Append(to []byte, s State) []byte {
	for i := 0; i < len(t.lines); {
		to = append(to, t.lines[i].comments...)
		end := i + 1
		for end < len(t.lines) && t.lines[end].perEngine == t.lines[i].perEngine && t.lines[end].comments == "" {
			end++
		}
		engines := 1
		if t.lines[i].perEngine {
			engines = max(1, s.Engines)
		}
		for engine := range engines {
			to = t.appendLines(to, t.lines[i:end], s, engine)
		}
		i = end
	}
	return append(to, t.tail...)
}

func (t *Template) appendLines(to []byte, lines []line, s State, engine int) []byte {
	sum := 0.0
	for i := range lines {
		l := &lines[i]
		for j := 0; j < len(l.pieces); j++ {
			p := &l.pieces[j]
			to = append(to, p.text...)
			switch {
			case p.then == engineHole:
				to = strconv.AppendInt(to, int64(engine), 10)
				j++ // What stood there.
			case p.then == modelHole && s.Model != "":
				to = append(to, s.Model...)
				j++
			}
		}
		v := t.value(l, s)
		if l.growth == bucket {
			if l.opens {
				sum = 0
			}
			sum += v
			v = sum
		}
		if v == math.Trunc(v) && math.Abs(v) < 1e15 {
			to = append(strconv.AppendInt(to, int64(v), 10), ".0\n"...)
		} else {
			to = append(strconv.AppendFloat(to, v, 'g', -1, 64), '\n')
		}
	}
	return to
}
