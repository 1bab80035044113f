package diagnose

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
)

// strange makes some numbers of a reading such as no server should report.
func strange(random *rand.Rand, r *reading) {
	values := []float64{math.NaN(), 0, 1e-12, 1e12, 1, 0.5, 1e300}
	pick := func(x *float64) {
		if random.IntN(4) == 0 {
			*x = values[random.IntN(len(values))]
		}
	}
	for s := range signal.Count {
		if random.IntN(3) == 0 {
			r.Signals[s] = random.ExpFloat64()
		}
		pick(&r.Signals[s])
	}
	for _, x := range []*float64{
		&r.elapsed, &r.runningNow, &r.waitingNow, &r.awake, &r.healthy, &r.FirstTokens, &r.gaps, &r.finished, &r.Generation, &r.Computed,
	} {
		pick(x)
	}
	if random.IntN(10) == 0 {
		r.restarted = r.At - int64(random.IntN(int(time.Hour)))
	}
}

// Whatever a server reports, the shares are numbers from 0 to 1 that are 1 together
// at most, and a baseline that has learned from it can be stored.
func TestStrangeNumbersMakeNoStrangeShares(t *testing.T) {
	t.Parallel()
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 4))
		c := settings(1 + random.IntN(3))
		c.SpeculationBreakEven = float64(random.IntN(3))
		e := newWard(t, signal.NewBaseline())
		e.settings = c
		if seed%2 == 0 {
			e.baseline = learned(10)
		}
		for n := range 300 {
			r := healthyReading(int64(n+1) * scrape)
			if random.IntN(3) > 0 {
				strange(random, &r)
			}
			e.observes(r)
			total := 0.0
			for cause, share := range e.Shares {
				require.True(t, share >= 0 && share <= 1+1e-9, "seed %d, %d: %s has %v", seed, n, Cause(cause), share)
				total += share
			}
			require.LessOrEqual(t, total, 1+1e-9, "seed %d, %d: %v", seed, n, e.Shares)
			if e.baseline.Windows > 0 {
				require.NotNil(t, e.baseline.Encode(), "seed %d, %d", seed, n)
			}
		}
	}
}

// A reading without harm within reported harm takes nothing from its causes. Without harm there are none.
func TestCausesStayUntilTheHarmHasEnded(t *testing.T) {
	t.Parallel()
	for condition, want := range map[Condition]Shares{Healthy: {}, Degraded: {SlowSteps: 1}, Critical: {SlowSteps: 1}} {
		e := &engine{baseline: learned(10)}
		e.Reported.Condition, e.Reported.Severity, e.Shares, e.SharesAt = condition, 1, Shares{SlowSteps: 1}, int64(time.Hour)
		r := healthyReading(int64(time.Hour) + scrape)
		e.explain(settings(2), &r, &symptoms{}, Healthy)
		require.Equal(t, want, e.Shares, condition)
	}
}

// Drafts that do not pay by the configuration contribute whatever else there is, and take their
// share from the others.
func TestDraftsBelowTheBreakEvenTakeTheirShareFromTheOthers(t *testing.T) {
	t.Parallel()
	for length, want := range map[float64][2]float64{1.5: {0.8, 0.2}, 2.5: {1, 0}} {
		c := settings(2)
		c.SpeculationBreakEven = 2
		e := &engine{baseline: learned(10)}
		r := healthyReading(int64(time.Hour))
		r.Signals[signal.AcceptanceLength] = length
		shares := e.others(c, &r, &symptoms{}, Shares{SlowSteps: 3}, 3)
		require.InDelta(t, want[0], shares[SlowSteps], 1e-12, length)
		require.InDelta(t, want[1], shares[SpeculationWasteful], 1e-12, length)
	}
}

// A hang that begins without requests leaves the gauges at 0, and where nothing else shows it, it is only known by
// those who waited for it to end. A request that comes after a rest has not waited.
func TestAStandstillThatNobodySawHasStillEnded(t *testing.T) {
	t.Parallel()
	for waited, want := range map[float64]Cause{109: Restarting, 20: DemandExceedsCapacity} {
		r := newRig(t)
		r.minutes(12, answers(1), serves("0"))
		r.minutes(5, answers(1), rests("0"))
		require.Equal(t, Idle, r.verdict("0").Condition)
		// Those who have not given up: 60 get their first token, and 20 wait for room.
		late := serves("0")
		late.gauges[input.Waiting] = 20
		late.observed[input.TimeToFirstToken] = [2]float64{60, waited}
		r.scrape(answers(1), late)
		assert.Equal(t, want == Restarting, r.engine("0").Resumed == r.at)
		late.observed[input.TimeToFirstToken] = [2]float64{15, waited}
		for range 4 {
			r.scrape(answers(1), late)
			v := r.verdict("0")
			require.True(t, v.Harms(), waited)
			assert.Equal(t, want, v.Primary, "waited %g s", waited)
		}
		r.minutes(8, answers(1), serves("0"))
		require.Equal(t, Healthy, r.verdict("0").Condition)
		assert.Zero(t, r.engine("0").Resumed, "what comes later has another cause")
	}
}
