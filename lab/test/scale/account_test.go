package scale

import (
	"bytes"
	"math"
	"path/filepath"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/fleet"
)

func loaded(t *testing.T) *template {
	t.Helper()
	tmpl, err := loadTemplate(filepath.Join("..", "..", "..", "testdata", "v1-0.20.0"), time.Unix(1_800_000_000, 0))
	require.NoError(t, err)
	return tmpl
}

func parsed(t *testing.T, text []byte) map[string]*dto.MetricFamily {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	require.NoError(t, err)
	return families
}

// The truth is what a parser of Prometheus reads in the body, and no count ever falls.
func TestBodiesShowTheTruth(t *testing.T) {
	tmpl := loaded(t)
	tmpl.stallAt.Store(40)
	for _, k := range []kind{sound, late, stalled} {
		var before map[string]*dto.MetricFamily
		for n := int64(0); n < 100; n += 7 {
			body := parsed(t, tmpl.render(nil, "scale/m", k, n, answerOf(n, 9)))
			want := tmpl.truth(k, n)
			assert.Equal(t, want.prompt, body[promptFamily].GetMetric()[0].GetCounter().GetValue())
			assert.Equal(t, want.generation, body[generationFamily].GetMetric()[0].GetCounter().GetValue())
			assert.Equal(t, want.first, float64(body[firstFamily].GetMetric()[0].GetHistogram().GetSampleCount()))
			tickOf, life := splitAnswer(int64(body[answerFamily].GetMetric()[0].GetGauge().GetValue()))
			assert.Equal(t, n, tickOf)
			assert.Equal(t, 9, life)
			for name, family := range before {
				for i, m := range family.GetMetric() {
					now := body[name].GetMetric()[i]
					assert.GreaterOrEqual(t, now.GetCounter().GetValue(), m.GetCounter().GetValue(), name)
					for j, bucket := range m.GetHistogram().GetBucket() {
						assert.GreaterOrEqual(t, now.GetHistogram().GetBucket()[j].GetCumulativeCount(), bucket.GetCumulativeCount(), name)
					}
				}
			}
			before = body
		}
	}
}

// After the ticks of the pair a sound engine shows the second recorded body, a late one has
// counted as much, and a stalled one does not move any more.
func TestKindsOfEngines(t *testing.T) {
	tmpl := loaded(t)
	tmpl.stallAt.Store(60)
	// 3706 and 3839 are the counts in both files.
	assert.Equal(t, 3706.0, tmpl.truth(sound, 0).first)
	assert.Equal(t, 3839.0, tmpl.truth(sound, pairTicks).first)
	assert.Equal(t, 3001814.0, tmpl.truth(sound, pairTicks).prompt)
	assert.Equal(t, tmpl.truth(stalled, 60), tmpl.truth(stalled, 600))
	assert.NotEqual(t, tmpl.truth(stalled, 59), tmpl.truth(stalled, 60))
	assert.Equal(t, tmpl.truth(sound, 100*pairTicks), tmpl.truth(late, 100*pairTicks), "of a late one only the buckets are others")
}

func TestGapsAndOverlaps(t *testing.T) {
	reads := func(life int, ticks ...int64) (out []arrival) {
		for _, n := range ticks {
			out = append(out, arrival{at: uint64(n), tick: n, life: life, copies: 1})
		}
		return out
	}
	// One process after the other.
	got := changes(spans(append(reads(1, 0, 10, 20), reads(2, 35, 45)...)))
	require.Len(t, got, 1)
	assert.Equal(t, []int64{15, 0, 20, 35}, []int64{got[0].gap, got[0].overlap, got[0].from, got[0].to})
	// Both for a while; the order of arrival is another one.
	got = changes(spans(append(reads(2, 12, 22, 32), reads(1, 20, 10, 0)...)))
	require.Len(t, got, 1)
	assert.Equal(t, []int64{0, 8, 12, 20}, []int64{got[0].gap, got[0].overlap, got[0].from, got[0].to})
	assert.Equal(t, []int{1, 2}, []int{got[0].before.life, got[0].after.life})
	// The second one lies within the first one, so the third one takes over from the first.
	got = changes(spans(append(append(reads(1, 0, 100), reads(2, 40, 50)...), reads(3, 130, 140)...)))
	require.Len(t, got, 2)
	assert.Equal(t, []int64{10, 30}, []int64{got[0].overlap, got[1].gap})
	assert.Equal(t, 1, got[1].before.life)
}

// Two processes that count from zero: 7 and 5 by start time; followed as one series, 4 to 3 is a
// reset that counts 3 again.
func TestSumsOfACounterThatSeveralProcessesBegin(t *testing.T) {
	at := func(at, start uint64, value float64) fleet.Sample {
		return fleet.Sample{At: at, Start: start, Value: value}
	}
	got := countUp([]fleet.Sample{at(10, 1, 0), at(20, 1, 7), at(30, 25, 2), at(40, 25, 5)})
	assert.Equal(t, 12.0, got.byStart)
	assert.Equal(t, 12.0, got.oneSeries)
	got = countUp([]fleet.Sample{at(10, 1, 0), at(20, 1, 4), at(25, 15, 3), at(30, 1, 7), at(35, 15, 5)})
	assert.Equal(t, 12.0, got.byStart)
	assert.Equal(t, 4.0+3+4+5, got.oneSeries)
}

func TestTheLayout(t *testing.T) {
	engines := newLayout(10000)
	seen, pools, kinds := map[string]bool{}, map[string]int{}, map[kind]int{}
	for i := range engines {
		e := &engines[i]
		assert.False(t, seen[e.ip], e.ip)
		seen[e.ip] = true
		pools[e.pool]++
		kinds[e.kind]++
		n, ok := engineOf(e.pod)
		assert.True(t, ok)
		assert.Equal(t, i, n)
	}
	assert.Equal(t, 1000, pools[""])
	assert.Len(t, pools, 601)
	assert.Positive(t, kinds[late])
	assert.Positive(t, kinds[stalled])
	assert.Greater(t, kinds[sound], 9000)
	_, ok := engineOf("other-1")
	assert.False(t, ok)
}

func TestConditionsThatChange(t *testing.T) {
	story := []condition{{5, "healthy"}, {10, "degraded"}, {20, "degraded"}, {30, "unknown"}, {40, "degraded"}, {60, "healthy"}}
	before, others, last := follow(story, 15, 50)
	assert.Equal(t, "degraded", before)
	assert.Equal(t, []string{"unknown"}, others)
	assert.Equal(t, uint64(30), last)
	_, others, _ = follow(story, 32, 50)
	assert.Equal(t, []string{"degraded"}, others)
}

func TestUseOfAMember(t *testing.T) {
	var samples []sample
	for at := 0.0; at <= 40; at++ {
		s := sample{At: at + 1, Member: 2, Life: 1, CPU: at / 2, Resident: 100 + at}
		if at > 20 {
			s.Life, s.CPU = 2, (at-20)/4 // A new process.
		}
		samples = append(samples, s, sample{At: at + 1, Member: 3, Life: 9, CPU: 100 * at})
	}
	u, ok := used(samples, 2, 0, 100)
	require.True(t, ok)
	// 20 s at a half, 20 s at a quarter.
	assert.InDelta(t, 15.0/40, u.Cores, 1e-9)
	assert.InDelta(t, 0.5, u.MostCores, 1e-9)
	assert.InDelta(t, 120, u.Resident, 1e-9)
	assert.InDelta(t, 140, u.Peak, 1e-9)
	_, ok = used(samples, 7, 0, 100)
	assert.False(t, ok)
	assert.False(t, math.IsNaN(u.Cores))
}
