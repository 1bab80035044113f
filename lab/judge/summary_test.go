package judge

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// An alarm is false only in a minute that counts as healthy.
func TestAnAlarmIsFalseOnlyInAHealthyMinute(t *testing.T) {
	lines := func(minutes ...Line) []Line {
		for i := range minutes {
			minutes[i].Minute = i
		}
		return minutes
	}
	fine := Line{Requests: 300}
	harmful := Line{Requests: 300, Harmful: true, Effect: 3, TrueCauses: map[string]float64{"slow_steps": 1}}
	few, open := Line{Requests: 3}, Line{Requests: 3, open: true}
	p := &Played{Window: time.Minute, Lines: lines(fine, few, open, harmful, fine, fine)}
	for _, c := range []struct {
		minute               int
		with, without, other int
	}{
		{0, 0, 1, 0},
		{1, 0, 1, 0}, // Nothing was injected yet.
		{2, 0, 0, 1},
		{3, 1, 0, 0},
		{4, 1, 0, 0}, // The windows still have the harm.
		{5, 0, 1, 0},
	} {
		p.Alarms = []Alarm{{At: float64(c.minute)*60 + 15, Severity: 2}}
		s := p.Summary()
		assert.Equal(t, []int{c.with, c.without, c.other}, []int{s.AlarmsWithHarm, s.AlarmsWithoutHarm, s.AlarmsNotJudged}, "minute %d", c.minute)
		assert.InDelta(t, 3.0/60, s.HealthyHours, 1e-3)
	}
}

func TestMinutesWhoseHarmIsNotKnownAreOpen(t *testing.T) {
	played, err := Play(t.Context(), &Story{
		Name: "few", Servers: []engine.Config{chatServer(7, 0.1), chatServer(8, 6)}, Length: 16 * time.Minute,
		Injections: []Injection{
			{Parameter: engine.ParamBandwidth, Value: 0.2, At: 330, Until: 500, Servers: []int{0}},
			{Parameter: engine.ParamClientsLeave, Value: 0.1, At: 60},
		},
		Faults: []Fault{{Kind: Unreachable, At: 630, Until: 700}, {Kind: Missed, At: 840, Until: 900}},
	})
	require.NoError(t, err)
	var open [2][]int
	for _, l := range played.Lines {
		if l.open {
			open[l.Server] = append(open[l.Server], l.Minute)
		}
	}
	// The scrapes fail from 630 s to 700 s, and windows have them for another minute.
	assert.Equal(t, []int{10, 11, 12}, open[1])
	assert.Equal(t, []int{5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, open[0], "from the injection on")
}

// A minute in which harm cannot be known does not end a stretch of harm, and a server that
// sleeps while clients wait is reported by its condition.
func TestASummaryCountsWhatIsKnown(t *testing.T) {
	harmful := Line{Requests: 300, Harmful: true, Effect: 3, TrueCauses: map[string]float64{"slow_steps": 1}}
	unknown := Line{Requests: 3, open: true}
	reported := harmful
	reported.Severity = warning
	asleep := Line{Requests: 300, Harmful: true, Effect: 3, TrueCauses: map[string]float64{"asleep": 1}, Condition: "asleep"}
	lines := []Line{harmful, unknown, reported, {Requests: 300}, asleep}
	for i := range lines {
		lines[i].Minute = i
	}
	s := (&Played{Window: time.Minute, Lines: lines}).Summary()
	assert.Equal(t, []float64{2, 0}, s.DelayWindows, "reported in the third minute of the stretch")
	assert.Equal(t, []int{3, 2, 1, 1}, []int{s.Harmful, s.Reported, s.Right, s.TopTwo})
}

// Where too much arrives for the server, a minute with few requests is not healthy.
func TestAMinuteOfOverloadWithFewRequestsIsOpen(t *testing.T) {
	cfg := overloaded(0.3)
	cfg.MaxSeqs, cfg.MaxModelLen = 1, 16384
	cfg.Workload.Output = engine.Lengths{Median: 3000, Sigma: 0.1}
	played, err := Play(t.Context(), &Story{Name: "few", Servers: []engine.Config{cfg}, Length: 15 * time.Minute})
	require.NoError(t, err)
	for _, line := range played.Lines[5:14] {
		assert.Less(t, line.Requests, leastInAMean+10)
		assert.True(t, line.open || line.Harmful, "%+v", line)
	}
}
