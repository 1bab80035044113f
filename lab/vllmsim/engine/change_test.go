package engine

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWhatOutlivesAProcess(t *testing.T) {
	changes := []Change{
		{At: 10, Parameter: ParamClock, Value: 0.5},
		{At: 20, Parameter: ParamStall, Value: 1},
		{At: 20, Parameter: ParamSleep, Value: 1},
		{At: 30, Parameter: ParamScaleUp, Value: 2},
		{At: 40, Parameter: ParamClientsLeave, Value: 1},
		{At: 100, Parameter: ParamClientsLeave, Value: 1},
		{At: 150, Parameter: ParamStall, Value: 0, Engines: []int{1}},
	}
	assert.Equal(t, []Change{
		{At: 0, Parameter: ParamClock, Value: 0.5},
		{At: 0, Parameter: ParamClientsLeave, Value: 1},
		{At: 50, Parameter: ParamStall, Value: 0, Engines: []int{1}},
	}, ChangesAfter(changes, 100))
	assert.Len(t, changes, 7)
	assert.InDelta(t, 10, changes[0].At, 0)
}

// Runs are compared that differ in other changes: the same clients leave in them.
func TestWhoLeavesDoesNotDependOnOtherChanges(t *testing.T) {
	left := func(changes ...Change) []int {
		s, err := New(Config{
			Seed: 3, Model: Llama8B(), FrontEnd: DefaultFrontEnd(), Workload: Chat(8), KeepOutcomes: true,
			Changes: append(changes, Change{At: 60, Parameter: ParamClientsLeave, Value: 0.5}),
		})
		require.NoError(t, err)
		s.AdvanceTo(61)
		var out []int
		for _, o := range s.Outcomes() {
			if o.End == EndLeft {
				out = append(out, o.ID)
			}
		}
		return out
	}
	usual := left()
	assert.Greater(t, len(usual), 5)
	assert.ElementsMatch(t, usual, left(Change{At: 10, Parameter: ParamErrorRate, Value: 0}))
}
