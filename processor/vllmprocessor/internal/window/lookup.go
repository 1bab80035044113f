package window

import "github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/collect"

// fewSeries is the number of series of an input that are looked through one by
// one.
const fewSeries = 16

// labelled is a series of a group: an input and the values of its labels.
type labelled struct {
	input collect.Input
	label string
}

// find returns a series of the group; nil where it is new. The points of a
// metric come in the same order every time, so hint is where to begin, and then
// where the next is likely to be.
func (g *Group) find(in collect.Input, label string, hint *int) *series {
	all := g.inputs[in]
	for i := range min(len(all), fewSeries) {
		next := (*hint + i) % len(all)
		if all[next].label == label {
			*hint = next + 1
			return all[next]
		}
	}
	return g.labels[labelled{in, label}]
}

// include adds a series.
func (g *Group) include(in collect.Input, s *series) {
	g.inputs[in] = append(g.inputs[in], s)
	switch all := g.inputs[in]; {
	case len(all) < fewSeries:
	case len(all) == fewSeries:
		if g.labels == nil {
			g.labels = make(map[labelled]*series, 2*fewSeries)
		}
		for _, s := range all {
			g.labels[labelled{in, s.label}] = s
		}
	default:
		g.labels[labelled{in, s.label}] = s
	}
}

// process names what restarts as one: an engine, whatever models it serves, of
// the server that other attributes name, where several share a resource.
func process(attributes []collect.Attribute) string {
	var key []byte
	for _, a := range attributes {
		if a.Name != "model_name" {
			key = append(append(append(append(key, a.Name...), 0), a.Value...), 0)
		}
	}
	return string(key)
}
