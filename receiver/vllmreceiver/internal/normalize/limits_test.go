package normalize

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/exposition"
)

// A client can make a server load any number of adapters. The limit is exact, it counts
// what it drops, and 0 means no limit.
func TestTheLimitOfAdaptersIsExact(t *testing.T) {
	var body strings.Builder
	body.WriteString("# TYPE lora_syncer_adapter_status gauge\n")
	for i := range 5 {
		body.WriteString(sampleOf("lora_syncer_adapter_status", fmt.Sprintf(`adapter_name="a%d"`, i), i))
	}
	for limit, want := range map[int]struct{ points, dropped int }{
		0: {5, 0}, 1: {1, 4}, 4: {4, 1}, 5: {5, 0}, 6: {5, 0},
	} {
		plan := planOf(body.String(), Options{MaxAdapters: limit})
		assert.Equal(t, want.points, plan.Points, "limit %d", limit)
		assert.Equal(t, want.dropped, plan.Dropped[ReasonAdapterLimit], "limit %d", limit)
		require.Len(t, plan.Metrics, 1)
		assert.Equal(t, "a0", plan.Metrics[0].Points[0].Attributes[0].Value, "the first ones stay")
	}
	// The limit is for adapters alone.
	var engines strings.Builder
	engines.WriteString("# TYPE vllm:num_requests_running gauge\n")
	for i := range 5 {
		engines.WriteString(sampleOf("vllm:num_requests_running", fmt.Sprintf(`engine="%d"`, i), i))
	}
	assert.Equal(t, 5, planOf(engines.String(), Options{MaxAdapters: 1}).Points)
}

// Only lists of adapters have label sets that replace each other.
func TestOnlyTheAdaptersHaveLabelSets(t *testing.T) {
	plan := planOf(gauge(cacheInfo, `block_size="16",engine="0"`, 1), Options{})
	assert.Empty(t, plan.Adapters)
	for _, m := range plan.Metrics {
		for _, p := range m.Points {
			assert.Nil(t, p.AdapterSets)
			assert.Empty(t, p.Parts)
		}
	}
}

// Each replica behind a Ray agent has adapters of its own, and the newest
// set of one does not replace that of another.
func TestTheAdapterSetsOfEachProcessAreNumbered(t *testing.T) {
	plan := planOf("# TYPE ray_vllm_lora_requests_info gauge\n"+
		`ray_vllm_lora_requests_info{ReplicaId="r1",WorkerId="w1",running_lora_adapters="a"} 10`+"\n"+
		`ray_vllm_lora_requests_info{ReplicaId="r2",WorkerId="w2",running_lora_adapters="a"} 20`+"\n"+
		`ray_vllm_lora_requests_info{ReplicaId="r1",WorkerId="w1",running_lora_adapters="b"} 30`+"\n", Options{})
	var processes []int
	for _, set := range plan.Adapters {
		processes = append(processes, set.Process)
	}
	assert.Equal(t, []int{0, 1, 0}, processes)
	assert.Equal(t, 3, plan.Points, "a of both replicas, and b")
}

// Of two series of a gateway that get the same attributes, the first counts: they are the
// same thing twice, which must not be added up.
func TestEqualSeriesOfAGatewayAreNotAddedUp(t *testing.T) {
	runPlanCases(t, []planCase{
		{
			name: "a counter under two spellings of one label",
			body: counter("llm_d_epp_request_total", `model_name="m",model_server_pod="e"`, 3) +
				sampleOf("llm_d_epp_request_total", `model_name="m",model_server_endpoint="e"`, 4),
			want: []string{
				"inference_gateway.epp.requests sum {request} {endpoint=e,model_name=m} = 3", "dropped duplicate 1", isEPP, isLLMD,
			},
		},
		{
			name: "a counter of two tenants under two spellings",
			body: counter("llm_d_epp_request_total", `fairness_id="a",model_server_pod="e"`, 3) +
				sampleOf("llm_d_epp_request_total", `fairness_id="b",model_server_endpoint="e"`, 4) +
				sampleOf("llm_d_epp_request_total", `fairness_id="b",model_server_pod="e"`, 5),
			want: []string{
				"inference_gateway.epp.requests sum {request} {endpoint=e} = 7", "dropped duplicate 1", isEPP, isLLMD,
			},
		},
	})
}

// Quantiles do not add up, so the series of a summary stay apart.
func TestTheSummariesOfTenantsStayApart(t *testing.T) {
	runPlanCases(t, []planCase{{
		name: "a summary",
		body: summary("llm_d_epp_new", `fairness_id="a"`, 3) + "llm_d_epp_new_sum{fairness_id=\"b\"} 1\nllm_d_epp_new_count{fairness_id=\"b\"} 4\n",
		want: []string{
			"inference_gateway.epp.new summary no-unit {fairness_id=a} = 3", "inference_gateway.epp.new summary no-unit {fairness_id=b} = 4",
			"unknown llm_d_epp_new", isEPP, isLLMD,
		},
	}})
}

// Three series with different buckets: a bucket stays only if all have it.
func TestTheBucketsOfThreeHistogramsAreThoseOfAll(t *testing.T) {
	plan := planOf(histogram("llm_d_epp_request_duration_seconds", `fairness_id="a"`, 3, "1", "2", "4")+
		histogramSeries("llm_d_epp_request_duration_seconds", `fairness_id="b"`, 4, "1", "2", "4")+
		histogramSeries("llm_d_epp_request_duration_seconds", `fairness_id="c"`, 4, "2", "4", "8"), Options{})
	require.Len(t, plan.Metrics, 1)
	require.Len(t, plan.Metrics[0].Points, 1)
	assert.Equal(t, []float64{2, 4}, plan.Metrics[0].Points[0].Bounds)
	assert.Len(t, plan.Metrics[0].Points[0].Parts, 3)
	same := planOf(histogram("llm_d_epp_request_duration_seconds", `fairness_id="a"`, 3, "1", "2")+
		histogramSeries("llm_d_epp_request_duration_seconds", `fairness_id="b"`, 4, "1", "2"), Options{})
	assert.Nil(t, same.Metrics[0].Points[0].Bounds, "equal buckets need no folding")
}

// The versions of vLLM are Python's, not semantic ones.
func TestVersionsAreCompared(t *testing.T) {
	for _, tt := range []struct {
		version, since, until string
		want                  bool
	}{
		{"0.10.2", "0.10.2", "", true},
		{"0.10.1", "0.10.2", "", false},
		{"0.10.1.1", "0.10.1", "0.10.2", true},
		{"0.10.2", "", "0.10.2", false},
		{"0.10.1", "", "0.10.2", true},
		{"v0.9.0", "0.10.0", "", false},
		{"0.10", "0.9.9", "0.11", true},
		{"0.20.0rc1", "0.20.0", "", true},
		{"0.9.0.dev1+g1234", "0.9.0", "0.9.1", true},
		{"1.0.0", "0.99.99", "", true},
		{"1", "0.99", "1.0.1", true},
		{"", "", "", false},
		{"dev", "", "", false},
		{"99999999999999999999", "", "", false},
		{"0.10.2", "", "", true},
		{"0.10.x", "0.10.0", "0.10.1", true},
		{"0.x.9", "0.0.0", "0.0.1", true},
	} {
		o := Options{Version: tt.version}
		assert.Equal(t, tt.want, o.versionIn(tt.since, tt.until), "%q in [%q, %q)", tt.version, tt.since, tt.until)
	}
}

// Plans are remembered by the class of a version, so a server that answers a new version
// in each scrape must not make new classes.
func TestVersionsHaveFewClasses(t *testing.T) {
	classes := map[string]bool{}
	for major := range 3 {
		for minor := range 40 {
			for patch := range 20 {
				classes[VersionClass(fmt.Sprintf("%d.%d.%d", major, minor, patch))] = true
			}
		}
	}
	// Each source with a range divides the versions in at most three.
	assert.LessOrEqual(t, len(classes), 1+2*(len(versionSources())+len(capacityDefects)))
	assert.Greater(t, len(classes), 1, "some versions differ")
	unknown := VersionClass("")
	assert.Equal(t, strings.Repeat("0", len(versionSources()))+strings.Repeat("1", len(capacityDefects)), unknown,
		"an unknown version is in no range of versions, and has every defect")
	assert.Equal(t, unknown, VersionClass("dev"))
}

// A point may only be ended where the body has none of its series any more.
func TestHasReportsWhetherABodyStillHasASeries(t *testing.T) {
	two := "# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{engine=\"0\"} 1\nvllm:num_requests_running{engine=\"1\"} 2\n"
	before := planOf(two, Options{})
	after := planOf(gauge("vllm:num_requests_running", `engine="1"`, 2), Options{})
	metric := &before.Metrics[0]
	assert.False(t, after.Has(metric, &metric.Points[0]))
	assert.True(t, after.Has(metric, &metric.Points[1]))
	other := planOf(gauge("vllm:num_requests_waiting", `engine="0"`, 2), Options{})
	assert.False(t, other.Has(metric, &metric.Points[0]), "the name counts, too")
	added := planOf(counter("llm_d_epp_request_total", `fairness_id="a"`, 3)+sampleOf("llm_d_epp_request_total", `fairness_id="b"`, 4), Options{})
	left := planOf(counter("llm_d_epp_request_total", `fairness_id="b"`, 4), Options{})
	assert.True(t, left.Has(&added.Metrics[0], &added.Metrics[0].Points[0]), "one of several parts is enough")
	constant := planOf(gauge(cacheInfo, `block_size="16"`, 1), Options{})
	assert.False(t, constant.Has(&constant.Metrics[0], &constant.Metrics[0].Points[0]), "a number from a label has no series")
}

// The key of a series is the same in every body, and another for another name, kind,
// label or value.
func TestTheKeyOfASeriesIsItsIdentity(t *testing.T) {
	type labels = []exposition.Label
	seen := map[SeriesKey]string{}
	for _, tt := range []struct {
		what, name string
		kind       uint8
		labels     labels
	}{
		{"the name", "b", 0, labels{{Name: "x", Value: "y"}}},
		{"the kind", "a", 1, labels{{Name: "x", Value: "y"}}},
		{"the value", "a", 0, labels{{Name: "x", Value: "z"}}},
		{"the label", "a", 0, labels{{Name: "w", Value: "y"}}},
		{"no labels", "a", 0, nil},
		{"a further label", "a", 0, labels{{Name: "x", Value: "y"}, {Name: "z", Value: "1"}}},
		{"the boundary of name and value", "a", 0, labels{{Name: "xy", Value: ""}}},
		{"the boundary of two labels", "a", 0, labels{{Name: "x", Value: "yz1"}}},
		{"itself", "a", 0, labels{{Name: "x", Value: "y"}}},
	} {
		key := pointKey(tt.name, catalog.Kind(tt.kind), tt.labels)
		assert.Empty(t, seen[key], "%s does not count", tt.what)
		seen[key] = tt.what
		assert.Equal(t, key, pointKey(tt.name, catalog.Kind(tt.kind), slices.Clone(tt.labels)))
	}
}

// The texts are the values of an attribute of self-telemetry.
func TestTheTextsOfTheReasons(t *testing.T) {
	want := []string{
		"alias", "disabled", "type_conflict", "info", "duplicate", "unsupported", "adapter_limit", "no_inf_bucket", "no_count",
		"bucket_decrease", "bucket_nan", "count_below_bucket", "count_above_bucket", "bad_count", "counter_nan", "counter_negative", "sentinel",
		"device_limit", "series_limit", "other_process",
	}
	var got []string
	for _, reason := range Reasons() {
		got = append(got, reason.String())
	}
	assert.Equal(t, want, got)
	assert.Len(t, want, NumReasons-1)
}
