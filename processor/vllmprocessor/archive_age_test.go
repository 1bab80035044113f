package vllmprocessor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/archive"
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
		p := newInstance(t, createDefaultConfig().(*Config), &archive.Shared{})
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
