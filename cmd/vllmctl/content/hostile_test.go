package content_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/content"
)

// A page that ends by itself looks like a recovery: it stays while a cluster is silent.
func TestOneSilentClusterOfTwoPagesUntilItIsBack(t *testing.T) {
	t.Parallel()
	east := constant(`vllm_up{job="vllm",instance="a",k8s_cluster_name="east"}`, 1)
	away := series{east.name, func(now time.Duration) float64 {
		if now >= 90*minute && now < 6*hour {
			return until(0, east).at(now)
		}
		return 1
	}}
	west := constant(`vllm_up{job="vllm",instance="a",k8s_cluster_name="west"}`, 1)
	fired := newPlayer(t, "vllm-collector").play(7*hour, minute, away, west)
	if assert.Len(t, fired, 1) {
		assert.Equal(t, firing{"VLLMCollectorSilent", `k8s_cluster_name="east"`, 100 * minute, 6*hour - minute}, fired[0])
	}
}

// A service of which no server is left has no other series that reports it. Other services still have
// servers, so that neither the collector is silent nor are there too few in all.
func TestTheLastServerOfAServiceVanishes(t *testing.T) {
	const end = 90 * minute
	other, up := severity("z", "other", 0, ""), constant(`vllm_up{job="other",instance="z"}`, 1)
	other.name = `vllm_diagnosis_severity{job="other",instance="z",engine="0",model_name="other"}`
	t.Run("its collector lives", func(t *testing.T) {
		t.Parallel()
		fired := newPlayer(t, "vllm-diagnosis").play(3*hour, minute, until(end, severity("a", "m", 0, "")), other, up)
		f := first(t, fired, "VLLMServerVanished")
		assert.Equal(t, `instance="a", job="vllm", model_name="m"`, f.labels)
		assert.Equal(t, end+10*minute, f.from)
		assert.InDelta(t, (end + hour).Minutes(), f.to.Minutes(), 2)
		assert.Equal(t, []string{"VLLMModelWithoutServers", "VLLMServerVanished"}, names(fired), "the first mutes the second")
	})
	t.Run("it was drained", func(t *testing.T) {
		t.Parallel()
		draining := constant(`vllm_diagnosis_condition{job="vllm",instance="a",engine="0",model_name="m",condition="draining"}`, 1)
		assert.Equal(t, []string{"VLLMModelWithoutServers"}, names(newPlayer(t, "vllm-diagnosis").play(3*hour, minute,
			until(end, severity("a", "m", 0, "")), until(end, from(end-minute, draining)), other, up)))
	})
	t.Run("its cluster is silent", func(t *testing.T) {
		t.Parallel()
		east := severity("a", "m", 0, `,k8s_cluster_name="east"`)
		assert.Empty(t, newPlayer(t, "vllm-diagnosis").play(3*hour, minute, until(end, east), other, up), "VLLMCollectorSilent is the alert")
	})
}

// Each pod is replaced by one with another name, before or after the old one ends.
func TestARolloutIsNoVanishedServer(t *testing.T) {
	const begin = 90 * minute
	up := constant(`vllm_up{job="vllm",instance="a0"}`, 1)
	for name, gap := range map[string]time.Duration{"the new pod is there first": -5 * minute, "the old pod ends first": 5 * minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			story := []series{up}
			for i, pod := range []string{"a", "b", "c"} {
				change := begin + time.Duration(i)*8*minute
				story = append(story, until(change, severity(pod+"0", "m", 0, "")), from(change+gap, severity(pod+"1", "m", 0, "")))
			}
			assert.Empty(t, newPlayer(t, "vllm-diagnosis").play(4*hour, minute, story...))
		})
	}
}

// A collector or processor that restarts is away for some minutes.
func TestARestartOfTheCollectorIsNoAlert(t *testing.T) {
	t.Parallel()
	story := append(objective("a", 0.99, 10, 0, 1, 1), severity("a", "m", 0, ""), pool("c", "m", 0, ""),
		constant(`vllm_up{job="vllm",instance="a"}`, 1), constant(`vllm_num_requests_running{job="vllm",instance="a",engine="0",model_name="m"}`, 3))
	for i, s := range story {
		counts := i > 0 && i < 3
		story[i].at = func(now time.Duration) float64 {
			switch {
			case now >= 80*minute && now < 84*minute:
				return until(0, s).at(now)
			case counts && now >= 84*minute:
				return s.at(now - 84*minute) // from 0 again
			}
			return s.at(now)
		}
	}
	assert.Empty(t, newPlayer(t, "vllm-diagnosis", "vllm-slo", "vllm-slo-long", "vllm-collector").play(3*hour, minute, story...))
}

// An engine that alternates between bad and worse harms its users all the time.
func TestASeverityThatAlternatesIsNotSilent(t *testing.T) {
	t.Parallel()
	flaps := severity("a", "m", 0, "")
	flaps.at = func(now time.Duration) float64 { return 2 + float64(int(now/(30*time.Second))%2) }
	assert.Equal(t, []string{"VLLMServerDegraded a"}, affected(t, flaps))
	of := pool("c", "m", 0, "")
	of.at = flaps.at
	assert.Equal(t, []string{"VLLMPoolDegraded m"}, affected(t, of, severity("a", "m", 0, "")))
}

// Every second request at night is late. An objective about tokens counts hundreds of events for one
// request, which are no evidence of their own.
func TestFewRequestsDoNotPageWhateverTheyCount(t *testing.T) {
	groups := []string{"vllm-slo", "vllm-slo-long"}
	story := objective("a", 0.99, 1, 0, 0.5, 0.5)
	ended := func(rate float64) series {
		return counter(`vllm_time_to_first_token_seconds_count{job="vllm",instance="a",engine="0",model_name="m"}`, rate, 0, rate)
	}
	t.Run("one request in five minutes", func(t *testing.T) {
		t.Parallel()
		assert.Empty(t, newPlayer(t, groups...).play(3*hour, minute, append(story, ended(1./300))...))
	})
	t.Run("many requests", func(t *testing.T) {
		t.Parallel()
		assert.Contains(t, names(newPlayer(t, groups...).play(3*hour, minute, append(story, ended(1))...)), "VLLMBudgetBurnFast")
	})
	t.Run("the number of requests is not stored", func(t *testing.T) {
		t.Parallel()
		assert.Contains(t, names(newPlayer(t, groups...).play(3*hour, minute, story...)), "VLLMBudgetBurnFast")
	})
}

// The page says that group_by needs the cluster where several clusters send to one Prometheus.
func TestAPoolByModelAndClusterHoldsItsServers(t *testing.T) {
	t.Parallel()
	const east, west, blue = `,k8s_cluster_name="east"`, `,k8s_cluster_name="west"`, `,k8s_namespace_name="blue"`
	assert.ElementsMatch(t, []string{"VLLMPoolDegraded m", "VLLMReplicaNotServing a@blue", "VLLMServerNotServing a@blue"}, affected(t,
		severity("a", "m", 3, east+blue), severity("b", "m", 0, east+blue), severity("a", "m", 3, west+blue), pool("x", "m", 2, east)))
}

// Labels that Prometheus, a ruler or a second collector adds must not make a rule fail: play fails
// on "many-to-many matching not allowed".
func TestAdditionalLabelsMakeNoRuleFail(t *testing.T) {
	t.Parallel()
	story := append(objective("a", 0.99, 10, 0, 0.5, 0.5), severity("a", "m", 3, ""), severity("b", "m", 2, ""), pool("c", "m", 3, ""),
		constant(`vllm_up{job="vllm",instance="a"}`, 1), constant(`vllm_num_requests_running{job="vllm",instance="a",engine="0",model_name="m"}`, 3),
		counter(requests, 10, 0, 10), counter(shed, 10, 0, 10), counter(broken, 5, 0, 5),
		constant(`inference_gateway_pool_endpoint_ready{job="g",pool="p",instance="x"}`, 0),
		constant(`inference_gateway_lora_adapter_status{job="v",instance="a",adapter_name="x"}`, 1),
		constant(`inference_gateway_lora_adapter_status{job="v",instance="b",adapter_name="x"}`, 0),
		constant(`otelcol_exporter_queue_size{job="c",instance="i",exporter="otlp_http",data_type="metrics"}`, 900),
		constant(`otelcol_exporter_queue_capacity{job="c",instance="i",exporter="otlp_http",data_type="metrics"}`, 1000),
		counter(`otelcol_exporter_send_failed_metric_points{job="c",instance="i",exporter="otlp_http"}`, 1, 0, 1),
		// A ruler that has the recorded number of each of two servers of Prometheus.
		constant(`vllm_config:servers:expected{prometheus="x"}`, 9), constant(`vllm_config:servers:expected{prometheus="y"}`, 9))
	groups := []string{"vllm-diagnosis", "vllm-slo", "vllm-slo-long", "vllm-gateway", "vllm-collector"}
	once := names(newPlayer(t, groups...).play(2*hour, minute, story...))
	twice := make([]series, 0, 3*len(story))
	for _, s := range story {
		for _, replica := range []string{`",replica="x",otel_scope_name="github.com/x"}`, `",replica="y",otel_scope_name=""}`} {
			twice = append(twice, series{s.name[:len(s.name)-2] + replica, s.at})
		}
		twice = append(twice, s)
	}
	assert.Equal(t, once, names(newPlayer(t, groups...).play(2*hour, minute, twice...)))
	assert.Contains(t, once, "VLLMGatewayErrors")
	assert.Contains(t, once, "VLLMTooFewServers")
}

// A target of 90 % cannot be missed 14.4 times as fast as it allows.
func TestTheRawBurnFiresWhateverTheTargetIs(t *testing.T) {
	t.Parallel()
	values := map[string]float64{}
	for _, p := range content.Parameters() {
		values[p.Name] = p.Value
	}
	values["rawFirstTokenTarget"] = 0.8
	const bucket = `vllm:time_to_first_token_seconds_bucket{job="v",instance="a",model_name="m",le=`
	story := []series{
		counter(bucket+`"2.5"}`, 0, 0, 0), counter(bucket+`"+Inf"}`, 1, 0, 1),
		counter(`vllm:time_to_first_token_seconds_count{job="v",instance="a",model_name="m"}`, 1, 0, 1),
	}
	assert.Equal(t, []string{"VLLMRawFirstTokenLateFast", "VLLMRawFirstTokenLateMedium"},
		names(newPlayerOf(t, content.GroupsWith(values), "vllm-raw").play(2*hour, minute, story...)))
}

// One engine of two computes nothing any more.
func TestARawStallOfOneEngineIsNotHiddenByTheOther(t *testing.T) {
	t.Parallel()
	var story []series
	for engine, rate := range map[string]float64{"0": 0, "1": 100} {
		of := `{job="v",instance="a",engine="` + engine + `",model_name="m"}`
		story = append(story, constant("vllm:num_requests_running"+of, 4), counter("vllm:generation_tokens_total"+of, 100, 20*minute, rate),
			counter("vllm:prompt_tokens_total"+of, 100, 20*minute, rate))
	}
	fired := newPlayer(t, "vllm-raw").play(40*minute, minute, story...)
	if assert.Len(t, fired, 1) {
		assert.Equal(t, `engine="0", instance="a", job="v"`, fired[0].labels)
		assert.InDelta(t, 30, fired[0].from.Minutes(), 1)
	}
}
