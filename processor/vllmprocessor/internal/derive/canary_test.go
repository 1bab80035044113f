package derive_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
)

// ended is a request that a server has served, with its times in seconds.
type ended struct {
	queue, first, whole float64
	prompt, output      float64
}

// canaryRequest is a canary whose answer took so long.
func canaryRequest(took float64) ended { return ended{first: took, whole: took, prompt: 1, output: 1} }

var (
	firstBounds   = []float64{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10}
	requestBounds = []float64{0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30}
	lengthBounds  = []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000}
)

// observe is a distribution of one number of each request.
func observe(in input.Metric, bounds []float64, all []ended, of func(ended) float64) point {
	s := input.Sample{Input: in, Bounds: bounds, Counts: make([]float64, len(bounds)+1), HasSum: true}
	for _, one := range all {
		value, bucket := of(one), 0
		for bucket < len(bounds) && value > bounds[bucket] {
			bucket++
		}
		s.Counts[bucket]++
		s.Count++
		s.Sum += value
	}
	return point{Sample: s}
}

// serverOf is what a server exposes that has served some requests.
func serverOf(engine string, all []ended) []point {
	prompts, outputs, further, stopped, cut := 0.0, 0.0, 0.0, 0.0, 0.0
	for _, one := range all {
		prompts, outputs = prompts+one.prompt, outputs+one.output
		if further += one.output - 1; one.output == 1 {
			cut++
		} else {
			stopped++
		}
	}
	first := func(r ended) float64 { return r.first }
	whole := func(r ended) float64 { return r.whole }
	inferred := func(r ended) float64 { return r.whole - r.queue }
	perToken := func(r ended) float64 { return (r.whole - r.first) / max(r.output-1, 1) }
	points := []point{
		observe(input.TimeToFirstToken, firstBounds, all, first), observe(input.E2ERequestLatency, requestBounds, all, whole),
		observe(input.QueueTime, requestBounds, all, func(r ended) float64 { return r.queue }), observe(input.InferenceTime, requestBounds, all, inferred),
		observe(input.PrefillTime, requestBounds, all, func(r ended) float64 { return r.first - r.queue }),
		observe(input.DecodeTime, requestBounds, all, func(r ended) float64 { return r.whole - r.first }), observe(input.TimePerOutputToken, firstBounds, all, perToken),
		observe(input.RequestPromptTokens, lengthBounds, all, func(r ended) float64 { return r.prompt }),
		observe(input.RequestGenerationTokens, lengthBounds, all, func(r ended) float64 { return r.output }),
		count(input.PromptTokens, prompts), count(input.GenerationTokens, outputs), count(input.PromptTokensCached, 0),
		count(input.PromptTokensBySource, prompts, "local_compute"), count(input.PromptTokensBySource, 0, "local_cache_hit"),
		count(input.PrefixCacheQueries, prompts), count(input.PrefixCacheHits, 0), count(input.Preemptions, 0),
		count(input.RequestSuccess, stopped, "stop"), count(input.RequestSuccess, cut, "length"), count(input.RequestSuccess, 0, "abort"),
		count(input.Running, 0), count(input.Waiting, 0),
		count(input.HTTPRequests, stopped, "2xx", "/v1/chat/completions", "POST"), count(input.HTTPRequests, cut, "2xx", "/v1/completions", "POST"),
		count(input.HTTPRequests, 2, "4xx", "/v1/completions", "POST"), count(input.HTTPRequests, 0, "5xx", "/v1/completions", "POST"),
	}
	return as(engine, points...)
}

// sent is what the receiver counts of canaries.
func sent(canaries []ended) point {
	return observe(input.CanaryDuration, firstBounds, canaries, func(r ended) float64 { return r.whole })
}

// fewUsers are few requests beside many canaries: 20 in 300 s, as with one each 15 s.
func fewUsers() (users, canaries []ended) {
	users = []ended{{0.2, 0.7, 4, 120, 60}, {0, 0.3, 2, 80, 40}, {0.1, 0.45, 9, 400, 200}, {0, 0.22, 1.2, 60, 15}, {1, 3, 12, 900, 300}}
	for n := range 20 {
		canaries = append(canaries, canaryRequest(0.031+0.001*float64(n)))
	}
	return users, canaries
}

// What is derived of a server with canaries is what is derived of the same server without them.
func TestDerivedValuesAreThoseOfUsers(t *testing.T) {
	t.Parallel()
	users, canaries := fewUsers()
	want, _ := derived(t, release("0.21.0"), serverOf("0", users))
	got, _ := derived(t, release("0.21.0"), append(serverOf("0", append(users, canaries...)), sent(canaries)))
	assert.Greater(t, len(want), 40)
	assert.Len(t, got, len(want))
	for key, value := range want {
		assert.InDelta(t, value, got[key], 1e-9, key)
	}
	// The same by hand.
	assert.InDelta(t, (0.7+0.3+0.45+0.22+3)/5, got["time_to_first_token_mean"], 1e-9)
	assert.InDelta(t, (4+2+9+1.2+12)/5, got["e2e_request_latency_mean"], 1e-9)
	assert.InDelta(t, 5.0/interval, got["first_token_rate"], 1e-12)
	assert.InDelta(t, 5.0/interval, got["request_throughput"], 1e-12)
	assert.InDelta(t, (60+40+200+15+300.0)/interval, got["generation_throughput"], 1e-9)
	assert.InDelta(t, 312.0, got["request.prompt_tokens_mean"], 1e-9)
	assert.InDelta(t, 123.0, got["request.generation_tokens_mean"], 1e-9)
	assert.InDelta(t, 2.0/7, got["http.error_ratio 4xx"], 1e-9)
}

// Where the token of a canary is the end of the text, it ends with "stop".
func TestACanaryThatEndsItsTextIsNoRequestOfAUser(t *testing.T) {
	t.Parallel()
	users, canaries := fewUsers()
	points := append(serverOf("0", append(users, canaries...)), sent(canaries))
	for i := range points {
		if points[i].Input == input.RequestSuccess {
			points[i].Value = map[input.Label]float64{"stop": 23, "length": 2}[points[i].Label]
		}
	}
	got, _ := derived(t, release("0.21.0"), points)
	assert.InDelta(t, 5.0/interval, got["request_throughput"], 1e-12)
}

// A receiver measures a little more than the server, and a prompt can have some tokens.
func TestTheTimesOfAReceiverAreNearlyThoseOfTheServer(t *testing.T) {
	t.Parallel()
	users, canaries := fewUsers()
	var served []ended
	for _, one := range canaries {
		one.prompt = 2
		served = append(served, one)
	}
	for i := range canaries {
		canaries[i].whole += 0.004 // Some are in the next bucket.
	}
	got, _ := derived(t, release("0.21.0"), append(serverOf("0", append(users[:5:5], served...)), sent(canaries)))
	assert.InDelta(t, 5.0/interval, got["first_token_rate"], 1e-12)
	// All have 0.81 s at the server, with a mean of 0.0445 s at the receiver. Four that the receiver has in
	// the bucket above are in that up to 0.04 s.
	assert.InDelta(t, 0.934+(0.81-16*0.0445-4*0.04)/5, got["time_to_first_token_mean"], 1e-9)
	assert.InDelta(t, 312+20.0/5, got["request.prompt_tokens_mean"], 1e-9)
	for i := range canaries {
		canaries[i].whole += 0.04 // A receiver that is far away.
	}
	got, _ = derived(t, release("0.21.0"), append(serverOf("0", append(users[:5:5], served...)), sent(canaries)))
	assert.InDelta(t, 0.934+(0.81-10*0.06-10*0.04)/5, got["time_to_first_token_mean"], 1e-9, "bounds of the server's buckets")
}

// Which of several engines has served a canary is not known.
func TestCanariesOfSeveralEnginesStay(t *testing.T) {
	t.Parallel()
	users, canaries := fewUsers()
	got, _ := derived(t, release("0.21.0"), append(append(serverOf("0", append(users[:5:5], canaries[:8]...)), serverOf("1", append(users[:5:5], canaries[8:]...))...), sent(canaries)))
	assert.InDelta(t, 13.0/interval, got["first_token_rate"], 1e-12)
	assert.InDelta(t, 17.0/interval, got["first_token_rate 1"], 1e-12)
}

// A server with canaries only has no request, also where the receiver has counted one more or less.
func TestOneCanaryMoreOrLessIsNeverNegative(t *testing.T) {
	t.Parallel()
	_, canaries := fewUsers()
	for _, counted := range []int{19, 20, 21} {
		received := append([]ended{}, canaries[:min(counted, 20)]...)
		if counted > 20 {
			received = append(received, canaryRequest(0.033))
		}
		got, _ := derived(t, release("0.21.0"), append(serverOf("0", canaries), sent(received)))
		for key, value := range got {
			assert.GreaterOrEqual(t, value, 0.0, "%s: %d were counted", key, counted)
		}
		left := max(20-float64(counted), 0)
		assert.InDelta(t, left/interval, got["first_token_rate"], 1e-12, "%d were counted", counted)
		_, known := got["time_to_first_token_mean"]
		assert.Equal(t, left > 0, known, "%d were counted", counted)
	}
}

// The receiver reads the server, and counts what it has sent itself, at other moments. Over any window
// the requests of users are known but for one at either end.
func TestCanariesAreLeftOutAtAnyMoment(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 3))
	resource := window.NewResource(window.Settings{Window: time.Minute, MaxStaleness: 5 * time.Minute})
	settings := derive.Settings{Enabled: make([]bool, len(derive.Rows()))}
	for i, row := range derive.Rows() {
		settings.Enabled[i] = strings.HasSuffix(row.Metric, "_rate") || strings.HasSuffix(row.Metric, "throughput") || strings.HasSuffix(row.Metric, "_mean")
	}
	var evaluator derive.Evaluator
	var users, served, received []ended
	var times []int // The requests of users until each scrape.
	compared, exact := 0, 0
	for scrape := range 400 {
		for range random.IntN(3) * random.IntN(2) {
			users = append(users, ended{0, 0.3, 2, 100, 20})
		}
		times = append(times, len(users))
		// A canary for each scrape. Now and then one is counted by one of the two first.
		received, served = append(received, canaryRequest(0.03)), append(served, canaryRequest(0.03))
		server, receiver := served, received
		switch random.IntN(6) {
		case 0:
			server = served[:len(served)-1]
		case 1:
			receiver = received[:len(received)-1]
		}
		points := append(serverOf("0", append(append([]ended{}, users...), server...)), sent(receiver))
		require.True(t, resource.Observe(batch(int64(15*scrape), release("0.21.0"), points), math.MaxInt).Observed)
		for _, v := range evaluator.Evaluate(&settings, resource) {
			assert.GreaterOrEqual(t, v.Number, 0.0, "%s at scrape %d", v.Row.Metric, scrape)
			if v.Row.Metric != "vllm.first_token_rate" || scrape < 4 {
				continue
			}
			truth := float64(times[scrape] - times[scrape-4])
			assert.InDelta(t, truth, v.Number*60, 2+1e-9)
			compared++
			if math.Abs(truth-v.Number*60) < 1e-9 {
				exact++
			}
		}
	}
	assert.Equal(t, 396, compared)
	assert.Greater(t, exact, 200)
}
