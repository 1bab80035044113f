package pools_test

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/pools"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
)

// scraped is one engine at one time: values by input, distributions by input.
type scraped struct {
	engine, model string
	start         float64 // in seconds; 0 where it says none
	values        map[input.Metric]float64
	distributions map[input.Metric]dist
}

type dist struct {
	bounds, counts []float64
	sum            float64
}

// server is one resource.
type server struct {
	key        string
	state      *window.Resource
	attributes []string
}

// fleet is pools and the servers in them.
type fleet struct {
	t       *testing.T
	pools   *pools.Totals
	groupBy []string
	servers map[string]*server
	// version is that of the servers: one without defects that concern a row, if not set.
	version string
	signs   input.Sign
}

const minute = time.Minute

func newFleet(t *testing.T, change ...func(*pools.Settings)) *fleet {
	t.Helper()
	settings := pools.Settings{
		GroupBy: []string{"model_name"}, MaxPools: 1000, MaxStaleness: 5 * minute,
		Enabled: func(string) bool { return true },
		Derive:  &derive.Settings{Quantiles: []derive.Quantile{derive.NewQuantile(0.5), derive.NewQuantile(0.95)}},
	}
	for _, c := range change {
		c(&settings)
	}
	return &fleet{t: t, pools: pools.NewTotals(settings), groupBy: settings.GroupBy, servers: map[string]*server{}, version: "0.40.0"}
}

// server returns a server, which is made when it is named first; the attributes
// are those of its resource.
func (f *fleet) server(key string, attributes ...string) *server {
	if f.servers[key] == nil {
		f.servers[key] = &server{key, window.NewResource(window.Settings{Window: minute, MaxStaleness: 5 * minute}), make([]string, len(f.groupBy))}
		copy(f.servers[key].attributes, attributes)
	}
	return f.servers[key]
}

func at(seconds float64) int64 { return int64((1_000_000 + seconds) * 1e9) }

// scrape reads a server at a time in seconds.
func (f *fleet) scrape(key string, seconds float64, engines ...scraped) {
	f.t.Helper()
	f.batch(key, seconds, false, engines...)
}

// end ends the series of a server.
func (f *fleet) end(key string, seconds float64, engines ...scraped) {
	f.t.Helper()
	f.batch(key, seconds, true, engines...)
}

// attributesOf are those of an engine, or of its server where it has none.
func (f *fleet) attributesOf(s *server) pools.AttributesOf {
	return func(to, engine []input.Attribute) []input.Attribute {
		for i, name := range f.groupBy {
			if value := cmp.Or((&input.Group{Attributes: engine}).Value(name), s.attributes[i]); value != "" {
				to = append(to, input.Attribute{Name: name, Value: value})
			}
		}
		return to
	}
}

func (f *fleet) batch(key string, seconds float64, gone bool, engines ...scraped) {
	f.t.Helper()
	s := f.server(key)
	batch := input.Batch{Resource: key, Time: at(seconds), Evidence: input.Evidence{Version: f.version, Signs: f.signs}}
	for i, e := range engines {
		var start int64
		if e.start != 0 {
			start = at(e.start)
		}
		group := input.Group{Key: e.engine + "/" + e.model}
		if e.engine != "" {
			group.Attributes = append(group.Attributes, input.Attribute{Name: "engine", Value: e.engine})
		}
		if e.model != "" {
			group.Attributes = append(group.Attributes, input.Attribute{Name: "model_name", Value: e.model})
		}
		batch.Groups = append(batch.Groups, group)
		for in, value := range e.values {
			sample := input.Sample{Input: in, Group: i, Gone: gone, Start: start, Value: value}
			switch in {
			case input.PromptTokensBySource:
				sample.Label = "local_compute"
			case input.WaitingByReason:
				sample.Label = "capacity"
			}
			batch.Samples = append(batch.Samples, sample)
		}
		for in, d := range e.distributions {
			count := 0.0
			for _, n := range d.counts {
				count += n
			}
			batch.Samples = append(batch.Samples, input.Sample{
				Input: in, Group: i, Gone: gone, Start: start,
				Bounds: slices.Clone(d.bounds), Counts: slices.Clone(d.counts), Count: count, Sum: d.sum, HasSum: true,
			})
		}
	}
	report := s.state.Observe(&batch, 1_000_000)
	require.True(f.t, report.Changed)
	f.pools.Observe(key, s.state, f.attributesOf(s), at(seconds))
}

// evaluate returns the values of the pools at a time, by metric, pool and own attribute:
// "vllm.pool.running llama" or "vllm.pool.imbalance.max_ratio llama running".
func (f *fleet) evaluate(seconds float64) map[string]float64 {
	f.t.Helper()
	values, leftOut := f.pools.Evaluate(at(seconds))
	require.Zero(f.t, leftOut)
	return f.read(values)
}

func (f *fleet) read(values []derive.Value) map[string]float64 {
	f.t.Helper()
	all := map[string]float64{}
	for _, v := range values {
		words := []string{strings.TrimPrefix(v.Row.Metric, "vllm.pool.")}
		for _, a := range v.Attributes {
			words = append(words, a.Value)
		}
		if v.Extra[0] != "" {
			words = append(words, v.Extra[0])
		}
		key := strings.Join(words, " ")
		assert.NotContains(f.t, all, key)
		assert.False(f.t, v.Pending)
		all[key] = v.Number
	}
	return all
}

func running(model string, n float64) scraped {
	return scraped{engine: "0", model: model, values: map[input.Metric]float64{input.Running: n}}
}

func TestEveryMetricOfTheCatalogueIsTold(t *testing.T) {
	var want []string
	for _, m := range catalog.All() {
		if strings.HasPrefix(m.Name, "vllm.pool.") && !strings.HasPrefix(m.Name, "vllm.pool.diagnosis.") {
			assert.Equal(t, catalog.KindGauge, m.Kind, m.Name)
			want = append(want, m.Name)
		}
	}
	require.NotEmpty(t, want)
	emitted := map[string]bool{}
	extra := map[string][]string{}
	f := newFleet(t)
	for step, seconds := range []float64{0, 60} {
		for _, key := range []string{"a", "b"} {
			f.scrape(key, seconds, everything(float64(step+1)))
		}
		f.scrape("gateway", seconds, passes("m", float64(6*(step+1)), 2, 2))
	}
	values, _ := f.pools.Evaluate(at(60))
	for _, v := range values {
		emitted[v.Row.Metric] = true
		extra[v.Row.Metric] = v.Row.Extra
	}
	for _, name := range want {
		assert.True(t, emitted[name], name)
		metric, _ := catalog.ByName(name)
		assert.Equal(t, append([]string{"model_name"}, extra[name]...), metric.Attributes, name)
	}
	assert.Len(t, emitted, len(want))
}

// everything is an engine that says all there is, each counter in proportion.
func everything(n float64) scraped {
	e := scraped{engine: "0", model: "m", values: map[input.Metric]float64{}, distributions: map[input.Metric]dist{}}
	for in := range input.NumMetrics {
		switch {
		case in.Define().Name == "", in.OfGateway(), in == input.CanaryDuration: // All requests would be canaries.
		case in.Define().Kind == input.Distribution:
			e.distributions[in] = dist{[]float64{1, 2}, []float64{n, n, n}, 3 * n}
		default:
			e.values[in] = n
		}
	}
	return e
}

func TestAMetricThatIsNotWantedIsNotTold(t *testing.T) {
	f := newFleet(t, func(s *pools.Settings) {
		s.Enabled = func(metric string) bool { return metric == "vllm.pool.replicas" }
	})
	f.scrape("a", 0, everything(1))
	f.scrape("a", 60, everything(2))
	assert.Equal(t, map[string]float64{"replicas m": 1}, f.evaluate(60))
}

func TestARatioOfThePoolIsOneOfSumsNotAMeanOfRatios(t *testing.T) {
	f := newFleet(t)
	hits := func(hits, queries float64) scraped {
		return scraped{engine: "0", model: "m", values: map[input.Metric]float64{input.PrefixCacheHits: hits, input.PrefixCacheQueries: queries}}
	}
	f.scrape("busy", 0, hits(100, 1000))
	f.scrape("quiet", 3, hits(50, 60))
	f.scrape("busy", 30, hits(100+90, 1000+900)) // 0.1
	f.scrape("quiet", 33, hits(50+90, 60+100))   // 0.9
	got := f.evaluate(35)
	assert.InDelta(t, 180.0/1000, got["prefix_cache.hit_ratio m"], 1e-12)
	assert.Greater(t, math.Abs(got["prefix_cache.hit_ratio m"]-(0.1+0.9)/2), 0.3)
}

func TestThroughputsAddUpOverServersAndTheirEngines(t *testing.T) {
	f := newFleet(t)
	tokens := func(engine string, n float64) scraped {
		return scraped{engine: engine, model: "m", values: map[input.Metric]float64{input.GenerationTokens: n}}
	}
	f.scrape("a", 0, tokens("0", 500), tokens("1", 10))
	f.scrape("b", 5, tokens("0", 7))
	f.scrape("a", 20, tokens("0", 600), tokens("1", 70)) // 100 / 20 s + 60 / 20 s
	f.scrape("b", 15, tokens("0", 37))                   // 30 / 10 s
	got := f.evaluate(20)
	assert.InDelta(t, 5+3+3, got["generation_throughput m"], 1e-12)
	// By server: 8 and 3.
	assert.InDelta(t, 2.5/5.5, got["imbalance.stddev_ratio m generation_throughput"], 1e-12)
	assert.InDelta(t, 8/5.5, got["imbalance.max_ratio m generation_throughput"], 1e-12)
}

// The ratio is that of the requests of the others.
func TestAnEngineWithABadObservationIsLeftOutOfTheRatio(t *testing.T) {
	f := newFleet(t)
	of := func(n, waited, wrong float64) scraped {
		return scraped{engine: "0", model: "m", distributions: map[input.Metric]dist{
			input.QueueTime:         {[]float64{1}, []float64{n, 0}, n*waited + wrong},
			input.E2ERequestLatency: {[]float64{1}, []float64{0, n}, 2 * n},
		}}
	}
	f.scrape("a", 0, of(0, 0, 0))
	f.scrape("b", 0, of(0, 0, 0))
	f.scrape("a", 20, of(4, 0.5, 0))
	f.scrape("b", 20, of(4, 0.25, 0))
	assert.InDelta(t, 3.0/16, f.evaluate(20)["request.queue_time_ratio m"], 1e-12)
	f.scrape("b", 40, of(8, 0.25, -1e5))
	f.scrape("a", 40, of(8, 0.5, 0))
	assert.InDelta(t, 1.0/4, f.evaluate(40)["request.queue_time_ratio m"], 1e-12)
}

func TestAReplicaIsAServerWhateverTheNumberOfItsEngines(t *testing.T) {
	f := newFleet(t)
	engine := func(number string, running, waiting, used float64) scraped {
		return scraped{engine: number, model: "m", values: map[input.Metric]float64{
			input.Running: running, input.Waiting: waiting, input.KVCacheUtilization: used,
		}}
	}
	f.scrape("a", 0, engine("0", 4, 1, 0.9), engine("1", 6, 0, 0.1))
	f.scrape("b", 1, engine("0", 2, 0, 0.2))
	f.scrape("c", 2, engine("0", 0, 0, 0.6))
	got := f.evaluate(3)
	want := map[string]float64{
		"replicas m":                  3,
		"running m":                   12,
		"waiting m":                   1,
		"kv_cache.utilization_mean m": (0.5 + 0.2 + 0.6) / 3,
		"kv_cache.utilization_max m":  0.6, // not 0.9: a server's engines are averaged
		// Running 10, 2 and 0: mean 4, squares 36, 4 and 16.
		"imbalance.stddev_ratio m running": math.Sqrt(56.0/3) / 4,
		"imbalance.max_ratio m running":    2.5,
		// Waiting 1, 0 and 0: mean 1/3, squares 4/9, 1/9 and 1/9.
		"imbalance.stddev_ratio m waiting": math.Sqrt(2),
		"imbalance.max_ratio m waiting":    3,
		// 0.5, 0.2 and 0.6: mean 13/30, squares 4/900, 49/900 and 25/900.
		"imbalance.stddev_ratio m kv_cache_utilization": math.Sqrt(78.0/2700) / (13.0 / 30),
		"imbalance.max_ratio m kv_cache_utilization":    18.0 / 13,
	}
	assert.InDeltaMapValues(t, want, got, 1e-12)
	assert.Len(t, got, len(want))
}

func TestOneReplicaOrNothingToDoIsNoImbalance(t *testing.T) {
	f := newFleet(t)
	f.scrape("a", 0, running("m", 7))
	assert.Equal(t, map[string]float64{"replicas m": 1, "running m": 7}, f.evaluate(0))
	f.scrape("a", 15, running("m", 0))
	f.scrape("b", 15, running("m", 0))
	assert.Equal(t, map[string]float64{"replicas m": 2, "running m": 0}, f.evaluate(15))
}

func TestQuantilesAreOfMergedBuckets(t *testing.T) {
	f := newFleet(t)
	// "new" has finer buckets; 0.1 and 1 are all that both have.
	old := func(counts ...float64) scraped {
		return scraped{engine: "0", model: "m", distributions: map[input.Metric]dist{
			input.TimeToFirstToken: {[]float64{0.1, 1}, counts, counts[0]*0.05 + counts[1]*0.5 + counts[2]*3},
		}}
	}
	young := func(counts ...float64) scraped {
		return scraped{engine: "0", model: "m", distributions: map[input.Metric]dist{
			input.TimeToFirstToken: {[]float64{0.1, 0.5, 1, 2}, counts, counts[0]*0.05 + counts[1]*0.3 + counts[2]*0.7 + counts[3]*1.5 + counts[4]*4},
		}}
	}
	f.scrape("old", 0, old(10, 10, 10))
	f.scrape("new", 0, young(1, 1, 1, 1, 1))
	f.scrape("old", 60, old(10+60, 10+20, 10))       // 60, 20, 0
	f.scrape("new", 60, young(1, 1+10, 1+5, 1+4, 2)) // 0, 15 on the common bounds, 5
	got := f.evaluate(60)
	// 100 observations: 60 up to 0.1, 35 up to 1, 5 beyond.
	assert.InDelta(t, 0.1*50/60, got["time_to_first_token_quantile m 0.5"], 1e-12)
	assert.InDelta(t, 1, got["time_to_first_token_quantile m 0.95"], 1e-12)
	sum := 60*0.05 + 20*0.5 + 10*0.3 + 5*0.7 + 4*1.5 + 1*4
	assert.InDelta(t, sum/100, got["time_to_first_token_mean m"], 1e-12)
	assert.InDelta(t, 100.0/60, got["first_token_rate m"], 1e-12)
}
