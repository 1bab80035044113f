package collect

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// changing are the batches of some servers, whose layout changes.
type changing struct {
	*rand.Rand
	names []string
	at    int64
}

func newChanging(seed uint64) *changing {
	c := &changing{Rand: rand.New(rand.NewPCG(seed, 7))}
	for in := range input.NumMetrics {
		if name := in.Define().Name; name != "" {
			c.names = append(c.names, name, strings.ReplaceAll(name, ".", "_"))
		}
	}
	c.names = append(c.names, processStart, cacheConfigFamily, "go_goroutines", "vllm:num_requests_running", "ray_vllm:num_requests_running",
		"vllm:gpu_prefix_cache_hits_total", "vllm.num_preemptions_gauge", "vllm:cache_config", "vllm:lora_requests_info", "vllm.unknown.name")
	return c
}

func (c *changing) attributes(to pcommon.Map) {
	to.PutStr("engine", fmt.Sprint(c.IntN(3)))
	for _, name := range []string{
		"model_name", "source", "finished_reason", "finish_reason", "pid", "reason", "status", "handler", "method", "fairness_id", "priority",
		"WorkerId", "block_size", "sleep_state", "le",
	} {
		if c.IntN(6) == 0 {
			to.PutStr(name, []string{"", "a", "b", "8"}[c.IntN(4)])
		}
	}
	if c.IntN(40) == 0 {
		to.PutInt("number", c.Int64N(2))
	}
	if c.IntN(200) == 0 {
		to.PutStr("large", strings.Repeat("x", maxPointBytes))
	}
}

func (c *changing) point(p interface {
	SetTimestamp(pcommon.Timestamp)
	SetStartTimestamp(pcommon.Timestamp)
	SetFlags(pmetric.DataPointFlags)
	Attributes() pcommon.Map
},
) {
	p.SetTimestamp(pcommon.Timestamp(c.at))
	switch c.IntN(40) {
	case 0:
		p.SetTimestamp(pcommon.Timestamp(c.at - 1))
	case 1:
		p.SetTimestamp(0)
	case 2:
		p.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
	}
	p.SetStartTimestamp(pcommon.Timestamp(c.IntN(3)))
}

func (c *changing) metric(m pmetric.Metric, name string) {
	m.SetName(name)
	var numbers pmetric.NumberDataPointSlice
	in, known := input.ByName(strings.ReplaceAll(name, "_", "."))
	if is := meanings()[name]; is.known {
		in, known = is.input, true
	}
	kind := input.Kind(c.IntN(3))
	if known && c.IntN(12) > 0 {
		kind = in.Define().Kind
	}
	switch kind {
	case input.Gauge:
		numbers = m.SetEmptyGauge().DataPoints()
	case input.Counter:
		m.SetEmptySum().SetIsMonotonic(c.IntN(20) > 0)
		m.Sum().SetAggregationTemporality(pmetric.AggregationTemporality(min(2, 1+c.IntN(9))))
		numbers = m.Sum().DataPoints()
	default:
		c.histograms(m)
		return
	}
	same := pcommon.NewMap()
	c.attributes(same)
	for range 1 + c.IntN(3) {
		p := numbers.AppendEmpty()
		if c.IntN(3) == 0 {
			c.attributes(p.Attributes())
		} else {
			same.CopyTo(p.Attributes())
		}
		c.point(p)
		if c.IntN(2) == 0 {
			p.SetIntValue(c.Int64N(9) - 1)
		} else {
			p.SetDoubleValue(c.Float64())
		}
	}
}

func (c *changing) histograms(m pmetric.Metric) {
	m.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporality(min(2, 1+c.IntN(9))))
	for range 1 + c.IntN(2) {
		p := m.Histogram().DataPoints().AppendEmpty()
		c.attributes(p.Attributes())
		c.point(p)
		bounds := [][]float64{{}, {1, 2, 4}, {1, 2, 5}, {1, 2}, {2, 1}, {0, 1, 2, 3}}[c.IntN(6)]
		p.ExplicitBounds().FromRaw(bounds)
		var count uint64
		for range len(bounds) + min(1, c.IntN(30)) {
			n := c.Uint64N(5)
			p.BucketCounts().Append(n)
			count += n
		}
		p.SetCount(count)
		p.SetSum(float64(count))
	}
}

func (c *changing) next() pmetric.Metrics {
	c.at += 1e9
	switch c.IntN(4) {
	case 0:
		c.Shuffle(len(c.names), func(i, k int) { c.names[i], c.names[k] = c.names[k], c.names[i] })
	case 1:
		i, k := c.IntN(len(c.names)), c.IntN(len(c.names))
		c.names[i], c.names[k] = c.names[k], c.names[i]
	}
	metrics := pmetric.NewMetrics()
	for range 1 + c.IntN(3) {
		rm := metrics.ResourceMetrics().AppendEmpty()
		rm.Resource().Attributes().PutStr("service.instance.id", fmt.Sprint(c.IntN(2)))
		if c.IntN(20) == 0 {
			rm.Resource().Attributes().PutStr("large", strings.Repeat("x", maxResourceBytes))
		}
		first, last := c.IntN(20), len(c.names)-c.IntN(20)
		for range 1 + c.IntN(2) {
			to := rm.ScopeMetrics().AppendEmpty().Metrics()
			for _, name := range c.names[first:last] {
				c.metric(to.AppendEmpty(), name)
			}
		}
	}
	return metrics
}

// A reader returns the same as one that has never read, whatever changes between batches.
func TestAReaderReturnsTheSameAsWithoutMemory(t *testing.T) {
	t.Parallel()
	for seed := range uint64(10) {
		c, reader := newChanging(seed), &Reader{}
		samples := 0
		for range 30 {
			metrics := c.next()
			want, unread := Read(metrics)
			got, report := reader.Read(metrics)
			require.Equal(t, unread, report, "seed %d", seed)
			require.Len(t, got, len(want))
			for i := range want {
				require.Equal(t, want[i], got[i], "seed %d", seed)
				samples += len(got[i].Samples)
			}
		}
		assert.Positive(t, samples)
	}
}

// What outlives a batch is not changed by the next one.
func TestGroupsLabelsAndBoundsStay(t *testing.T) {
	t.Parallel()
	c, reader := newChanging(1), &Reader{}
	type kept struct {
		group  input.Group
		label  input.Label
		bounds []float64
	}
	var all []kept
	var texts []string
	for range 50 {
		batches, _ := reader.Read(c.next())
		for i := range batches {
			for k := range batches[i].Samples {
				s := &batches[i].Samples[k]
				one := kept{batches[i].Groups[s.Group], s.Label, s.Bounds}
				all, texts = append(all, one), append(texts, fmt.Sprint(one))
			}
		}
	}
	require.NotEmpty(t, all)
	for i := range all {
		require.Equal(t, texts[i], fmt.Sprint(all[i]))
	}
}

// A sender of ever new names, groups and labels does not fill the memory.
func TestTheMemoryIsBounded(t *testing.T) {
	t.Parallel()
	reader := &Reader{}
	for n := range 300 {
		in := newInput("service.instance.id", fmt.Sprint(n))
		for k := range 40 {
			in.metric(fmt.Sprint("unknown_", n, "_", k))
			in.counter("http_requests", 1, "status", fmt.Sprint(n), "handler", fmt.Sprint(k), "method", "GET", "engine", fmt.Sprint(n, k))
		}
		reader.Read(in.metrics)
	}
	m := &reader.memory
	total := 0
	for _, samples := range m.spare {
		total += cap(samples)
	}
	assert.LessOrEqual(t, total, maxSpareSamples)
	assert.LessOrEqual(t, len(m.chunk), maxSpareNumbers)
}
