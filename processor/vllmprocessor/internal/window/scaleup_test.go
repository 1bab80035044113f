package window

import (
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// showing observes a batch of several engines with evidence.
func showing(r *Resource, seconds float64, e input.Evidence, engines map[string][]input.Sample) Report {
	b := &input.Batch{Time: at(seconds), Evidence: e}
	for _, name := range slices.Sorted(maps.Keys(engines)) {
		var attributes []input.Attribute
		if name != "" {
			attributes = []input.Attribute{{Name: "engine", Value: name}, {Name: "model_name", Value: "m"}}
		}
		b.Groups = append(b.Groups, input.GroupOf(attributes))
		for _, s := range engines[name] {
			s.Group = len(b.Groups) - 1
			b.Samples = append(b.Samples, s)
		}
	}
	return r.Observe(b, math.MaxInt)
}

// Two engines have counted 100 tokens each. At 30 s there are three, and all have counted
// less. The front end counts requests.
func TestEnginesThatAreAddedAreNoRestart(t *testing.T) {
	type engines = map[string][]input.Sample
	requests := func(label input.Label, value, start float64) input.Sample {
		return input.Sample{Input: input.HTTPRequests, Label: label, Value: value, Start: at(start)}
	}
	process := func(start float64) input.Evidence { return input.Evidence{ProcessStart: start} }
	three := engines{"0": {tokens(3)}, "1": {tokens(0)}, "2": {tokens(4)}}
	with := func(of engines, front ...input.Sample) engines {
		of = maps.Clone(of)
		of[""] = front
		return of
	}
	const began = -500
	for name, c := range map[string]struct {
		before, after input.Evidence
		// Without front the front end is 40 requests, and then 50.
		front  []input.Sample
		second engines
		added  bool
	}{
		"the process says that it is the same":   {process(1000), process(1000), nil, three, true},
		"the process says it, about":             {process(1000), process(1000.5), nil, three, true},
		"the process says that it is another":    {process(1000), process(2000), nil, with(three, requests("a", 50, began)), false},
		"the process says nothing":               {input.Evidence{}, input.Evidence{}, nil, three, false},
		"the process says nothing any more":      {process(1000), input.Evidence{}, nil, three, false},
		"the front end goes on":                  {input.Evidence{}, input.Evidence{}, nil, with(three, requests("a", 50, began)), true},
		"the front end has answered nothing new": {input.Evidence{}, input.Evidence{}, nil, with(three, requests("a", 40, began)), true},
		"the front end began again":              {input.Evidence{}, input.Evidence{}, nil, with(three, requests("a", 5, began)), false},
		"the start of the front end moved":       {input.Evidence{}, input.Evidence{}, nil, with(three, requests("a", 50, 20)), false},
		"the start of the front end is unknown": {
			input.Evidence{},
			input.Evidence{},
			[]input.Sample{{Input: input.HTTPRequests, Value: 40}},
			with(three, input.Sample{Input: input.HTTPRequests, Value: 50}), false,
		},
		"the front end has counted nothing": {
			input.Evidence{}, input.Evidence{}, []input.Sample{requests("a", 0, began)}, with(three, requests("a", 0, began)), false,
		},
		"only the canaries of the receiver go on": {
			input.Evidence{}, input.Evidence{}, []input.Sample{canariesSince(began, 8)}, with(three, canariesSince(began, 9)), false,
		},
		"a counter of the front end is missing": {
			input.Evidence{},
			input.Evidence{},
			[]input.Sample{requests("a", 40, began), requests("b", 1, began)},
			with(three, requests("a", 50, began)), false,
		},
		"a counter of the front end has ended": {
			input.Evidence{},
			input.Evidence{},
			[]input.Sample{requests("a", 40, began), requests("b", 1, began)},
			with(three, requests("a", 50, began), gone(requests("b", 0, 0))), false,
		},
		"a counter of the front end is new": {
			input.Evidence{}, input.Evidence{}, nil, with(three, requests("a", 50, began), requests("b", 1, began)), true,
		},
		"the same engines":         {process(1000), process(1000), nil, engines{"0": {tokens(3)}, "1": {tokens(2)}}, false},
		"an engine was removed":    {process(1000), process(1000), nil, engines{"0": {tokens(3)}, "2": {tokens(4)}}, false},
		"an engine goes on":        {process(1000), process(1000), nil, engines{"0": {tokens(3)}, "1": {tokens(104)}, "2": {tokens(4)}}, false},
		"the version cannot do it": {input.Evidence{ProcessStart: 1000, Version: "0.8.5"}, process(1000), nil, three, false},
		"the V0 engine":            {input.Evidence{ProcessStart: 1000, Signs: input.V0}, process(1000), nil, three, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := fresh()
			front := c.front
			if front == nil {
				front = []input.Sample{requests("a", 40, began)}
			}
			first := engines{"0": {tokens(90)}, "1": {tokens(90)}}
			if _, has := c.second[""]; has {
				first[""] = front
			}
			showing(r, 0, c.before, first)
			first["0"], first["1"] = []input.Sample{tokens(100)}, []input.Sample{tokens(100)}
			showing(r, 15, c.before, first)
			report := showing(r, 30, c.after, c.second)
			assert.Equal(t, c.added, report.Resets == 0, report.Resets)
			assert.Equal(t, c.added, r.Shows("scale_up"))
			assert.Equal(t, c.added, r.Affected(catalog.DefectScaleUpResets))
			for _, v := range r.Views(nil, false) {
				when, ever := v.Restarted()
				if c.added {
					assert.False(t, ever, "%s %d", v.Group().Engine(), when)
				}
				switch n, status := v.Increase(input.PromptTokens); v.Group().Engine() {
				case "0":
					// From 90 to 100, and then 3.
					assert.Equal(t, 13.0, n)
					assert.Equal(t, !c.added, ever)
				case "2":
					assert.Equal(t, Present, status)
					assert.Equal(t, 4.0, n)
				case "":
					if c.added && len(c.second[""]) == 1 {
						n, _ := v.Increase(input.HTTPRequests)
						assert.Equal(t, c.second[""][0].Value-40, n, "the front end goes on")
					}
				}
			}
		})
	}
}

// A restart after engines were added is one.
func TestARestartAfterEnginesWereAdded(t *testing.T) {
	r := fresh()
	process := input.Evidence{ProcessStart: 1000}
	showing(r, 0, process, map[string][]input.Sample{"0": {tokens(90)}})
	assert.Equal(t, 0, showing(r, 15, process, map[string][]input.Sample{"0": {tokens(5)}, "1": {tokens(9)}}).Resets)
	assert.Equal(t, 2, showing(r, 30, input.Evidence{ProcessStart: 2000}, map[string][]input.Sample{"0": {tokens(1)}, "1": {tokens(1)}, "2": {tokens(1)}}).Resets)
	for _, v := range r.Views(nil, false) {
		when, ever := v.Restarted()
		assert.Equal(t, v.Group().Engine() != "2", ever)
		if ever {
			assert.Equal(t, at(30), when)
		}
	}
}
