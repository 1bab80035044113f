package diagnose

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
)

// What healthyReading shows is usual: a request a second, 500 prompt tokens, 2 running.
// Each cause is looked at with evidence that points its way, and with evidence that
// points away.
func TestACauseNeedsItsOwnEvidence(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		cause        Cause
		contradicted bool
		change       func(e *engine, r *reading)
	}{
		"demand: more arrives": {DemandExceedsCapacity, false, func(_ *engine, r *reading) { r.Signals[signal.ArrivalRate] = 3 }},
		"demand: a queue is worked off after the burst": {DemandExceedsCapacity, false, func(_ *engine, r *reading) {
			r.Signals[signal.ArrivalRate], r.Signals[signal.FirstTokenRate], r.Signals[signal.Waiting] = 0.2, 3, 50
		}},
		"demand: less arrives and less is served": {DemandExceedsCapacity, true, func(_ *engine, r *reading) {
			r.Signals[signal.ArrivalRate], r.Signals[signal.FirstTokenRate], r.Signals[signal.Waiting] = 0.17/5.9, 0.17/5.9, 8
		}},
		"demand: nothing moves": {DemandExceedsCapacity, true, func(e *engine, r *reading) {
			r.waitingNow, r.Signals[signal.ArrivalRate] = 8, 3
			e.Progress = progress{Scrapes: 1}
		}},
		"prefill: prompts grew by a half": {PrefillHeavy, false, func(_ *engine, r *reading) {
			r.Signals[signal.PromptTokens], r.Signals[signal.ComputedTokens] = 750, 750
		}},
		"prefill: reuse fell": {PrefillHeavy, false, func(_ *engine, r *reading) { r.Signals[signal.ComputedTokens] = 900 }},
		"prefill: prompts grew by 1 %": {PrefillHeavy, true, func(_ *engine, r *reading) {
			r.Signals[signal.PromptTokens], r.Signals[signal.ComputedTokens] = 505, 505
		}},
		"thrash: what is evicted had been used":                          {CacheThrash, false, func(_ *engine, r *reading) { r.Signals[signal.KVBlockReuses] = 0.9 }},
		"thrash: what is evicted had been used a fifth as often":         {CacheThrash, true, func(_ *engine, r *reading) { r.Signals[signal.KVBlockReuses] = 0.1 }},
		"thrash: not measured":                                           {CacheThrash, true, func(_ *engine, r *reading) { r.Signals[signal.KVBlockReuses] = signal.Unknown()[0] }},
		"slow steps: slower":                                             {SlowSteps, false, func(_ *engine, r *reading) { r.Signals[signal.StepFactor] = 1.5 }},
		"slow steps: faster":                                             {SlowSteps, true, func(_ *engine, r *reading) { r.Signals[signal.StepFactor], r.Signals[signal.PrefillFactor] = 0.9, 0.8 }},
		"slow steps: slower than siblings, and as fast as it always was": {SlowSteps, false, func(e *engine, r *reading) { e.slowed, r.Signals[signal.StepFactor] = 0.4, 1 }},
		"decode: more run":                                               {DecodeLoad, false, func(_ *engine, r *reading) { r.Signals[signal.Running] = 5 }},
		"decode: longer outputs":                                         {DecodeLoad, false, func(_ *engine, r *reading) { r.Signals[signal.OutputTokens] = 300 }},
		"decode: less of both":                                           {DecodeLoad, true, func(_ *engine, r *reading) { r.Signals[signal.Running], r.Signals[signal.OutputTokens] = 1, 60 }},
		"kv: preemptions":                                                {KVPressure, false, func(_ *engine, r *reading) { r.Signals[signal.Preemptions] = 0.1 }},
		"kv: an empty cache":                                             {KVPressure, true, func(_ *engine, r *reading) { r.Signals[signal.KVUtilization] = 0.05 }},
		"front end: slower":                                              {FrontendBound, false, func(_ *engine, r *reading) { r.Signals[signal.FrontEnd] = 1 }},
		"front end: not measured":                                        {FrontendBound, true, func(*engine, *reading) {}},
		"deferred: some":                                                 {AdmissionDeferred, false, func(_ *engine, r *reading) { r.Signals[signal.Deferred] = 3 }},
		"deferred: none":                                                 {AdmissionDeferred, true, func(*engine, *reading) {}},
		"transfers: some fail":                                           {KVTransferFailing, false, func(_ *engine, r *reading) { r.Signals[signal.FailedTransfers] = 1 }},
		"transfers: none fail":                                           {KVTransferFailing, true, func(*engine, *reading) {}},
		"dropped: some":                                                  {RequestsDropped, false, func(_ *engine, r *reading) { r.dropped = 1 }},
		"dropped: none":                                                  {RequestsDropped, true, func(*engine, *reading) {}},
		"errors: some":                                                   {Erroring, false, func(_ *engine, r *reading) { r.Signals[signal.ErrorRatio] = 0.1 }},
		"errors: none":                                                   {Erroring, true, func(*engine, *reading) {}},
		"corrupted: none":                                                {CorruptedOutput, true, func(*engine, *reading) {}},
		"speculation: fewer":                                             {SpeculationWasteful, false, func(_ *engine, r *reading) { r.Signals[signal.AcceptanceLength] = 1.5 }},
		"speculation: more":                                              {SpeculationWasteful, true, func(_ *engine, r *reading) { r.Signals[signal.AcceptanceLength] = 3 }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := &engine{baseline: signal.NewBaseline()}
			for n := range 10 {
				r := healthyReading(int64(n+1) * int64(time.Minute))
				r.Signals[signal.KVBlockReuses], r.Signals[signal.AcceptanceLength] = 0.5, 2
				e.baseline.Learn(&r.Window, time.Minute, &signal.Set{})
			}
			r := healthyReading(int64(time.Hour))
			r.Signals[signal.KVBlockReuses], r.Signals[signal.AcceptanceLength] = 0.5, 2
			test.change(e, &r)
			e.last = r
			assert.Equal(t, test.contradicted, e.contradicted(settings(2), &r, test.cause))
			// What was found a moment ago does not outlast evidence against it.
			e.Shares[test.cause], e.SharesAt = 0.9, r.At-1
			e.explain(settings(2), &r, &symptoms{firstToken: true, reference: Learned}, Degraded)
			if test.contradicted {
				assert.Zero(t, e.Shares[test.cause])
			}
		})
	}
}

// What a reported cause has left in the queue is still its doing when its own evidence is
// as usual again; what was never reported, and what is not worked off, is not.
func TestACauseLastsWhileItsQueueIsWorkedOff(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reported bool
		served   float64
		waits    float64
		want     bool
	}{
		"worked off":           {true, 2, 3, true},
		"never reported":       {false, 2, 3, false},
		"served as ever":       {true, 0.9, 3, false},
		"no longer in a queue": {true, 2, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := &engine{baseline: learned(10)}
			e.Reported.Explained, e.Reported.Primary = test.reported, PrefillHeavy
			e.Shares[PrefillHeavy] = 0.9
			r := healthyReading(int64(time.Hour))
			r.Signals[signal.FirstTokenRate], r.Signals[signal.QueueWait] = test.served, test.waits
			e.last, e.SharesAt = r, r.At-1
			assert.True(t, e.contradicted(settings(2), &r, PrefillHeavy), "prompts are as long as ever")
			e.explain(settings(2), &r, &symptoms{firstToken: true, reference: Learned}, Degraded)
			assert.Equal(t, test.want, e.Shares[PrefillHeavy] > 0)
		})
	}
}

// Neither detail is claimed where nothing grew enough for it.
func TestADetailNeedsItsOwnEvidence(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		prompt, computed float64
		want             string
	}{
		{505, 505, ""}, {750, 750, "prompts_grew"}, {500, 900, "reuse_fell"}, {505, 900, "reuse_fell"}, {900, 950, "prompts_grew"}, {450, 450, ""},
	} {
		e := &engine{baseline: learned(10)}
		e.last = healthyReading(int64(time.Hour))
		e.last.Signals[signal.PromptTokens], e.last.Signals[signal.ComputedTokens] = test.prompt, test.computed
		assert.Equal(t, test.want, e.detail(PrefillHeavy), test)
	}
}

// A cause in addition to the primary one is reported when it has lasted as
// long as the hold, and left after as long.
func TestContributingCausesHaveTheHold(t *testing.T) {
	t.Parallel()
	c, s := settings(2), &State{}
	e := &engine{baseline: learned(10)}
	at := int64(time.Hour)
	step := func(share float64) bool {
		at += scrape
		e.last = healthyReading(at)
		e.Shares = Shares{}
		e.Shares[SlowSteps], e.Shares[DecodeLoad] = 0.6, share
		e.report(c, s, Degraded, at, &symptoms{tokenGap: true})
		return e.Reported.Contributing[DecodeLoad]
	}
	for range 6 {
		step(0)
	}
	s.transitions = nil
	for n := range 42 {
		assert.False(t, step(0.3*float64(n/2%2)), "it changes every 30 s: %d", n)
	}
	assert.Empty(t, s.transitions, "nothing to report")
	var got []bool
	for range 6 {
		got = append(got, step(0.3))
	}
	for range 6 {
		got = append(got, step(0))
	}
	assert.Equal(t, []bool{false, false, false, false, true, true, true, true, true, true, false, false}, got)
	assert.Len(t, s.transitions, 2)
}

// While harm is pending, nothing new is said that an engine serves as it should.
func TestNothingGoodIsReportedWhileHarmIsPending(t *testing.T) {
	t.Parallel()
	c, s := settings(2), &State{}
	e := &engine{baseline: learned(10)}
	at := int64(time.Hour)
	step := func(raw Condition, arrivals float64) {
		at += scrape
		e.last = healthyReading(at)
		e.last.Signals[signal.ArrivalRate] = arrivals
		e.report(c, s, raw, at, &symptoms{})
	}
	step(Healthy, 1)
	s.transitions = nil
	step(Degraded, 5)
	step(Degraded, 5)
	assert.Empty(t, s.transitions, "a shift of the work that does harm is not a notice")
	step(Degraded, 5)
	step(Degraded, 5)
	step(Degraded, 5)
	if assert.Len(t, s.transitions, 1) {
		assert.Equal(t, Degraded, s.transitions[0].To.Condition)
	}
}
