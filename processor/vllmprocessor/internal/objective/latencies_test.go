package objective

import (
	"math"
	"math/rand/v2"
	"sort"
)

// The buckets of vLLM's time metrics.
var (
	firstTokenBounds, _ = indicatorOf("vllm.time_to_first_token")
	perTokenBounds, _   = indicatorOf("vllm.inter_token_latency")
	requestBounds, _    = indicatorOf("vllm.e2e_request_latency")
)

// expNormal draws from a log-normal distribution with median 1.
func expNormal(r *rand.Rand, sigma float64) float64 { return math.Exp(sigma * r.NormFloat64()) }

// bucketOf returns the bounds of the bucket that counts a latency: lower
// excluded, upper included.
func bucketOf(bounds []float64, latency float64) (lower, upper float64) {
	i := sort.SearchFloat64s(bounds, latency)
	if i > 0 {
		lower = bounds[i-1]
	}
	if i == len(bounds) {
		return lower, math.Inf(1)
	}
	return lower, bounds[i]
}
