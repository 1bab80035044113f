package window

import "github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/collect"

// fewSeries is the number of series of an input up to which a linear search is used.
const fewSeries = 16

// labelled is a series of a group: an input and the values of its labels.
type labelled struct {
	input collect.Input
	label collect.Label
}

// find returns a series of the group; nil where it is new. The points of a metric have
// the same order in every batch. So the search begins at hint, and hint is then set to
// the likely place of the next series.
func (g *Group) find(in collect.Input, label collect.Label, hint *int) *series {
	all := g.inputs.of(in)
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
	g.inputs.set(in, append(g.inputs.of(in), s))
	switch all := g.inputs.of(in); {
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

// process returns the name of what restarts together: all attributes but the model. An
// engine restarts with all its models. Where several servers share a resource, other
// attributes distinguish them. An endpoint picker restarts with all models and targets.
func process(attributes []collect.Attribute) string {
	without := make([]collect.Attribute, 0, len(attributes))
	for _, a := range attributes {
		switch a.Name {
		case "model_name":
		case targetLabel:
			without = append(without, collect.Attribute{Name: targetLabel})
		default:
			without = append(without, a)
		}
	}
	return collect.KeyWithout(without, "")
}

// targetLabel is the attribute of an endpoint picker for the model that a server gets.
const targetLabel = "target_model_name"
