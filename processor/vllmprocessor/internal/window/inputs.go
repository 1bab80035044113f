package window

import (
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// inputs are the series of a group by input. A group has a part of the inputs, and a server
// has groups with two or three, so only those that were seen have a list.
type inputs struct {
	// place is the place of the list of an input, and 1 more; 0 without a list.
	place [input.NumMetrics]uint8
	lists [][]*series
}

// of returns the series of an input, in the order of their first sample.
func (i *inputs) of(in input.Metric) []*series {
	if at := i.place[in]; at > 0 {
		return i.lists[at-1]
	}
	return nil
}

// set stores the series of an input.
func (i *inputs) set(in input.Metric, all []*series) {
	if i.place[in] == 0 {
		if len(i.lists) == cap(i.lists) {
			// A list has 24 bytes, so little room is added.
			i.lists = append(make([][]*series, 0, len(i.lists)+4), i.lists...)
		}
		i.lists = append(i.lists, nil)
		i.place[in] = uint8(len(i.lists))
	}
	i.lists[i.place[in]-1] = all
}

// any reports whether one of the series fulfils a condition.
func (i *inputs) any(is func(*series) bool) bool {
	for _, all := range i.lists {
		if slices.ContainsFunc(all, is) {
			return true
		}
	}
	return false
}
