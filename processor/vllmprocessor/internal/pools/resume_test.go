package pools

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/diagnose"
)

// restart begins with new pools, and what was stored of the old ones.
func (r *poolRig) restart(away time.Duration) *poolRig {
	keeper := kept{}
	r.pools.Diagnoses(keeper.End)
	again := newPoolRig()
	again.pools, again.at = NewDiagnosis(10, keeper), r.at+int64(away)
	again.settings.MaxStaleness, r.settings.MaxStaleness = 5*time.Minute, 5*time.Minute
	return again
}

// After a restart of the collector a pool has what was reported before while its engines are read
// one after the other, for a window. Then it is judged by what they report.
func TestTheDiagnosisOfAPoolContinues(t *testing.T) {
	t.Parallel()
	slow := one{condition: diagnose.Degraded, load: 10, causes: map[diagnose.Cause]float64{diagnose.SlowSteps: 1}}
	fine, lost := one{condition: diagnose.Healthy, load: 2}, one{condition: diagnose.Unreachable}
	r := newPoolRig()
	for range 8 {
		r.evaluate(map[string][]one{"m": {slow, fine, fine, lost}})
	}
	before := r.pools.all[0].report.Reported
	require.Equal(t, diagnose.Degraded, before.Condition)

	r = r.restart(time.Minute)
	changes := 0
	for n, read := range [][]one{{lost}, {lost, fine}, {fine, fine, lost}, {slow, fine, fine, lost}, {slow, fine, fine, lost}, {slow, fine, fine, lost}} {
		r.evaluate(map[string][]one{"m": read})
		assert.Equal(t, before, r.pools.all[0].report.Reported, "evaluation %d", n)
		for i := range r.changes {
			assert.True(t, r.changes[i].Continues, "evaluation %d", n)
		}
		changes += len(r.changes)
		r.changes = nil
	}
	assert.Equal(t, 1, changes)
	for range 4 {
		r.evaluate(map[string][]one{"m": {fine, fine, fine}})
	}
	assert.Equal(t, diagnose.Healthy, r.pools.all[0].report.Reported.Condition)

	r = r.restart(10 * time.Minute)
	r.evaluate(map[string][]one{"m": {slow, fine}})
	assert.Equal(t, diagnose.Unknown, r.pools.all[0].report.Reported.Condition, "too old: as a pool that is new")
}

// What holds after a restart holds for one window, also where the clock is set back in that time.
func TestAPoolThatContinuesIsJudgedAfterTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	slow := one{condition: diagnose.Degraded, load: 10, causes: map[diagnose.Cause]float64{diagnose.SlowSteps: 1}}
	fine := one{condition: diagnose.Healthy, load: 2}
	r := newPoolRig()
	for range 8 {
		r.evaluate(map[string][]one{"m": {slow, fine}})
	}
	r = r.restart(time.Minute)
	r.evaluate(map[string][]one{"m": {slow, fine}})
	require.Equal(t, diagnose.Degraded, r.pools.all[0].report.Reported.Condition)
	r.at -= int64(2 * time.Hour)
	for range 8 { // Two minutes, with a window of one.
		r.evaluate(map[string][]one{"m": {fine, fine}})
	}
	assert.Equal(t, diagnose.Healthy, r.pools.all[0].report.Reported.Condition)
}
