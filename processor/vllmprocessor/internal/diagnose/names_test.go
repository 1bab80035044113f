package diagnose

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
)

// Reported names are those of the catalogue, no more and no less.

func TestConditionsAreTheCataloguesInItsOrder(t *testing.T) {
	t.Parallel()
	all := catalog.Conditions()
	require.Len(t, all, int(NumConditions))
	severest := map[int]bool{}
	for i, described := range all {
		condition, known := catalog.ConditionByName(described.Name)
		require.True(t, known)
		// The catalogue begins with the one that wins; of those that are no harm the
		// order does not matter.
		if described.Severity > 0 {
			assert.Equal(t, described.Name, (NumConditions - 1 - Condition(i)).String())
		}
		severest[condition.Severity] = true
	}
	assert.Equal(t, map[int]bool{0: true, 1: true, 2: true, 3: true}, severest)
	for c := range NumConditions {
		_, known := catalog.ConditionByName(c.String())
		assert.True(t, known, c)
	}
}

func TestCauseNames(t *testing.T) {
	t.Parallel()
	var want, got []string
	for _, c := range catalog.Causes() {
		want = append(want, c.Name)
	}
	for c := range NumCauses {
		got = append(got, c.String())
	}
	assert.ElementsMatch(t, want, got)
}

// Whatever an engine looks like, the detail of a cause is one that the catalogue
// has a sentence for.
func TestDetailsAreTheCatalogues(t *testing.T) {
	t.Parallel()
	details := map[Cause]map[string]bool{}
	for _, share := range []float64{0.2, 1} {
		for _, waiting := range []float64{0, 5} {
			for _, growth := range []float64{0.1, 10} {
				for _, prompt := range []float64{1, 1e5} {
					e := &engine{baseline: learned(1)}
					e.last = healthyReading(0)
					e.last.Signals[signal.Waiting] = waiting
					for _, s := range []signal.Signal{signal.KVUtilization, signal.ErrorRatio, signal.CorruptedRatio, signal.MissedRatio, signal.DroppedRatio} {
						e.last.Signals[s] = share
					}
					e.last.Signals[signal.OutputTokens] *= growth
					e.last.Signals[signal.PromptTokens] /= growth
					e.last.Computed *= prompt
					e.last.overRequests, e.last.overTokens = waiting, growth
					e.last.Signals[signal.Deferred], e.last.fetching = 4, waiting
					if growth > 1 {
						e.baseline.Earlier = "0.24.0"
					}
					for c := range NumCauses {
						if details[c] == nil {
							details[c] = map[string]bool{}
						}
						details[c][e.detail(c)] = true
					}
				}
			}
		}
	}
	for c := range NumCauses {
		described, _ := catalog.CauseByName(c.String())
		always := c == DemandExceedsCapacity || c == PrefillHeavy || c == DecodeLoad
		known := map[string]bool{"": !always}
		for _, detail := range described.Details {
			known[detail.Name] = true
		}
		for detail := range details[c] {
			assert.True(t, known[detail], "evidentDetail gives %s the detail %q, which diagnosis.yaml does not have for it", c, detail)
		}
		if len(described.Details) > 0 {
			assert.Greater(t, len(details[c]), 1, "diagnosis.yaml has details of %s, and the readings above show only one of them: let evidentDetail decide, and vary here what it decides by", c)
		}
	}
}
