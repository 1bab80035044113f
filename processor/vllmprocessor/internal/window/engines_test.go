package window

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// A roll-up is over the engines of one model. One engine alone has none.
func TestTheRollupsOverEngines(t *testing.T) {
	rollups := func(r *Resource) map[string]Status {
		all := map[string]Status{}
		for up, status := range r.Rollups() {
			require.Len(t, up.Attributes, 1)
			all[up.Attributes[0].Value] = status
		}
		return all
	}
	r := fresh()
	both := map[string][]input.Sample{"0": {tokens(1)}, "1": {tokens(1)}}
	one := map[string][]input.Sample{"0": {tokens(1)}}
	scrapeEngines(r, 0, one)
	assert.Empty(t, rollups(r))
	scrapeEngines(r, 15, both)
	assert.Equal(t, map[string]Status{"m": Present}, rollups(r))
	assert.Empty(t, slices.Collect(r.PendingGroups()))
	scrapeEngines(r, 30, one)
	assert.Equal(t, map[string]Status{"m": Pending}, rollups(r))
	missing := slices.Collect(r.Pending())
	require.Len(t, missing, 1)
	assert.Equal(t, "1", missing[0].Engine())
	assert.Equal(t, []int{missing[0].Number}, slices.Collect(r.PendingGroups()))
	for up := range r.Rollups() {
		assert.Len(t, slices.Collect(r.Groups(up)), 2)
		assert.Same(t, up, missing[0].Rollup())
	}
	scrapeEngines(r, 45, one)
	assert.Empty(t, rollups(r))
	assert.Empty(t, slices.Collect(r.PendingGroups()))
	scrapeEngines(r, 60, both)
	scrapeEngines(r, 75, map[string][]input.Sample{"0": {tokens(1)}, "1": {gone(tokens(0))}})
	assert.Empty(t, rollups(r), "an engine that ends is not waited for")
	assert.Len(t, slices.Collect(r.Numbers()), 2)
}

// An engine is read while it is in the newest batch and has not ended.
func TestOnlyEnginesOfTheNewestBatchAreRead(t *testing.T) {
	engines := func(r *Resource) (names []string) {
		for _, view := range r.Views(nil, false) {
			names = append(names, view.Group().Engine())
		}
		slices.Sort(names)
		return names
	}
	r := fresh()
	assert.Empty(t, engines(r))
	scrapeEngines(r, 0, map[string][]input.Sample{"0": {tokens(1)}, "1": {tokens(1)}, "2": {tokens(1), waiting(1)}})
	assert.Equal(t, []string{"0", "1", "2"}, engines(r))
	scrapeEngines(r, 15, map[string][]input.Sample{"0": {tokens(1)}, "2": {tokens(1), waiting(1)}})
	assert.Equal(t, []string{"0", "2"}, engines(r))
	scrapeEngines(r, 15, map[string][]input.Sample{"0": {gone(tokens(0))}})
	assert.Equal(t, []string{"0", "2"}, engines(r), "the value and the end have the same timestamp")
	scrapeEngines(r, 16, map[string][]input.Sample{"0": {gone(tokens(0))}, "2": {gone(waiting(0))}})
	assert.Equal(t, []string{"2"}, engines(r), "an engine has ended when all its series have")
}

// The attributes of an engine can change for ever, as behind a churning deployment.
func TestRemovedEnginesLeaveNothingBehind(t *testing.T) {
	r := fresh()
	scrape(r, 0, tokens(1))
	scrape(r, 400, tokens(1))
	b := &input.Batch{Time: at(800), Groups: []input.Group{input.GroupOf(nil)}, Samples: []input.Sample{{Input: input.Up, Value: 1}}}
	r.Observe(b, math.MaxInt)
	r.Trim()
	require.Len(t, r.groups, 1)
	assert.Empty(t, r.rollups)
	assert.Empty(t, r.rollupOf)
	assert.Len(t, r.engines, 1)
	assert.Len(t, r.index, 1)
	assert.Equal(t, 1, r.Series())
	assert.Equal(t, 1, r.Units())
	assert.Equal(t, 0, r.groups[0].Place())
}

// A removed engine that appears again has its old number. An expected one is a baseline.
func TestAnEngineThatAppearsAgainHasItsNumber(t *testing.T) {
	r := fresh()
	both := map[string][]input.Sample{"0": {tokens(1)}, "1": {tokens(1)}}
	scrapeEngines(r, 0, both)
	numbers := map[string]int{}
	for _, g := range r.groups {
		numbers[g.Engine()] = g.Number
	}
	assert.NotEqual(t, numbers["0"], numbers["1"])
	for s := 15.0; s <= 330; s += 15 {
		scrapeEngines(r, s, map[string][]input.Sample{"0": {tokens(1)}})
	}
	r.Trim()
	require.Len(t, r.groups, 1)
	scrapeEngines(r, 345, both)
	require.Len(t, r.groups, 2)
	assert.Equal(t, numbers["1"], r.groups[1].Number)

	expected := r.Expect([]input.Attribute{{Name: "engine", Value: "9"}, {Name: "model_name", Value: "m"}})
	assert.Same(t, expected, r.Expect(expected.Attributes))
	assert.NotContains(t, numbers, expected.Engine())
	scrapeEngines(r, 360, map[string][]input.Sample{"0": {tokens(1)}, "1": {tokens(1)}, "9": {tokens(1000)}})
	scrapeEngines(r, 375, map[string][]input.Sample{"0": {tokens(1)}, "1": {tokens(1)}, "9": {tokens(1007)}})
	for _, view := range r.Views(nil, false) {
		if view.Group() == expected {
			_, status := view.Increase(input.PromptTokens)
			assert.Equal(t, First, status, "the window begins before its first sample")
		}
	}
}
