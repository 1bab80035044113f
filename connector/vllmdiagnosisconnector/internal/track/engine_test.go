package track

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/connector/vllmdiagnosisconnector/internal/collect"
)

// The conditions of the tests, the more pressing before the less.
var order = []string{"stalled", "degraded", "unknown", "idle", "healthy"}

func settings() *Settings {
	return &Settings{MaxStaleness: time.Minute, Precedence: func(c string) int { return slices.Index(order, c) }}
}

// frame is one at a second.
func frame(second, severity int, condition string, causes ...collect.Cause) *collect.Frame {
	f := &collect.Frame{
		Time: int64(second) * int64(time.Second), Severity: severity, Points: 1 + len(causes),
		Conditions: map[string]bool{}, Causes: map[collect.Cause]bool{},
	}
	if condition != "" {
		f.Conditions[condition] = true
		f.Points++
	}
	for _, cause := range causes {
		f.Causes[cause] = true
	}
	return f
}

// not lists causes that are not the case.
func not(f *collect.Frame, causes ...collect.Cause) *collect.Frame {
	for _, cause := range causes {
		f.Causes[cause] = false
	}
	return f
}

var (
	pressure   = collect.Cause{Name: "kv_pressure", Role: collect.Primary}
	contribute = collect.Cause{Name: "kv_pressure", Role: collect.Contributing}
	slow       = collect.Cause{Name: "slow_steps", Role: collect.Primary}
	shift      = collect.Cause{Name: "workload_shift", Role: collect.Notice}
	demandSeqs = collect.Cause{Name: "demand_exceeds_capacity", Role: collect.Primary, Detail: "seqs"}
	demandKV   = collect.Cause{Name: "demand_exceeds_capacity", Role: collect.Primary, Detail: "kv"}
)

// change is what the tests look at in a transition.
type change struct {
	second       int
	from, to     string
	primary      string
	contributing []string
	notices      []string
}

func TestTransitions(t *testing.T) {
	for name, test := range map[string]struct {
		initial bool
		frames  []*collect.Frame
		want    []change
	}{
		"a healthy first state is not reported": {
			frames: []*collect.Frame{frame(0, 0, "healthy"), frame(1, 0, "healthy")},
		},
		"it is where that is wanted": {
			initial: true,
			frames:  []*collect.Frame{frame(0, 0, "healthy"), frame(1, 0, "healthy")},
			want:    []change{{to: "healthy"}},
		},
		"an unknown first state is not reported": {
			frames: []*collect.Frame{frame(0, 1, "unknown")},
		},
		"a first state that is a warning is": {
			frames: []*collect.Frame{frame(0, 2, "degraded", slow)},
			want:   []change{{to: "degraded", primary: "slow_steps"}},
		},
		"there and back": {
			frames: []*collect.Frame{
				frame(0, 0, "healthy"), frame(1, 2, "degraded", slow), frame(2, 2, "degraded", slow), not(frame(3, 0, "healthy"), slow),
			},
			want: []change{{second: 1, from: "healthy", to: "degraded", primary: "slow_steps"}, {second: 3, from: "degraded", to: "healthy"}},
		},
		"another primary cause": {
			frames: []*collect.Frame{frame(0, 2, "degraded", slow), not(frame(1, 2, "degraded", pressure), slow)},
			want: []change{
				{to: "degraded", primary: "slow_steps"},
				{second: 1, from: "degraded", to: "degraded", primary: "kv_pressure"},
			},
		},
		"another role": {
			frames: []*collect.Frame{frame(0, 2, "degraded", pressure), not(frame(1, 2, "degraded", slow, contribute), pressure)},
			want: []change{
				{to: "degraded", primary: "kv_pressure"},
				{second: 1, from: "degraded", to: "degraded", primary: "slow_steps", contributing: []string{"kv_pressure"}},
			},
		},
		"another detail": {
			frames: []*collect.Frame{frame(0, 2, "degraded", demandSeqs), not(frame(1, 2, "degraded", demandKV), demandSeqs)},
			want: []change{
				{to: "degraded", primary: "demand_exceeds_capacity"},
				{second: 1, from: "degraded", to: "degraded", primary: "demand_exceeds_capacity"},
			},
		},
		"another severity": {
			frames: []*collect.Frame{frame(0, 2, "degraded", slow), frame(1, 3, "degraded", slow)},
			want: []change{
				{to: "degraded", primary: "slow_steps"},
				{second: 1, from: "degraded", to: "degraded", primary: "slow_steps"},
			},
		},
		"each cause is named once": {
			frames: []*collect.Frame{frame(0, 2, "degraded", slow,
				collect.Cause{Name: "decode_load", Role: collect.Contributing, Detail: "more_sequences"},
				collect.Cause{Name: "decode_load", Role: collect.Contributing, Detail: "longer_outputs"},
				shift, collect.Cause{Name: "workload_shift", Role: collect.Notice, Detail: "any"},
			)},
			want: []change{{to: "degraded", primary: "slow_steps", contributing: []string{"decode_load"}, notices: []string{"workload_shift"}}},
		},
		"a notice begins and ends": {
			frames: []*collect.Frame{frame(0, 0, "healthy"), frame(1, 1, "healthy", shift), not(frame(2, 0, "healthy"), shift)},
			want: []change{
				{second: 1, from: "healthy", to: "healthy", notices: []string{"workload_shift"}},
				{second: 2, from: "healthy", to: "healthy"},
			},
		},
		"after a long gap it is a first state again": {
			frames: []*collect.Frame{frame(0, 2, "degraded", slow), frame(61, 0, "healthy"), frame(62, 3, "stalled")},
			// The cause is expected no more either: neither frame waits for it.
			want: []change{{to: "degraded", primary: "slow_steps"}, {second: 62, from: "healthy", to: "stalled"}},
		},
		"a gap of max_staleness is none": {
			frames: []*collect.Frame{frame(0, 2, "degraded", slow), not(frame(60, 0, "healthy"), slow)},
			want:   []change{{to: "degraded", primary: "slow_steps"}, {second: 60, from: "degraded", to: "healthy"}},
		},
		"two parts": {
			frames: []*collect.Frame{frame(0, 0, "healthy"), frame(1, 3, ""), frame(1, collect.NoSeverity, "stalled")},
			want:   []change{{second: 1, from: "healthy", to: "stalled"}},
		},
		"the causes come later": {
			frames: []*collect.Frame{
				frame(0, 2, "degraded", slow), frame(1, 2, "degraded"), frame(1, collect.NoSeverity, "", slow), not(frame(2, 0, "healthy"), slow),
			},
			want: []change{{to: "degraded", primary: "slow_steps"}, {second: 2, from: "degraded", to: "healthy"}},
		},
		"a new cause arrives later": {
			frames: []*collect.Frame{frame(0, 0, "healthy"), frame(1, 2, "degraded"), frame(1, collect.NoSeverity, "", slow)},
			want: []change{
				{second: 1, from: "healthy", to: "degraded"},
				{second: 1, from: "degraded", to: "degraded", primary: "slow_steps"},
			},
		},
		"the causes do not come any more": {
			// The processor began again and knows the cause no more.
			frames: []*collect.Frame{frame(0, 2, "degraded", slow), frame(1, 0, "healthy"), frame(2, 0, "healthy")},
			want:   []change{{to: "degraded", primary: "slow_steps"}, {second: 1, from: "degraded", to: "healthy"}},
		},
		"a part that is never completed changes nothing": {
			frames: []*collect.Frame{frame(0, 0, "healthy"), frame(1, 3, ""), frame(2, 0, "healthy")},
		},
		"older points change nothing": {
			frames: []*collect.Frame{frame(0, 0, "healthy"), frame(5, 3, "stalled"), frame(4, 0, "healthy"), frame(6, 3, "stalled")},
			want:   []change{{second: 5, from: "healthy", to: "stalled"}},
		},
		"the same points twice change nothing": {
			frames: []*collect.Frame{frame(0, 2, "degraded", slow), frame(0, 2, "degraded", slow)},
			want:   []change{{to: "degraded", primary: "slow_steps"}},
		},
		"of two conditions the more pressing holds": {
			frames: []*collect.Frame{
				{
					Severity: 3, Conditions: map[string]bool{"degraded": true, "stalled": true, "healthy": true},
					Causes: map[collect.Cause]bool{slow: true, pressure: true, contribute: true},
				},
			},
			want: []change{{to: "stalled", primary: "kv_pressure", contributing: []string{"slow_steps"}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := settings()
			s.Initial = test.initial
			e := NewEngine(s)
			var got []change
			for _, f := range test.frames {
				_, transitions, _ := e.Observe(f)
				for _, x := range transitions {
					got = append(got, change{
						int(x.Time / int64(time.Second)), x.From.Condition, x.To.Condition, x.To.Primary, x.To.Contributing, x.To.Notices,
					})
				}
			}
			assert.Equal(t, test.want, got)
		})
	}
}

func TestObserveSaysWhatBecameOfAFrame(t *testing.T) {
	e := NewEngine(settings())
	outcome := func(f *collect.Frame) (Outcome, int) {
		outcome, _, incomplete := e.Observe(f)
		return outcome, incomplete
	}
	check := func(want Outcome, wantIncomplete int, f *collect.Frame) {
		t.Helper()
		got, incomplete := outcome(f)
		assert.Equal(t, want, got)
		assert.Equal(t, wantIncomplete, incomplete)
	}
	check(Taken, 0, frame(10, 0, "healthy"))
	check(OutOfOrder, 0, frame(9, 0, "healthy"))
	check(Waiting, 0, frame(11, 3, ""))
	check(Waiting, 0, frame(11, 3, ""))
	check(Waiting, 2, frame(12, 3, ""))
	check(Taken, 1, frame(13, 0, "idle"))
	check(Taken, 0, frame(14, 2, "degraded", slow))
	check(Taken, 0, frame(75, 0, "healthy")) // so long after that nothing is expected
	end := func(second, severity int, condition string) *collect.Frame {
		f := frame(second, severity, condition)
		f.Ended = true
		return f
	}
	check(Taken, 0, end(77, 0, "healthy")) // it continues under other attributes
	check(Waiting, 0, frame(78, collect.NoSeverity, ""))
	check(Ended, 0, end(78, collect.NoSeverity, ""))
}

// A batch can be sent again at any time, also when its engine has ended since.
func TestFramesThatWereSeenAreNoTransitions(t *testing.T) {
	e := NewEngine(settings())
	end := func() *collect.Frame {
		f := frame(2, collect.NoSeverity, "")
		f.Ended = true
		return f
	}
	_, first, _ := e.Observe(frame(1, 3, "stalled"))
	require.Len(t, first, 1)
	for range 2 {
		outcome, again, _ := e.Observe(end())
		assert.Equal(t, Ended, outcome)
		assert.Empty(t, again)
		assert.True(t, e.Ended())
		outcome, again, _ = e.Observe(frame(1, 3, "stalled"))
		assert.Equal(t, OutOfOrder, outcome)
		assert.Empty(t, again)
	}
	_, next, _ := e.Observe(frame(3, 3, "stalled"))
	require.Len(t, next, 1, "what begins after an end is a first state")
	assert.False(t, next[0].From.Known())
	assert.False(t, e.Ended())
}

// The value of the other attributes of a server that was updated in place can come in
// a batch of its own.
func TestAnEndAndAValueAtOneTimeAreNoEnd(t *testing.T) {
	e := NewEngine(settings())
	e.Observe(frame(1, 0, "healthy"))
	end := frame(2, collect.NoSeverity, "")
	end.Ended = true
	e.Observe(end)
	outcome, transitions, _ := e.Observe(frame(2, 3, "stalled"))
	assert.Equal(t, Taken, outcome)
	require.Len(t, transitions, 1)
	assert.Equal(t, "healthy", transitions[0].From.Condition)
	assert.False(t, e.Ended())
}

func TestAnEngineThatIsSetBackTakesOlderFrames(t *testing.T) {
	e := NewEngine(settings())
	e.Observe(frame(50, 2, "degraded", slow))
	assert.EqualValues(t, 50*time.Second, e.Time())
	e.SetBack()
	assert.Zero(t, e.Time())
	outcome, transitions, _ := e.Observe(not(frame(1, 0, "healthy"), slow))
	assert.Equal(t, Taken, outcome)
	require.Len(t, transitions, 1)
	assert.Equal(t, "degraded", transitions[0].From.Condition, "what it was stays known")
}

func TestSettleTakesAPartAsItIs(t *testing.T) {
	e := NewEngine(settings())
	e.Observe(frame(0, 2, "degraded", slow))
	e.Observe(frame(1, 0, "healthy"))
	transitions, incomplete := e.TakeIncomplete()
	require.Len(t, transitions, 1)
	assert.Zero(t, incomplete)
	assert.Equal(t, "healthy", transitions[0].To.Condition)
	transitions, _ = e.TakeIncomplete()
	assert.Empty(t, transitions)
}
