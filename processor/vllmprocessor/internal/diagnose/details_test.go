package diagnose

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
)

// overloaded is an engine whose overload is reported as the test scrapes it: its queue and its
// KV cache are what the test says.
type overloaded struct {
	*engine
	state *State
	at    int64
	news  []Transition
}

func newOverloaded() *overloaded {
	return &overloaded{&engine{baseline: learned(10)}, &State{}, int64(time.Hour), nil}
}

// take is a scrape with a harmful queue for which demand is the reason.
func (o *overloaded) take(waiting, kv float64) string {
	o.at += scrape
	r := healthyReading(o.at)
	r.Signals[signal.Waiting], r.Signals[signal.KVUtilization] = waiting, kv
	o.last, o.Shares = r, Shares{DemandExceedsCapacity: 0.9}
	return o.report(Degraded)
}

func (o *overloaded) report(raw Condition) string {
	o.state.transitions = nil
	o.engine.report(settings(2), o.state, raw, o.at, &symptoms{firstToken: raw == Degraded})
	for _, t := range o.state.transitions {
		if t.News() {
			o.news = append(o.news, t)
		}
	}
	return o.detail(DemandExceedsCapacity)
}

// series are those of the cause, by detail.
func (o *overloaded) series() map[string]float64 {
	all := map[string]float64{}
	for _, v := range o.values(engineRows, map[*derive.Row]bool{engineRows.cause: true}, nil) {
		all[v.Extra[2]] = v.Number
	}
	return all
}

// Demand that begins at the limit of sequences and then fills the KV cache becomes one of the
// KV cache when that has lasted for the hold, of a minute.
func TestADetailFollowsTheEvidence(t *testing.T) {
	t.Parallel()
	o := newOverloaded()
	for range 8 {
		require.Equal(t, "seqs", o.take(20, 0.5))
	}
	require.Len(t, o.news, 1)
	for range 4 {
		require.Equal(t, "seqs", o.take(20, 0.99))
	}
	assert.Equal(t, "kv", o.take(20, 0.99))
	assert.Equal(t, map[string]float64{"seqs": 0, "kv": 1}, o.series())
	require.Len(t, o.news, 2, "what to do is something else")
	assert.True(t, o.news[1].Refined)
	assert.Equal(t, "kv", o.news[1].Details[DemandExceedsCapacity])
	assert.Equal(t, o.news[1].From, o.news[1].To)
	for range 20 {
		require.Equal(t, "kv", o.take(20, 0.99))
	}
	assert.Len(t, o.news, 2)
}

// A signal that swings between two details with each scrape changes nothing, nor does one that
// shows the reported detail within each hold.
func TestASwingingDetailDoesNotFlap(t *testing.T) {
	t.Parallel()
	for _, every := range []int{2, 3, 4} {
		o := newOverloaded()
		o.take(20, 0.5)
		for n := range 200 {
			kv := 0.99
			if n%every == every-1 {
				kv = 0.5
			}
			require.Equal(t, "seqs", o.take(20, kv), "each %d at %d", every, n)
		}
		assert.Len(t, o.news, 1)
		assert.Equal(t, map[string]float64{"seqs": 1}, o.series())
	}
}

// A detail that says nothing is replaced with the next reading that says more.
func TestAnUnknownDetailIsReplacedAtOnce(t *testing.T) {
	t.Parallel()
	o := newOverloaded()
	assert.Equal(t, "unknown", o.take(0, 0.5))
	assert.Equal(t, "seqs", o.take(20, 0.5))
	for range 4 {
		require.Equal(t, "seqs", o.take(0, 0.5), "the other way has the hold")
	}
	assert.Equal(t, "unknown", o.take(0, 0.5))
	assert.Equal(t, map[string]float64{"seqs": 0, "unknown": 1}, o.series())
}

// Readings without harm do not change why there was some, and the next harm has the detail that
// it begins with.
func TestADetailEndsWithItsCause(t *testing.T) {
	t.Parallel()
	o := newOverloaded()
	for range 8 {
		o.take(20, 0.99)
	}
	for o.Reported.Condition == Degraded {
		require.Equal(t, map[string]float64{"kv": 1}, o.series())
		o.at += scrape
		o.last = healthyReading(o.at)
		o.report(Healthy)
		require.Less(t, o.at, int64(2*time.Hour))
	}
	assert.Equal(t, map[string]float64{"kv": 0}, o.series())
	assert.Equal(t, "seqs", o.take(20, 0.5))
	assert.Equal(t, map[string]float64{"kv": 0, "seqs": 1}, o.series())
}

// A pool has no hold of its own, except for the details: two engines of about the same weight
// may take turns.
func TestADetailOfAPoolHasTheHold(t *testing.T) {
	t.Parallel()
	r, at := NewReport(0, nil), int64(time.Hour)
	take := func(detail string) string {
		at += scrape
		j := Judgement{At: at, Condition: Degraded, Shares: Shares{DemandExceedsCapacity: 0.9}, Signals: signal.Unknown()}
		j.Details[DemandExceedsCapacity] = detail
		r.Observe(settings(2), j)
		for _, v := range r.Values(map[*derive.Row]bool{poolRows.cause: true}, nil) {
			if v.Number == 1 {
				return v.Extra[2]
			}
		}
		return "none"
	}
	take("seqs") // The first harm is reported with the second evaluation.
	require.Equal(t, "seqs", take("seqs"))
	for range 20 {
		require.Equal(t, "seqs", take("kv"))
		require.Equal(t, "seqs", take("seqs"))
	}
	for range 4 {
		require.Equal(t, "seqs", take("kv"))
	}
	assert.Equal(t, "kv", take("kv"))
}
