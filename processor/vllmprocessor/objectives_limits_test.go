package vllmprocessor

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap/zapcore"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/archive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/objective"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/quota"
)

func TestAClockSetBackDoesNotStopTheCounting(t *testing.T) {
	config := within(promise("ttft", firstToken, 2500*time.Millisecond, 0.9))
	config.BudgetWindow = objective.Duration(6 * time.Hour)
	p := run(t, config)
	engines := map[string]*engineLog{"0": {born: noon}}
	p.shows("one:8000", engines)
	p.shows("one:8000", engines, 3)
	for range 80 {
		p.shows("one:8000", engines, 1)
	}
	// The clock is set back; what measures durations is not. What the server sends
	// is out of order until the resource is forgotten. Then it continues without what
	// lies in the future.
	ago := -20 * time.Minute
	back := func(seconds float64) emittedObjectives {
		p.at = p.at.Add(30 * time.Second)
		engines["0"].firstTokenTook(p.at.Add(ago), seconds)
		return p.take(body("one:8000", "m", p.at.Add(ago), []string{firstToken}, engines))
	}
	engines["0"] = &engineLog{born: p.at.Add(ago)}
	for range 11 {
		assert.Empty(t, back(1).values)
	}
	got := back(1)
	assert.Equal(t, 0.0, got.values[valid])
	for range 3 {
		got = back(3)
	}
	assert.Contains(t, strings.Join(p.sentences(zapcore.WarnLevel), "\n"), "the clock was set back")
	assert.Equal(t, 3.0, got.values[valid])
	// The first of the three steps ends at 12:27:37. The slot of that time ends at
	// 12:30: 58 requests from 12:01:07 to 12:29:37, the first of them bad, remain.
	assert.InDelta(t, 1-(4.0/61)/0.1, got.values[budgetLeft], 1e-9)
}

func TestABatchFromTheFutureDoesNotEmptyTheWindows(t *testing.T) {
	p := run(t, within(promise("ttft", firstToken, 2500*time.Millisecond, 0.9)))
	engines := map[string]*engineLog{"0": {born: noon}}
	p.shows("one:8000", engines)
	p.shows("one:8000", engines, 1, 3)
	far := p.at.Add(60 * 24 * time.Hour)
	assert.Empty(t, p.take(body("one:8000", "m", far, []string{firstToken}, engines)).values)
	assert.Contains(t, strings.Join(p.sentences(zapcore.WarnLevel), "\n"), "ahead of this machine's clock")
	// What follows is counted as if that point had not been sent.
	got := p.shows("one:8000", engines)
	assert.InDelta(t, 1-5.0, got.values[budgetLeft], 1e-9)
}

func TestTrackersAreBounded(t *testing.T) {
	p := run(t, within(promise("ttft", firstToken, 2500*time.Millisecond, 0.9)))
	p.objectives().Trackers = quota.New(2)
	engines := map[string]*engineLog{"0": {born: noon}}
	names := []string{"one:8000", "two:8000", "three:8000"}
	for _, name := range names {
		p.take(body(name, "m", noon, []string{firstToken}, engines))
	}
	p.at = p.at.Add(30 * time.Second)
	logged := 0
	for _, name := range names {
		if _, is := p.take(body(name, "m", p.at, []string{firstToken}, engines)).values[valid]; is {
			logged++
		}
	}
	assert.Equal(t, 2, logged)
	assert.Empty(t, p.take(body("four:8000", "m", p.at, []string{firstToken}, engines)).values, "no series begins where none can continue")
	require.Len(t, p.sentences(zapcore.WarnLevel), 1)
	assert.Contains(t, p.sentences(zapcore.WarnLevel)[0], "the limit of 2 is reached")
	assert.Equal(t, int64(1), p.counted("otelcol_processor_vllm_uncounted_steps", "tracker_limit"))
	trackers, err := p.own.GetMetric("otelcol_processor_vllm_objective_trackers")
	require.NoError(t, err)
	assert.Equal(t, int64(2), trackers.Data.(metricdata.Sum[int64]).DataPoints[0].Value)
}

func TestBucketsThatCannotDecideAreSaidOnce(t *testing.T) {
	// Known servers have a bound at 20 s, this one ends at 10 s.
	p := run(t, within(promise("ttft", firstToken, 20*time.Second, 0.9), promise("two", firstToken, 2*time.Second, 0.9)))
	assert.Contains(t, strings.Join(p.sentences(zapcore.InfoLevel), "\n"), `objective "two": the threshold 2s lies inside a bucket`)
	engines := map[string]*engineLog{"0": {born: noon}}
	for range 4 {
		p.shows("one:8000", engines, 1, 30)
		p.take(body("two:8000", "m", p.at, []string{firstToken}, engines))
	}
	require.Len(t, p.sentences(zapcore.WarnLevel), 1)
	assert.Contains(t, p.sentences(zapcore.WarnLevel)[0], "the threshold 20s is beyond the last bucket")
}

func TestManyPipelinesAtOnce(t *testing.T) {
	store, shared := &memory{}, &archive.Shared{}
	// The archive has the clock of its first user; this one has a clock that does not move.
	idle := newInstance(t, kept(), shared)
	idle.begin(hostWith{stateID, store})
	defer idle.end()
	var all []*instance
	for range 3 {
		p := newInstance(t, kept(), shared)
		p.begin(hostWith{stateID, store})
		all = append(all, p)
	}
	var done sync.WaitGroup
	for n, p := range all {
		done.Go(func() {
			engines := map[string]*engineLog{"0": {born: noon}}
			for range 50 {
				p.shows("shared:8000", engines, 1)
				p.shows(string(rune('a'+n)), engines, 1)
			}
		})
	}
	done.Go(func() {
		for range 20 {
			all[0].objectives().Archive.Save(context.Background())
		}
	})
	done.Wait()
	for _, p := range all {
		p.end()
	}
	saved, err := archive.Decode(store.data[budgetsKey])
	require.NoError(t, err)
	assert.Len(t, saved, 4)
	assert.Equal(t, 1, store.clients)
}
