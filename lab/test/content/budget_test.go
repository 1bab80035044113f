package content

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/spelling"
	"github.com/otelcol-vllm/otelcol-vllm/internal/test/race"
	"github.com/otelcol-vllm/otelcol-vllm/lab/test/history"
)

// budget is an objective whose counters are written by hand: days need no simulator.
type budget struct {
	model  string
	target float64
	// rate is the number of events per second at a time, missed the share of them that
	// miss the objective.
	rate, missed func(at time.Duration) float64
	// replaced is when another pod takes the place of the server, with counters from 0; 0
	// is never.
	replaced time.Duration
	// fires are the alerts that must fire, each with its time; may are those that may.
	fires map[string]time.Duration
	may   []string
}

func steady(v float64) func(time.Duration) float64 { return func(time.Duration) float64 { return v } }

// between has a value from one time to another, and 0 otherwise.
func between(from, to time.Duration, v float64) func(time.Duration) float64 {
	return func(at time.Duration) float64 {
		if at > from && at <= to {
			return v
		}
		return 0
	}
}

// write stores the counters of an objective, every minute.
func (b *budget) write(t *testing.T, s *history.Store, begin time.Time, length time.Duration) {
	t.Helper()
	var valid, bad float64
	const step = time.Minute
	for at := time.Duration(0); at <= length; at += step {
		instance := "a"
		if b.replaced > 0 && at >= b.replaced {
			instance = "b"
			if at == b.replaced {
				valid, bad = 0, 0
			}
		}
		n := b.rate(at) * step.Seconds()
		valid += n
		bad += n * b.missed(at)
		labels := fmt.Sprintf(`{job="vllm",instance=%q,model_name=%q,objective="ttft"`, instance, b.model)
		require.NoError(t, s.Write(t.Context(), begin.Add(at), []history.Sample{
			{Series: "vllm_slo_valid_total" + labels + "}", Value: valid},
			{Series: "vllm_slo_good_total" + labels + "}", Value: valid - bad},
			{Series: "vllm_slo_undecided_total" + labels + "}", Value: 0},
			{Series: "vllm_slo_target_ratio" + labels + "}", Value: b.target},
			{Series: "vllm_up" + labels + "}", Value: 1},
			{Series: "vllm_diagnosis_severity" + labels + "}", Value: 0},
		}))
	}
}

// play writes the counters of all, and compares what fires with what must.
func play(t *testing.T, length, step, tolerance time.Duration, budgets []budget) {
	t.Helper()
	race.SkipSequential(t)
	s := history.NewStore(t, history.Suffixed)
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range budgets {
		budgets[i].write(t, s, begin, length)
	}
	fired := s.RulesEvery(t, begin, begin.Add(length), step, ruleFile(t, spelling.Suffixed))
	for _, b := range budgets {
		first := map[string]history.Firing{}
		for _, f := range fired {
			if f.Labels.Get("model_name") != b.model {
				continue
			}
			if _, known := first[f.Alert]; !known {
				first[f.Alert] = f
				t.Logf("%s: %s fires at %s until %s", b.model, f.Alert, f.From, f.To)
			}
		}
		for alert, at := range b.fires {
			if assert.Contains(t, first, alert, b.model) {
				assert.InDelta(t, at.Seconds(), first[alert].From.Seconds(), tolerance.Seconds(), "%s: %s at %s, not %s", b.model, alert, first[alert].From, at)
			}
		}
		for alert, f := range first {
			if _, must := b.fires[alert]; !must {
				assert.Contains(t, b.may, alert, "%s: %s", b.model, f)
			}
		}
	}
}

// The times follow from the definition of the burn rate: an outage pages when the share of
// the hour that it has lasted is 14.4 times what the target allows.
func TestAlertsOnFastBurns(t *testing.T) {
	// The windows of the second alert are filled only in the long form.
	from, long := 2*time.Hour, []string{burnMedium, burnSlow, burnLeak}
	if *flagMatrix {
		// Windows of days are seen for hours only.
		from, long = 9*time.Hour, []string{burnSlow, burnLeak}
	}
	minutes := func(m float64) time.Duration { return from + time.Duration(m*float64(time.Minute)) }
	outage := between(from, from+40*time.Minute, 1)
	fires := func(fast, medium float64) map[string]time.Duration {
		out := map[string]time.Duration{burnFast: minutes(fast)}
		if *flagMatrix {
			out[burnMedium] = minutes(medium)
		}
		return out
	}
	play(t, from+2*time.Hour, time.Minute, 2*time.Minute, []budget{
		{
			model: "outage at 99 %", target: 0.99, rate: steady(1), missed: outage, may: long,
			fires: fires(8.64, 21.6),
		},
		{
			// 14.4 times 5 % is 72 % of the hour.
			model: "outage at 95 %", target: 0.95, rate: steady(1), missed: outage, may: long,
		},
		{
			// The pod is replaced in the middle: the budget is that of the model. Between the last
			// sample of one and the second of the other the rates miss a minute.
			model: "outage over a rollout", target: 0.99, rate: steady(1), missed: outage, replaced: from + 5*time.Minute, may: long,
			fires: fires(9.5, 22.5),
		},
		{
			// Nothing is lost with a share of 0.5 %.
			model: "within the budget", target: 0.99, rate: steady(1), missed: steady(0.005),
		},
		{
			// One request in ten minutes, all of them late: too few for a page.
			model: "idle night", target: 0.99, rate: steady(1.0 / 600), missed: between(from, from+time.Hour, 1), may: long,
		},
		{
			// A blip of two minutes.
			model: "blip", target: 0.99, rate: steady(1), missed: between(from, from+2*time.Minute, 1), may: long,
		},
	})
}

// Slow burns over days, and a budget that is used up.
func TestAlertsOnSlowBurns(t *testing.T) {
	if !*flagMatrix {
		t.Skip("make alerts-matrix plays days")
	}
	const from = 4 * 24 * time.Hour
	play(t, 9*24*time.Hour, 5*time.Minute, 45*time.Minute, []budget{
		{
			// 2 % of the events of 36 hours are 1 % of those of three days.
			model: "twice as fast", target: 0.99, rate: steady(1), missed: between(from, 9*24*time.Hour, 0.02),
			fires: map[string]time.Duration{burnLeak: from + 36*time.Hour, budgetExhausted: from + 4*24*time.Hour},
		},
		{
			// 4 % of the events of 18 hours are 3 % of those of a day, and 1 % of those of three.
			model: "four times as fast", target: 0.99, rate: steady(1), missed: between(from, from+24*time.Hour, 0.04),
			fires: map[string]time.Duration{burnSlow: from + 18*time.Hour, burnLeak: from + 18*time.Hour},
		},
		{
			// It is used up from the beginning, and known when a quarter of the month was seen.
			model: "used up", target: 0.99, rate: steady(1), missed: steady(0.02), may: []string{burnLeak},
			fires: map[string]time.Duration{budgetExhausted: 7*24*time.Hour + 12*time.Hour},
		},
	})
}
