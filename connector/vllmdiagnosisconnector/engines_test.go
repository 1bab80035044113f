package vllmdiagnosisconnector

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/connector/vllmdiagnosisconnector/internal/collect"
	"github.com/otelcol-vllm/otelcol-vllm/connector/vllmdiagnosisconnector/internal/track"
)

// engineOf is an engine of a server, as a server of its own in the tests.
func engineOf(instance string, n int) *server {
	s := newServer(instance)
	s.attributes["engine"] = fmt.Sprint(n)
	return s
}

// One server that sends more engines than it has takes nothing from the others.
func TestAServerHasAShareOfTheEngines(t *testing.T) {
	b := newBench(t, func(c *Config) { c.MaxEngines = 3000 })
	var parts []pmetric.Metrics
	for n := range 1000 {
		parts = append(parts, engineOf("noisy", n).reports(0, healthy)...)
	}
	b.consume(t, 0, parts...)
	assert.Equal(t, 300, b.engines.live(), "a tenth")
	b.consume(t, 1, newServer("quiet").reports(1, stalled)...)
	assert.Equal(t, []string{"stalled"}, b.sink.conditions())
	require.Len(t, b.sentences(), 1)
	assert.Contains(t, b.sentences()[0], "One server gets at most 300")
}

func TestWhereAllIsUsedUpTheServerWithTheMostGivesWay(t *testing.T) {
	b := newBench(t, func(c *Config) { c.MaxEngines = 10 })
	var parts []pmetric.Metrics
	for n := range 10 {
		parts = append(parts, engineOf("large", n).reports(0, healthy)...)
	}
	b.consume(t, 0, parts...)
	for n := range 20 {
		b.consume(t, 1, engineOf(fmt.Sprint("small", n), 0).reports(1, stalled)...)
	}
	count := map[int]int{}
	for _, of := range b.engines.by {
		count[len(of.by)]++
	}
	assert.Equal(t, 10, b.engines.count)
	assert.Equal(t, map[int]int{1: 10}, count, "none has more than another, and then none gives way")
	assert.Len(t, b.sink.records(), 9)
}

// Pods that come and go do not use up the room of those that are there.
func TestEnginesThatEndedGiveWay(t *testing.T) {
	b := newBench(t, func(c *Config) { c.MaxEngines = 3 })
	b.consume(t, 0, newServer("stays").reports(0, healthy)...)
	for n := range 50 {
		pod := newServer(fmt.Sprint("pod", n))
		b.consume(t, float64(n), pod.reports(float64(n), degraded)...)
		b.consume(t, float64(n)+0.5, pod.ended(float64(n)+0.5))
		assert.LessOrEqual(t, b.engines.count, 3)
	}
	assert.Len(t, b.sink.records(), 50)
	b.consume(t, 60, newServer("stays").reports(60, stalled)...)
	record := b.sink.records()[50]
	assert.Equal(t, "healthy", text(record, "vllm.diagnosis.previous_condition"))
}

// One gauge with very many models, other ones each time, costs little more than to read
// it: nothing is searched for each of them.
func TestVeryManyModelsDelayNoOtherServer(t *testing.T) {
	b := newBench(t, nil)
	var worst time.Duration
	for round := range 3 {
		metrics := newServer("noisy").point(float64(round), "severity", 0, nil)
		points := metrics.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints()
		for n := range 50_000 {
			point := points.AppendEmpty()
			points.At(0).CopyTo(point)
			point.Attributes().PutStr("model_name", fmt.Sprint(round, "-", n))
		}
		began := time.Now()
		b.consume(t, float64(round), metrics)
		worst = max(worst, time.Since(began))
		quiet := newServer("quiet")
		b.consume(t, float64(round), quiet.reports(float64(round), []diagnosis{degraded, stalled}[round%2])...)
	}
	assert.Len(t, b.sink.records(), 3, "the other server's")
	assert.Less(t, worst, 10*time.Second, "it took 0.34 s on two shared cores")
	t.Log(worst)
}

// A batch that a wrong clock made must not silence its server until max_staleness.
func TestAClockThatIsSetRightSilencesTheServerForOneBatch(t *testing.T) {
	b, s := newBench(t, nil), newServer("a")
	b.consume(t, 0, s.reports(280, healthy)...)
	b.consume(t, 15, s.reports(15, degraded)...)
	assert.Empty(t, b.sink.conditions(), "one older batch may be one that was sent again")
	b.consume(t, 30, s.reports(30, degraded)...)
	require.Equal(t, []string{"degraded"}, b.sink.conditions())
	assert.Equal(t, "healthy", text(b.sink.records()[0], "vllm.diagnosis.previous_condition"))
	require.Len(t, b.sentences(), 1)
	assert.Contains(t, b.sentences()[0], "points were 4m10s ahead of this machine's clock, and those that follow are not")
	b.consume(t, 45, s.reports(45, healthy)...)
	assert.Equal(t, []string{"degraded", "healthy"}, b.sink.conditions())
}

// Batches that are sent again come in any order; a small lead of a clock does not make
// the older ones right.
func TestOlderBatchesThatAreSentAgainChangeNothing(t *testing.T) {
	b, s := newBench(t, nil), newServer("a")
	b.consume(t, 0, s.reports(10, healthy)...)
	b.consume(t, 15, s.reports(25, degraded)...)
	b.consume(t, 30, s.reports(40, stalled)...)
	b.consume(t, 31, s.reports(10, healthy)...)
	b.consume(t, 31, s.reports(25, degraded)...)
	b.consume(t, 45, s.reports(55, stalled)...)
	assert.Equal(t, []string{"degraded", "stalled"}, b.sink.conditions())
}

func TestServersOfTwoNamespacesAreTwo(t *testing.T) {
	b := newBench(t, nil)
	in := func(namespace string, d diagnosis) pmetric.Metrics {
		metrics := joined(newServer("a").reports(15, d)...)
		for _, rm := range metrics.ResourceMetrics().All() {
			rm.Resource().Attributes().PutStr("service.namespace", namespace)
		}
		return metrics
	}
	b.consume(t, 15, in("prod", stalled), in("test", healthy))
	assert.Equal(t, 2, b.engines.live())
	assert.Equal(t, []string{"stalled"}, b.sink.conditions())
}

// An engine that ended and begins again is live again, and is counted once.
func TestAnEngineThatBeginsAgainIsLive(t *testing.T) {
	s := newEngines(10)
	key := collect.Key{Resource: "a", Point: "0"}
	s.add(key, &engine{Engine: track.NewEngine(&track.Settings{})})
	assert.Equal(t, 1, s.live())
	s.mark(key, false, true)
	s.mark(key, true, true)
	assert.Equal(t, 0, s.live())
	s.mark(key, true, false)
	assert.Equal(t, 1, s.live())
	s.remove(key)
	s.remove(key)
	assert.Equal(t, 0, s.live())
	assert.Equal(t, 0, s.count)
	assert.Empty(t, s.by)
	assert.Equal(t, 0, s.most)
}
