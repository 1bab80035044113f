package diagnose

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
)

// From 0.17.0 on the time to the first token begins before the prompt is tokenized. The
// same server then looks slower by that, and is not harmed.
func TestAnUpgradeForgetsWhatIsUsualForAMetricThatChangedItsMeaning(t *testing.T) {
	t.Parallel()
	slower := finishes("0")
	slower.observed[input.TimeToFirstToken], slower.observed[input.E2ERequestLatency] = [2]float64{15, 0.4}, [2]float64{15, 2.5}
	for name, test := range map[string]struct {
		from, to string
		forgets  bool
	}{
		"across the change":           {"0.16.0", "0.17.0", true},
		"back":                        {"0.17.1", "0.16.0", true},
		"the same version":            {"0.16.0", "0.16.0", false},
		"both before the change":      {"0.16.0", "0.16.1", false},
		"the old version is unknown":  {"", "0.17.0", false},
		"the new version is unknown":  {"0.16.0", "", false},
		"no version of vLLM, as 1.17": {"0.16.0", "1.17.0", false},
	} {
		r := newRig(t)
		r.version = test.from
		r.minutes(20, answers(1), finishes("0"))
		require.InDelta(t, 0.1, r.engine("0").baseline.Usual(signal.TimeToFirstToken), 1e-6, name)
		r.restart()
		r.version = test.to
		r.scrape(answers(1), slower)
		b := r.engine("0").baseline
		assert.Equal(t, !test.forgets, signal.Known(b.Usual(signal.TimeToFirstToken)), name)
		assert.InDelta(t, 0.02, b.Usual(signal.InterTokenLatency), 1e-6, "%s: the times between tokens mean the same", name)
		assert.Equal(t, test.forgets, len(r.upgrades) == 1, name)
		r.minutes(15, answers(1), slower)
		if test.forgets {
			assert.Equal(t, Healthy, r.verdict("0").Condition, name)
			assert.InDelta(t, 0.4, r.engine("0").baseline.Usual(signal.TimeToFirstToken), 1e-6, "%s: learned again", name)
			assert.Len(t, r.upgrades, 1, "%s: reported once", name)
		} else {
			assert.Equal(t, Degraded, r.verdict("0").Condition, name)
		}
	}
}

// While what is usual is learned again, the documented default is the limit.
func TestAfterAnUpgradeTheDefaultsCountUntilThereIsABaseline(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.version = "0.16.0"
	r.minutes(20, answers(1), serves("0"))
	r.restart()
	r.version = "0.17.0"
	slow := serves("0")
	slow.observed[input.TimeToFirstToken] = [2]float64{15, 5}
	r.minutes(7, answers(1), slow)
	assert.Equal(t, Degraded, r.verdict("0").Condition)
}

// A version that is not known for a while is not an upgrade, and does not hide one.
func TestAVersionThatIsUnknownForAWhileHidesNoUpgrade(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, r.version = range []string{"0.16.0", "", "0.16.0", ""} {
		r.minutes(10, answers(1), serves("0"))
	}
	assert.Empty(t, r.upgrades)
	r.version = "0.18.0"
	r.minutes(1, answers(1), serves("0"))
	require.Len(t, r.upgrades, 1)
	assert.Equal(t, "0.16.0", r.upgrades[0].From)
	assert.Equal(t, "0.18.0", r.upgrades[0].To)
	assert.Contains(t, r.upgrades[0].Names(), "time_to_first_token_mean")
}

// The version is saved with the baseline, so that an upgrade while the collector was down
// is seen. What an older collector saved has none: it continues.
func TestTheVersionIsSavedWithTheBaseline(t *testing.T) {
	t.Parallel()
	for saved, forgets := range map[string]bool{"0.16.0": true, "": false} {
		before := newRig(t)
		before.version = saved
		before.minutes(20, answers(1), serves("0"))
		var stored []byte
		before.state.Learned(func(kind Kept, _ []input.Attribute, data []byte) {
			if kind == Baseline {
				stored = data
			}
		})
		if saved == "" {
			require.NotContains(t, string(stored), "version\":\"", "the form of an older collector")
		}
		after := newRig(t)
		after.version, after.state.Keeper = "0.17.0", kept(stored)
		after.at = before.at
		after.scrape(answers(1), serves("0"))
		b := after.engine("0").baseline
		assert.Equal(t, forgets, !signal.Known(b.Usual(signal.TimeToFirstToken)), "%q", saved)
		assert.Equal(t, "0.17.0", b.Version)
		assert.InDelta(t, 0.02, b.Usual(signal.InterTokenLatency), 1e-6)
		assert.Equal(t, forgets, len(after.upgrades) == 1)
	}
}

// Most defects of the catalogue begin or end somewhere without a signal of which numbers
// before and after differ. The baseline survives these versions: it shows whether the new
// one is slower.
func TestOnlyWhatTheCatalogueNamesIsForgotten(t *testing.T) {
	t.Parallel()
	const first = "frontend_overhead_mean objective_missed_ratio time_to_first_token_mean"
	for _, test := range []struct{ from, to, want string }{
		{"0.10.0", "0.10.1", ""},
		{"0.10.1", "0.10.2", ""}, // gauges no longer freeze, and an empty KV cache is 0
		{"0.15.0", "0.16.1", ""},
		{"0.16.0", "0.17.0", first},
		{"0.17.0", "0.16.0", first},
		{"0.10.0", "0.19.1", first},
		{"0.19.1", "0.20.0", "queue_wait_estimate"}, // deferred requests are distinguished
		{"0.20.0", "0.25.0", ""},
		{"0.25.0", "0.28.0", ""}, // the last repairs: 5xx, and lookups that were counted again
		{"0.9.2", "0.28.0", "frontend_overhead_mean objective_missed_ratio queue_wait_estimate time_to_first_token_mean"},
	} {
		set := changedBetween(test.from, test.to)
		assert.Equal(t, test.want, strings.Join((&Upgrade{Signals: set}).Names(), " "), "from %s to %s", test.from, test.to)
	}
}

// A defect about which nothing is decided changes what its metrics mean.
func TestAnUndecidedDefectMakesNumbersIncomparable(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		defect catalog.Defect
		want   bool
	}{
		"about this metric":  {catalog.Defect{ID: "new", Metrics: []string{"vllm.request.queue_time"}}, true},
		"about another one":  {catalog.Defect{ID: "new", Metrics: []string{"vllm.request.decode_time"}}, false},
		"about all of them":  {catalog.Defect{ID: "new", Metrics: []string{"*"}}, true},
		"about nothing else": {catalog.Defect{ID: "new"}, false},
	} {
		got := uses(signal.QueueTime.String(), test.defect.Metrics) && incomparable(signal.QueueTime, &test.defect)
		assert.Equal(t, test.want, got, name)
	}
	assert.True(t, incomparable(signal.TimeToFirstToken, &catalog.Defect{ID: catalog.DefectArrivalTimeMoved, Change: true}))
	assert.False(t, incomparable(signal.FirstTokenRate, &catalog.Defect{ID: catalog.DefectArrivalTimeMoved, Change: true}), "a number of requests is not a time")
	assert.True(t, incomparable(signal.QueueWait, &catalog.Defect{ID: catalog.DefectDeferredInWaiting}))
	assert.False(t, incomparable(signal.FirstTokenRate, &catalog.Defect{ID: catalog.DefectFirstTokenWithoutToken}))
}

// A fit belongs to the factor that is computed with it.
func TestAFitIsForgottenWithItsFactor(t *testing.T) {
	t.Parallel()
	b := learned(10)
	some := new(signal.Set)
	some[signal.TimeToFirstToken] = true
	b.Forget(some)
	assert.False(t, signal.Known(b.Usual(signal.TimeToFirstToken)))
	assert.True(t, signal.Known(b.Usual(signal.InterTokenLatency)))
	assert.Positive(t, b.Step.N)
	some[signal.StepFactor] = true
	b.Forget(some)
	assert.Zero(t, b.Step.N)
	r := healthyReading(int64(time.Hour))
	for n := range 4 {
		b.Compare(&r.Window)
		require.False(t, signal.Known(r.Signals[signal.StepFactor]), "after %d windows", n)
		r.At += int64(time.Minute)
		b.Learn(&r.Window, time.Minute, &signal.Set{})
	}
	r.At += int64(time.Minute)
	b.Learn(&r.Window, time.Minute, &signal.Set{})
	b.Compare(&r.Window)
	assert.True(t, signal.Known(r.Signals[signal.StepFactor]), "after five windows")
}
