package wire

import (
	"bufio"
	"io"
	"strconv"
)

// Rust writes what vLLM's Rust front end writes: OpenMetrics, labels as
// declared with "le" first, counters and counts as integers, and a second full
// stop on every HELP text.
type Rust struct{}

// ContentType implements Encoder.
func (Rust) ContentType() string {
	return "application/openmetrics-text; version=1.0.0; charset=utf-8"
}

// Encode implements Encoder.
func (Rust) Encode(w io.Writer, families []Family) error {
	out := bufio.NewWriter(w)
	for _, f := range families {
		header(out, f.Name, f.Help+".", f.Type)
		for _, pt := range f.Points {
			rustPoint(out, f, pt)
		}
	}
	out.WriteString("# EOF\n")
	return out.Flush()
}

func rustPoint(out *bufio.Writer, f Family, pt Point) {
	switch f.Type {
	case Histogram:
		sample(out, f.Name+"_sum", pt.Labels, rustFloat(pt.Value))
		sample(out, f.Name+"_count", pt.Labels, strconv.FormatUint(pt.Count, 10))
		for i, bound := range pt.Bounds {
			labels := append([]Label{{"le", rustFloat(bound)}}, pt.Labels...)
			sample(out, f.Name+"_bucket", labels, strconv.FormatUint(pt.Cumulative[i], 10))
		}
		sample(out, f.Name+"_bucket", append([]Label{{"le", "+Inf"}}, pt.Labels...), strconv.FormatUint(pt.Count, 10))
	case Counter:
		sample(out, f.Name+"_total", pt.Labels, strconv.FormatFloat(pt.Value, 'f', -1, 64))
	default:
		value := rustFloat(pt.Value)
		if f.Whole {
			value = strconv.FormatFloat(pt.Value, 'f', -1, 64)
		}
		sample(out, f.Name, pt.Labels, value)
	}
}
