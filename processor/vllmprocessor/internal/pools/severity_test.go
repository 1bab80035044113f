package pools

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/diagnose"
)

// Servers that are only asked for more do not harm a pool. Others do, also where their cause is the work: they miss an
// objective, or their users wait five times as long. So does one that is lost, however little it is asked for.
func TestAPoolWarnsWhereItsServersDo(t *testing.T) {
	t.Parallel()
	asked := func(severity int, waiting float64) diagnose.Member {
		e := one{diagnose.Degraded, 60, waiting, 0.9, 8, map[diagnose.Cause]float64{diagnose.DemandExceedsCapacity: 1}}
		m := e.member("m")
		m.Verdict.Severity, m.Verdict.Explained = severity, true
		return m
	}
	flooding := func(severity int) diagnose.Member { return asked(severity, 30) }
	well := one{diagnose.Healthy, 10, 0, 0.2, 2, nil}
	lost := one{condition: diagnose.Unreachable}
	for name, test := range map[string]struct {
		members []diagnose.Member
		want    diagnose.Condition
		severe  int
	}{
		"all are asked for more":                {[]diagnose.Member{flooding(1), flooding(1), flooding(1)}, diagnose.Healthy, 0},
		"all warn":                              {[]diagnose.Member{flooding(2), flooding(2), flooding(2)}, diagnose.Degraded, 2},
		"asked for more, others have room":      {[]diagnose.Member{flooding(1), flooding(1), well.member("m"), well.member("m")}, diagnose.Degraded, 2},
		"the same, and nobody waits":            {[]diagnose.Member{asked(1, 0), asked(1, 0), well.member("m"), well.member("m")}, diagnose.Healthy, 0},
		"one of two is asked for more":          {[]diagnose.Member{flooding(1), flooding(2)}, diagnose.Degraded, 2},
		"one is lost, seven others have warned": {append([]diagnose.Member{lost.member("m")}, flooding(2), flooding(2), flooding(2), flooding(2), flooding(2), flooding(2), flooding(2)), diagnose.Degraded, 2},
	} {
		r := newPoolRig()
		for range 4 {
			r.at += int64(15 * time.Second)
			r.pools.Begin()
			for _, m := range test.members {
				r.pools.Add(server(m), "s", itsModel)
			}
			r.values, r.changes = r.pools.Evaluate(&r.settings, r.at, enabled("vllm.pool.diagnosis.severity"))
		}
		assert.Equal(t, test.want, r.pools.all[0].report.Reported.Condition, name)
		assert.InDelta(t, test.severe, r.emitted()["severity"], 0, name)
	}
}
