package derive_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
)

// point is a sample of engine 0, if it names no other.
type point struct {
	engine string
	input.Sample
}

func count(in input.Metric, value float64, labels ...string) point {
	return point{"0", input.Sample{Input: in, Value: value, Label: input.NewLabel(labels...)}}
}

// times are observations in the buckets up to 0.1, 1 and 10, and beyond.
func times(in input.Metric, sum float64, counts ...float64) point {
	counts = append(counts, make([]float64, 4-len(counts))...)
	s := input.Sample{Input: in, Sum: sum, HasSum: true, Bounds: []float64{0.1, 1, 10}, Counts: counts}
	for _, n := range counts {
		s.Count += n
	}
	return point{"0", s}
}

// lengths are numbers of tokens in the buckets up to 1, 100 and 1000, and beyond.
func lengths(in input.Metric, sum float64, counts ...float64) point {
	p := times(in, sum, counts...)
	p.Bounds = []float64{1, 100, 1000}
	return p
}

func (p point) of(engine string) point { p.engine = engine; return p }

// as returns points of another engine.
func as(engine string, points ...point) []point {
	var all []point
	for _, p := range points {
		all = append(all, p.of(engine))
	}
	return all
}

// noEngine stands for settings that name no engine.
const noEngine = "none"

// batch is points of one time.
func batch(seconds int64, evidence input.Evidence, points []point) *input.Batch {
	b := &input.Batch{Time: origin + seconds*second, Evidence: evidence}
	groups := map[string]int{}
	for _, p := range points {
		var attributes []input.Attribute
		switch p.Input {
		case input.HTTPRequests, input.Healthy, input.CanaryDuration:
			p.engine = frontEnd
		case input.KVCacheBlocks, input.KVCacheBlockSize, input.CacheConfigTokens, input.CacheConfigHybrid, input.KVCacheCapacity:
			if p.engine != noEngine {
				attributes = []input.Attribute{{Name: "engine", Value: p.engine}}
			}
		default:
			attributes = []input.Attribute{{Name: "engine", Value: p.engine}, {Name: "model_name", Value: model}}
		}
		group := input.GroupOf(attributes)
		if _, known := groups[group.Key]; !known {
			groups[group.Key] = len(b.Groups)
			b.Groups = append(b.Groups, group)
		}
		p.Group = groups[group.Key]
		b.Samples = append(b.Samples, p.Sample)
	}
	return b
}

// zero is the same series before anything was counted.
func zero(points []point) []point {
	var all []point
	for _, p := range points {
		if p.Input.Define().Kind != input.Gauge {
			p.Value, p.Sum, p.Count, p.Counts = 0, 0, 0, make([]float64, len(p.Counts))
		}
		all = append(all, p)
	}
	return all
}

const interval = 300

// derived are the values of a server that began at 0 and has the points after five minutes,
// by metric without "vllm." and own attributes, and the values that are absent because of a
// defect. An attribute engine is left out where there is one engine.
func derived(t *testing.T, evidence input.Evidence, points []point) (map[string]float64, int) {
	t.Helper()
	resource := window.NewResource(window.Settings{Window: interval * time.Second, MaxStaleness: 2 * interval * time.Second})
	require.True(t, resource.Observe(batch(0, evidence, zero(points)), math.MaxInt).Observed)
	require.True(t, resource.Observe(batch(interval, evidence, points), math.MaxInt).Observed)
	settings := derive.Settings{
		Enabled: make([]bool, len(derive.Rows())), CapacityFromBlocks: true, PerEngineQuantiles: true,
		Quantiles: []derive.Quantile{derive.NewQuantile(1)}, Peak: derive.Peak{FLOPS: 1, Bandwidth: 1},
	}
	for i := range settings.Enabled {
		settings.Enabled[i] = true
	}
	var evaluator derive.Evaluator
	got := map[string]float64{}
	for _, v := range evaluator.Evaluate(&settings, resource) {
		require.False(t, v.Pending)
		key := strings.TrimPrefix(v.Row.Metric, "vllm.")
		group := input.GroupOf(v.Attributes)
		if engine := group.Engine(); engine != "" && engine != "0" {
			key += " " + engine
		}
		if v.Rollup {
			key += " all"
		}
		for _, extra := range v.Extra {
			if extra != "" {
				key += " " + extra
			}
		}
		got[key] = v.Number
	}
	return got, evaluator.Absent[derive.KnownDefect]
}

// release is what is known of a server that says its version.
func release(version string) input.Evidence { return input.Evidence{Version: version} }

// signed adds a sign.
func signed(version string, sign input.Sign) input.Evidence {
	return input.Evidence{Version: version, Signs: sign}
}

// absent is expected where a value is withheld.
var absent = math.NaN()

// TestDefects has the servers of each decision of internal/catalog/decisions.yaml about a
// derived metric of one server. What is expected follows from what the server did, not from
// what it exposes.
func TestDefects(t *testing.T) {
	for name, cases := range defectCases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, c := range cases {
				got, withheld := derived(t, c.server, c.points)
				missing := 0
				for key, want := range c.want {
					value, is := got[key]
					if math.IsNaN(want) {
						missing++
						assert.False(t, is, "%s: %s is %v", c.name, key, value)
						continue
					}
					if assert.True(t, is, "%s: %s is absent", c.name, key) {
						assert.InDelta(t, want, value, 1e-9, "%s: %s", c.name, key)
					}
				}
				if !c.uncounted {
					assert.GreaterOrEqual(t, withheld, missing, "%s: absent values are counted", c.name)
				}
				if missing == 0 && !c.elsewhere {
					assert.Zero(t, withheld, "%s: nothing else is withheld", c.name)
				}
			}
		})
	}
}

// defectCase is a server and what is expected of it.
type defectCase struct {
	name   string
	server input.Evidence
	points []point
	want   map[string]float64
	// uncounted is true where a value is absent for another reason, elsewhere where values
	// are withheld that the case is not about.
	uncounted, elsewhere bool
}

// A newer family proves the version of a server that does not say it.
func proves(least string) input.Evidence {
	release, _ := catalog.ParseRelease(least)
	return input.Evidence{Least: release}
}
