package vllmprocessor

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/archive"
)

// Each rollout leaves the states of its servers behind for as long as the budget
// is: of what they are made, the burn windows are soon past.
func TestTheStateOfAServerThatIsGoneBecomesSmall(t *testing.T) {
	store := &memory{}
	p := newInstance(t, kept(), &archive.Shared{})
	p.begin(hostWith{stateID, store})
	engines, other := map[string]*engineLog{"0": {born: noon}}, map[string]*engineLog{"0": {born: noon}}
	for range 16 * 60 { // eight hours
		p.shows("one:8000", engines, 1, 3)
	}
	p.objectives().Archive.Save(context.Background())
	assert.Greater(t, len(store.data[budgetsKey]), 2000)
	for range 16 {
		p.at = p.at.Add(30 * time.Minute)
		p.take(body("other:8000", "m", p.at, nil, other))
	}
	p.objectives().Archive.Save(context.Background())
	require.Len(t, storedStates(t, store), 1)
	assert.Less(t, len(store.data[budgetsKey]), 300)
	// It comes back and continues.
	p.shows("one:8000", engines)
	got := p.shows("one:8000", engines, 1, 3)
	assert.InDelta(t, 1-5.0, got.values[budgetLeft], 1e-9)
	p.end()
}
