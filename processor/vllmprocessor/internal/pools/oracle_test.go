package pools_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// life is what happened in one engine: its counters, which restarts clear, and
// what they grew by since the first scrape.
type life struct {
	running, waiting, utilization float64
	shown, grown                  map[input.Metric]float64
	observed, grownBuckets        []float64
	sum, grownSum                 float64
	start                         float64
}

var bounds = []float64{0.1, 0.5, 1, 5}

func (l *life) happen(r *rand.Rand, counted bool) {
	l.running, l.waiting, l.utilization = float64(r.IntN(9)), float64(r.IntN(5)), r.Float64()
	for _, in := range []input.Metric{input.GenerationTokens, input.PromptTokens, input.PrefixCacheQueries, input.Preemptions} {
		n := float64(r.IntN(1000))
		l.add(in, n, counted)
		if in == input.PrefixCacheQueries {
			l.add(input.PrefixCacheHits, math.Floor(n*r.Float64()), counted)
		}
	}
	for range r.IntN(30) {
		v := r.ExpFloat64()
		bucket := 0
		for bucket < len(bounds) && v > bounds[bucket] {
			bucket++
		}
		l.observed[bucket]++
		l.sum += v
		if counted {
			l.grownBuckets[bucket]++
			l.grownSum += v
		}
	}
}

func (l *life) add(in input.Metric, n float64, counted bool) {
	l.shown[in] += n
	if counted {
		l.grown[in] += n
	}
}

func (l *life) restart(seconds float64) {
	l.start = seconds
	l.shown = map[input.Metric]float64{}
	l.observed = make([]float64, len(bounds)+1)
	l.sum = 0
}

func newLife() *life {
	l := &life{grown: map[input.Metric]float64{}, grownBuckets: make([]float64, len(bounds)+1)}
	l.restart(-100)
	return l
}

func (l *life) say(engine int) scraped {
	s := scraped{
		engine: fmt.Sprint(engine), model: "m", start: l.start,
		values:        map[input.Metric]float64{input.Running: l.running, input.Waiting: l.waiting, input.KVCacheUtilization: l.utilization},
		distributions: map[input.Metric]dist{input.E2ERequestLatency: {bounds, l.observed, l.sum}},
	}
	maps.Copy(s.values, l.shown)
	return s
}

// TestAPoolIsWhatHappenedInItsServers compares pools with what really happened,
// added up event by event, whatever the number of servers and engines, the times
// of their scrapes and their restarts.
func TestAPoolIsWhatHappenedInItsServers(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 4))
		f := newFleet(t)
		servers := make([][]*life, 1+r.IntN(5))
		first := make([]float64, len(servers))
		last := make([]float64, len(servers))
		for i := range servers {
			first[i] = 10 * r.Float64()
			last[i] = first[i]
			for range 1 + r.IntN(3) {
				l := newLife()
				l.happen(r, false)
				servers[i] = append(servers[i], l)
			}
		}
		scrape := func(i int) {
			var engines []scraped
			for n, l := range servers[i] {
				engines = append(engines, l.say(n))
			}
			f.scrape(fmt.Sprint("server-", i), last[i], engines...)
		}
		for i := range servers {
			scrape(i)
		}
		for range 3 {
			for i, engines := range servers {
				last[i] += 5 + 10*r.Float64()
				restarted := r.IntN(4) == 0
				for _, l := range engines {
					if restarted {
						l.restart(last[i] - 1)
					}
					l.happen(r, true)
				}
				scrape(i)
			}
		}
		assertHappened(t, seed, f.evaluate(60), servers, first, last)
	}
}

func assertHappened(t *testing.T, seed uint64, got map[string]float64, servers [][]*life, first, last []float64) {
	t.Helper()
	var running, generated, used []float64
	var waiting, hits, queries, sum float64
	buckets := make([]float64, len(bounds)+1)
	rates := map[input.Metric]float64{}
	for i, engines := range servers {
		elapsed := last[i] - first[i]
		var r, g, u float64
		for _, l := range engines {
			r += l.running
			u += l.utilization / float64(len(engines))
			g += l.grown[input.GenerationTokens] / elapsed
			waiting += l.waiting
			hits += l.grown[input.PrefixCacheHits]
			queries += l.grown[input.PrefixCacheQueries]
			rates[input.PromptTokens] += l.grown[input.PromptTokens] / elapsed
			rates[input.Preemptions] += l.grown[input.Preemptions] / elapsed
			sum += l.grownSum
			for b := range buckets {
				buckets[b] += l.grownBuckets[b]
			}
		}
		running, generated, used = append(running, r), append(generated, g), append(used, u)
	}
	want := map[string]float64{
		"replicas m": float64(len(servers)), "running m": total(running), "waiting m": waiting,
		"generation_throughput m": total(generated), "prompt_throughput m": rates[input.PromptTokens],
		"preemption_rate m":           rates[input.Preemptions],
		"kv_cache.utilization_mean m": total(used) / float64(len(used)),
	}
	count := total(buckets)
	if queries > 0 {
		want["prefix_cache.hit_ratio m"] = hits / queries
	}
	if count > 0 {
		want["e2e_request_latency_mean m"] = sum / count
		want["e2e_request_latency_quantile m 0.5"] = interpolate(buckets, 0.5*count)
		want["e2e_request_latency_quantile m 0.95"] = interpolate(buckets, 0.95*count)
	}
	for name, values := range map[string][]float64{"running": running, "generation_throughput": generated, "kv_cache_utilization": used} {
		if len(values) < 2 || total(values) == 0 {
			continue
		}
		// The mean of squares less the square of the mean.
		n, most, squares := float64(len(values)), 0.0, 0.0
		for _, v := range values {
			squares += v * v / n
			most = math.Max(most, v)
		}
		average := total(values) / n
		want["imbalance.max_ratio m "+name] = most / average
		want["imbalance.stddev_ratio m "+name] = math.Sqrt(math.Max(squares-average*average, 0)) / average
	}
	for name, value := range want {
		assert.InDelta(t, value, got[name], 1e-6*math.Max(1, math.Abs(value)), "%s of seed %d", name, seed)
		assert.Contains(t, got, name)
	}
}

func total(values []float64) (sum float64) {
	for _, v := range values {
		sum += v
	}
	return sum
}

// interpolate places a rank in buckets, evenly within each.
func interpolate(buckets []float64, rank float64) float64 {
	lower, below := 0.0, 0.0
	for i, n := range buckets {
		if i == len(bounds) {
			break
		}
		if below+n >= rank {
			return lower + (bounds[i]-lower)*(rank-below)/n
		}
		below += n
		lower = bounds[i]
	}
	return lower
}
