package window

import (
	"math"
	"strconv"
)

// A distribution whose truth is known: what the documentation's table and the
// tests of MeanConstrained measure against. All have a typical value of about 1.
type distribution struct {
	name string
	// share is the share of values that are at most x.
	share func(x float64) float64
	mean  float64
}

// quantile inverts share by bisection on a logarithmic scale.
func (d distribution) quantile(q float64) float64 {
	low, high := 1e-12, 1e12
	for range 60 {
		if middle := math.Sqrt(low * high); d.share(middle) >= q {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}

var distributions = []distribution{
	exponential(),
	gamma(0.5), gamma(2), gamma(5),
	lognormal(0.25), lognormal(0.5), lognormal(1), lognormal(1.5),
	mixture("two peaks, 70 % at 0.3 and 30 % at 3", 0.7, scaled(lognormal(0.3), 0.3), scaled(lognormal(0.3), 3)),
	mixture("two peaks, 97 % at 0.8 and 3 % at 10", 0.97, scaled(lognormal(0.4), 0.8), scaled(lognormal(0.4), 10)),
	uniform(0, 2), uniform(0.8, 1.2),
	point(),
	mixture("two points, 90 % at 0.7 and 10 % at 2", 0.9, scaled(point(), 0.7), scaled(point(), 2)),
	pareto(1.5), pareto(3),
}

func exponential() distribution {
	return distribution{name: "exponential", mean: 1, share: func(x float64) float64 { return -math.Expm1(-x) }}
}

// gamma has mean 1. Shape 0.5 is a squared normal; whole shapes are sums of
// exponentials.
func gamma(shape float64) distribution {
	name := "gamma, shape " + number(shape)
	if shape == 0.5 {
		return distribution{name: name, mean: 1, share: func(x float64) float64 { return math.Erf(math.Sqrt(x / 2)) }}
	}
	return distribution{name: name, mean: 1, share: func(x float64) float64 {
		x *= shape
		term, sum := 1.0, 0.0
		for k := range int(shape) {
			if k > 0 {
				term *= x / float64(k)
			}
			sum += term
		}
		return 1 - sum*math.Exp(-x)
	}}
}

// lognormal has median 1.
func lognormal(sigma float64) distribution {
	return distribution{
		name: "lognormal, sigma " + number(sigma), mean: math.Exp(sigma * sigma / 2),
		share: func(x float64) float64 { return math.Erfc(-math.Log(x)/sigma/math.Sqrt2) / 2 },
	}
}

func uniform(from, to float64) distribution {
	return distribution{
		name: "uniform, " + number(from) + " to " + number(to), mean: (from + to) / 2,
		share: func(x float64) float64 { return min(max((x-from)/(to-from), 0), 1) },
	}
}

func point() distribution {
	return distribution{name: "always 1", mean: 1, share: func(x float64) float64 {
		if x >= 1 {
			return 1
		}
		return 0
	}}
}

// pareto begins at 0.5.
func pareto(alpha float64) distribution {
	return distribution{
		name: "Pareto, alpha " + number(alpha), mean: 0.5 * alpha / (alpha - 1),
		share: func(x float64) float64 { return 1 - math.Pow(max(x/0.5, 1), -alpha) },
	}
}

func mixture(name string, weight float64, a, b distribution) distribution {
	return distribution{
		name: name, mean: weight*a.mean + (1-weight)*b.mean,
		share: func(x float64) float64 { return weight*a.share(x) + (1-weight)*b.share(x) },
	}
}

func scaled(d distribution, by float64) distribution {
	return distribution{name: d.name, mean: by * d.mean, share: func(x float64) float64 { return d.share(x / by) }}
}

func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
