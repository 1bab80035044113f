package window

import "github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"

// fewSeries is the number of series of an input up to which a linear search is used.
const fewSeries = 16

// labelled is a series of a group: an input and the values of its labels.
type labelled struct {
	input input.Metric
	label input.Label
}

// find returns a series of the group; nil where it is new. The points of a metric have
// the same order in every batch. So the search begins at hint, and hint is then set to
// the likely place of the next series.
func (g *Group) find(in input.Metric, label input.Label, hint *int) *series {
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
func (g *Group) include(in input.Metric, s *series) {
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
func process(attributes []input.Attribute) string {
	without := make([]input.Attribute, 0, len(attributes))
	for _, a := range attributes {
		switch a.Name {
		case "model_name":
		case targetLabel:
			without = append(without, input.Attribute{Name: targetLabel})
		default:
			without = append(without, a)
		}
	}
	return input.KeyWithout(without, "")
}

// targetLabel is the attribute of an endpoint picker for the model that a server gets.
const targetLabel = "target_model_name"
