package diagnose

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
)

// answered is the server, which answers successfully: so many requests for text.
func answered(texts float64) scraped {
	s := answers(1)
	s.labelledCounts = map[input.Metric]map[string]float64{input.HTTPRequests: {string(input.NewLabel("2xx", "/v1/completions", "POST")): texts}}
	return s
}

// queues is an engine that works, with 3 waiting requests.
func queues() scraped {
	s := serves("0")
	s.gauges[input.Waiting] = 3
	return s
}

// freezesAt is an engine of an old version whose gauges show 2 running and 3 waiting
// requests, and of which nothing else moves.
func freezesAt(kv float64) scraped {
	s := standsStill("0")
	s.gauges[input.KVCacheUtilization] = kv
	s.labelledCounts = map[input.Metric]map[string]float64{input.RequestSuccess: {"stop": 0, "error": 0}}
	return s
}

// Of an engine that stands still, the version and the answers to its clients decide
// whether it has stalled or its clients have left it.
func TestAStandstillIsAStallOnlyWhereItsRequestsAreThere(t *testing.T) {
	t.Parallel()
	// Before it stands still, the engine finishes 15 requests between two scrapes, and the
	// server answers as many. The numbers are the answers at each scrape from then on.
	for name, test := range map[string]struct {
		version string
		answers []float64
		want    Condition
		because Because
	}{
		"the gauges of its version follow":                     {"0.10.2", []float64{5, 0}, Stalled, Judged},
		"nothing was aborted":                                  {"0.10.1", []float64{0, 0}, Stalled, Judged},
		"all five left at once":                                {"0.10.1", []float64{5, 0}, Idle, Judged},
		"all left at once, and some more":                      {"0.10.1", []float64{7, 0}, Idle, Judged},
		"some left":                                            {"0.10.1", []float64{2, 0}, Unknown, StalledOrFrozen},
		"some left, and a client gives up a minute later":      {"0.10.1", []float64{2, 0, 0, 0, 1, 0}, Stalled, Judged},
		"all left, and a later client gives up":                {"0.10.1", []float64{5, 0, 0, 0, 1, 0}, Stalled, Judged},
		"the version is not known: nothing was aborted":        {"", []float64{0, 0}, Stalled, Judged},
		"the version is not known: all five left at once":      {"", []float64{5, 0}, Idle, Judged},
		"the version is not known: some left":                  {"", []float64{2, 0}, Unknown, StalledOrFrozen},
		"HTTP is not counted":                                  {"0.10.1", nil, Unknown, StalledOrFrozen},
		"HTTP is not counted, but the gauges follow":           {"0.10.2", nil, Stalled, Judged},
		"fewer answers than requests, as with several choices": {"0.10.1", []float64{-9}, Unknown, StalledOrFrozen},
		"as many, and several choices":                         {"0.10.1", []float64{15}, Unknown, StalledOrFrozen},
	} {
		r := newRig(t)
		r.version = test.version
		front := func(n float64) scraped {
			if test.answers == nil {
				return answers(1)
			}
			return answered(n)
		}
		each := 15.0
		if len(test.answers) == 1 {
			each = 5 // Each request has three choices.
		}
		r.minutes(12, front(each), serves("0"))
		r.scrape(front(each), queues())
		for n := range 12 {
			left := 0.0
			if n < len(test.answers) {
				left = max(test.answers[n], 0)
			}
			r.scrape(front(left), freezesAt(0.1))
			assert.True(t, test.want == Stalled || !r.verdict("0").Harms(), "%s: scrape %d", name, n)
		}
		v := r.verdict("0")
		assert.Equal(t, test.want, v.Condition, name)
		assert.Equal(t, test.because, v.Because, name)
		assert.Equal(t, test.want == Idle, v.Notices[FrozenGauges], name)
		// An engine that is certainly without requests raises no alarm, and one that may be
		// without does not page. One that may have stalled is at least a warning.
		assert.Equal(t, map[Condition]int{Stalled: 3, Unknown: 2, Idle: 1}[test.want], v.Severity, name)
	}
}

// Clients that leave one after the other while the last step lasts have left.
func TestClientsLeaveAStandstillUntilItsLastStepEnds(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.version = "0.10.1"
	r.minutes(12, answered(15), serves("0"))
	r.scrape(answered(15), queues())
	frozen := freezesAt(0.1)
	frozen.labelled = queues().labelled
	for _, left := range []float64{3, 2, 0, 0, 0, 0} {
		r.scrape(answered(left), frozen)
	}
	r.minutes(2, answered(0), frozen)
	assert.Equal(t, Idle, r.verdict("0").Condition)
}

// Only requests that reach the engine decide: no state of the server that is read, no text
// that is only tokenized. And only those that were answered well show later that requests
// are there.
func TestOtherAnswersShowNothingOfAStandstill(t *testing.T) {
	t.Parallel()
	for _, other := range []input.Label{
		input.NewLabel("2xx", "/v1/completions", "GET"), input.NewLabel("2xx", "/tokenize", "POST"),
		input.NewLabel("4xx", "/v1/completions", "POST"), input.NewLabel("2xx", "/v1/load_lora_adapter", "POST"),
	} {
		_, handler, method := other.Value(httpStatus), other.Value(httpHandler), other.Value(httpMethod)
		for left, want := range map[float64]Condition{0: Stalled, 5: Idle} {
			r := newRig(t)
			r.version = "0.10.1"
			front := func(texts, others float64) scraped {
				s := answered(texts)
				s.labelledCounts[input.HTTPRequests][string(other)] = others
				return s
			}
			r.minutes(12, front(15, 0), serves("0"))
			r.scrape(front(15, 0), queues())
			during := 0.0
			if method == "GET" || handler == "/tokenize" {
				during = 7 // More than the gauges show.
			}
			r.scrape(front(left, during), freezesAt(0.1))
			r.scrape(front(0, during), freezesAt(0.1))
			for range 8 {
				r.scrape(front(0, 7*left/5+during), freezesAt(0.1))
			}
			assert.Equal(t, want, r.verdict("0").Condition, "%s %s, and %g leave", method, handler, left)
		}
	}
}

// An engine without requests does not stand still: after it, slow steps are no warming up.
func TestAPauseWithoutRequestsIsNoStandstill(t *testing.T) {
	t.Parallel()
	slow := serves("0")
	slow.observed[input.InterTokenLatency] = [2]float64{1485, 0.06}
	for requests, pause := range map[bool]scraped{true: standsStill("0"), false: rests("0")} {
		r := newRig(t)
		r.minutes(12, answers(1), serves("0"))
		r.minutes(6, answers(1), slow)
		if !requests {
			r.scrape(answers(1), pause) // Its cache becomes empty.
		}
		for range 3 {
			r.scrape(answers(1), pause)
		}
		r.scrape(answers(1), slow)
		require.Equal(t, Degraded, r.verdict("0").Condition)
		assert.Equal(t, requests, r.engine("0").Resumed == r.at)
	}
}

// A doubt is reported as soon as a stall would be, and ends with the first request.
func TestADoubtIsReportedAtOnceAndEndsAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.version = "0.10.1"
	r.minutes(12, answers(1), serves("0"))
	for range 2 {
		r.scrape(answers(1), freezesAt(0.1)) // Something moves: the waiting requests come.
	}
	for range 4 {
		require.Equal(t, Healthy, r.verdict("0").Condition)
		r.scrape(answers(1), freezesAt(0.1))
	}
	for range 8 {
		assert.Equal(t, StalledOrFrozen, r.verdict("0").Because)
		assert.Equal(t, 2, r.verdict("0").Severity)
		r.scrape(answers(1), freezesAt(0.1))
	}
	r.scrape(answers(1), serves("0"))
	assert.Equal(t, Healthy, r.verdict("0").Condition)
	assert.Zero(t, r.verdict("0").Severity)
}

// A request corrects the gauges: the engine serves, and is judged as before.
func TestAnEngineThatWasLeftIsHealthyWithItsNextRequest(t *testing.T) {
	t.Parallel()
	for _, left := range []float64{2, 5} {
		r := newRig(t)
		r.version = "0.10.1"
		r.minutes(12, answered(15), serves("0"))
		r.scrape(answered(15), queues())
		r.scrape(answered(left), freezesAt(0.99))
		r.minutes(10, answered(0), freezesAt(0.99))
		assert.NotContains(t, r.conditions("0"), "stalled", "after ten minutes, too")
		r.scrape(answered(15), serves("0"))
		r.minutes(2, answered(15), serves("0"))
		assert.Equal(t, Healthy, r.verdict("0").Condition)
		assert.False(t, r.verdict("0").Notices[FrozenGauges])
	}
}

// An engine whose gauges of requests move on their own does not freeze, whatever its
// version is.
func TestGaugesThatMoveHaveNotFrozen(t *testing.T) {
	t.Parallel()
	for _, in := range []input.Metric{input.Running, input.Waiting} {
		r := newRig(t)
		r.version = ""
		r.minutes(12, answers(1), serves("0"))
		for n := range 8 {
			s := freezesAt(0.1)
			s.gauges[in] += float64(n)
			r.scrape(answers(1), s)
		}
		assert.Equal(t, Stalled, r.verdict("0").Condition, in)
	}
}

// Where a server has several engines, its answers belong to none of them.
func TestTheAnswersOfAServerWithSeveralEnginesShowNothingOfOne(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.version = "0.10.1"
	r.minutes(12, answered(30), serves("0"), serves("1"))
	r.scrape(answered(30), queues(), serves("1"))
	r.scrape(answered(20), freezesAt(0.1), serves("1"))
	r.minutes(3, answered(15), freezesAt(0.1), serves("1"))
	assert.Equal(t, Unknown, r.verdict("0").Condition)
	assert.Equal(t, StalledOrFrozen, r.verdict("0").Because)
	assert.Equal(t, Healthy, r.verdict("1").Condition)
}

// Some versions show the last one of several engines only. The answers are those of all.
func TestTheAnswersOfEnginesThatAreNotShownShowNothingOfTheOther(t *testing.T) {
	t.Parallel()
	for name, left := range map[string]float64{"it stalls": 0, "its five clients leave": 5} {
		for engine, want := range map[string]Condition{"1": Unknown, "0": Stalled} {
			r := newRig(t)
			r.version = "0.9.1"
			others := 15.0
			if engine == "0" {
				others = 0 // It is the only one.
			}
			working, queued, frozen := serves(engine), queues(), freezesAt(0.1)
			queued.engine, frozen.engine = engine, engine
			r.minutes(12, answered(15+others), working)
			r.scrape(answered(15+others), queued)
			r.scrape(answered(left+others), frozen)
			r.minutes(3, answered(others), frozen)
			if engine == "0" && left > 0 {
				want = Idle
			}
			assert.Equal(t, want, r.verdict(engine).Condition, "engine %s: %s", engine, name)
		}
	}
}

// What frozen gauges show is not repeated. An engine that was left has no requests.
func TestGaugesThatMayHaveFrozenAreNotRepeated(t *testing.T) {
	t.Parallel()
	for left, want := range map[float64]float64{2: math.NaN(), 5: 0} {
		r := newRig(t)
		r.version = "0.10.1"
		r.minutes(12, answered(15), serves("0"))
		r.scrape(answered(15), queues())
		r.scrape(answered(left), freezesAt(0.99))
		r.minutes(3, answered(0), freezesAt(0.99))
		s := &r.engine("0").last.Signals
		for _, of := range []signal.Signal{signal.Running, signal.Waiting} {
			assert.True(t, s[of] == want || math.IsNaN(s[of]) && math.IsNaN(want), "%s is %g", of, s[of])
		}
		for _, of := range []signal.Signal{signal.KVUtilization, signal.ArrivalRate, signal.QueueWait, signal.KVPerToken, signal.KVPerComputed} {
			assert.True(t, math.IsNaN(s[of]), of)
		}
		assert.InDelta(t, 180, s[signal.Standstill], 15)
	}
	// A stall is shown with its requests.
	r := newRig(t)
	r.minutes(12, answers(1), serves("0"))
	r.minutes(3, answers(1), freezesAt(0.99))
	assert.Equal(t, Stalled, r.verdict("0").Condition)
	assert.InDelta(t, 2, r.engine("0").last.Signals[signal.Running], 0)
	assert.InDelta(t, 0.99, r.engine("0").last.Signals[signal.KVUtilization], 0)
}

// While a step lasts, nothing moves and the gauges show the step before it. The first step
// of an engine shows no request at all. 20 s is longer than the longest that was measured;
// twice that must be no stall either.
func TestALongStepIsNoStall(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"0.9.2", "0.24.0", ""} {
		for _, length := range []int{20, 40} {
			for first, before := range map[bool]scraped{true: rests("0"), false: serves("0")} {
				name := fmt.Sprintf("vLLM %q, a step of %d s, the first: %t", version, length, first)
				r := newRig(t)
				r.version = version
				r.minutes(12, answers(1), serves("0"))
				if first {
					r.minutes(5, answers(1), rests("0"))
				}
				during := standsStill("0")
				during.gauges = before.gauges
				known := len(r.changes)
				for range length * int(time.Second) / int(scrape) {
					r.scrape(answers(1), during)
					assert.Contains(t, []Condition{Idle, Healthy}, r.verdict("0").Condition, name)
				}
				assert.Len(t, r.changes, known, "%s: nothing is reported", name)
				r.minutes(3, answers(1), serves("0"))
				assert.Equal(t, Healthy, r.verdict("0").Condition, name)
			}
		}
	}
}

// An engine is idle where neither its gauges nor what it counted over the window show work:
// one that has just finished its last request is not idle yet.
func TestAnEngineIsIdleByItsCountersToo(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.minutes(12, answers(1), serves("0"))
	busy := serves("0")
	busy.gauges = rests("0").gauges // As during the first long step after each pause.
	r.minutes(5, answers(1), busy)
	assert.NotEqual(t, Idle, r.verdict("0").Condition, "tokens are generated")
	r.minutes(5, answers(1), rests("0"))
	assert.Equal(t, Idle, r.verdict("0").Condition)
}

// An engine without requests has nothing to do: only what follows its first request is a standstill.
func TestIdleTimeIsNotAStandstill(t *testing.T) {
	t.Parallel()
	for _, idle := range []float64{1.5, 30} {
		r := newRig(t)
		r.version = "0.20.0"
		asked := standsStill("0")
		// A grammar is compiled first, for example.
		asked.gauges[input.KVCacheUtilization], asked.gauges[input.Waiting] = 0, 0
		r.minutes(12, answers(1), serves("0"))
		r.minutes(idle, answers(1), rests("0"))
		for n := range 4 { // 0 to 45 s after the first scrape that shows them
			r.scrape(answers(1), asked)
			assert.NotEqual(t, Stalled, r.verdict("0").Condition, "%g minutes idle, scrape %d", idle, n)
			assert.Equal(t, 15*float64(n), r.engine("0").last.Signals[signal.Standstill])
		}
		r.scrape(answers(1), asked)
		assert.Equal(t, Stalled, r.verdict("0").Condition, "60 s after it")
	}
}
