package main

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Interval is an estimate with its 95 % interval.
type Interval struct {
	Value, Low, High float64
	// Of is the number of stories, or of hours.
	Of float64
}

// replicates is the number of bootstrap samples. Tests of other things use fewer.
var replicates = 2000

// confidence is that of all intervals, two-sided.
const confidence = 0.95

// bootstrap is the percentile interval of a statistic of n independent stories. The
// statistic gets how often each story counts. The random numbers are always the same, so
// equal stories give equal intervals.
func bootstrap(n int, statistic func(times []int) float64) Interval {
	times := make([]int, n)
	for i := range times {
		times[i] = 1
	}
	out := Interval{Value: statistic(times), Of: float64(n)}
	out.Low, out.High = out.Value, out.Value
	if n < 2 || math.IsNaN(out.Value) {
		out.Low, out.High = 0, 1
		return out
	}
	random := rand.New(rand.NewPCG(1, uint64(n)))
	values := make([]float64, 0, replicates)
	for range replicates {
		clear(times)
		for range n {
			times[random.IntN(n)]++
		}
		if v := statistic(times); !math.IsNaN(v) {
			values = append(values, v)
		}
	}
	slices.Sort(values)
	if len(values) > 0 {
		tail := (1 - confidence) / 2
		out.Low, out.High = quantile(values, tail), quantile(values, 1-tail)
	}
	return out
}

// shareOf is the interval of a share of n stories. Where all stories agree, resampling
// knows no other result, and the bound is that of n independent trials (Clopper and Pearson).
func shareOf(n int, statistic func(times []int) float64) Interval {
	out := bootstrap(n, statistic)
	if n < 2 || math.IsNaN(out.Value) {
		return out
	}
	agreed := math.Pow((1-confidence)/2, 1/float64(n))
	if out.Value < 1e-12 {
		out.High = max(out.High, 1-agreed)
	}
	if out.Value > 1-1e-12 {
		out.Low = min(out.Low, agreed)
	}
	return out
}

// quantile returns the smallest value that the share q of the ascending values does not
// exceed; NaN without values.
func quantile(ascending []float64, q float64) float64 {
	if len(ascending) == 0 {
		return math.NaN()
	}
	n := int(math.Ceil(q*float64(len(ascending)) - 1e-9))
	return ascending[min(len(ascending), max(1, n))-1]
}

// poisson is the exact interval (Garwood) of the rate per 10,000 hours, of events in some
// hours.
func poisson(events int, hours float64) Interval {
	if hours <= 0 {
		return Interval{math.NaN(), math.NaN(), math.NaN(), 0}
	}
	tail, scale := (1-confidence)/2, 10_000/hours
	out := Interval{Value: float64(events) * scale, Of: hours}
	// The least mean with which so many events or more are not too improbable, and the
	// greatest with which so few or fewer are not.
	if events > 0 {
		out.Low = scale * solve(events, func(mean float64) bool { return 1-atMost(events-1, mean) < tail })
	}
	out.High = scale * solve(events, func(mean float64) bool { return atMost(events, mean) > tail })
	return out
}

// solve returns the mean up to which a condition holds.
func solve(events int, holds func(mean float64) bool) float64 {
	low, high := 0.0, float64(events)+20+10*math.Sqrt(float64(events)+1)
	for range 80 {
		if mid := (low + high) / 2; holds(mid) {
			low = mid
		} else {
			high = mid
		}
	}
	return low
}

// atMost is the probability of at most k events if mean are expected.
func atMost(k int, mean float64) float64 {
	if mean == 0 {
		return 1
	}
	sum := 0.0
	for i := range k + 1 {
		g, _ := math.Lgamma(float64(i) + 1)
		sum += math.Exp(float64(i)*math.Log(mean) - mean - g)
	}
	return min(1, sum)
}
