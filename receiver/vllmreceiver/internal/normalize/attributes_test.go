package normalize

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Multi-process mode gives some gauges a pid label (vllm-metrics 9.5).
func TestAPidIsKeptOnlyWhereItIdentifiesSeries(t *testing.T) {
	const name = "vllm:kv_cache_usage_perc"
	runPlanCases(t, []planCase{
		{
			name: "a lone pid is dropped",
			body: gauge(name, `engine="0",pid="34"`, 1),
			want: []string{"vllm.kv_cache.utilization gauge 1 {engine=0} = 1"},
		},
		{
			name: "one pid per engine is dropped",
			body: gauge(name, `engine="0",pid="34"`, 1) + name + `{engine="1",pid="35"} 2` + "\n",
			want: []string{"vllm.kv_cache.utilization gauge 1 {engine=0} = 1", "vllm.kv_cache.utilization gauge 1 {engine=1} = 2"},
		},
		{
			name: "the twin without a pid wins over one",
			body: gauge(name, `engine="0",pid="34"`, 1) + name + `{engine="0"} 2` + "\n",
			want: []string{"vllm.kv_cache.utilization gauge 1 {engine=0} = 2", "dropped alias 1"},
		},
		{
			name: "the twin without a pid wins over several",
			body: gauge(name, `engine="0",pid="34"`, 1) + name + `{engine="0",pid="35"} 2` + "\n" + name + `{engine="0"} 3` + "\n",
			want: []string{"vllm.kv_cache.utilization gauge 1 {engine=0} = 3", "dropped alias 2"},
		},
		{
			name: "several pids without a twin stay",
			body: gauge(name, `engine="0",pid="34"`, 1) + name + `{engine="0",pid="35"} 2` + "\n",
			want: []string{"vllm.kv_cache.utilization gauge 1 {engine=0,pid=34} = 1", "vllm.kv_cache.utilization gauge 1 {engine=0,pid=35} = 2"},
		},
		{
			name: "the twin of one engine does not replace another engine",
			body: gauge(name, `engine="0"`, 1) + name + `{engine="1",pid="34"} 2` + "\n" + name + `{engine="1",pid="35"} 3` + "\n",
			want: []string{
				"vllm.kv_cache.utilization gauge 1 {engine=0} = 1",
				"vllm.kv_cache.utilization gauge 1 {engine=1,pid=34} = 2", "vllm.kv_cache.utilization gauge 1 {engine=1,pid=35} = 3",
			},
		},
		{
			name: "the twin may have the family's other name",
			body: gauge(name, `engine="0",pid="34"`, 1) + gauge("vllm:gpu_cache_usage_perc", `engine="0"`, 2),
			want: []string{"vllm.kv_cache.utilization gauge 1 {engine=0} = 1", "dropped alias 1"},
		},
	})
}

// A Ray agent puts its own labels on every series (vllm-metrics 12).
func TestRaysLabelsAreKeptOnlyWhereTheyIdentifyTheSeries(t *testing.T) {
	const constants = `Component="core_worker",NodeAddress="10.0.0.4",SessionName="s",Version="2.54.0"`
	const name = "ray_vllm_num_requests_running"
	runPlanCases(t, []planCase{
		{
			name: "the replica identifies the process",
			body: gauge(name, constants+`,ReplicaId="r1",WorkerId="w1",engine="0",model_name="m"`, 1),
			want: []string{"vllm.num_requests.running gauge {request} {ReplicaId=r1,engine=0,model_name=m} = 1"},
		},
		{
			name: "without a replica the worker does",
			body: gauge(name, constants+`,WorkerId="w1",engine="0",model_name="m"`, 1),
			want: []string{"vllm.num_requests.running gauge {request} {WorkerId=w1,engine=0,model_name=m} = 1"},
		},
		{
			name: "two replicas are two series",
			body: gauge(name, constants+`,ReplicaId="r1",WorkerId="w1"`, 1) + name + "{" + constants + `,ReplicaId="r2",WorkerId="w2"} 2` + "\n",
			want: []string{
				"vllm.num_requests.running gauge {request} {ReplicaId=r1} = 1",
				"vllm.num_requests.running gauge {request} {ReplicaId=r2} = 2",
			},
		},
		{
			name: "two workers of one replica are two series",
			body: gauge(name, constants+`,ReplicaId="r1",WorkerId="w1"`, 1) + name + "{" + constants + `,ReplicaId="r1",WorkerId="w2"} 2` + "\n",
			want: []string{
				"vllm.num_requests.running gauge {request} {ReplicaId=r1,WorkerId=w1} = 1",
				"vllm.num_requests.running gauge {request} {ReplicaId=r1,WorkerId=w2} = 2",
			},
		},
		{
			name: "a family of Ray's own that differs by component alone",
			body: gauge("ray_component_new_mb", `Component="raylet",SessionName="s"`, 1) + `ray_component_new_mb{Component="gcs",SessionName="s"} 2` + "\n",
			want: []string{
				"ray_component_new_mb gauge no-unit {Component=raylet} = 1", "ray_component_new_mb gauge no-unit {Component=gcs} = 2",
				"unknown ray_component_new_mb",
			},
		},
		{
			name: "without Ray the same labels stay",
			body: gauge("vllm:num_requests_running", `Version="2",WorkerId="w1",ReplicaId="r1"`, 1),
			want: []string{"vllm.num_requests.running gauge {request} {ReplicaId=r1,Version=2,WorkerId=w1} = 1"},
		},
	})
}

// A reset of one worker is not one of the others, so emit must know whose
// series is whose.
func TestRaysWorkersAreSeparateProcesses(t *testing.T) {
	processes := func(plan *Plan) (out []string) {
		for _, m := range plan.Metrics {
			for _, p := range m.Points {
				out = append(out, p.Process)
			}
		}
		return out
	}
	const ray = `ReplicaId="r1",WorkerId="w1"} 1` + "\n" + `ray_vllm_prompt_tokens_total{ReplicaId="r2",WorkerId="w2"} 2` + "\n"
	body := "# TYPE ray_vllm_prompt_tokens_total counter\nray_vllm_prompt_tokens_total{" + ray
	assert.Equal(t, []string{"w1", "w2"}, processes(planOf(body, Options{})))
	assert.Equal(t, []string{"w1", "w2"}, processes(planOf(body, Options{Wire: true})), "wire naming")
	assert.Equal(t, []string{""}, processes(planOf(counter("vllm:prompt_tokens_total", `engine="0"`, 1), Options{})))
}

func TestTheProcessStartIsThatOfTheServer(t *testing.T) {
	start := gauge("process_start_time_seconds", "", 1700000000)
	for _, options := range []Options{{}, {Wire: true}, {Enabled: map[string]bool{"process_start_time": true}}} {
		snapshot := snapshotOf(gauge("vllm:num_requests_running", "", 3) + start)
		plan := Make(snapshot.Layout, options)
		if assert.NotEqual(t, -1, plan.ProcessStart) {
			assert.InDelta(t, 1700000000, snapshot.Values[plan.ProcessStart], 0)
		}
		assert.Equal(t, -1, planOf(start+gauge("ray_vllm_num_requests_running", "", 3), options).ProcessStart,
			"a Ray agent's own start is not that of the servers behind it")
		assert.Equal(t, -1, planOf(gauge("vllm:num_requests_running", "", 3), options).ProcessStart, "no such family")
		assert.Equal(t, -1, planOf(summary("process_start_time_seconds", "", 3), options).ProcessStart, "not a number")
	}
}

func TestAttributesHaveTheNamesOfTheRule(t *testing.T) {
	runPlanCases(t, []planCase{
		{
			name: "vLLM's label names stay",
			body: counter("vllm:request_success_total", `engine="0",finished_reason="stop",model_name="a/b c"`, 1),
			want: []string{"vllm.request.success sum {request} {engine=0,finished_reason=stop,model_name=a/b c} = 1"},
		},
		{
			name: "finish_reason of imitators",
			body: counter("vllm:request_success_total", `finish_reason="stop",model_name="m"`, 1),
			want: []string{"vllm.request.success sum {request} {finished_reason=stop,model_name=m} = 1"},
		},
		{
			name: "both spellings at once stay what they are",
			body: counter("vllm:request_success_total", `finish_reason="a",finished_reason="b"`, 1),
			want: []string{"vllm.request.success sum {request} {finish_reason=a,finished_reason=b} = 1"},
		},
		{
			name: "the two spellings in one family: equal series are counted",
			body: counter("vllm:request_success_total", `finish_reason="stop"`, 1) + "vllm:request_success_total{finished_reason=\"stop\"} 2\n",
			want: []string{"vllm.request.success sum {request} {finished_reason=stop} = 1", "dropped duplicate 1"},
		},
		{
			name: "names that a managed backend reserves",
			body: gauge("vllm:num_requests_running", `cluster="c",instance="i",job="j",location="l",namespace="n",project_id="p"`, 1),
			want: []string{"vllm.num_requests.running gauge {request} {exported_cluster=c,exported_instance=i,exported_job=j,exported_location=l,exported_namespace=n,exported_project_id=p} = 1"},
		},
	})
}

// A body that passed through a Prometheus has both labels.
func TestAReservedLabelDoesNotTakeTheNameOfAnother(t *testing.T) {
	body := gauge("vllm:num_requests_running", `exported_namespace="a",namespace="b"`, 1)
	snapshot := snapshotOf(body)
	plan := Make(snapshot.Layout, Options{})
	checkPlan(t, snapshot.Layout, &Options{}, plan)
	attributes := plan.Metrics[0].Points[0].Attributes
	values := map[string]string{}
	for _, a := range attributes {
		assert.NotEqual(t, "namespace", a.Name)
		values[a.Name] = a.Value
	}
	assert.Len(t, values, 2, "both values must survive: %v", attributes)
}
