package content_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	minute = time.Minute
	hour   = time.Hour
	day    = 24 * time.Hour
)

// objective is a server's counters for an objective: rate events per second, of which a share
// is good before the change and another share after it.
func objective(server string, target, rate float64, change time.Duration, before, after float64) []series {
	of := func(name string) string {
		return fmt.Sprintf(`%s{job="vllm",instance=%q,model_name="m",objective="ttft"}`, name, server)
	}
	return []series{
		constant(of("vllm_slo_target_ratio"), target),
		counter(of("vllm_slo_valid_total"), rate, change, rate),
		counter(of("vllm_slo_good_total"), rate*before, change, rate*after),
		constant(of("vllm_slo_undecided_total"), 0),
	}
}

// first returns when an alert fired first, after a time.
func first(t *testing.T, fired []firing, alert string) firing {
	t.Helper()
	for _, f := range fired {
		if f.alert == alert {
			return f
		}
	}
	require.Failf(t, "silent", "%s did not fire: %v", alert, fired)
	return firing{}
}

// The time after which an outage pages follows from the definition: the share of missed events in an
// hour reaches factor * (1 - target) after that share of an hour.
func TestAnOutagePagesAsSoonAsTheLongWindowAllows(t *testing.T) {
	for _, c := range []struct {
		target float64
		want   time.Duration // 14.4 * (1 - target) of an hour
	}{
		{0.999, 52 * time.Second}, // 0.0144 h
		{0.99, 8*minute + 38*time.Second},
		{0.95, 43*minute + 12*time.Second},
		// 14.4 * 0.1 is more than all: 90 % of an hour is enough.
		{0.90, 54 * minute},
	} {
		t.Run(fmt.Sprint(c.target), func(t *testing.T) {
			t.Parallel()
			if testing.Short() && c.target != 0.99 {
				t.Skip("a second or two each")
			}
			const begin = 61 * minute
			p := newPlayer(t, "vllm-slo")
			fired := p.play(begin+hour, 15*time.Second, objective("a", c.target, 10, begin, 1, 0)...)
			f := first(t, fired, "VLLMBudgetBurnFast")
			// 5m of the short window must be beyond the factor, too; that matters only at 0.999.
			want := max(c.want, time.Duration(min(14.4*(1-c.target), 0.9)*float64(5*minute)))
			assert.InDelta(t, want.Seconds(), (f.from - begin).Seconds(), 45, "%s", f.from-begin)
			assert.Equal(t, `job="vllm", model_name="m", objective="ttft"`, f.labels)
		})
	}
}

func TestTheFastPageEndsSoonAfterTheOutage(t *testing.T) {
	const begin, end = 65 * minute, 85 * minute
	story := objective("a", 0.99, 10, 0, 1, 1)
	story[2].at = func(now time.Duration) float64 { return 10 * (min(now, begin) + max(now-end, 0)).Seconds() }
	p := newPlayer(t, "vllm-slo")
	f := first(t, p.play(end+20*minute, 15*time.Second, story...), "VLLMBudgetBurnFast")
	// Two minutes miss less than 7.2 % once 93 % of them are good: after 111 s, of samples each 15 s.
	assert.InDelta(t, 1.85, (f.to - end).Minutes(), 0.4)
}

func TestBurnAlertsAreSilentWhereNothingIsCertain(t *testing.T) {
	groups := []string{"vllm-slo", "vllm-slo-long"}
	for name, story := range map[string][]series{
		"within the objective":               objective("a", 0.99, 10, 0, 0.995, 0.995),
		"no traffic":                         objective("a", 0.99, 0, 0, 1, 1),
		"too little traffic in five minutes": objective("a", 0.99, 0.004, 0, 0, 0),
		"no target":                          objective("a", 0.99, 10, 0, 0, 0)[1:],
		"undecided": func() []series {
			s := objective("a", 0.99, 10, 0, 0, 0)
			s[3] = counter(s[3].name, 10, 0, 10)
			return s
		}(),
		"a short blip": func() []series {
			s := objective("a", 0.99, 10, 0, 1, 1)
			s[2].at = func(now time.Duration) float64 { return 10 * (now - min(max(now-2*hour, 0), 2*minute)).Seconds() }
			return s
		}(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Empty(t, newPlayer(t, groups...).play(3*hour, minute, story...))
		})
	}
}

// A budget belongs to the servers of a model together: a rollout renews every pod, and the burn and
// the budget continue.
func TestABudgetOutlivesAPod(t *testing.T) {
	old, renewed := objective("a", 0.99, 10, 0, 0.95, 0.95), objective("b", 0.99, 10, 0, 0, 0)
	const change = 3 * hour
	story := make([]series, 0, 8)
	for _, s := range old {
		story = append(story, until(change, s))
	}
	for i, s := range renewed {
		if i > 0 {
			rate := []float64{0, 10, 9.5, 0}[i]
			s = series{s.name, func(now time.Duration) float64 { return rate * (now - change).Seconds() }}
		}
		story = append(story, from(change, s))
	}
	p := newPlayer(t, "vllm-slo", "vllm-slo-long")
	p.play(6*hour, minute, story...)
	for _, window := range []string{"1h", "6h", "1d", "30d"} {
		assert.InDeltaSlice(t, []float64{5}, p.value("vllm_slo:burn_lower:rate"+window, 6*hour), 0.1, window)
	}
	assert.InDeltaSlice(t, []float64{-4}, p.value("vllm_slo:budget_remaining_upper:30d", 6*hour), 0.1)
	assert.InDeltaSlice(t, []float64{6. / 720}, p.value("vllm_slo:coverage:30d", 6*hour), 1.5/720)
}

// Of two servers one has ten times the traffic: the ratio is that of the sums, not the mean.
func TestRatiosAreOfSums(t *testing.T) {
	p := newPlayer(t, "vllm-slo")
	p.play(20*minute, 15*time.Second, append(objective("a", 0.99, 10, 0, 1, 1), objective("b", 0.99, 1, 0, 0, 0)...)...)
	assert.InDeltaSlice(t, []float64{1. / 11}, p.value("vllm_slo:error_ratio_lower:rate5m", 20*minute), 1e-6)
}

// The bounds: what is undecided is good for the lower error ratio and missed for the upper one.
func TestWhatIsUndecidedIsBetweenTheBounds(t *testing.T) {
	story := objective("a", 0.9, 10, 0, 0.7, 0.7)
	story[3] = counter(story[3].name, 2, 0, 2)
	p := newPlayer(t, "vllm-slo")
	p.play(20*minute, 15*time.Second, story...)
	for record, want := range map[string]float64{
		"error_ratio_lower:rate5m": 0.1, "error_ratio_upper:rate5m": 0.3, "burn_lower:rate5m": 1, "burn_upper:rate5m": 3,
	} {
		assert.InDeltaSlice(t, []float64{want}, p.value("vllm_slo:"+record, 20*minute), 1e-6, record)
	}
}

// Two collectors that report the same server under their own names do not change a ratio.
func TestASecondCollectorThatReportsTheSameChangesNothing(t *testing.T) {
	p := newPlayer(t, "vllm-slo")
	story := append(objective("a", 0.99, 10, 0, 0.8, 0.8), objective("a-again", 0.99, 10, 0, 0.8, 0.8)...)
	p.play(20*minute, 15*time.Second, story...)
	assert.InDeltaSlice(t, []float64{20}, p.value("vllm_slo:burn_lower:rate5m", 20*minute), 1e-6)
}
