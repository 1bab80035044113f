package pools

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/diagnose"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
)

func TestTheUsualValueIsTheMedianOfTheHalfHoursOfADay(t *testing.T) {
	t.Parallel()
	var h history
	assert.True(t, math.IsNaN(h.usual()))
	add := func(minute int, x float64) { h.add(int64(time.Duration(minute)*time.Minute), x) }
	add(1, 2)
	add(2, 4)
	assert.True(t, math.IsNaN(h.usual()), "the first half hour has not passed")
	add(31, 100)
	assert.InDelta(t, 3, h.usual(), 1e-12, "the mean of 2 and 4")
	add(61, 5)
	add(91, 1)
	// 3, 100 and 5.
	assert.InDelta(t, 5, h.usual(), 1e-12)
	for n := range 48 {
		add(121+30*n, 7)
	}
	assert.Len(t, h.means, 48, "of a day")
	assert.InDelta(t, 7, h.usual(), 1e-12)
	// The clock is set back: the half hour begins again.
	add(10, 9)
	add(39, 9)
	assert.Len(t, h.means, 48)
	assert.InDelta(t, 9, h.sum/h.n, 1e-12)
}

// The delay is judged against what the gateway usually adds. It is usually 0.05 s unless the case says more.
func TestAGatewayThatHoldsRequestsBack(t *testing.T) {
	t.Parallel()
	busy := one{condition: diagnose.Healthy, load: 10, kv: 0.3, in: 5}
	for name, test := range map[string]struct {
		servers []one
		usual   float64
		now     Delay
		verdict string
	}{
		"2.4 s instead of 0.05 s":          {times(2, busy), 0.05, Delay{2.4, 0.3, 10}, "degraded upstream_starved"},
		"half a second":                    {times(2, busy), 0.05, Delay{0.5, 0.3, 10}, "degraded upstream_starved"},
		"less than half a second":          {times(2, busy), 0.05, Delay{0.49, 0.3, 10}, "healthy"},
		"a far region, as always":          {times(2, busy), 2.4, Delay{2.4, 0.3, 10}, "healthy"},
		"less than five times the usual":   {times(2, busy), 0.5, Delay{2.4, 0.3, 10}, "healthy"},
		"five times the usual":             {times(2, busy), 0.48, Delay{2.4, 0.3, 10}, "degraded upstream_starved"},
		"the servers need longer":          {times(2, busy), 0.05, Delay{2.4, 2.5, 10}, "healthy"},
		"a server has a queue":             {several(times(1, busy), times(1, one{condition: diagnose.Healthy, load: 9, waiting: 1, kv: 0.2, in: 5})), 0.05, Delay{2.4, 0.3, 10}, "healthy"},
		"a server is full":                 {several(times(1, busy), times(1, full8)), 0.05, Delay{2.4, 0.3, 10}, "healthy"},
		"five requests a minute":           {times(2, busy), 0.05, Delay{2.4, 0.3, 5.0 / 60}, "degraded upstream_starved"},
		"four requests a minute":           {times(2, busy), 0.05, Delay{2.4, 0.3, 4.0 / 60}, "healthy"},
		"not known, as with other traffic": {times(2, busy), 0.05, Delay{}, "healthy"},
		"nothing is usual after a restart": {times(2, busy), 0, Delay{2.4, 0.3, 10}, "healthy"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newPoolRig()
			if test.usual > 0 {
				r.delay = Delay{test.usual, 0.3, 10}
				for range 125 { // 15 s apart: more than half an hour
					r.evaluate(map[string][]one{"m": test.servers})
				}
			}
			r.delay = test.now
			for range 12 {
				r.evaluate(map[string][]one{"m": test.servers})
			}
			assert.Equal(t, "healthy", r.verdict(), "2:45 min after the first")
			for range 2 {
				r.evaluate(map[string][]one{"m": test.servers})
			}
			assert.Equal(t, test.verdict, r.verdict())
		})
	}
}

func TestAPoolSaysWhatItsGatewayAdds(t *testing.T) {
	t.Parallel()
	r := newPoolRig()
	servers := map[string][]one{"m": times(2, one{condition: diagnose.Healthy, load: 10, kv: 0.3, in: 5})}
	r.delay = Delay{0.05, 0.3, 10}
	for range 125 {
		r.evaluate(servers)
	}
	r.delay = Delay{2.4, 0.3, 10}
	var said []diagnose.Transition
	for range 13 {
		r.evaluate(servers)
		said = append(said, r.changes...)
	}
	if assert.Len(t, said, 1) {
		assert.Equal(t, "The gateway adds 2.4 s until the first token (usual 0.05 s); the servers need 0.3 s.", said[0].Felt)
		assert.InDelta(t, 2.4, said[0].Signals[signal.GatewayDelay], 0)
		assert.InDelta(t, 0.05, said[0].Usual[signal.GatewayDelay], 1e-12)
		assert.Equal(t, "gateway_delay 2.4 s (usual 0.05)", said[0].Evidence()[0].String())
	}
	// It ends, after a minute.
	r.delay = Delay{0.05, 0.3, 10}
	for range 8 {
		r.evaluate(servers)
	}
	assert.Equal(t, "healthy", r.verdict())
}
