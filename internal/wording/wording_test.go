package wording

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

const runbooks = "https://github.com/otelcol-vllm/otelcol-vllm/blob/main/docs/runbooks/"

// The condition comes first, then the primary cause with its detail, then the notices.
func TestWordsAreThoseOfTheCatalogue(t *testing.T) {
	condition := func(name string) *catalog.Condition {
		found, known := catalog.ConditionByName(name)
		require.True(t, known)
		return found
	}
	cause := func(name string) *catalog.Cause {
		found, known := catalog.CauseByName(name)
		require.True(t, known)
		return found
	}
	demand := cause("demand_exceeds_capacity")
	seqs := ""
	for _, detail := range demand.Details {
		if detail.Name == "seqs" {
			seqs = detail.Sentence
		}
	}
	require.NotEmpty(t, seqs)
	for name, test := range map[string]struct {
		state     Diagnosis
		sentences []string
		next      []catalog.Step
		runbook   string
	}{
		"a condition alone": {
			Diagnosis{Condition: "stalled"},
			[]string{condition("stalled").Sentence},
			condition("stalled").Next, runbooks + "stalled.md",
		},
		"the cause knows better what to do": {
			Diagnosis{Condition: "degraded", Cause: "slow_steps"},
			[]string{condition("degraded").Sentence, cause("slow_steps").Sentence},
			cause("slow_steps").Next, runbooks + "slow_steps.md",
		},
		"a detail": {
			Diagnosis{Condition: "degraded", Cause: "demand_exceeds_capacity", Detail: "seqs"},
			[]string{condition("degraded").Sentence, demand.Sentence, seqs},
			demand.Next, runbooks + "demand_exceeds_capacity.md",
		},
		"further causes, after the detail and before the notices": {
			Diagnosis{
				Condition: "degraded", Cause: "demand_exceeds_capacity", Detail: "seqs", Notices: []string{"new_notice"},
				Also: []Share{{"prefill_heavy", 0.304}, {"new_cause", 0.125}},
			},
			[]string{condition("degraded").Sentence, demand.Sentence, seqs, "Also: prefill_heavy 30 %, new_cause 12 %.", "There is a notice: new_notice."},
			demand.Next, runbooks + "demand_exceeds_capacity.md",
		},
		"causes of which none is primary": {
			Diagnosis{Condition: "degraded", Also: []Share{{"slow_steps", 0.31}}},
			[]string{condition("degraded").Sentence, "In part: slow_steps 31 %."},
			condition("degraded").Next, runbooks + "degraded.md",
		},
		"a detail that is not known": {
			Diagnosis{Condition: "degraded", Cause: "demand_exceeds_capacity", Detail: "new"},
			[]string{condition("degraded").Sentence, demand.Sentence},
			demand.Next, runbooks + "demand_exceeds_capacity.md",
		},
		"where all is well, the first notice says what to do": {
			Diagnosis{Condition: "idle", Notices: []string{"frozen_gauges", "workload_shift"}},
			[]string{condition("idle").Sentence, cause("frozen_gauges").Sentence, cause("workload_shift").Sentence},
			cause("frozen_gauges").Next, runbooks + "frozen_gauges.md",
		},
		"a notice together with a cause does not": {
			Diagnosis{Condition: "degraded", Cause: "slow_steps", Notices: []string{"workload_shift"}},
			[]string{condition("degraded").Sentence, cause("slow_steps").Sentence, cause("workload_shift").Sentence},
			cause("slow_steps").Next, runbooks + "slow_steps.md",
		},
		"nor one with a condition that needs something": {
			Diagnosis{Condition: "stalled", Notices: []string{"workload_shift"}},
			[]string{condition("stalled").Sentence, cause("workload_shift").Sentence},
			condition("stalled").Next, runbooks + "stalled.md",
		},
		"a cause of a condition that needs nothing": {
			Diagnosis{Condition: "healthy", Cause: "slow_steps", Notices: []string{"workload_shift"}},
			[]string{condition("healthy").Sentence, cause("slow_steps").Sentence, cause("workload_shift").Sentence},
			cause("slow_steps").Next, runbooks + "slow_steps.md",
		},
		"names of a newer processor": {
			Diagnosis{Condition: "tired", Cause: "age", Notices: []string{"noise"}},
			[]string{"The condition is tired.", "The primary cause is age.", "There is a notice: noise."},
			nil, "",
		},
		"a new cause of a known condition": {
			Diagnosis{Condition: "degraded", Cause: "age"},
			[]string{condition("degraded").Sentence, "The primary cause is age."},
			condition("degraded").Next, runbooks + "degraded.md",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := Of(&test.state, func(string) bool { return true })
			assert.Equal(t, strings.Join(test.sentences, " "), got.Sentence)
			require.Len(t, got.Next, len(test.next))
			for i, step := range test.next {
				assert.Equal(t, step.Text, got.Next[i])
			}
			assert.Equal(t, test.runbook, got.Runbook)
		})
	}
}

// A pool is not an engine: its sentence has its name, and it is its servers that are slow. Its steps begin with which.
func TestAPoolHasWordsOfItsOwn(t *testing.T) {
	every := func(string) bool { return true }
	for _, condition := range catalog.Conditions() {
		got := Of(&Diagnosis{Condition: condition.Name, Pool: "m"}, every)
		assert.Regexp(t, `^Pool m: [a-zK].*[a-z]\.$`, got.Sentence)
		assert.NotContains(t, got.Sentence, condition.Sentence)
		assert.NotContains(t, strings.Join(got.Next, " "), "`vllm.diagnosis.cause`", condition.Name)
		assert.Equal(t, condition.Severity > 0, strings.Contains(got.Next[0], "which of its servers"), condition.Name)
	}
	slow, _ := catalog.CauseByName("slow_steps")
	got := Of(&Diagnosis{Condition: "degraded", Cause: "slow_steps", Pool: "m"}, every)
	assert.Contains(t, got.Sentence, "On the servers that do most of the harm: "+slow.Sentence)
	assert.Contains(t, got.Next[0], "which of its servers")
	assert.Equal(t, slow.Next[0].Text, got.Next[1])
	starved, _ := catalog.CauseByName("upstream_starved")
	got = Of(&Diagnosis{Condition: "degraded", Cause: "upstream_starved", Pool: "m"}, every)
	assert.True(t, strings.HasSuffix(got.Sentence, "get errors. "+starved.Sentence), got.Sentence)
	assert.Equal(t, starved.Next[0].Text, got.Next[0], "its servers are well")
	got = Of(&Diagnosis{Condition: "degraded", Pool: "m"}, func(metric string) bool { return metric != "vllm.diagnosis.condition" })
	assert.NotContains(t, strings.Join(got.Next, " "), "`vllm.diagnosis.condition`")
	lost := Of(&Diagnosis{Pool: "m", Condition: "unreachable", Cause: "servers_lost"}, EnabledByDefault)
	assert.Contains(t, lost.Sentence, "the others, if there are any, carry the load", "a pool can have one server")
}

func TestAReasonReplacesTheSentence(t *testing.T) {
	d := Diagnosis{Condition: "unknown", Reason: "Scrape more often."}
	got := Of(&d, func(string) bool { return true })
	assert.Equal(t, "Scrape more often.", got.Sentence)
	assert.Equal(t, runbooks+"unknown.md", got.Runbook)
}

// The fields about the primary cause are empty where the catalogue has nothing to say.
func TestTheDetailAndWhatLooksTheSameAreThoseOfTheCause(t *testing.T) {
	slow, known := catalog.CauseByName("slow_steps")
	require.True(t, known)
	every := func(string) bool { return true }
	got := Of(&Diagnosis{Condition: "degraded", Cause: "slow_steps", Detail: "new"}, every)
	assert.Equal(t, slow.NotSeparable, got.NotSeparable)
	assert.NotEmpty(t, got.NotSeparable)
	assert.Empty(t, got.Detail, "the catalogue has no such detail")
	got = Of(&Diagnosis{Condition: "degraded", Cause: "demand_exceeds_capacity", Detail: "kv"}, every)
	assert.Equal(t, "kv", got.Detail)
	assert.Empty(t, Of(&Diagnosis{Condition: "stalled"}, every).NotSeparable)
}

// A step that names a metric which is not enabled leads nowhere.
func TestStepsNameOnlyMetricsThatAreEnabled(t *testing.T) {
	d := Diagnosis{Condition: "unreachable"}
	all := Of(&d, func(string) bool { return true }).Next
	require.Contains(t, strings.Join(all, " "), "`vllm.up`")
	without := Of(&d, func(metric string) bool { return metric != "vllm.up" }).Next
	assert.NotContains(t, strings.Join(without, " "), "`vllm.up`")
	assert.Less(t, len(without), len(all))
	assert.True(t, EnabledByDefault("vllm.up"))
	assert.False(t, EnabledByDefault("vllm.diagnosis.signal"))
	assert.False(t, EnabledByDefault("no.metric"))
}

// Evidence has the signals of the cause before those of the condition, each once, with the
// value, the unit and what is usual. What is not known is left out.
func TestEvidenceIsWhatTheCatalogueNames(t *testing.T) {
	values := map[string][2]float64{
		"step_time_factor": {1.532, 1}, "step_time_mean": {0.0312, 0.02}, "inter_token_latency_mean": {math.NaN(), 0.02},
		"running": {30, math.NaN()}, "time_to_first_token_mean": {12345.6, -0.001}, "queue_wait_estimate": {math.Inf(1), 1},
		"arrival_rate": {3, 1},
	}
	get := func(signal string) (value, usual float64) {
		if v, known := values[signal]; known {
			return v[0], v[1]
		}
		return math.NaN(), math.NaN()
	}
	assert.Equal(t, []string{
		"step_time_factor 1.53 (usual 1)", "step_time_mean 0.0312 s (usual 0.02)", "running 30 requests", "time_to_first_token_mean 12346 s (usual 0)",
	}, Lines(Evidence(&Diagnosis{Condition: "degraded", Cause: "slow_steps"}, get)))
	assert.Equal(t, []string{"arrival_rate 3 requests/s (usual 1)", "time_to_first_token_mean 12346 s (usual 0)"},
		Lines(Evidence(&Diagnosis{Condition: "healthy", Notices: []string{"workload_shift"}}, get)))
	assert.Empty(t, Evidence(&Diagnosis{Condition: "new", Cause: "new"}, get))
}

// Every text of a diagnosis can come from another machine. A sentence is one line of a log.
func TestASentenceIsOnePrintableLine(t *testing.T) {
	const hostile = "a\nb\rc\x1b[2Jd\u2028e\xff"
	for name, d := range map[string]Diagnosis{
		"condition": {Condition: hostile}, "cause": {Condition: "degraded", Cause: hostile},
		"more":   {Condition: "degraded", Cause: "slow_steps", Detail: "thermal", More: hostile},
		"also":   {Condition: "degraded", Also: []Share{{Cause: hostile, Share: 0.5}}},
		"notice": {Condition: "healthy", Notices: []string{hostile}}, "reason": {Condition: "degraded", Reason: hostile},
	} {
		sentence := Of(&d, EnabledByDefault).Sentence
		assert.Contains(t, sentence, "a?b?c?[2Jd?e?", name)
		assert.NotRegexp(t, `[[:cntrl:]]`, sentence, name)
	}
}

// A mean of waits of which some go on is not a wait that anybody had.
func TestWaitsThatGoOnAreSaidToGoOn(t *testing.T) {
	felt := Felt{FirstToken: 14.84, UsualFirstToken: 0.169, Token: math.NaN(), UsualToken: math.NaN()}
	assert.Equal(t, "In the last 30 s requests waited about 14.8 s for their first token (usual 0.169 s).", felt.Sentence())
	felt.Waiting, felt.Token, felt.UsualFirstToken = 106, 0.5, math.NaN()
	assert.Equal(t, "In the last 30 s requests have waited about 14.8 s so far for their first token; 106 of them still wait; a further token took 0.5 s.", felt.Sentence())
}
