package scale

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

const (
	// tick is the time between two changes of an engine's counters.
	tick = 100 * time.Millisecond
	// pairTicks is the time between the two recorded bodies as it is played: with 150 ticks an
	// engine serves about 8 requests per second.
	pairTicks = 150
	// answerFamily has the number of the answer. The receiver keeps families that it does not
	// know.
	answerFamily, answerMetric = "vllm:scale_answer", "vllm.scale_answer"
	// The families whose values are compared with the truth, point by point.
	promptFamily, promptMetric         = "vllm:prompt_tokens_total", "vllm.prompt_tokens"
	generationFamily, generationMetric = "vllm:generation_tokens_total", "vllm.generation_tokens"
	firstFamily, firstMetric           = "vllm:time_to_first_token_seconds", "vllm.time_to_first_token"
)

// kind is what an engine does.
type kind uint8

const (
	// sound engines serve their requests.
	sound kind = iota
	// late engines give half of the first tokens after more than the objective allows.
	late
	// stalled engines serve until stallAt, and then have requests without any progress.
	stalled
)

// lateBound is the bucket in which the late first tokens of a late engine are, in seconds.
const lateBound = 5

// growth is how a line moves.
type growth uint8

const (
	fixed growth = iota
	// alternating has the value of one or the other body.
	alternating
	// started is a unix time of the start of the process.
	started
	// rising is a counter or the sum of a histogram.
	rising
	// bucket is a count of a histogram that has those before it in it, count the count of all.
	bucket
	count
)

// line is a sample of the body.
type line struct {
	// before and after are the text around the name of the model; after alone if there is none.
	before, after string
	// comments are the lines above it.
	comments string
	growth   growth
	// whole is a number without a fraction.
	whole bool
	// first and second are the values in the two bodies; of a bucket those without the buckets
	// before it. slow are those of a late engine.
	first, second, slow float64
	family              string
}

// template is the body of an engine.
type template struct {
	lines []line
	// epoch is the start of all engines, from which ticks count.
	epoch time.Time
	// stallAt is the tick at which stalled engines stop.
	stallAt atomic.Int64
}

// loadTemplate reads the two bodies of a server in a folder of testdata.
func loadTemplate(folder string, epoch time.Time) (*template, error) {
	var texts [2][]string
	for i, name := range []string{"metrics.txt", "metrics-2.txt"} {
		content, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			return nil, err
		}
		texts[i] = strings.Split(strings.TrimSpace(string(content)), "\n")
	}
	if len(texts[0]) != len(texts[1]) {
		return nil, errors.New("the two bodies have different lines")
	}
	t := &template{epoch: epoch}
	t.stallAt.Store(math.MaxInt64)
	types := map[string]string{}
	comments := ""
	for i, text := range texts[0] {
		if strings.HasPrefix(text, "#") {
			if fields := strings.Fields(text); len(fields) > 3 && fields[1] == "TYPE" {
				types[fields[2]] = fields[3]
			}
			comments += text + "\n"
			continue
		}
		l, err := newLine(text, texts[1][i], types)
		if err != nil {
			return nil, err
		}
		l.comments = comments
		comments = ""
		t.lines = append(t.lines, l)
	}
	t.divide()
	return t, nil
}

func newLine(text, next string, types map[string]string) (line, error) {
	cut := strings.LastIndexByte(text, ' ')
	nextCut := strings.LastIndexByte(next, ' ')
	if cut < 0 || nextCut < 0 || text[:cut] != next[:nextCut] {
		return line{}, fmt.Errorf("the two bodies differ in more than values: %q and %q", text, next)
	}
	first, err1 := strconv.ParseFloat(text[cut+1:], 64)
	second, err2 := strconv.ParseFloat(next[nextCut+1:], 64)
	if err := errors.Join(err1, err2); err != nil {
		return line{}, err
	}
	series := text[:cut+1]
	name := series[:strings.IndexAny(series, "{ ")]
	l := line{after: series, first: first, second: second, whole: first == math.Trunc(first) && second == math.Trunc(second)}
	l.growth, l.family = growthOf(name, types)
	if at := strings.Index(series, `model_name="`); at >= 0 {
		at += len(`model_name="`)
		end := at + strings.IndexByte(series[at:], '"')
		l.before, l.after = series[:at], series[end:]
	}
	return l, nil
}

// growthOf is how a sample grows, and the family of a part of a histogram.
func growthOf(name string, types map[string]string) (growth, string) {
	if strings.HasSuffix(name, "_created") || name == "process_start_time_seconds" {
		return started, name
	}
	if types[name] == "counter" {
		return rising, name
	}
	for suffix, g := range map[string]growth{"_bucket": bucket, "_count": count, "_sum": rising} {
		if base, is := strings.CutSuffix(name, suffix); is && types[base] == "histogram" {
			return g, base
		}
	}
	return alternating, name
}

// divide makes buckets of their own out of those that include the ones before, and moves half
// of the first tokens of a late engine.
func (t *template) divide() {
	var first, second float64
	for i := range t.lines {
		l := &t.lines[i]
		switch l.growth {
		case bucket:
			l.first, first = l.first-first, l.first
			l.second, second = l.second-second, l.second
		case count:
			first, second = 0, 0
		}
		l.slow = l.second
	}
	moved, most := 0.0, (*line)(nil)
	for i := range t.lines {
		l := &t.lines[i]
		if l.family != firstFamily {
			continue
		}
		switch l.growth {
		case bucket:
			half := (l.second - l.first) / 2
			l.slow = l.first + half
			moved += half
			if strings.Contains(l.before+l.after, `le="`+strconv.FormatFloat(lateBound, 'f', 1, 64)+`"`) {
				most = l
			}
		case rising:
			l.slow += moved * lateBound * 0.9
		}
	}
	if most != nil {
		most.slow += moved
	}
}

// ticksAt is how many ticks an engine has behind it.
func (t *template) ticksAt(now time.Time) int64 { return int64(now.Sub(t.epoch) / tick) }

// progress is the tick at which the counters of an engine are.
func (t *template) progress(k kind, n int64) int64 {
	if k == stalled {
		return min(n, t.stallAt.Load())
	}
	return n
}

// at is the value of a line at a tick; of a bucket without those before it.
func (l *line) at(k kind, n int64) float64 {
	second := l.second
	if k == late {
		second = l.slow
	}
	v := l.first + (second-l.first)*float64(n)/pairTicks
	if l.whole {
		return math.Floor(v)
	}
	return v
}

// render appends the body of an engine at a tick.
func (t *template) render(to []byte, model string, k kind, n, answer int64) []byte {
	to = append(to, "# TYPE "+answerFamily+" gauge\n"+answerFamily+" "...)
	to = append(strconv.AppendInt(to, answer, 10), '\n')
	moving, sum := t.progress(k, n), 0.0
	for i := range t.lines {
		l := &t.lines[i]
		to = append(to, l.comments...)
		if l.before != "" {
			to = append(append(to, l.before...), model...)
		}
		to = append(to, l.after...)
		v := l.first
		switch l.growth {
		case alternating:
			if moving%2 == 1 {
				v = l.second
			}
		case started:
			v = float64(t.epoch.Unix())
		case rising:
			v = l.at(k, moving)
		case bucket:
			sum += l.at(k, moving)
			v = sum
		case count:
			v, sum = sum, 0
		case fixed:
		}
		to = append(strconv.AppendFloat(to, v, 'g', -1, 64), '\n')
	}
	return to
}

// truth is what some counters of an engine are at a tick.
type truth struct{ prompt, generation, first float64 }

// truth returns the values of the compared counters.
func (t *template) truth(k kind, n int64) truth {
	var out truth
	moving := t.progress(k, n)
	for i := range t.lines {
		l := &t.lines[i]
		switch {
		case l.family == promptFamily:
			out.prompt = l.at(k, moving)
		case l.family == generationFamily:
			out.generation = l.at(k, moving)
		case l.family == firstFamily && l.growth == bucket:
			out.first += l.at(k, moving)
		}
	}
	return out
}
