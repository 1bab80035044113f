package normalize

import "testing"

// Rule 5: the TYPE line decides the kind, never the suffix.
func TestTheTypeLineDecidesTheKind(t *testing.T) {
	runPlanCases(t, []planCase{
		{
			name: "a histogram called total",
			body: histogram("vllm:iteration_tokens_total", "", 5, "1", "8"),
			want: []string{"vllm.iteration_tokens histogram {token} {} = 5"},
		},
		{
			name: "a gauge called total keeps its ending",
			body: gauge("vllm:hisparse_host_blocks_total", "", 5),
			want: []string{"vllm.hisparse.host_blocks_total gauge {block} {} = 5"},
		},
		{
			name: "a counter with total inside and at the end",
			body: counter("vllm:kv_offload_total_bytes_total", `transfer_type="CPU_to_GPU"`, 5),
			want: []string{"vllm.kv_offload.total sum By {transfer_type=CPU_to_GPU} = 5"},
		},
		{
			name: "a counter of seconds with total inside and at the end",
			body: counter("vllm:kv_offload_total_time_total", "", 5),
			want: []string{"vllm.kv_offload.total_time sum s {} = 5"},
		},
		{
			name: "an unknown gauge called total keeps its ending",
			body: gauge("vllm:idle_pods_total", "", 5),
			want: []string{"vllm.idle_pods_total gauge no-unit {} = 5", "unknown vllm:idle_pods_total"},
		},
		{
			name: "a known counter without a TYPE line contradicts nothing",
			body: "vllm:prompt_tokens_total 5\n",
			want: []string{"vllm.prompt_tokens sum {token} {} = 5"},
		},
		{
			name: "a known gauge without a TYPE line contradicts nothing",
			body: "vllm:num_requests_running 5\n",
			want: []string{"vllm.num_requests.running gauge {request} {} = 5"},
		},
		{
			name: "an OpenMetrics counter in the text format: TYPE without total",
			body: "# TYPE vllm:prompt_tokens counter\nvllm:prompt_tokens_total 5\n",
			want: []string{"vllm.prompt_tokens sum {token} {} = 5"},
		},
		{
			name: "an imitator's counter without total",
			body: counter("vllm:prompt_tokens", "", 5),
			want: []string{"vllm.prompt_tokens sum {token} {} = 5"},
		},
		{
			name: "an imitator's counter next to the real one",
			body: counter("vllm:prompt_tokens", "", 5) + counter("vllm:prompt_tokens_total", "", 6),
			want: []string{"vllm.prompt_tokens sum {token} {} = 5", "dropped alias 1"},
		},
		{
			name: "a summary", options: Options{Enabled: map[string]bool{"http_request_size": true}},
			body: summary("http_request_size_bytes", `handler="/v1"`, 5),
			want: []string{"http_request_size summary By {handler=/v1} = 5"},
		},
		{
			name: "creation times are not metrics",
			body: counter("vllm:prompt_tokens_total", "", 5) + gauge("vllm:prompt_tokens_created", "", 1700000000),
			want: []string{"vllm.prompt_tokens sum {token} {} = 5"},
		},
	})
}

func TestSeriesThatCannotBecomeAPointAreCounted(t *testing.T) {
	runPlanCases(t, []planCase{
		{
			name: "a histogram without +Inf, next to a complete one",
			body: histogram("vllm:time_to_first_token_seconds", `engine="0"`, 5, "1") +
				"vllm:time_to_first_token_seconds_bucket{engine=\"1\",le=\"1\"} 1\nvllm:time_to_first_token_seconds_sum{engine=\"1\"} 1\nvllm:time_to_first_token_seconds_count{engine=\"1\"} 1\n",
			want: []string{"vllm.time_to_first_token histogram s {engine=0} = 5", "dropped no_inf_bucket 1"},
		},
		{
			name: "a histogram without buckets",
			body: "# TYPE vllm:time_to_first_token_seconds histogram\nvllm:time_to_first_token_seconds_sum 1\nvllm:time_to_first_token_seconds_count 1\n",
			want: []string{"dropped no_inf_bucket 1"},
		},
		{
			name: "a histogram without a count",
			body: "# TYPE vllm:new_seconds histogram\nvllm:new_seconds_bucket{le=\"+Inf\"} 1\nvllm:new_seconds_sum 1\n",
			want: []string{"dropped no_count 1", "unknown vllm:new_seconds"},
		},
		{
			name: "a summary without a count", options: Options{Enabled: map[string]bool{"http_request_size": true}},
			body: "# TYPE http_request_size_bytes summary\nhttp_request_size_bytes_sum 1\n",
			want: []string{"dropped no_count 1"},
		},
	})
}

// The same count is a gauge of one server and a counter of another. Each is
// a metric of its own, with a name that the other does not have.
func TestACountThatSomeServersTypeAsAGauge(t *testing.T) {
	runPlanCases(t, []planCase{
		{
			name: "preemptions as a gauge",
			body: gauge("vllm:num_preemptions", "", 5),
			want: []string{"vllm.num_preemptions_gauge gauge {preemption} {} = 5"},
		},
		{
			name: "both",
			body: gauge("vllm:num_preemptions", "", 5) + counter("vllm:num_preemptions_total", "", 6),
			want: []string{"vllm.num_preemptions_gauge gauge {preemption} {} = 5", "vllm.num_preemptions sum {preemption} {} = 6"},
		},
		{
			name: "a counter without its suffix is the counter",
			body: counter("vllm:num_preemptions", "", 6),
			want: []string{"vllm.num_preemptions sum {preemption} {} = 6"},
		},
		{
			name: "dropped requests as a gauge",
			body: gauge("ray_vllm_num_dropped", "", 5),
			want: []string{"vllm.num_dropped gauge {request} {} = 5"},
		},
		{
			name: "dropped requests as a counter",
			body: counter("vllm:num_dropped_total", "", 5),
			want: []string{"vllm.num_dropped_counter sum {request} {} = 5"},
		},
		{
			name: "dropped requests as a counter without its suffix",
			body: counter("vllm:num_dropped", "", 5),
			want: []string{"vllm.num_dropped_counter sum {request} {} = 5"},
		},
		{
			name: "Ray's gauge twin of a counter is dropped as before",
			body: counter("ray_vllm_num_preemptions_total", "", 5) + gauge("ray_vllm_num_preemptions", "", 5),
			want: []string{"vllm.num_preemptions sum {preemption} {} = 5", "dropped type_conflict 1", "conflict ray_vllm_num_preemptions"},
		},
	})
}

// Rule 5: a family whose TYPE contradicts the catalogue is not that metric.
func TestAFamilyOfAnotherTypeIsAnotherMetric(t *testing.T) {
	runPlanCases(t, []planCase{
		{
			name: "Ray's gauge twin of a counter, new style",
			body: counter("ray_vllm_prompt_tokens_total", "", 5) + gauge("ray_vllm_prompt_tokens", "", 5),
			want: []string{"vllm.prompt_tokens sum {token} {} = 5", "dropped type_conflict 1", "conflict ray_vllm_prompt_tokens"},
		},
		{
			name: "Ray's gauge twin of a counter, old style, gauge first",
			body: gauge("ray_vllm:prompt_tokens", "", 5) + counter("ray_vllm:prompt_tokens_total", "", 5),
			want: []string{"vllm.prompt_tokens sum {token} {} = 5", "dropped type_conflict 1", "conflict ray_vllm:prompt_tokens"},
		},
		{
			name: "Ray's gauge twin of a counter whose code name is a source, too",
			body: counter("ray_vllm_prefix_cache_hits_total", "", 5) + gauge("ray_vllm_prefix_cache_hits", "", 5),
			want: []string{"vllm.prefix_cache.hits sum {token} {} = 5", "dropped type_conflict 1", "conflict ray_vllm_prefix_cache_hits"},
		},
		{
			name: "Ray's gauge twin of an unknown counter",
			body: counter("ray_vllm_new_things_total", "", 5) + gauge("ray_vllm_new_things", "", 5),
			want: []string{
				"vllm.new_things sum no-unit {} = 5", "dropped type_conflict 1",
				"conflict ray_vllm_new_things", "unknown ray_vllm_new_things_total",
			},
		},
		{
			name: "a gauge next to a gauge called total is not a twin",
			body: gauge("vllm:new_pods", "", 1) + gauge("vllm:new_pods_total", "", 2),
			want: []string{
				"vllm.new_pods gauge no-unit {} = 1", "vllm.new_pods_total gauge no-unit {} = 2",
				"unknown vllm:new_pods", "unknown vllm:new_pods_total",
			},
		},
		{
			name: "the router's gauge under a counter's name is another metric", options: Options{Source: SourceVLLM},
			body: gauge("vllm:gpu_prefix_cache_hits_total", `server="http://a"`, 5),
			want: []string{"vllm.gpu_prefix_cache.hits_gauge gauge no-unit {server=http://a} = 5", "conflict vllm:gpu_prefix_cache_hits_total"},
		},
		{
			name: "the other name is not one of an unknown family",
			body: gauge("vllm:prompt_tokens_gauge", "", 1) + gauge("vllm:prompt_tokens_total", "", 2),
			want: []string{
				"vllm.prompt_tokens_gauge gauge no-unit {} = 1", "vllm.prompt_tokens_gauge_2 gauge no-unit {} = 2",
				"unknown vllm:prompt_tokens_gauge", "conflict vllm:prompt_tokens_total",
			},
		},
		{
			name: "the counter keeps its name next to a gauge of another prefix",
			body: gauge("vllm_prompt_tokens_total", "", 1) + counter("vllm:prompt_tokens_total", "", 2),
			want: []string{
				"vllm.prompt_tokens sum {token} {} = 2", "vllm.prompt_tokens_gauge gauge no-unit {} = 1",
				"conflict vllm_prompt_tokens_total",
			},
		},
		{
			name: "a histogram that is a gauge here",
			body: gauge("vllm:time_to_first_token_seconds", "", 1),
			want: []string{"vllm.time_to_first_token_gauge gauge s {} = 1", "conflict vllm:time_to_first_token_seconds"},
		},
		{
			name: "a gauge histogram under a known name is dropped",
			body: "# TYPE vllm:time_to_first_token_seconds gaugehistogram\nvllm:time_to_first_token_seconds_bucket{le=\"+Inf\"} 1\nvllm:time_to_first_token_seconds_gcount 1\nvllm:time_to_first_token_seconds_gsum 1\n",
			want: []string{"dropped unsupported 1", "conflict vllm:time_to_first_token_seconds"},
		},
		{
			name: "an unknown gauge histogram is dropped",
			body: "# TYPE vllm:new gaugehistogram\nvllm:new_bucket{le=\"+Inf\"} 1\nvllm:new_gcount 1\nvllm:new_gsum 1\n",
			want: []string{"dropped unsupported 1"},
		},
	})
}

// Only Ray writes each counter twice. Elsewhere, client_golang's for example, a
// gauge x and a counter x_total are two things, and nothing of them is dropped.
func TestAGaugeNextToACounterIsATwinOnlyBehindRay(t *testing.T) {
	plan := planOf(counter("router_new_things_total", "", 5)+gauge("router_new_things", "", 7), Options{})
	if plan.Points != 2 {
		t.Errorf("%d points, dropped as type_conflict: %d", plan.Points, plan.Dropped[ReasonTypeConflict])
	}
}
