package vllmprocessor

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/states"
)

// The states are copied before they are put together. What ends in between is
// newer than its copy and stays.
func TestAStateThatEndsDuringASaveIsSavedAgain(t *testing.T) {
	for name, end := range map[string]func(*instance){
		"a server that is forgotten": func(p *instance) {
			p.at = p.at.Add(10 * time.Minute)
			p.take(body("else:8000", "m", p.at, nil, map[string]*engineLog{"0": {born: noon}}))
			require.Zero(t, p.objectives.trackers.Used())
		},
		"a collector that stops": func(p *instance) { p.end() },
	} {
		t.Run(name, func(t *testing.T) {
			store := &memory{}
			p := newInstance(t, kept(), &archives{})
			p.begin(hostWith{stateID, store})
			engines := map[string]*engineLog{"0": {born: noon}}
			p.shows("one:8000", engines)
			p.shows("one:8000", engines, 1, 3)
			copied := p.objectives.snapshot()
			require.Len(t, copied, 1)
			end(p)

			a := p.objectives.archive
			a.encode([]keeper{p.objectives}, []map[string][]byte{copied})
			saved, err := states.Decode(a.encode(nil, nil))
			require.NoError(t, err)
			assert.Len(t, saved, 1)
			require.NoError(t, p.objectives.shutdown(context.Background()))
		})
	}
}

// Each rollout leaves the states of its servers behind for as long as the budget
// is: of what they are made, the burn windows are soon past.
func TestTheStateOfAServerThatIsGoneBecomesSmall(t *testing.T) {
	store := &memory{}
	p := newInstance(t, kept(), &archives{})
	p.begin(hostWith{stateID, store})
	engines, other := map[string]*engineLog{"0": {born: noon}}, map[string]*engineLog{"0": {born: noon}}
	for range 16 * 60 { // eight hours
		p.shows("one:8000", engines, 1, 3)
	}
	a := p.objectives.archive
	a.save(context.Background())
	assert.Greater(t, len(store.data[budgetsKey]), 2000)
	for range 16 {
		p.at = p.at.Add(30 * time.Minute)
		p.take(body("other:8000", "m", p.at, nil, other))
	}
	a.save(context.Background())
	require.Len(t, a.states, 1)
	assert.Less(t, len(store.data[budgetsKey]), 300)
	// It comes back and continues.
	p.shows("one:8000", engines)
	got := p.shows("one:8000", engines, 1, 3)
	assert.InDelta(t, 1-5.0, got.values[budgetLeft], 1e-9)
	p.end()
}
