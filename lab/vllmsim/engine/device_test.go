package engine

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// onDevice plays so many seconds of a server with simulated GPUs.
func onDevice(t *testing.T, change func(*Config), seconds float64) *Server {
	t.Helper()
	h100 := H100()
	cfg := Config{
		Seed: 5, Model: Llama8B(), FrontEnd: DefaultFrontEnd(), Workload: Chat(6), KeepOutcomes: true, Device: &h100,
	}
	if change != nil {
		change(&cfg)
	}
	s, err := New(cfg)
	require.NoError(t, err)
	s.AdvanceTo(seconds)
	return s
}

// meanGap is the mean time between tokens of the requests that ended.
func meanGap(s *Server) float64 {
	sum, n := 0.0, 0.0
	for _, o := range s.Outcomes() {
		if o.MeanGap > 0 {
			sum, n = sum+o.MeanGap, n+1
		}
	}
	return sum / n
}

// GPUs that are as they should be change nothing, whatever the load.
func TestNominalDevicesDoNotSlowAnything(t *testing.T) {
	for _, w := range []Workload{Chat(2), Chat(18), Code(3)} {
		with := onDevice(t, func(c *Config) { c.Workload = w }, 300)
		without := onDevice(t, func(c *Config) { c.Workload, c.Device = w, nil }, 300)
		require.NotEmpty(t, without.Stats())
		assert.Equal(t, without.Stats(), with.Stats())
		d := with.Devices()[0][0]
		assert.Zero(t, d.PowerSlowed+d.ThermalSlowed+d.Corrected+d.XIDs)
		assert.Less(t, d.Joules, 700.0*300)
		assert.Greater(t, d.Joules, 70.0*300)
		assert.Less(t, d.Degrees, float64(hotDegrees))
	}
}

// What the driver counts is there exactly when the cause is, and the cause makes steps longer.
func TestCausesOfDevicesAreSeenAndSlow(t *testing.T) {
	for p, c := range map[Parameter]struct {
		value float64
		model Model
		seen  func(DeviceState) float64
		bit   int
	}{
		ParamPowerLimit:   {0.25, Llama8B(), func(d DeviceState) float64 { return d.PowerSlowed }, ReasonPowerCap},
		ParamCooling:      {0.2, Llama8B(), func(d DeviceState) float64 { return d.ThermalSlowed }, ReasonThermal},
		ParamClockLimit:   {0.3, Llama8B(), func(d DeviceState) float64 { return 1980 - d.MHz }, ReasonClocksSetting},
		ParamMemoryErrors: {0.6, Llama8B(), func(d DeviceState) float64 { return min(d.Corrected, d.CorrectableRows, d.XIDs) }, 0},
		ParamLinkErrors:   {0.9, Llama70B(), func(d DeviceState) float64 { return min(d.LinkErrors, d.LinkReplays) }, 0},
	} {
		t.Run(p.String(), func(t *testing.T) {
			load := func(cfg *Config) { cfg.Model, cfg.Workload = c.model, Chat(4) }
			healthy := onDevice(t, load, 240)
			s := onDevice(t, func(cfg *Config) {
				load(cfg)
				cfg.Changes = []Change{{At: 0, Parameter: p, Value: c.value}}
			}, 240)
			assert.Zero(t, c.seen(healthy.Devices()[0][0]))
			bad := s.Devices()[0][0]
			assert.Positive(t, c.seen(bad))
			if c.bit != 0 {
				assert.Equal(t, c.bit, bad.Reasons)
			}
			assert.Greater(t, meanGap(s), 1.25*meanGap(healthy))
			for q, other := range map[Parameter]float64{ParamPowerLimit: bad.PowerSlowed, ParamCooling: bad.ThermalSlowed, ParamMemoryErrors: bad.Corrected, ParamLinkErrors: bad.LinkErrors} {
				if q != p {
					assert.Zero(t, other, "%s leaves no trace of %s", p, q)
				}
			}
		})
	}
}

func TestOneBadGPUOfFourSlowsAllAndOnlyItShowsWhy(t *testing.T) {
	s := onDevice(t, func(c *Config) {
		c.Model, c.Workload, c.Device.Affected = Llama70B(), Chat(4), 1
		c.Changes = []Change{{At: 0, Parameter: ParamClockLimit, Value: 0.3}}
	}, 120)
	gpus := s.Devices()[0]
	require.Len(t, gpus, 4)
	assert.Equal(t, ReasonClocksSetting, gpus[0].Reasons)
	assert.InDelta(t, 594, gpus[0].MHz, 1)
	for _, other := range gpus[1:] {
		assert.Zero(t, other.Reasons)
		assert.InDelta(t, 1980, other.MHz, 1)
		assert.InDelta(t, gpus[0].Busy, other.Busy, 1e-6, "they wait within the step")
	}
}

// Power and temperature are what the limits allow.
func TestLimitsHold(t *testing.T) {
	s := onDevice(t, func(c *Config) {
		c.Workload, c.Changes = Code(4), []Change{{At: 60, Parameter: ParamPowerLimit, Value: 0.4}}
	}, 60)
	before := s.Devices()[0][0].Joules
	s.AdvanceTo(360)
	d := s.Devices()[0][0]
	assert.LessOrEqual(t, (d.Joules-before)/300, 0.4*700+1)
	assert.InDelta(t, 280, d.Limit, 1e-9)

	s = onDevice(t, func(c *Config) {
		c.Workload, c.Changes = Code(4), []Change{{At: 0, Parameter: ParamCooling, Value: 0.2}}
	}, 600)
	assert.InDelta(t, hotDegrees, s.Devices()[0][0].Degrees, 2)
	// The cooling comes back.
	s = onDevice(t, func(c *Config) {
		c.Workload, c.Changes = Code(4), []Change{{At: 0, Parameter: ParamCooling, Value: 0.2}, {At: 300, Parameter: ParamCooling, Value: 1}}
	}, 420)
	hot := s.Devices()[0][0].ThermalSlowed
	assert.Positive(t, hot)
	s.AdvanceTo(600)
	assert.InDelta(t, hot, s.Devices()[0][0].ThermalSlowed, 1e-9)
}

func TestAnIdleGPUIsIdleAndNotSlowed(t *testing.T) {
	s := onDevice(t, func(c *Config) { c.Workload = fixed(0, 1, 1) }, 60)
	d := s.Devices()[0][0]
	assert.Equal(t, ReasonIdle, d.Reasons)
	assert.InDelta(t, 345, d.MHz, 0)
	assert.InDelta(t, 70*60, d.Joules, 1e-6)
	assert.Zero(t, d.Busy)
}

// What is seen of a GPU does not depend on how often it is read, nor ends with a process.
func TestLookingAtDevicesChangesNothing(t *testing.T) {
	hot := func(c *Config) {
		c.Workload, c.Changes = Code(4), []Change{{At: 20, Parameter: ParamCooling, Value: 0.2}, {At: 70, Parameter: ParamMemoryErrors, Value: 0.2}}
	}
	often := onDevice(t, hot, 0)
	for at := 0.0; at < 200; at += 0.7 {
		often.AdvanceTo(at)
		often.Devices()
	}
	often.AdvanceTo(200)
	assert.Equal(t, onDevice(t, hot, 200).Devices(), often.Devices())

	before := often.Devices()[0][0]
	next := onDevice(t, nil, 0)
	next.TakeDevices(often, 10)
	after := next.Devices()[0][0]
	assert.Equal(t, before.Corrected, after.Corrected)
	assert.InDelta(t, before.Joules+10*70, after.Joules, 1e-6)
	assert.Less(t, after.Degrees, before.Degrees)
}
