package objective

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// Two engines of one model. In the window 8 of 20 are above 2 s; in the step before 0 of 10.
func TestAnObjectiveIsMeasuredOverAllEnginesOfItsModel(t *testing.T) {
	s := newService(t, firstToken)
	s.observe(0, latencies("0", 100, 0, 0, 0), latencies("1", 7, 7, 7, 7))
	assertValues(t, map[string]float64{
		"valid ttft": 0, "good ttft": 0, "undecided ttft": 0, "target ttft": 0.9, "threshold ttft vllm.time_to_first_token": 2,
	}, s.values())
	assert.Equal(t, 1, s.evaluator.Absent[derive.First], "there is nothing to compare with")
	s.observe(60, latencies("0", 106, 4, 0, 0), latencies("1", 7, 7, 7, 7))
	s.observe(120, latencies("0", 110, 5, 2, 0), latencies("1", 10, 11, 11, 9))
	// The window: 4 + 1 + 3 + 4 = 12 within 2 s, 2 + 4 + 2 = 8 beyond. All: 22 of 30.
	assertValues(t, map[string]float64{
		"valid ttft": 30, "good ttft": 22, "undecided ttft": 0, "target ttft": 0.9, "threshold ttft vllm.time_to_first_token": 2,
		"attainment ttft lower": 12.0 / 20, "attainment ttft upper": 12.0 / 20,
		// 8 of 30 missed it, 10 % may.
		"burn_rate ttft 1h lower": 8.0 / 30 / 0.1, "burn_rate ttft 1h upper": 8.0 / 30 / 0.1,
		"error_budget_remaining ttft lower": 1 - 8.0/30/0.1, "error_budget_remaining ttft upper": 1 - 8.0/30/0.1,
		// Two minutes of the window were seen. A window begins on a slot of its 120th.
		"coverage ttft 1h": s.coverage(time.Hour), "coverage ttft 1d": s.coverage(24 * time.Hour),
	}, s.values())
	assert.Equal(t, []string{"ttft[{model_name m}]"}, s.keeper.began)
	assert.Equal(t, []int64{at(0), at(60)}, s.keeper.begins, "the first step is from the first batch to the second")
	assert.Equal(t, map[Outcome]int{Added: 2}, s.keeper.outcomes, "the engines' steps over the same time are one")
	assert.Equal(t, [][]float64{{1, 2, 5}}, s.keeper.buckets)
}

func TestWhatTheThresholdCutsIsUndecided(t *testing.T) {
	s := newService(t, between)
	s.observe(0, latencies("0", 0, 0, 0, 0))
	s.observe(60, latencies("0", 5, 3, 2, 10))
	got := s.values()
	assert.Equal(t, 20.0, got["valid between"])
	assert.Equal(t, 8.0, got["good between"])
	assert.Equal(t, 2.0, got["undecided between"])
	assert.InDelta(t, 0.4, got["attainment between lower"], 1e-12)
	assert.InDelta(t, 0.5, got["attainment between upper"], 1e-12)
	assert.InDelta(t, 5, got["burn_rate between 1h lower"], 1e-12)
	assert.InDelta(t, 6, got["burn_rate between 1h upper"], 1e-12)
}

// Without traffic the sums, the coverage and what is required remain; there is no share.
func TestWithoutTrafficThereIsNoShare(t *testing.T) {
	s := newService(t, firstToken)
	s.observe(0, latencies("0", 9, 9, 9, 9))
	s.observe(60, latencies("0", 9, 9, 9, 9))
	got := s.values()
	assert.ElementsMatch(t, []string{"valid ttft", "good ttft", "undecided ttft", "target ttft", "threshold ttft vllm.time_to_first_token", "coverage ttft 1h", "coverage ttft 1d"},
		slices.Collect(maps.Keys(got)))
	assert.Equal(t, 0.0, got["valid ttft"])
	// Attainment, the burn rate and the budget.
	assert.Equal(t, 3, s.evaluator.Absent[derive.Idle])
}

func TestABatchIsCountedOnce(t *testing.T) {
	s := newService(t, firstToken)
	s.observe(0, latencies("0", 0, 0, 0, 0))
	s.observe(60, latencies("0", 4, 0, 0, 0))
	for range 3 {
		s.state.Observe(s.plan, s.resource, &s.keeper)
	}
	assert.Equal(t, 4.0, s.values()["valid ttft"])
	s.observe(120, latencies("0", 5, 0, 0, 0))
	assert.Equal(t, 5.0, s.values()["valid ttft"])
}

// Two objectives can be about one histogram.
func TestObjectivesOnOneHistogramCountItEach(t *testing.T) {
	s := newService(t, firstToken, between)
	s.observe(0, latencies("0", 0, 0, 0, 0))
	s.observe(60, latencies("0", 1, 2, 3, 4))
	got := s.values()
	assert.Equal(t, []float64{10, 3, 0}, []float64{got["valid ttft"], got["good ttft"], got["undecided ttft"]})
	assert.Equal(t, []float64{10, 3, 3}, []float64{got["valid between"], got["good between"], got["undecided between"]})
	assert.NotContains(t, got, "joint_attainment lower", "first tokens are not observed at the end of a request")
}

func TestEachModelHasItsOwnTracker(t *testing.T) {
	only := firstToken
	only.Name, only.Models = "only", []string{"a*"}
	s := newService(t, firstToken, only)
	s.observe(0, latencies("0", 0, 0, 0, 0).of("a"), latencies("0", 0, 0, 0, 0).of("b"))
	s.observe(60, latencies("0", 1, 0, 0, 0).of("a"), latencies("0", 2, 0, 0, 0).of("b"))
	got := s.values()
	assert.Equal(t, 1.0, got["valid ttft{a}"])
	assert.Equal(t, 2.0, got["valid ttft{b}"])
	assert.Equal(t, 1.0, got["valid only{a}"])
	assert.NotContains(t, got, "valid only{b}")
	assert.Len(t, s.keeper.began, 3)
	var keys []string
	for key := range s.state.Each {
		keys = append(keys, key)
	}
	assert.ElementsMatch(t, s.keeper.began, keys)
	for range s.state.Each {
		break
	}
}

// An engine that was in the previous batch and is missing now holds back its model, and
// no other one.
func TestAModelWaitsForAnEngineThatMayStillCome(t *testing.T) {
	s := newService(t, firstToken)
	s.observe(0, latencies("0", 0, 0, 0, 0), latencies("1", 0, 0, 0, 0), latencies("0", 0, 0, 0, 0).of("b"))
	s.observe(60, latencies("0", 1, 0, 0, 0), latencies("1", 1, 0, 0, 0), latencies("0", 5, 0, 0, 0).of("b"))
	assert.Equal(t, 2.0, s.values()["valid ttft"])
	s.observe(75, latencies("0", 2, 0, 0, 0), latencies("0", 6, 0, 0, 0).of("b"))
	got := s.values()
	assert.Contains(t, got, "pending 0")
	assert.NotContains(t, got, "valid ttft")
	assert.Equal(t, 6.0, got["valid ttft{b}"])
	// It comes with a part of the same batch.
	s.observe(75, latencies("1", 4, 0, 0, 0))
	assert.Equal(t, 6.0, s.values()["valid ttft"])
	// It ends: the model is its other engine.
	s.observe(90, latencies("0", 3, 0, 0, 0), latencies("1").ends(), latencies("0", 6, 0, 0, 0).of("b"))
	assert.Equal(t, 7.0, s.values()["valid ttft"])
}

// The threshold is reported in seconds, as the configuration cannot have it in anything
// else.
func TestAnObjectiveIsAlwaysAboutSeconds(t *testing.T) {
	for _, of := range indicators {
		metric, known := catalog.ByName(of)
		require.True(t, known, of)
		assert.Equal(t, "s", metric.Unit, of)
	}
	threshold, known := catalog.ByName(thresholdRow.Metric)
	require.True(t, known)
	assert.Equal(t, "s", threshold.Unit)
}

// The histogram is missing where the engine is not: its model waits for one batch.
func TestAModelWaitsForAHistogramThatMayStillCome(t *testing.T) {
	s := newService(t, firstToken)
	queue := latencies("0", 0, 0, 0, 0).as(input.QueueTime)
	s.observe(0, latencies("0", 0, 0, 0, 0), queue)
	s.observe(60, latencies("0", 1, 0, 0, 0), queue)
	s.observe(75, queue)
	assertValues(t, map[string]float64{"pending 0": 1}, s.values())
	assert.Equal(t, 1, s.evaluator.Absent[derive.Pending])
	s.observe(90, queue)
	got := s.values()
	assert.Equal(t, 1.0, got["valid ttft"], "the sums continue")
	assert.NotContains(t, got, "attainment ttft lower")
	assert.Equal(t, 1, s.evaluator.Absent[derive.Gone])
}

// Steps of engines over different times are counted from the earliest, whose time
// covers that of the others.
func TestStepsThatBeganAtDifferentTimes(t *testing.T) {
	s := newService(t, firstToken)
	s.observe(0, latencies("0", 0, 0, 0, 0), latencies("1", 0, 0, 0, 0))
	s.observe(60, latencies("1", 3, 0, 0, 0))
	s.observe(120, latencies("0", 5, 0, 0, 0), latencies("1", 4, 0, 0, 0))
	got := s.values()
	assert.Equal(t, 9.0, got["valid ttft"])
	assert.InDelta(t, s.coverage(time.Hour), got["coverage ttft 1h"], 1e-12, "two minutes, not three")
	assert.Equal(t, 3, s.keeper.outcomes[Added])
}

func finished(name, metric string) Objective {
	return Objective{Name: name, Metric: metric, Threshold: Duration(2 * time.Second), Target: 0.9}
}

// One of the requests was never scheduled, so its time in the queue is a negative one. It is
// not known which of those in the first bucket it is.
func TestAStepWithABadObservationIsUndecided(t *testing.T) {
	s := newService(t, finished("queue", "vllm.request.queue_time"))
	step := func(seconds int64, wrong float64, counts ...float64) map[string]float64 {
		d := latencies("0", counts...).as(input.QueueTime)
		d.wrong = wrong
		s.observe(seconds, d)
		return s.values()
	}
	step(0, 0, 0, 0, 0, 0)
	step(60, 0, 7, 1, 0, 2)
	got := step(120, -1e6, 12, 1, 0, 3)
	assert.Equal(t, 16.0, got["valid queue"])
	assert.Equal(t, 8.0, got["good queue"])
	assert.Equal(t, 6.0, got["undecided queue"])
	assert.NotContains(t, got, "attainment queue lower")
	assert.Equal(t, 1, s.evaluator.Absent[derive.KnownDefect])
	got = step(180, -1e6, 13, 1, 0, 3)
	assert.Equal(t, 9.0, got["good queue"])
	assert.Equal(t, 1.0, got["attainment queue lower"], "it has left the window")
}

// Of 10 requests 3 miss the one and 2 the other objective: at least 5 and at most 7
// met both.
func TestTheJointShareOfFinishedRequests(t *testing.T) {
	s := newService(t, firstToken, finished("e2e", "vllm.e2e_request_latency"), finished("queue", "vllm.request.queue_time"))
	requests := func(seconds int64, e2e, queue []float64) {
		s.observe(seconds, latencies("0", 0, 0, 0, 0), latencies("0", e2e...).as(input.E2ERequestLatency), latencies("0", queue...).as(input.QueueTime))
	}
	requests(0, []float64{0, 0, 0, 0}, []float64{0, 0, 0, 0})
	requests(60, []float64{4, 3, 3, 0}, []float64{8, 0, 0, 2})
	got := s.values()
	assert.InDelta(t, 0.5, got["joint_attainment lower"], 1e-12)
	assert.InDelta(t, 0.7, got["joint_attainment upper"], 1e-12)
	assert.False(t, s.evaluator.CountsDiffer)
	requests(120, []float64{4, 3, 3, 0}, []float64{8, 0, 0, 2})
	s.evaluator.Absent = [derive.NumReasons]int{}
	assert.NotContains(t, s.values(), "joint_attainment lower", "no request finished")
	assert.Equal(t, 6, s.evaluator.Absent[derive.Idle],
		"three attainments, the joint one, and the burn rate and the budget of first tokens, of which there never were any")
	requests(180, []float64{5, 3, 3, 0}, []float64{8, 0, 0, 4})
	assert.NotContains(t, s.values(), "joint_attainment lower")
	assert.True(t, s.evaluator.CountsDiffer)
	assert.Equal(t, 1, s.evaluator.Absent[derive.Contradiction])
}

func TestOneFinishedObjectiveHasNoJointShare(t *testing.T) {
	s := newService(t, firstToken, finished("e2e", "vllm.e2e_request_latency"))
	s.observe(0, latencies("0", 0, 0, 0, 0).as(input.E2ERequestLatency))
	s.observe(60, latencies("0", 1, 0, 0, 0).as(input.E2ERequestLatency))
	for name := range s.values() {
		assert.NotContains(t, name, "joint")
	}
	assert.Equal(t, 1.0, s.values()["valid e2e"])
}

// Without one of two histograms the reason is the missing one, not a contradiction.
func TestTheJointShareNeedsBothHistograms(t *testing.T) {
	s := newService(t, finished("e2e", "vllm.e2e_request_latency"), finished("queue", "vllm.request.queue_time"))
	s.observe(0, latencies("0", 0, 0, 0, 0).as(input.E2ERequestLatency))
	s.observe(60, latencies("0", 1, 0, 0, 0).as(input.E2ERequestLatency))
	got := s.values()
	assert.NotContains(t, got, "joint_attainment lower")
	assert.Equal(t, 1.0, got["valid e2e"])
	assert.Equal(t, 1, s.evaluator.Absent[derive.Missing])
	assert.Equal(t, 1, s.evaluator.Absent[derive.First], "the other objective has counted nothing")
	assert.False(t, s.evaluator.CountsDiffer)
}

func TestWithoutRoomNoTrackerBegins(t *testing.T) {
	s := newService(t, firstToken)
	s.keeper.full = true
	s.observe(0, latencies("0", 0, 0, 0, 0))
	s.observe(60, latencies("0", 1, 0, 0, 0))
	assert.Equal(t, 1, s.keeper.refused)
	assert.Empty(t, s.keeper.outcomes)
	assert.Empty(t, s.values())
	s.keeper.full = false
	s.observe(120, latencies("0", 3, 0, 0, 0))
	assert.Equal(t, 2.0, s.values()["valid ttft"], "it counts from the step that had room")
}

func TestNewBucketsAreReported(t *testing.T) {
	s := newService(t, firstToken)
	s.observe(0, latencies("0", 0, 0, 0, 0))
	for i := range int64(3) {
		s.observe(60*(i+1), latencies("0", float64(i), 0, 0, 0))
	}
	assert.Len(t, s.keeper.buckets, 1)
	g := input.GroupOf([]input.Attribute{{Name: "engine", Value: "0"}, {Name: "model_name", Value: "m"}})
	s.resource.Observe(&input.Batch{Time: at(240), Groups: []input.Group{g}, Samples: []input.Sample{
		{Input: input.TimeToFirstToken, Bounds: []float64{1, 4}, Counts: []float64{1, 0, 0}},
	}}, math.MaxInt)
	s.state.Observe(s.plan, s.resource, &s.keeper)
	assert.Equal(t, [][]float64{{1, 2, 5}, {1, 4}}, s.keeper.buckets)
}

// A model whose engines the resource does not keep any more ends its trackers.
func TestTrackersEndWithTheirEngines(t *testing.T) {
	s := newService(t, firstToken, between)
	s.observe(0, latencies("0", 0, 0, 0, 0).of("a"), latencies("0", 0, 0, 0, 0).of("b"), latencies("1", 0, 0, 0, 0).of("b"))
	s.observe(60, latencies("0", 1, 0, 0, 0).of("a"), latencies("0", 1, 0, 0, 0).of("b"), latencies("1", 1, 0, 0, 0).of("b"))
	for seconds := int64(120); seconds <= 420; seconds += 60 {
		s.observe(seconds, latencies("0", 2, 0, 0, 0).of("b"))
	}
	s.resource.Trim()
	s.observe(480, latencies("0", 2, 0, 0, 0).of("b"))
	assert.ElementsMatch(t, []string{"ttft[{model_name a}]", "between[{model_name a}]"}, s.keeper.ended)
	assert.Len(t, s.state.groups, 1)
	assert.Len(t, s.state.members, 1)
	assert.Len(t, s.state.taken, 1)
	// 2 of engine 0 and 1 of engine 1.
	assert.Equal(t, 3.0, s.values()["valid ttft{b}"])
	// The model comes back with trackers of its own.
	s.observe(540, latencies("0", 2, 0, 0, 0).of("b"), latencies("0", 2, 0, 0, 0).of("a"))
	s.observe(600, latencies("0", 2, 0, 0, 0).of("b"), latencies("0", 7, 0, 0, 0).of("a"))
	got := s.values()
	assert.Equal(t, 5.0, got["valid ttft{a}"])
	assert.Equal(t, 3.0, got["valid ttft{b}"])
}

// What came last gives way first.
func TestShrinkEndsTheTrackersOfTheNewestModels(t *testing.T) {
	s := newService(t, firstToken, between)
	all := func(seconds int64, n float64) {
		s.observe(seconds, latencies("0", n, 0, 0, 0).of("a"), latencies("0", n, 0, 0, 0).of("b"), latencies("0", n, 0, 0, 0).of("c"))
	}
	all(0, 0)
	all(60, 1)
	s.state.Shrink(0, &s.keeper)
	assert.Empty(t, s.keeper.ended)
	s.state.Shrink(3, &s.keeper)
	assert.ElementsMatch(t, []string{
		"ttft[{model_name c}]", "between[{model_name c}]", "ttft[{model_name b}]", "between[{model_name b}]",
	}, s.keeper.ended)
	got := s.values()
	assert.Contains(t, got, "valid ttft{a}")
	assert.NotContains(t, got, "valid ttft{b}")
	all(120, 2)
	assert.Equal(t, 1.0, s.values()["valid ttft{b}"], "they begin again with the next step")
	s.keeper.ended = nil
	s.state.Shrink(100, &s.keeper)
	assert.Len(t, s.keeper.ended, 6)
}

func TestMetricsThatAreSwitchedOffAreNotEmitted(t *testing.T) {
	for _, row := range rows {
		plan, err := NewPlan([]Objective{between, finished("e2e", "vllm.e2e_request_latency"), finished("queue", "vllm.request.queue_time")},
			Duration(24*time.Hour), []Duration{Duration(time.Hour)}, func(metric string) bool { return metric != row.Metric })
		require.NoError(t, err)
		s := newService(t, between, finished("e2e", "vllm.e2e_request_latency"), finished("queue", "vllm.request.queue_time"))
		s.plan = plan
		for i, n := range []float64{0, 4} {
			s.observe(int64(60*i), latencies("0", n, n, n, n), latencies("0", n, n, n, n).as(input.E2ERequestLatency), latencies("0", n, n, n, n).as(input.QueueTime))
		}
		emitted := map[string]bool{}
		for _, v := range s.evaluator.Evaluate(s.plan, &s.state, s.resource) {
			emitted[v.Row.Metric] = true
		}
		assert.Len(t, emitted, len(rows)-1)
		assert.NotContains(t, emitted, row.Metric)
	}
}

// A budget window that is a burn window, too, has one coverage.
func TestABudgetOverABurnWindowHasOneCoverage(t *testing.T) {
	hour := Duration(time.Hour)
	plan, err := NewPlan([]Objective{firstToken}, hour, []Duration{hour}, func(string) bool { return true })
	require.NoError(t, err)
	s := newService(t, firstToken)
	s.plan = plan
	s.observe(0, latencies("0", 0, 0, 0, 0))
	s.observe(60, latencies("0", 1, 0, 0, 0))
	coverages := 0
	for name := range s.values() {
		if strings.HasPrefix(name, "coverage") {
			coverages++
		}
	}
	assert.Equal(t, 1, coverages)
}

func TestTheSumsBeginWithTheirTracker(t *testing.T) {
	s := newService(t, firstToken)
	s.observe(0, latencies("0", 0, 0, 0, 0))
	s.observe(60, latencies("0", 1, 0, 0, 0))
	for _, v := range s.evaluator.Evaluate(s.plan, &s.state, s.resource) {
		switch v.Row {
		case &validRow, &goodRow, &undecidedRow:
			assert.Equal(t, at(0), v.Start)
		default:
			assert.Zero(t, v.Start)
		}
	}
}

func TestAnObjectiveNeedsAHistogram(t *testing.T) {
	for _, metric := range []string{"vllm.num_requests.running", "unknown"} {
		_, err := NewPlan([]Objective{{Name: "x", Metric: metric}}, 0, nil, func(string) bool { return true })
		assert.ErrorContains(t, err, fmt.Sprintf("objective %q", "x"))
		assert.ErrorContains(t, err, metric)
	}
}
