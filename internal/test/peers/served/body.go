// Package served is the side of the servers in the comparison with the peers: bodies that
// grow as those of a busy vLLM server, and a small HTTP server that answers as uvicorn with
// prometheus_client does. It serves thousands of loopback addresses from one process and costs
// little, so that the collectors have the machine.
package served

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Body is a body of /metrics whose counters can be moved on.
type Body struct {
	// pieces are what stands between the numbers; numbers follow each but the last.
	pieces  [][]byte
	numbers []number
}

// number is the value of a sample at the begin.
type number struct {
	value float64
	kind  kind
	// whole is true for numbers without a fraction.
	whole bool
}

// kind is how a number grows.
type kind uint8

const (
	fixed kind = iota
	// growing is a counter, or the sum of a histogram.
	growing
	// bucket is a count of a histogram, which has those before it in it.
	bucket
	// count has all buckets before it.
	count
)

// NewBody reads a body of the project's testdata. With more engines than one, each series
// with the label engine="0" is repeated for every engine; series of other engines are left
// out. A model replaces the value of model_name.
func NewBody(text []byte, engines int, model string) (*Body, error) {
	b := &Body{}
	var piece []byte
	types := map[string]string{}
	for line := range strings.SplitSeq(strings.TrimSuffix(string(repeated(text, engines)), "\n"), "\n") {
		if rest, is := strings.CutPrefix(line, "# TYPE "); is {
			name, kind, _ := strings.Cut(rest, " ")
			types[name] = kind
		}
		if line == "" || line[0] == '#' {
			piece = append(append(piece, line...), '\n')
			continue
		}
		cut := strings.LastIndexByte(line, ' ')
		value, err := strconv.ParseFloat(line[cut+1:], 64)
		if err != nil {
			return nil, fmt.Errorf("the line %q has no number: %w", line, err)
		}
		series := line[:cut+1]
		if model != "" {
			series = replaceLabel(series, "model_name", model)
		}
		name := series[:strings.IndexAny(series, "{ ")]
		b.pieces = append(b.pieces, append(piece, series...))
		b.numbers = append(b.numbers, number{
			value: value, whole: value == float64(int64(value)), kind: kindOf(types, name),
		})
		piece = []byte{'\n'}
	}
	b.pieces = append(b.pieces, piece)
	return b, nil
}

func kindOf(types map[string]string, name string) kind {
	if types[name] == "counter" {
		return growing
	}
	for suffix, kind := range map[string]kind{"_bucket": bucket, "_count": count, "_sum": growing, "_total": growing} {
		if base, is := strings.CutSuffix(name, suffix); is && (types[base] == "histogram" || types[base] == "counter") {
			return kind
		}
	}
	return fixed
}

// Samples is the number of samples.
func (b *Body) Samples() int { return len(b.numbers) }

// perStep is the part of the counters at the begin that a step adds. With the 3600 requests of
// the body of the project's testdata it is about 100 requests.
const perStep = 1.0 / 36

// Append appends the body as it is after so many steps. The count of each single bucket is
// rounded, and not the sum of it and those before it: the difference of two rounded sums would
// fall now and then, which only a restart explains.
func (b *Body) Append(to []byte, steps int) []byte {
	factor := 1 + float64(steps)*perStep
	// before is the last bucket at the begin, and sum the same after the steps.
	before, sum := 0.0, 0.0
	for i, n := range b.numbers {
		to = append(to, b.pieces[i]...)
		value := n.value
		switch n.kind {
		case growing:
			value *= factor
		case bucket:
			sum += math.Floor((n.value - before) * factor)
			before, value = n.value, sum
		case count:
			value, before, sum = sum, 0, 0
		case fixed:
		}
		if n.whole {
			to = append(strconv.AppendInt(to, int64(value), 10), ".0"...)
		} else {
			to = strconv.AppendFloat(to, value, 'g', -1, 64)
		}
	}
	return append(to, b.pieces[len(b.numbers)]...)
}

// repeated returns a body with the series of engine 0 once for every engine.
func repeated(text []byte, engines int) []byte {
	var out bytes.Buffer
	var group []string
	family := ""
	flush := func() {
		for engine := range engines {
			for _, line := range group {
				out.WriteString(strings.Replace(line, `engine="0"`, fmt.Sprintf(`engine="%d"`, engine), 1))
				out.WriteByte('\n')
			}
		}
		group = group[:0]
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(string(text), "\n"), "\n") {
		if strings.HasPrefix(line, "#") {
			flush()
			out.WriteString(line + "\n")
			continue
		}
		name := line[:strings.IndexAny(line, "{ ")]
		if name != family && strings.HasSuffix(name, "_created") {
			flush()
		}
		family = name
		switch {
		case strings.Contains(line, `engine="0"`):
			group = append(group, line)
		case strings.Contains(line, `engine="`):
		default:
			flush()
			out.WriteString(line + "\n")
		}
	}
	flush()
	return out.Bytes()
}

func replaceLabel(series, label, value string) string {
	begin := strings.Index(series, label+`="`)
	if begin < 0 {
		return series
	}
	begin += len(label) + 2
	end := begin + strings.IndexByte(series[begin:], '"')
	return series[:begin] + value + series[end:]
}
