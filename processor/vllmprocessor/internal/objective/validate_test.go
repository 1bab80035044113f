package objective

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/internal/test/captures"
)

func ttft() Objective {
	return Objective{Name: "ttft", Metric: "vllm.time_to_first_token", Threshold: Duration(2500 * time.Millisecond), Target: 0.95}
}

const anyMetric = "vllm.time_to_first_token, vllm.inter_token_latency, vllm.e2e_request_latency, vllm.request.time_per_output_token, " +
	"vllm.request.queue_time, vllm.request.inference_time, vllm.request.prefill_time, vllm.request.decode_time"

func TestEachMistakeSaysWhatToWriteInstead(t *testing.T) {
	t.Parallel()
	for want, spoil := range map[string]func(*Objective){
		"an objective has no name; write for example name: ttft":                                                                 func(o *Objective) { o.Name = "" },
		`objective "a b": the name contains ' '; write letters, digits, dots, dashes and underscores only`:                       func(o *Objective) { o.Name = "a b" },
		`objective "zü": the name contains 'ü'; write letters, digits, dots, dashes and underscores only`:                        func(o *Objective) { o.Name = "zü" },
		`objective "` + strings.Repeat("n", 65) + `": the name has 65 characters; write at most 64`:                              func(o *Objective) { o.Name = strings.Repeat("n", 65) },
		`objective "ttft": the metric is missing; write one of ` + anyMetric:                                                     func(o *Objective) { o.Metric = "" },
		`objective "ttft": the metric ttft is unknown; write one of ` + anyMetric:                                                func(o *Objective) { o.Metric = "ttft" },
		`objective "ttft": no objective can be about the metric vllm.request.prompt_tokens; write one of ` + anyMetric:           func(o *Objective) { o.Metric = "vllm.request.prompt_tokens" },
		`objective "ttft": the metric vllm:time_to_first_token_seconds is called vllm.time_to_first_token here; write that`:      func(o *Objective) { o.Metric = "vllm:time_to_first_token_seconds" },
		`objective "ttft": the metric ray_vllm_e2e_request_latency_seconds is called vllm.e2e_request_latency here; write that`:  func(o *Objective) { o.Metric = "ray_vllm_e2e_request_latency_seconds" },
		`objective "ttft": the metric vllm_request_queue_time_seconds_bucket is called vllm.request.queue_time here; write that`: func(o *Objective) { o.Metric = "vllm_request_queue_time_seconds_bucket" },
		`objective "ttft": the threshold is missing, is 0, or has no unit; write for example threshold: 2.5s`:                    func(o *Objective) { o.Threshold = 0 },
		`objective "ttft": the threshold 1h is beyond the last bucket of vllm.time_to_first_token, so no server can decide it; write at most 42m40s`: func(o *Objective) {
			o.Threshold = Duration(time.Hour)
		},
		`objective "ttft": the target is missing or 0; write for example target: 0.95`:                                                                  func(o *Objective) { o.Target = 0 },
		`objective "ttft": the target 95 is a percentage; write the share 0.95`:                                                                         func(o *Objective) { o.Target = 95 },
		`objective "ttft": the target 99.9 is a percentage; write the share 0.999`:                                                                      func(o *Objective) { o.Target = 99.9 },
		`objective "ttft": the target 1 allows no single failure, so it has no error budget; write for example 0.999`:                                   func(o *Objective) { o.Target = 1 },
		`objective "ttft": the target -0.5 is not a share; write a number between 0 and 1, for example 0.95`:                                            func(o *Objective) { o.Target = -0.5 },
		`objective "ttft": the target 950 is not a share; write a number between 0 and 1, for example 0.95`:                                             func(o *Objective) { o.Target = 950 },
		`objective "ttft": the pattern "llama[(" has '[', and a pattern is not a regular expression: write * for any characters and ? for a single one`: func(o *Objective) { o.Models = []string{"llama[("} },
		`objective "ttft": the pattern "^llama" has '^', and a pattern is not a regular expression: write * for any characters and ? for a single one`:  func(o *Objective) { o.Models = []string{"*", "^llama"} },
		`objective "ttft": a pattern in models is empty; write "*" for all models, or leave out models`:                                                 func(o *Objective) { o.Models = []string{"a", ""} },
	} {
		o := ttft()
		require.NoError(t, o.Validate(), "before it is spoiled")
		spoil(&o)
		assert.EqualError(t, o.Validate(), want)
	}
}

func TestAllMistakesOfAnObjectiveAreReportedTogether(t *testing.T) {
	t.Parallel()
	o := Objective{Name: "x y", Metric: "vllm.e2e_request_latency", Target: 99, Models: []string{""}}
	assert.Len(t, strings.Split(o.Validate().Error(), "\n"), 4)
}

func TestMistakesThatObjectivesAndWindowsMakeTogether(t *testing.T) {
	t.Parallel()
	const day = Duration(24 * time.Hour)
	minutes := func(n int) Duration { return Duration(time.Duration(n) * time.Minute) }
	hours := []Duration{minutes(60), minutes(360)}
	for want, given := range map[string]struct {
		objectives []Objective
		budget     Duration
		burn       []Duration
	}{
		`several objectives are called "ttft"; give each its own name, for example "ttft-2"`: {[]Objective{ttft(), ttft(), ttft()}, 30 * day, hours},
		"budget_window 1h is shorter than the burn window 6h; write at least budget_window: 6h, or leave 6h out of burn_windows": {
			nil, minutes(60), hours,
		},
		"budget_window is 30 without a unit; write for example 30d or 30h":         {nil, 30, hours},
		"budget_window is 0s; write at least 1m":                                   {nil, 0, hours},
		"budget_window is 2y; write at most 366d":                                  {nil, 730 * day, hours},
		"a window in burn_windows is 30s; write at least 1m":                       {nil, 30 * day, []Duration{minutes(1) / 2}},
		"a window in burn_windows is 6 without a unit; write for example 6d or 6h": {nil, 30 * day, []Duration{6}},
		"burn_windows has 1h twice; remove one of them":                            {nil, 30 * day, []Duration{minutes(60), minutes(5), minutes(60)}},
		"burn_windows has 11 windows; write at most 10": {nil, 30 * day, []Duration{
			minutes(1), minutes(2), minutes(3), minutes(4), minutes(5), minutes(6), minutes(7), minutes(8), minutes(9), minutes(10), minutes(11),
		}},
	} {
		assert.EqualError(t, ValidateAll(given.objectives, given.budget, given.burn), want)
	}
	require.NoError(t, ValidateAll([]Objective{ttft()}, 30*day, hours))
	require.NoError(t, ValidateAll(nil, 30*day, nil), "burn rates can be off")
	unnamed := Objective{}
	require.NoError(t, ValidateAll([]Objective{unnamed, unnamed}, 30*day, hours), "that names are missing is said once each, elsewhere")
}

func TestIndicatorsAreLatencyHistogramsOfTheCatalogue(t *testing.T) {
	t.Parallel()
	for _, name := range indicators {
		metric, ok := catalog.ByName(name)
		require.True(t, ok, name)
		assert.Equal(t, catalog.KindHistogram, metric.Kind, metric.Name)
		assert.Equal(t, "s", metric.Unit, metric.Name)
		assert.Contains(t, metric.Attributes, "model_name", metric.Name)
		bounds, _ := indicatorOf(name)
		assert.IsIncreasing(t, bounds, metric.Name)
	}
}

func TestKnownBoundsAreThoseOfRecordedServers(t *testing.T) {
	t.Parallel()
	wire := map[string][]float64{
		"time_to_first_token": firstTokenBounds, "inter_token_latency": perTokenBounds, "e2e_request_latency": requestBounds,
		"request_queue_time": requestBounds, "request_inference_time": requestBounds, "request_prefill_time": requestBounds,
		"request_decode_time": requestBounds, "request_time_per_output_token": perTokenBounds,
	}
	body, err := os.ReadFile(filepath.Join(captures.Dir(t), "inferguard-packet_b-vllm-v0.20.txt"))
	require.NoError(t, err)
	for family, want := range wire {
		var got []float64
		for _, found := range regexp.MustCompile(`(?m)^vllm:`+family+`_seconds_bucket\{.*\ble="([0-9.e+-]+)"`).FindAllSubmatch(body, -1) {
			bound, err := strconv.ParseFloat(string(found[1]), 64)
			require.NoError(t, err)
			got = append(got, bound)
		}
		slices.Sort(got)
		assert.Equal(t, want, slices.Compact(got), family)
	}
}

func TestNoteNamesTheThresholdsNearbyThatAreExact(t *testing.T) {
	t.Parallel()
	o := ttft()
	assert.Empty(t, o.Note(), "2.5 s is a bound")
	o.Threshold = Duration(3 * time.Second)
	assert.Equal(t, `objective "ttft": the threshold 3s lies inside a bucket of vllm.time_to_first_token, so what took between 2.5s and 5s stays undecided; 2.5s or 5s would be exact`, o.Note())
	o.Metric, o.Threshold = "vllm.e2e_request_latency", Duration(200*time.Millisecond)
	assert.Equal(t, `objective "ttft": the threshold 200ms lies inside the first bucket of vllm.e2e_request_latency, so nothing is certainly good; 300ms would be exact`, o.Note())
	o.Metric = "unknown"
	assert.Empty(t, o.Note())
}

func TestResolutionIsReportedForTheRealBoundsToo(t *testing.T) {
	t.Parallel()
	o := ttft()
	o.Threshold = Duration(20 * time.Second)
	assert.Empty(t, o.Note())
	assert.Equal(t, `objective "ttft": the threshold 20s is beyond the last bucket of vllm.time_to_first_token, so what took longer than 10s stays undecided; write at most that`,
		o.Resolution([]float64{0.001, 1, 10}), "servers before 0.8.4 end at 10 s")
	assert.Equal(t, `objective "ttft": vllm.time_to_first_token has no buckets, so it is unknown which requests took at most 20s`, o.Resolution(nil))
}
