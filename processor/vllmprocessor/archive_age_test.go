package vllmprocessor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
)

// What is too old is not continued, also where nothing is ever saved and so nothing
// thrown away.
func TestABaselineIsForgottenAfterAWeekWithoutAStorage(t *testing.T) {
	for name, test := range map[string]struct {
		away time.Duration
		want bool
	}{
		"six days":   {6 * 24 * time.Hour, true},
		"eight days": {8 * 24 * time.Hour, false},
	} {
		p := newInstance(t, createDefaultConfig().(*Config), &archives{})
		p.begin(componenttest.NewNopHost())
		server, other := steady("one:8000", noon), steady("other:8000", noon)
		p.watch(server, 8*time.Minute)
		other.at = server.at.Add(test.away)
		p.watch(other, 10*time.Minute)
		require.Len(t, p.resources, 1, "the first is forgotten")
		server.at = other.at
		assert.Equal(t, test.want, p.continues(server), name)
		p.end()
	}
}

// An engine that comes and goes without being of any use leaves nothing behind.
func TestAnEngineOfWhichNothingIsLearnedLeavesNothing(t *testing.T) {
	p := newInstance(t, createDefaultConfig().(*Config), &archives{})
	p.begin(componenttest.NewNopHost())
	server, other := steady("one:8000", noon), steady("other:8000", noon)
	p.watch(server, time.Minute)
	require.NotEmpty(t, p.diagnosis.archive.owners)
	other.at = server.at
	p.watch(other, 30*time.Minute)
	require.Len(t, p.resources, 1, "the first is forgotten")
	assert.Len(t, p.diagnosis.archive.owners, 2, "the other's engine and server")
	p.end()
}
