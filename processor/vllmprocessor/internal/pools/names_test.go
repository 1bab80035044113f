package pools

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/diagnose"
)

// said is what the newest transition of a pool says about its servers, which are called s0, s1 and so on.
func said(t *testing.T, all ...one) string {
	t.Helper()
	r := newPoolRig()
	for range 2 {
		r.pools.Begin()
		for i := range all {
			m := all[i].member("m")
			r.pools.Add(server(m, m), fmt.Sprint("s", i), itsModel)
		}
		_, changes := r.pools.Evaluate(&r.settings, 1, enabled("vllm.pool.diagnosis.cause"))
		if len(changes) > 0 {
			return changes[0].Felt
		}
	}
	return ""
}

// Each server has two engines, and is named once.
func TestAPoolNamesTheServersThatDoNotServe(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "Of 3 servers 1 is stalled: s1.", said(t, well, halted, well))
	assert.Equal(t, "Of 6 servers 1 is failing: s3; 2 are unreachable: s0, s4; 1 is degraded: s5.", said(t, lost, well, idle, fails, lost, flooded))
	assert.Equal(t, "Of 8 servers 6 are stalled: s0, s1, s2, s3, s4 and 1 more; 1 is critical.", said(t, append(times(6, halted), late, well)...))
	assert.Empty(t, said(t, well, idle))
}

// What an engine is compared with is what its pool had at the evaluation before.
func TestAPoolAddsUpWhatItsEnginesAreAskedFor(t *testing.T) {
	t.Parallel()
	r := newPoolRig()
	r.evaluate(map[string][]one{"m": times(1, well)})
	pool := r.pools.all[0]
	for n := 1.0; n < 3; n++ {
		r.pools.Begin()
		assert.Equal(t, diagnose.Load{Requests: 2 * (n - 1), Arrivals: n - 1}, pool.askedBefore)
		for range 2 {
			m := well.member("m")
			m.Asked = diagnose.Load{Requests: n, Arrivals: n / 2}
			r.pools.Add(server(m), "s", itsModel)
		}
	}
}

// A server has a cause, so its pool has one, however small its part of the harm is.
func TestAPoolHasACauseWhereAServerHasOne(t *testing.T) {
	t.Parallel()
	unexplained := one{condition: diagnose.Degraded, load: 90, kv: 0.9}
	few := one{condition: diagnose.Degraded, load: 10, kv: 0.9, causes: map[diagnose.Cause]float64{diagnose.SlowSteps: 1}}
	r := newPoolRig()
	for _, explained := range []bool{false, true} {
		m := few.member("m")
		m.Verdict.Explained, m.Verdict.Primary = explained, diagnose.SlowSteps
		for range 2 {
			r.pools.Begin()
			r.pools.Add(server(m), "a", itsModel)
			r.pools.Add(server(unexplained.member("m")), "b", itsModel)
			r.at++
			r.pools.Evaluate(&r.settings, r.at, enabled("vllm.pool.diagnosis.cause"))
		}
		assert.Equal(t, map[bool]string{false: "degraded", true: "degraded slow_steps"}[explained], r.verdict())
	}
}

// The name of a model is what its server says. Each sentence begins with the name of the pool, which is cut.
func TestALongNameOfAPoolIsCut(t *testing.T) {
	t.Parallel()
	r, long := newPoolRig(), strings.Repeat("x", 8000)
	for range 2 {
		r.pools.Begin()
		r.pools.Add(server(halted.member(long)), "s", itsModel)
		_, changes := r.pools.Evaluate(&r.settings, 1, enabled("vllm.pool.diagnosis.cause"))
		for _, change := range changes {
			assert.Less(t, len(change.Words("", func(string) bool { return true }).Sentence), 1000)
		}
	}
}
