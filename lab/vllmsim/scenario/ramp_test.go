package scenario

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// at is the value that changes leave at a time.
func at(changes []engine.Change, p engine.Parameter, e int, time float64) float64 {
	v := p.Nominal()
	for _, ch := range changes {
		if ch.At > time || ch.Parameter != p || (len(ch.Engines) > 0 && ch.Engines[0] != e) {
			continue
		}
		v = ch.Value
	}
	return v
}

func TestARampIsGradual(t *testing.T) {
	for name, c := range map[string]struct {
		in   Injection
		half float64
	}{
		"a factor, geometric": {Injection{Parameter: engine.ParamBandwidth, Value: 0.25, At: 100, Over: 1000, Until: 2000}, 0.5},
		"seconds, linear":     {Injection{Parameter: engine.ParamHostDelay, Value: 0.03, At: 100, Over: 1000, Until: 2000}, 0.015},
		"a factor up":         {Injection{Parameter: engine.ParamArrivalRate, Value: 4, At: 100, Over: 1000, Until: 2000}, 2},
		"a factor to nothing": {Injection{Parameter: engine.ParamArrivalRate, Value: 0, At: 100, Over: 1000, Until: 2000}, 0.5},
	} {
		t.Run(name, func(t *testing.T) {
			p := c.in.Parameter
			changes := Changes([]Injection{c.in}, 0, 1)
			assert.InDelta(t, p.Nominal(), at(changes, p, 0, 99.9), 0)
			assert.InDelta(t, (at(changes, p, 0, 594)+at(changes, p, 0, 606))/2, c.half, 0.01*c.half)
			assert.InDelta(t, c.in.Value, at(changes, p, 0, 1100), 0)
			assert.InDelta(t, c.in.Value, at(changes, p, 0, 1999), 0)
			assert.InDelta(t, p.Nominal(), at(changes, p, 0, 2000), 0)
			whole := math.Abs(c.in.Value - p.Nominal())
			for i := 1; i < len(changes)-1; i++ {
				step := math.Abs(changes[i].Value - changes[i-1].Value)
				assert.LessOrEqual(t, step, max(0.02*max(changes[i].Value, changes[i-1].Value), 0.0101*whole), "step %d", i)
			}
			assert.Len(t, changes, 102)
		})
	}
}

func TestOfSeveralInjectionsTheLastThatLastsCounts(t *testing.T) {
	const p = engine.ParamClock
	never := math.Inf(1)
	changes := Changes([]Injection{
		{Parameter: p, Value: 0.8, At: 10, Until: never},
		{Parameter: p, Value: 0.5, At: 20, Until: 40},
		{Parameter: p, Value: 0.2, At: 30, Until: 35},
		{Parameter: p, Value: 1, At: 50}, // As a file without until has it.
	}, 0, 1)
	for time, want := range map[float64]float64{5: 1, 10: 0.8, 20: 0.5, 30: 0.2, 35: 0.5, 40: 0.8, 50: 1, 1e6: 1} {
		assert.InDelta(t, want, at(changes, p, 0, time), 0, "%v", time)
	}
	// A ramp begins at the value of what is below it.
	changes = Changes([]Injection{{Parameter: p, Value: 0.5, At: 10, Until: never}, {Parameter: p, Value: 0.25, At: 20, Over: 100, Until: 200}}, 0, 1)
	assert.InDelta(t, 0.5, at(changes, p, 0, 20), 0.005)
	assert.InDelta(t, 0.25, at(changes, p, 0, 120), 0)
	assert.InDelta(t, 0.5, at(changes, p, 0, 200), 0)
}

func TestInjectionsConcernTheirEnginesAndServers(t *testing.T) {
	const p = engine.ParamClock
	all := []Injection{
		{Parameter: p, Value: 0.5, At: 10, Until: 40},
		{Parameter: p, Value: 0.2, At: 20, Until: 30, Engines: []int{1}},
		{Parameter: engine.ParamFrontEnd, Value: 9, At: 5, Until: 8, Servers: []int{2}},
	}
	first, third := Changes(all, 0, 2), Changes(all, 2, 2)
	assert.InDelta(t, 0.5, at(first, p, 0, 25), 0)
	assert.InDelta(t, 0.2, at(first, p, 1, 25), 0)
	assert.InDelta(t, 0.5, at(first, p, 1, 30), 0)
	assert.InDelta(t, 1, at(first, p, 1, 40), 0)
	assert.InDelta(t, 1, at(first, engine.ParamFrontEnd, 0, 6), 0)
	assert.InDelta(t, 9, at(third, engine.ParamFrontEnd, 0, 6), 0)
}

func TestMomentsHaveNoReturn(t *testing.T) {
	changes := Changes([]Injection{
		{Parameter: engine.ParamClientsLeave, Value: 0.5, At: 10, Until: math.Inf(1)},
		{Parameter: engine.ParamClientsLeave, Value: 0.5, At: 20, Until: math.Inf(1)},
	}, 0, 1)
	require.Len(t, changes, 2)
	assert.InDelta(t, 20, changes[1].At, 0)
}

// A file with the new keys gives servers what they play, and what a judge needs.
func TestChangesAreReadWithRampsReturnsAndEffects(t *testing.T) {
	const head = "about: x\nlength: 1h\nworkload: {rate: 1}\n"
	s, err := parse("f.yaml", []byte(head+`
scrape_interval: 15s
processor: {window: 30s, pool: {}}
changes:
  - {at: 10m, over: 5m, until: 30m, set: {bandwidth: 0.5, host_delay: 0.01}}
  - {at: 20m, until: 40m, effect: {clock: 2}}
`))
	require.NoError(t, err)
	assert.InDelta(t, 15, s.Interval.Seconds(), 0)
	assert.Equal(t, map[string]any{"window": "30s", "pool": map[string]any{}}, s.Processor)
	require.Len(t, s.Injections, 3)
	assert.Equal(t, Injection{Parameter: engine.ParamClock, At: 1200, Until: 2400, Effect: 2}, s.Injections[2])
	assert.Equal(t, "clock at 20m0s", s.Sought())
	assert.Len(t, s.Config.Changes, 2*102, "two ramps and their returns; what is sought has no value yet")

	for text, want := range map[string]string{
		`{at: 1m, until: 30s, set: {clock: 1}}`:          "f.yaml:4: changes[0]: until: it must not be before the end of the ramp",
		`{at: 1m, over: 5m, until: 3m, set: {clock: 1}}`: "until: it must not be before the end of the ramp",
		`{at: 1m, over: 5m, set: {stall: 1}}`:            "set.stall: it does not change gradually; leave out over",
		`{at: 1m, until: 5m, set: {clients_leave: 1}}`:   "set.clients_leave: it acts at one moment and does not return; leave out until",
		`{at: 1m, effect: {stall: 2}}`:                   "changes[0].effect.stall: no value of it does more or less harm; write it under set",
		`{at: 1m, effect: {client_errors: 2}}`:           "no value of it does more or less harm",
		`{at: 1m, effect: {acceptance: 2}}`:              "effect.acceptance: this server does without, so that no value does harm",
		`{at: 1m, effect: {clock: 1000}}`:                "changes[0].effect.clock: 1000 is not between 0.1 and 100",
		`{at: 1m, engines: [0], effect: {front_end: 2}}`: "effect.front_end: it belongs to the whole server",
		`{at: 1m, engines: [0.5], set: {clock: 2}}`:      "is not between 0 and 0",
		`{at: 1m, servers: [1], set: {clock: 2}}`:        "changes[0].servers[0]: 1 is not between 0 and 0",
		`{at: 1m, servers: [0, 0], set: {clock: 2}}`:     "0 is there twice",
		`{at: 1m}`:                  "set: missing; give the parameters that change, or under effect what their harm is to be",
		`{at: 2h, set: {clock: 1}}`: "is not between 0s and 1h0m0s",
		`{at: 1m, set: {clock: 0.5}, effect: {clock: 2}}`: "f.yaml:4: changes[0]: effect.clock: it has a value under set as well; want one of them",
		`{at: 1h, effect: {clock: 2}}`:                    "effect.clock: the story ends before the ramp does",
		`{at: 1m, over: 2h, effect: {clock: 2}}`:          "effect.clock: the story ends before the ramp does",
	} {
		_, err := parse("f.yaml", []byte(head+"changes: ["+text+"]\n"))
		assert.ErrorContains(t, err, want, text)
	}
	// A ramp may be longer than what is played of it, and a change need not end in the story.
	cut, err := parse("f.yaml", []byte(head+"changes: [{at: 1m, over: 2h, until: 3h, set: {clock: 0.5}}]\n"))
	require.NoError(t, err)
	assert.Equal(t, Injection{Parameter: engine.ParamClock, At: 60, Over: 7200, Until: 10800, Value: 0.5}, cut.Injections[0])
	for text, want := range map[string]string{
		"scrape_interval: 61m":  "scrape_interval: 1h1m0s is not between 1s and 1h0m0s",
		"scrape_interval: 10ms": "scrape_interval: 10ms is not between 1s and 1h0m0s",
		"processor: [1]":        "processor: want keys and values",
	} {
		_, err := parse("f.yaml", []byte(head+text+"\n"))
		assert.ErrorContains(t, err, want, text)
	}
}

// Each server gets its own changes where they differ.
func TestServersCanDiffer(t *testing.T) {
	s, err := parse("f.yaml", []byte(`
about: x
length: 10m
servers: 2
server_shares: [0.5, 0.5]
workload: {rate: 1}
changes:
  - {at: 1m, servers: [1], set: {clock: 0.5}}
  - {at: 2m, over: 1m, until: 5m, set: {bandwidth: 0.5}}
`))
	require.NoError(t, err)
	sims, err := s.Config.Simulations()
	require.NoError(t, err)
	require.Len(t, sims, 2)
	assert.Len(t, sims[0].Changes, 102)
	assert.Len(t, sims[1].Changes, 103)
	assert.Equal(t, []string{"1m0s clock = 0.5 on servers [1]", "2m0s bandwidth = 0.5 over 1m0s until 5m0s"}, s.Plan())
}

// Entries can stand in any order.
func TestChangesAreInTheOrderOfTheirTimes(t *testing.T) {
	s, err := parse("f.yaml", []byte(`
about: x
length: 1h
workload: {rate: 1}
changes:
  - {at: 40m, over: 30m, set: {bandwidth: 0.5}}
  - {at: 20m, until: 40m, effect: {bandwidth: 2}}
  - {at: 10m, set: {clock: 0.5}}
`))
	require.NoError(t, err)
	assert.Equal(t, []string{
		"10m0s clock = 0.5", "20m0s bandwidth with an effect of 2 until 40m0s", "40m0s bandwidth = 0.5 over 30m0s",
	}, s.Plan())
	for i := 1; i < len(s.Config.Changes); i++ {
		assert.LessOrEqual(t, s.Config.Changes[i-1].At, s.Config.Changes[i].At)
	}
}
