package main

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// diagnosed is what the exporter would offer of two engines, of which the second
// has got slow.
const diagnosed = `
# TYPE vllm_num_requests_running gauge
vllm_num_requests_running{engine="0"} 3
# TYPE vllm_diagnosis_condition gauge
vllm_diagnosis_condition{engine="0",condition="healthy"} 1
vllm_diagnosis_condition{engine="0",condition="stalled"} 0
vllm_diagnosis_condition{engine="1",condition="healthy"} 0
vllm_diagnosis_condition{engine="1",condition="degraded"} 1
# TYPE vllm_diagnosis_cause gauge
vllm_diagnosis_cause{engine="0",cause="kv_pressure",role="primary"} 1
vllm_diagnosis_cause{engine="1",cause="kv_pressure",role="primary"} 0
vllm_diagnosis_cause{engine="1",cause="kv_pressure",role="contributing"} 1
vllm_diagnosis_cause{engine="1",cause="decode_load",role="primary",detail="longer_outputs"} 1
# TYPE vllm_diagnosis_signal gauge
vllm_diagnosis_signal{engine="1",signal="running"} 30
vllm_diagnosis_signal{engine="1",signal="inter_token_latency_mean"} 0.036
vllm_diagnosis_signal{engine="1",signal="kv_cache_utilization"} 0.3
vllm_diagnosis_signal{engine="1",signal="step_time_factor"} 1.02
vllm_diagnosis_signal{engine="1",signal="prefill_time_factor"} 9
vllm_diagnosis_signal{engine="1",signal="output_tokens_per_request"} 100
vllm_diagnosis_signal{engine="0",signal="output_tokens_per_request"} 99
# TYPE vllm_diagnosis_signal_ratio gauge
vllm_diagnosis_signal_ratio{engine="1",signal="running"} 2
vllm_diagnosis_signal_ratio{engine="1",signal="inter_token_latency_mean"} 4
vllm_diagnosis_signal_ratio{engine="1",signal="kv_cache_utilization"} 1.5
vllm_diagnosis_signal_ratio{engine="1",signal="output_tokens_per_request"} 1
vllm_diagnosis_signal_ratio{engine="0",signal="step_time_factor"} 0.5
`

func TestTheWorstEngineIsTheVerdict(t *testing.T) {
	now, err := interpret(strings.NewReader(diagnosed))
	require.NoError(t, err)
	v := now.verdict

	assert.Equal(t, "degraded: decode_load", v.String())
	assert.Equal(t, "longer_outputs", v.detail)
	sentence, next := v.words()
	assert.Contains(t, sentence, "Users wait longer than they should")
	assert.Contains(t, sentence, "Outputs got longer")
	assert.Len(t, next, 2)
	assert.NotContains(t, strings.Join(next, sentence), "`")
	evidence := v.evidence()
	assert.Len(t, evidence, 4)
	assert.Contains(t, evidence, "running 30 requests (usual 15)")
	assert.Contains(t, evidence, "output_tokens_per_request 100 tokens (usual 100)", "of engine 1, not of engine 0")
}

func TestAVerdictWithoutACauseOrACondition(t *testing.T) {
	assert.Equal(t, "-", verdict{}.String())
	healthy := verdict{condition: "healthy", signals: map[string]measure{"inter_token_latency_mean": {0.0125, math.NaN()}}}
	assert.Equal(t, "healthy", healthy.String())
	assert.Equal(t, []string{"inter_token_latency_mean 0.0125 s"}, healthy.evidence())
	_, next := healthy.words()
	assert.Empty(t, next, "there is nothing to do")
	_, next = verdict{condition: "unknown"}.words()
	assert.Len(t, next, 2)
	assert.Empty(t, verdict{condition: "degraded", cause: "from_the_future"}.evidence())
}

// story runs a narrator with a verdict at each of some seconds after the start.
func story(verdicts map[int]verdict) (string, *narrator) {
	var out strings.Builder
	n := &narrator{out: &out, incident: slowMemory, began: noon}
	n.incident.from, n.incident.until = 34*time.Second, 49*time.Second
	for s := range 100 {
		if v, is := verdicts[s]; is {
			n.observe(noon.Add(time.Duration(s)*time.Second), v)
		}
		n.summary(noon.Add(time.Duration(s) * time.Second))
	}
	return out.String(), n
}

func TestTheEndOfTheStorySaysWhatWasRightAndWhatWasWrong(t *testing.T) {
	healthy, slow := verdict{condition: "healthy"}, verdict{condition: "degraded", cause: "slow_steps"}
	other := verdict{condition: "degraded", cause: "decode_load"}
	for name, c := range map[string]struct {
		reported map[int]verdict
		want     string
	}{
		"right":                        {map[int]verdict{5: healthy, 40: slow, 55: healthy}, "noticed after 6s, with the right cause, and saw the end after 6s."},
		"end not seen":                 {map[int]verdict{5: healthy, 40: slow}, "noticed after 6s, with the right cause, and has not seen the end yet."},
		"well again too early":         {map[int]verdict{5: healthy, 40: slow, 45: healthy}, "has not seen the end yet."},
		"another cause":                {map[int]verdict{5: healthy, 40: other}, `noticed after 6s, and called it "decode_load", where it was "slow_steps".`},
		"another cause at first":       {map[int]verdict{5: healthy, 40: other, 43: slow, 55: healthy}, `called it "decode_load"`},
		"nothing noticed":              {map[int]verdict{5: healthy}, "did not notice. That is wrong."},
		"an alarm before":              {map[int]verdict{5: healthy, 20: slow, 25: healthy}, "did not notice. That is wrong."},
		"nothing is reported":          {nil, "reported nothing. That is wrong."},
		"reported when it is all over": {map[int]verdict{5: healthy, 70: slow}, "did not notice. That is wrong."},
	} {
		out, n := story(c.reported)
		assert.Contains(t, strings.Join(strings.Fields(out), " "), c.want, name)
		assert.Equal(t, 1, strings.Count(out, "What was changed"), name)
		assert.Contains(t, out, "12:00:34  changed   the GPU's memory", name)
		assert.Contains(t, out, "12:00:49  changed   the GPU's memory bandwidth is back", name)
		assert.True(t, n.over)
		for line := range strings.Lines(out) {
			if !strings.Contains(line, "https://") { // An address cannot be broken.
				assert.LessOrEqual(t, len(line), 81, line)
			}
		}
		assert.Equal(t, strings.Count(out, "  next:"), strings.Count(out, "  read:   https://"), name)
	}
}

func TestTheFirstVerdictIsNotPrintedAndTheSameOnlyOnce(t *testing.T) {
	unknown, healthy := verdict{condition: "unknown"}, verdict{condition: "healthy"}
	out, n := story(map[int]verdict{1: {}, 2: unknown, 3: unknown, 4: healthy, 5: healthy})
	assert.Len(t, n.changes, 2)
	assert.NotContains(t, out, "now unknown")
	assert.Equal(t, 1, strings.Count(out, "now healthy"))
}

func TestTheIncidentIsThatOfTheScenario(t *testing.T) {
	i := theirs()
	require.NoError(t, i.read())
	assert.Equal(t, 34*time.Second, i.from, "after what is usual has been learned")
	assert.Equal(t, 50*time.Second, i.until)
	i.file = "../../examples/scenarios/healthy.yaml"
	require.ErrorContains(t, i.read(), "want a change that begins an incident")
	i.file = "missing.yaml"
	require.ErrorContains(t, i.read(), "no such file")
}
