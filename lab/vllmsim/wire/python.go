package wire

import (
	"bufio"
	"io"
	"slices"
	"strings"
)

// Python writes what Python's prometheus_client writes.
type Python struct {
	// Created adds a gauge family with creation times after every counter,
	// histogram and summary.
	Created bool
	// MultiProcess writes histograms in the order of the multi-process
	// collector: all sums, then buckets and count of each child.
	MultiProcess bool
	// PaddedExponent writes 1e+010 as clients up to 0.25 do.
	PaddedExponent bool
	// Media is the content type.
	Media string
}

// ContentType implements Encoder.
func (p Python) ContentType() string { return p.Media }

// Encode implements Encoder.
func (p Python) Encode(w io.Writer, families []Family) error {
	out := bufio.NewWriter(w)
	for _, f := range families {
		p.family(out, f)
	}
	return out.Flush()
}

func (p Python) family(out *bufio.Writer, f Family) {
	name := f.Name
	if f.Type == Counter {
		name = totalName(name)
	}
	header(out, name, f.Help, f.Type)
	switch f.Type {
	case Histogram:
		p.histogram(out, f)
	case Summary:
		for _, pt := range f.Points {
			p.sample(out, f.Name+"_count", pt.Labels, float64(pt.Count))
			p.sample(out, f.Name+"_sum", pt.Labels, pt.Value)
		}
	default:
		for _, pt := range f.Points {
			p.sample(out, name, pt.Labels, pt.Value)
		}
	}
	if p.Created && f.Type != Gauge && len(f.Points) > 0 && f.Points[0].Created > 0 {
		header(out, f.Name+"_created", f.Help, Gauge)
		for _, pt := range f.Points {
			p.sample(out, f.Name+"_created", pt.Labels, pt.Created)
		}
	}
}

func (p Python) histogram(out *bufio.Writer, f Family) {
	if p.MultiProcess {
		for _, pt := range f.Points {
			p.sample(out, f.Name+"_sum", pt.Labels, pt.Value)
		}
	}
	for _, pt := range f.Points {
		for i, bound := range pt.Bounds {
			p.sample(out, f.Name+"_bucket", with(pt.Labels, "le", pythonClient(bound, p.PaddedExponent)), float64(pt.Cumulative[i]))
		}
		p.sample(out, f.Name+"_bucket", with(pt.Labels, "le", "+Inf"), float64(pt.Count))
		p.sample(out, f.Name+"_count", pt.Labels, float64(pt.Count))
		if !p.MultiProcess {
			p.sample(out, f.Name+"_sum", pt.Labels, pt.Value)
		}
	}
}

func (p Python) sample(out *bufio.Writer, name string, labels []Label, value float64) {
	sample(out, name, sorted(labels), pythonClient(value, p.PaddedExponent))
}

// totalName is the sample name of a counter.
func totalName(name string) string { return strings.TrimSuffix(name, "_total") + "_total" }

func header(out *bufio.Writer, name, help string, t Type) {
	out.WriteString("# HELP " + name + " " + helpEscapes.Replace(help) + "\n")
	out.WriteString("# TYPE " + name + " " + t.String() + "\n")
}

func sample(out *bufio.Writer, name string, labels []Label, value string) {
	out.WriteString(name)
	if len(labels) > 0 {
		separator := "{"
		for _, l := range labels {
			out.WriteString(separator + l.Name + `="` + valueEscapes.Replace(l.Value) + `"`)
			separator = ","
		}
		out.WriteString("}")
	}
	out.WriteString(" " + value + "\n")
}

// sorted returns the labels by name, the order in which the Python client
// writes them.
func sorted(labels []Label) []Label {
	out := slices.Clone(labels)
	slices.SortFunc(out, func(a, b Label) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func with(labels []Label, name, value string) []Label {
	return append(slices.Clip(labels), Label{name, value})
}
