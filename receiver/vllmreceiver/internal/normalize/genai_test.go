package normalize

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The bounds that semantic-conventions v1.41 advises.
const (
	advisedFirstToken  = "0.001 0.005 0.01 0.02 0.04 0.06 0.08 0.1 0.25 0.5 0.75 1 2.5 5 7.5 10"
	advisedOutputToken = "0.01 0.025 0.05 0.075 0.1 0.15 0.2 0.3 0.4 0.5 0.75 1 2.5"
	advisedDuration    = "0.01 0.02 0.04 0.08 0.16 0.32 0.64 1.28 2.56 5.12 10.24 20.48 40.96 81.92"
)

// The bounds that vLLM has.
const (
	vllmFirstToken  = advisedFirstToken + " 20 40 80 160 640 2560"
	vllmOutputToken = advisedOutputToken + " 5 7.5 10 20 40 80"
	vllmDuration    = "0.3 0.5 0.8 1 1.5 2 2.5 5 10 15 20 30 40 50 60 120 240 480 960 1920 7680"
)

const (
	firstToken  = "vllm:time_to_first_token_seconds"
	outputToken = "vllm:request_time_per_output_token_seconds"
	duration    = "vllm:e2e_request_latency_seconds"
)

var mirror = Options{GenAI: true}

func mirroredMetric(t *testing.T, plan *Plan, name string) Metric {
	t.Helper()
	for _, m := range plan.Metrics {
		if m.Name == name {
			return m
		}
	}
	require.Fail(t, "no metric "+name)
	return Metric{}
}

func TestTheGenAIMirrorHasTheThreeConventionalHistograms(t *testing.T) {
	const model = `{engine=0,gen_ai.operation.name=chat,gen_ai.provider.name=vllm,gen_ai.request.model=m}`
	body := histogram(firstToken, `engine="0",model_name="m"`, 1, strings.Fields(vllmFirstToken)...) +
		histogram(outputToken, `engine="0",model_name="m"`, 2, strings.Fields(vllmOutputToken)...) +
		histogram(duration, `engine="0",model_name="m"`, 3, strings.Fields(vllmDuration)...) +
		histogram("vllm:inter_token_latency_seconds", `engine="0",model_name="m"`, 4, strings.Fields(vllmOutputToken)...)
	own := []string{
		"vllm.time_to_first_token histogram s {engine=0,model_name=m} = 1",
		"vllm.request.time_per_output_token histogram s {engine=0,model_name=m} = 2",
		"vllm.e2e_request_latency histogram s {engine=0,model_name=m} = 3",
		"vllm.inter_token_latency histogram s {engine=0,model_name=m} = 4",
	}
	first := "gen_ai.server.time_to_first_token histogram s " + model + " = 1"
	token := "gen_ai.server.time_per_output_token histogram s " + model + " = 2"
	whole := "gen_ai.server.request.duration histogram s " + model + " = 3"
	runPlanCases(t, []planCase{
		{name: "off without being asked for", body: body, want: own},
		{name: "on", options: mirror, body: body, want: append([]string{first, token, whole}, own...)},
		{
			name: "one of them switched off", body: body,
			options: Options{GenAI: true, Enabled: map[string]bool{"gen_ai.server.time_per_output_token": false}},
			want:    append([]string{first, whole}, own...),
		},
		{
			name: "with operations and priorities", options: mirror,
			body: histogram(firstToken, `model_name="m",operation="text_completion",priority="0"`, 1, strings.Fields(vllmFirstToken)...) +
				strings.SplitN(histogram(firstToken, `model_name="m",operation="unknown",priority="0"`, 2, strings.Fields(vllmFirstToken)...), "\n", 2)[1],
			want: []string{
				"gen_ai.server.time_to_first_token histogram s {gen_ai.operation.name=text_completion,gen_ai.provider.name=vllm,gen_ai.request.model=m,priority=0} = 1",
				"gen_ai.server.time_to_first_token histogram s {gen_ai.operation.name=unknown,gen_ai.provider.name=vllm,gen_ai.request.model=m,priority=0} = 2",
				"vllm.time_to_first_token histogram s {model_name=m,operation=text_completion,priority=0} = 1",
				"vllm.time_to_first_token histogram s {model_name=m,operation=unknown,priority=0} = 2",
			},
		},
		{
			name: "without vLLM's own", body: histogram(firstToken, `model_name="m"`, 1, strings.Fields(vllmFirstToken)...),
			options: Options{GenAI: true, Enabled: map[string]bool{"vllm.time_to_first_token": false}},
			want:    []string{strings.Replace(first, "engine=0,", "", 1), "dropped disabled 1"},
		},
		{
			name: "without a model name", options: mirror, body: histogram(firstToken, "", 1, strings.Fields(vllmFirstToken)...),
			want: []string{
				"vllm.time_to_first_token histogram s {} = 1",
				"gen_ai.server.time_to_first_token histogram s {gen_ai.operation.name=chat,gen_ai.provider.name=vllm} = 1",
			},
		},
		{
			name: "not from the gaps between tokens", options: mirror, body: histogram("vllm:inter_token_latency_seconds", "", 4, "1"),
			want: []string{"vllm.inter_token_latency histogram s {} = 4"},
		},
		{
			name: "not from a gauge of the same name", options: mirror, body: gauge(firstToken, "", 1),
			want: []string{"vllm.time_to_first_token_gauge gauge s {} = 1", "conflict " + firstToken},
		},
		{
			name: "not from a histogram without +Inf", options: mirror,
			body: "# TYPE " + firstToken + " histogram\n" + firstToken + "_bucket{le=\"1\"} 1\n" + firstToken + "_count 1\n",
			want: []string{"dropped no_inf_bucket 1"},
		},
	})
}

// A sum over engines would fall when one of them leaves.
func TestEachEngineHasItsOwnMirror(t *testing.T) {
	runPlanCases(t, []planCase{{
		name: "two engines of one model and one of another", options: mirror,
		body: histogram(duration, `engine="0",model_name="a"`, 1, "1") + histogramSeries(duration, `engine="1",model_name="a"`, 2, "1") +
			histogramSeries(duration, `engine="2",model_name="b"`, 4, "1"),
		want: []string{
			"vllm.e2e_request_latency histogram s {engine=0,model_name=a} = 1",
			"vllm.e2e_request_latency histogram s {engine=1,model_name=a} = 2",
			"vllm.e2e_request_latency histogram s {engine=2,model_name=b} = 4",
			"gen_ai.server.request.duration histogram s {engine=0,gen_ai.operation.name=chat,gen_ai.provider.name=vllm,gen_ai.request.model=a} = 1",
			"gen_ai.server.request.duration histogram s {engine=1,gen_ai.operation.name=chat,gen_ai.provider.name=vllm,gen_ai.request.model=a} = 2",
			"gen_ai.server.request.duration histogram s {engine=2,gen_ai.operation.name=chat,gen_ai.provider.name=vllm,gen_ai.request.model=b} = 4",
		},
	}})
}

func TestTheMirrorFoldsIntoTheAdvisedBoundsWhereNothingIsLost(t *testing.T) {
	for _, c := range []struct {
		name, family, metric string
		bounds               string
		want                 string
	}{
		{"vLLM's first token", firstToken, "gen_ai.server.time_to_first_token", vllmFirstToken, advisedFirstToken},
		{"vLLM's output token", outputToken, "gen_ai.server.time_per_output_token", vllmOutputToken, advisedOutputToken},
		{"vLLM's duration has other bounds and keeps them", duration, "gen_ai.server.request.duration", vllmDuration, ""},
		{"a duration with the advised bounds among others", duration, "gen_ai.server.request.duration", "0.005 " + advisedDuration + " 100", advisedDuration},
		{"one advised bound missing", firstToken, "gen_ai.server.time_to_first_token", strings.Replace(vllmFirstToken, " 7.5", "", 1), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			body := "# TYPE " + c.family + " histogram\n"
			body += histogramSeries(c.family, `engine="0",model_name="m"`, 1, strings.Fields(c.bounds)...)
			snapshot := snapshotOf(body)
			plan := Make(snapshot.Layout, mirror)
			checkPlan(t, snapshot.Layout, &mirror, plan)
			points := mirroredMetric(t, plan, c.metric).Points
			require.Len(t, points, 1)
			if c.want == "" {
				require.Nil(t, points[0].Bounds, "which means its own")
				return
			}
			assert.Equal(t, floats(t, c.want), points[0].Bounds)
		})
	}
}
