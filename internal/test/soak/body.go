package soak

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// The metrics by which the sink recognizes an answer. The receiver keeps families of vLLM that
// it does not know.
const (
	// servedFamily stands at the beginning of each body, enginesFamily at its end, once for each
	// engine. Both have the number of the answer.
	servedFamily, servedMetric   = "vllm:soak_served", "vllm.soak_served"
	enginesFamily, enginesMetric = "vllm:soak_engine", "vllm.soak_engine"
	// The families of vLLM whose points are checked for each engine.
	tokensFamily, tokensMetric = "vllm:prompt_tokens_total", "vllm.prompt_tokens"
	firstFamily, firstMetric   = "vllm:time_to_first_token_seconds", "vllm.time_to_first_token"
)

// mostEngines is the most engines of a server.
const mostEngines = 8

// template is the body of a server of one version. It is made from two bodies of the same
// server, so that its counters grow as those of a server do.
type template struct {
	name, contentType, version string
	// manyEngines is false for servers that cannot have more than one engine.
	manyEngines bool
	openMetrics bool
	blocks      []block
	// tokens is the first value and the growth of the prompt tokens of an engine.
	tokens growth
}

// block is a part of a body: comments, or lines that are repeated for each engine.
type block struct {
	perEngine bool
	lines     []line
}

// line is one line. A comment has only the first piece.
type line struct {
	// pieces are the texts around the names of the model and the engine.
	pieces []piece
	sample bool
	kind   valueKind
	value  growth
}

type valueKind uint8

const (
	// counting grows with each answer, alternating has one of two values, timed is a unix time
	// that belongs to the start of the process.
	counting valueKind = iota
	alternating
	timed
)

// growth is a first value and what each answer adds.
type growth struct{ first, step float64 }

func (g growth) at(n uint64) float64 { return g.first + g.step*float64(n) }

type piece struct {
	text []byte
	// then is what follows the text.
	then hole
}

type hole uint8

const (
	nothing hole = iota
	modelName
	engineNumber
)

// state is what a body shows.
type state struct {
	// id is the number of the answer, count how many answers the process has given before.
	id, count uint64
	engines   int
	model     string
	// adapters are the names of LoRA adapters that have requests; empty has no such family.
	adapters []string
	// start and now are unix times in seconds.
	start, now float64
}

var (
	modelLabel  = regexp.MustCompile(`model_name="[^"]*"`)
	engineLabel = regexp.MustCompile(`engine="(\d+)"`)
)

// loadTemplate reads the two bodies in a folder of testdata.
func loadTemplate(folder, version string) (*template, error) {
	first, err := os.ReadFile(filepath.Join(folder, "metrics.txt"))
	if err != nil {
		return nil, err
	}
	second, err := os.ReadFile(filepath.Join(folder, "metrics-2.txt"))
	if err != nil {
		return nil, err
	}
	contentType, err := os.ReadFile(filepath.Join(folder, "content-type"))
	if err != nil {
		return nil, err
	}
	t := &template{name: filepath.Base(folder), version: version, contentType: strings.TrimSpace(string(contentType))}
	t.openMetrics = strings.Contains(t.contentType, "openmetrics")
	if err := t.read(string(first), string(second)); err != nil {
		return nil, fmt.Errorf("%s: %w", folder, err)
	}
	return t, nil
}

func (t *template) read(first, second string) error {
	before, after := strings.Split(strings.TrimSpace(first), "\n"), strings.Split(strings.TrimSpace(second), "\n")
	if len(before) != len(after) {
		return errors.New("the two bodies have different lines")
	}
	types := map[string]string{}
	family := ""
	for i, text := range before {
		if text == "# EOF" {
			continue // It is written again at the end.
		}
		if strings.HasPrefix(text, "#") {
			if fields := strings.Fields(text); len(fields) > 3 && fields[1] == "TYPE" {
				family = fields[2]
				types[family] = fields[3]
			}
			if !strings.Contains(text, "lora_requests_info") {
				t.add(false, line{pieces: []piece{{text: []byte(text)}}})
			}
			continue
		}
		l, perEngine, keep, err := t.sample(text, after[i], types[family])
		if err != nil {
			return err
		}
		if keep {
			t.add(perEngine, l)
		}
	}
	return nil
}

// sample reads one line and its successor. The lines of a second engine are not kept, since
// those of the first are repeated for each engine.
func (t *template) sample(text, next, kind string) (l line, perEngine, keep bool, err error) {
	series, value, ok1 := cutLast(text)
	later, grown, ok2 := cutLast(next)
	if !ok1 || !ok2 || series != later {
		return l, false, false, fmt.Errorf("the two bodies differ in more than values: %q and %q", text, next)
	}
	name, _, _ := strings.Cut(series, "{")
	if strings.HasPrefix(name, "vllm:lora_requests_info") {
		return l, false, false, nil
	}
	engine := engineLabel.FindStringSubmatch(series)
	perEngine = len(engine) > 0
	if perEngine && engine[1] != "0" {
		return l, false, false, nil
	}
	a, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return l, false, false, err
	}
	b, err := strconv.ParseFloat(grown, 64)
	if err != nil {
		return l, false, false, err
	}
	l = line{sample: true, value: growth{a, b - a}, pieces: cutSeries(series)}
	switch {
	case strings.HasSuffix(name, "_created"), name == "process_start_time_seconds":
		l.kind = timed
	case kind == "counter" || kind == "histogram" || kind == "summary":
		l.kind = counting
	default:
		l.kind = alternating
	}
	if name == tokensFamily {
		t.tokens = l.value
		t.manyEngines = perEngine
	}
	return l, perEngine, true, nil
}

// cutLast divides a line at its last space.
func cutLast(text string) (series, value string, ok bool) {
	at := strings.LastIndexByte(text, ' ')
	if at < 0 {
		return "", "", false
	}
	return text[:at], text[at+1:], true
}

// cutSeries divides a series at the values of the labels of the model and the engine.
func cutSeries(series string) []piece {
	series = modelLabel.ReplaceAllString(series, "model_name=\"\x00\"")
	series = engineLabel.ReplaceAllString(series, "engine=\"\x01\"")
	var out []piece
	from := 0
	for i := range len(series) {
		switch series[i] {
		case 0:
			out = append(out, piece{[]byte(series[from:i]), modelName})
			from = i + 1
		case 1:
			out = append(out, piece{[]byte(series[from:i]), engineNumber})
			from = i + 1
		}
	}
	return append(out, piece{[]byte(series[from:] + " "), nothing})
}

func (t *template) add(perEngine bool, l line) {
	if last := len(t.blocks) - 1; last >= 0 && t.blocks[last].perEngine == perEngine {
		t.blocks[last].lines = append(t.blocks[last].lines, l)
		return
	}
	t.blocks = append(t.blocks, block{perEngine, []line{l}})
}

// render writes a body.
func (t *template) render(b *bytes.Buffer, s state) {
	id := strconv.FormatUint(s.id, 10)
	b.WriteString("# TYPE " + servedFamily + " gauge\n" + servedFamily + " " + id + "\n")
	for _, part := range t.blocks {
		if !part.perEngine {
			writeLines(b, part.lines, s, 0)
			continue
		}
		for engine := range s.engines {
			writeLines(b, part.lines, s, engine)
		}
	}
	if len(s.adapters) > 0 {
		now := strconv.FormatFloat(s.now, 'f', 3, 64)
		b.WriteString("# TYPE vllm:lora_requests_info gauge\n")
		b.WriteString(`vllm:lora_requests_info{max_lora="8",running_lora_adapters="` + strings.Join(s.adapters, ",") +
			`",waiting_lora_adapters="` + s.adapters[0] + `"} ` + now + "\n")
	}
	b.WriteString("# TYPE " + enginesFamily + " gauge\n")
	for engine := range s.engines {
		b.WriteString(enginesFamily + `{engine="` + strconv.Itoa(engine) + `"} ` + id + "\n")
	}
	if t.openMetrics {
		b.WriteString("# EOF\n")
	}
}

func writeLines(b *bytes.Buffer, lines []line, s state, engine int) {
	for i := range lines {
		l := &lines[i]
		for _, p := range l.pieces {
			b.Write(p.text)
			switch p.then {
			case modelName:
				b.WriteString(s.model)
			case engineNumber:
				b.WriteByte('0' + byte(engine))
			}
		}
		if l.sample {
			b.Write(strconv.AppendFloat(b.AvailableBuffer(), l.at(s), 'g', -1, 64))
		}
		b.WriteByte('\n')
	}
}

// at is the value of a line.
func (l *line) at(s state) float64 {
	switch l.kind {
	case timed:
		return s.start
	case alternating:
		return l.value.at(s.count % 2)
	default:
		return l.value.at(s.count)
	}
}
