package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/verdict"
	"github.com/otelcol-vllm/otelcol-vllm/internal/wording"
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
	assert.Equal(t, "longer_outputs", v.Detail)
	words := v.Words()
	assert.Contains(t, words.Sentence, "Users wait longer than they should")
	assert.Contains(t, words.Sentence, "Outputs got longer")
	evidence := v.Evidence()
	assert.Contains(t, evidence, "running 30 requests (usual 15)")
	assert.Contains(t, evidence, "output_tokens_per_request 100 tokens (usual 100)", "of engine 1, not of engine 0")
}

// verdictOf returns a verdict with a condition and a cause.
func verdictOf(condition, cause string) verdict.Verdict {
	return verdict.Verdict{Diagnosis: wording.Diagnosis{Condition: condition, Cause: cause}}
}

// story runs a narrator with a verdict at each of some seconds after the start.
func story(verdicts map[int]verdict.Verdict) (string, *narrator) {
	var out strings.Builder
	n := &narrator{out: &out, incident: slowMemory, began: noon}
	n.incident.from, n.incident.until = 34*time.Second, 49*time.Second
	for s := range 100 {
		if v, is := verdicts[s]; is {
			n.observe(noon.Add(time.Duration(s)*time.Second), &v)
		}
		n.summary(noon.Add(time.Duration(s) * time.Second))
	}
	return out.String(), n
}

func TestTheEndOfTheStorySaysWhatWasRightAndWhatWasWrong(t *testing.T) {
	healthy, slow := verdictOf("healthy", ""), verdictOf("degraded", "slow_steps")
	other := verdictOf("degraded", "decode_load")
	for name, c := range map[string]struct {
		reported map[int]verdict.Verdict
		want     string
	}{
		"right":                        {map[int]verdict.Verdict{5: healthy, 40: slow, 55: healthy}, "noticed after 6s, with the right cause, and saw the end after 6s."},
		"end not seen":                 {map[int]verdict.Verdict{5: healthy, 40: slow}, "noticed after 6s, with the right cause, and has not seen the end yet."},
		"well again too early":         {map[int]verdict.Verdict{5: healthy, 40: slow, 45: healthy}, "has not seen the end yet."},
		"another cause":                {map[int]verdict.Verdict{5: healthy, 40: other}, `noticed after 6s, and called it "decode_load", where it was "slow_steps".`},
		"another cause at first":       {map[int]verdict.Verdict{5: healthy, 40: other, 43: slow, 55: healthy}, `called it "decode_load"`},
		"nothing noticed":              {map[int]verdict.Verdict{5: healthy}, "did not notice. That is wrong."},
		"an alarm before":              {map[int]verdict.Verdict{5: healthy, 20: slow, 25: healthy}, "did not notice. That is wrong."},
		"nothing is reported":          {nil, "reported nothing. That is wrong."},
		"reported when it is all over": {map[int]verdict.Verdict{5: healthy, 70: slow}, "did not notice. That is wrong."},
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
	unknown, healthy := verdictOf("unknown", ""), verdictOf("healthy", "")
	out, n := story(map[int]verdict.Verdict{1: {}, 2: unknown, 3: unknown, 4: healthy, 5: healthy})
	assert.Len(t, n.changes, 2)
	assert.NotContains(t, out, "now unknown")
	assert.Equal(t, 1, strings.Count(out, "now healthy"))
}

func TestTheIncidentIsThatOfTheScenario(t *testing.T) {
	i := theirs()
	require.NoError(t, i.read())
	assert.Equal(t, 34*time.Second, i.from, "after what is usual has been learned")
	assert.Equal(t, 50*time.Second, i.until)
	i.file = "../../../examples/scenarios/healthy.yaml"
	require.ErrorContains(t, i.read(), "want a change that begins an incident")
	i.file = "missing.yaml"
	require.ErrorContains(t, i.read(), "no such file")
}
