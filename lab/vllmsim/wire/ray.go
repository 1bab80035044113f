package wire

import (
	"io"
	"slices"
	"strings"
)

// Ray writes what a Ray metrics agent answers with for families that vLLM
// registered through Ray. Names outside "vllm:" pass as they are.
type Ray struct {
	// Underscore writes ray_vllm_x instead of ray_vllm:x, as vLLM does since
	// v0.11.
	Underscore bool
	// Twins adds a gauge without "_total" for every counter, Ray's default
	// since 2.10 where vLLM's name does not end in "_total" itself.
	Twins bool
	// Labels are those that Ray adds to every series.
	Labels []Label
	Media  string
}

// ContentType implements Encoder.
func (r Ray) ContentType() string { return r.Media }

// Encode implements Encoder.
func (r Ray) Encode(w io.Writer, families []Family) error {
	var out []Family
	for _, f := range families {
		if !strings.HasPrefix(f.Name, "vllm:") {
			out = append(out, f)
			continue
		}
		f.Name = "ray_" + f.Name
		if r.Underscore {
			f.Name = strings.Replace(f.Name, "vllm:", "vllm_", 1)
		}
		f.Points = r.points(f)
		if len(f.Points) == 0 {
			continue // An agent knows only what has been recorded.
		}
		out = append(out, f)
		if r.Twins && f.Type == Counter {
			f.Type = Gauge
			out = append(out, f)
		}
	}
	return Python{PaddedExponent: true}.Encode(w, out)
}

// points adds Ray's labels and drops what was never recorded: Ray ignores
// increments by zero.
func (r Ray) points(f Family) []Point {
	var kept []Point
	for _, pt := range f.Points {
		if (f.Type == Counter && pt.Value == 0) || (f.Type == Histogram && pt.Count == 0) {
			continue
		}
		pt.Labels = append(slices.Clip(pt.Labels), r.Labels...)
		kept = append(kept, pt)
	}
	return kept
}
