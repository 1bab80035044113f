// Package served is the side of the servers in the comparison with the peers: bodies that
// grow as those of a busy vLLM server, and a small HTTP server that answers as uvicorn with
// prometheus_client does. It serves thousands of loopback addresses from one process and costs
// little, so that the collectors have the machine.
package served

import (
	"bytes"
	"fmt"
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
	// grows is true for counters and the parts of histograms.
	grows bool
	// whole is true for numbers without a fraction.
	whole bool
}

// NewBody reads a body of the project's testdata. With more engines than one, each series
// with the label engine="0" is repeated for every engine; series of other engines are left
// out. A model replaces the value of model_name.
func NewBody(text []byte, engines int, model string) (*Body, error) {
	b := &Body{}
	var piece []byte
	grows := map[string]bool{}
	for line := range strings.SplitSeq(strings.TrimSuffix(string(repeated(text, engines)), "\n"), "\n") {
		if rest, is := strings.CutPrefix(line, "# TYPE "); is {
			name, kind, _ := strings.Cut(rest, " ")
			grows[name] = kind == "counter" || kind == "histogram"
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
			value: value, whole: value == float64(int64(value)),
			grows: !strings.HasSuffix(name, "_created") && growing(grows, name),
		})
		piece = []byte{'\n'}
	}
	b.pieces = append(b.pieces, piece)
	return b, nil
}

func growing(grows map[string]bool, name string) bool {
	if grows[name] {
		return true
	}
	for _, suffix := range []string{"_total", "_bucket", "_sum", "_count"} {
		if base, is := strings.CutSuffix(name, suffix); is && grows[base] {
			return true
		}
	}
	return false
}

// Samples is the number of samples.
func (b *Body) Samples() int { return len(b.numbers) }

// Append appends the body as it is after so many steps. A step adds to each counter what it
// had at the begin. With a smaller step, some counts would have to be rounded, and the count
// of a single bucket, which is the difference of two of them, would fall: a restart.
func (b *Body) Append(to []byte, steps int) []byte {
	factor := 1 + float64(steps)
	for i, n := range b.numbers {
		to = append(to, b.pieces[i]...)
		value := n.value
		if n.grows {
			value *= factor
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
