package diagnose

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
)

// leaves is a server of which so many requests are cancelled in each scrape, beside the 15 that end.
func leaves(cancelled float64) scraped {
	s := answers(1)
	http(&s, 0, 15+cancelled)
	return s
}

// Who cancels while all are served as usual may have pressed stop: a notice, and with the numbers. What is
// usual for an application is none.
func TestClientsThatGiveUpAreANotice(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		usual, now float64
		notice     bool
	}{
		"a third": {0, 8, true}, "an eighth": {0, 2, false}, "as many as ever": {8, 8, false}, "more than ever": {4, 15, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.minutes(30, leaves(test.usual), serves("0"))
			assert.False(t, r.verdict("0").Notices[ClientsGiveUp])
			before := len(r.changes)
			r.minutes(3, leaves(test.now), serves("0"))
			v := r.verdict("0")
			assert.Equal(t, test.notice, v.Notices[ClientsGiveUp])
			assert.Equal(t, Healthy, v.Condition)
			if !test.notice {
				return
			}
			assert.Equal(t, 1, v.Severity)
			words := r.changes[before].Words("", func(string) bool { return true })
			assert.Regexp(t, `At least \d+ of \d+ clients gave up before their answer was complete\. Many clients cancel`, words.Sentence)
			assert.Contains(t, words.Runbook, "clients_give_up")
			r.minutes(3, leaves(test.usual), serves("0"))
			assert.False(t, r.verdict("0").Notices[ClientsGiveUp])
			assert.Zero(t, r.verdict("0").Severity)
		})
	}
}

// Who leaves a queue has waited too long, although those who stayed were served in time. It is not a page.
func TestClientsThatLeaveAQueueAreHarm(t *testing.T) {
	t.Parallel()
	queued := serves("0")
	queued.gauges[input.Waiting] = 2
	for _, cancelled := range []float64{0, 8} {
		r := newRig(t)
		r.minutes(3, leaves(0), serves("0"))
		r.minutes(1.75, leaves(cancelled), queued) // Not yet long enough for a queue alone.
		v := r.verdict("0")
		assert.Equal(t, cancelled > 0, v.Condition == Degraded, "%v cancelled: %v", cancelled, v.Condition)
		assert.False(t, v.Notices[ClientsGiveUp])
		assert.LessOrEqual(t, v.Severity, 2)
		if cancelled > 0 {
			words := r.changes[len(r.changes)-1].Words("", func(string) bool { return true })
			assert.Regexp(t, `At least \d+ of \d+ clients gave up`, words.Sentence)
		}
		r.minutes(4, leaves(0), serves("0"))
		assert.Equal(t, Healthy, r.verdict("0").Condition)
	}
}

// A queue that comes and goes each minute, which a third always leave, is one incident.
func TestAQueueThatComesAndGoesIsOneIncident(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.minutes(20, leaves(0), serves("0"))
	r.changes = nil
	for n := range 80 {
		queued := serves("0")
		queued.gauges[input.Waiting] = float64(n / 4 % 2 * 3)
		r.scrape(leaves(8), queued)
	}
	assert.Equal(t, "degraded", r.conditions("0"))
	r.minutes(2, leaves(0), serves("0"))
	assert.Equal(t, "degraded healthy", r.conditions("0"), "nobody leaves any more")
}

// Where nobody waits for each answer, a job that ends leaves a queue: that is worth a word, and no ticket.
func TestABatchJobThatLeavesAQueueIsNoHarm(t *testing.T) {
	t.Parallel()
	queued := serves("0")
	queued.gauges[input.Waiting] = 2
	r := newRig(t)
	r.settings.BatchModels = []string{"*"}
	r.minutes(10, leaves(0), serves("0"))
	r.minutes(4, leaves(8), queued)
	assert.Equal(t, Healthy, r.verdict("0").Condition)
	assert.True(t, r.verdict("0").Notices[ClientsGiveUp])
}

// Who gives up may ask again: twice the arrivals, half of which are cancelled, are no more demand than before.
func TestRetriesAreNotMoreDemand(t *testing.T) {
	t.Parallel()
	for cancelled, more := range map[float64]bool{0: true, 15: false} {
		r := newRig(t)
		r.minutes(20, leaves(0), serves("0"))
		twice := serves("0")
		twice.observed[input.TimeToFirstToken] = [2]float64{30, 0.1}
		twice.counts[input.PromptTokens] = 15000
		if more {
			twice.labelledCounts[input.RequestSuccess]["stop"] = 30
		}
		s := answers(1)
		http(&s, 0, 30)
		r.minutes(4, s, twice)
		assert.Equal(t, more, r.engine("0").Changes[moreArrivals].On, "%v cancelled", cancelled)
		assert.InDelta(t, cancelled/30, r.engine("0").last.Signals[signal.CancelledRatio], 1e-9)
	}
}

// cancelledRatio is not known where the API server and the engine do not count the same requests, and else it
// is at most too low.
func cancelledRatio(t *testing.T) {
	t.Helper()
	of := func(version string, signs input.Sign, s, engine scraped) float64 {
		return signalsOf(t, version, signs, s, engine)[signal.CancelledRatio]
	}
	assert.InDelta(t, 5./20, of("0.27.0", 0, leaves(5), serves("0")), 1e-9)
	// Answers of 4xx may be recorded as 5xx, and requests that fail before the engine are answered with either.
	failing := leaves(5)
	failing.labelledCounts[input.HTTPRequests]["5xx\x00/v1/completions\x00POST"] = 7
	assert.InDelta(t, 5./20, of("0.20.0", 0, failing, serves("0")), 1e-9)
	// One of the requests asks for four choices.
	four := serves("0")
	four.labelledCounts = map[input.Metric]map[string]float64{input.RequestSuccess: {"stop": 18}}
	assert.InDelta(t, 2./20, of("0.27.0", 0, leaves(5), four), 1e-9, "a lower bound")
	// Each request of the last engine, or with the last reason.
	assert.False(t, signal.Known(of("0.20.0", input.Ray, leaves(5), serves("0"))))
	lost := answers(1)
	lost.labelledCounts = map[input.Metric]map[string]float64{input.HTTPRequests: {"2xx\x00none\x00POST": 20}}
	assert.False(t, signal.Known(of("0.27.0", 0, lost, serves("0"))))
	// Tokens of several steps are counted as one.
	assert.InDelta(t, 5./20, of("0.8.5", input.V0, leaves(5), serves("0")), 1e-9)
}

// A collector that has just begun has counted nobody: it says no numbers, and the notice stays.
func TestNobodyIsCountedBeforeTheFirstReading(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.state.Keeper = &store{baselines: map[string][]byte{}, diagnoses: map[string][]byte{}}
	r.minutes(15, leaves(0), serves("0"))
	r.minutes(3, leaves(8), serves("0"))
	r.restartCollector(r.state.Keeper.(*store))
	r.changes = nil
	for range 8 {
		r.scrape(leaves(8), serves("0"))
		assert.True(t, r.verdict("0").Notices[ClientsGiveUp])
	}
	assert.NotEmpty(t, r.changes)
	for _, change := range r.changes {
		assert.NotContains(t, change.Felt, " 0 of 0 ")
	}
}

// Of completions in an editor most are cancelled, always. Who has seen nothing else does not know that it is harm.
func TestWhoAlwaysLeavesAQueueIsNoHarm(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for n := range 80 {
		queued := serves("0")
		queued.gauges[input.Waiting] = float64(n % 2 * 3) // It drains each time.
		r.scrape(leaves(15), queued)
		assert.LessOrEqual(t, r.verdict("0").Severity, 1)
	}
	assert.False(t, r.verdict("0").Notices[ClientsGiveUp], "it is usual by now")
}
