package engine

import "math"

// Device describes the GPUs of an engine, for Config.Device. They share its layers, so that
// the slowest of them decides how long a step is.
//
// The model is a sketch of a GPU's power and temperature, with these parts:
//
//   - Power: IdleWatts; and in a step BusyShare of Watts for its kernels, TensorShare for
//     the part of the time in which it computes, and MemoryShare for the part of the time in
//     which it reads memory. The first two grow with the clock to the power of clockPower.
//   - A limit of the power (ParamPowerLimit) and a temperature above HotDegrees lower the clock,
//     step by step, until the power is within the limit. Both do nothing where the power is
//     within it, so that a GPU in its nominal state never slows down.
//   - A lower clock slows computing. Below memoryClock it slows reading too, because too few
//     reads are under way.
//   - Temperature follows the power with a time constant, coolingSeconds.
//   - Damaged memory (ParamMemoryErrors) and a damaged link (ParamLinkErrors) repeat a share of
//     what they transfer.
//
// The shares, exponents and rates of errors are guesses: they are of the right order for an
// H100, and fitted to nothing.
type Device struct {
	// Watts is the power limit of the maker, IdleWatts the power without work.
	Watts, IdleWatts float64
	// MaxMHz and IdleMHz are the clock under load and the clock of a GPU that has had nothing
	// to do for some time; MemoryMHz is that of the memory.
	MaxMHz, IdleMHz, MemoryMHz float64
	// MemoryMiB is the size of the memory.
	MemoryMiB float64
	// Affected is how many of the engine's GPUs the parameters of GPUs act on, the first ones;
	// 0 is all.
	Affected int
}

// H100 is an H100 SXM of 80 GB.
func H100() Device {
	return Device{Watts: 700, IdleWatts: 70, MaxMHz: 1980, IdleMHz: 345, MemoryMHz: 2619, MemoryMiB: 81559}
}

const (
	// The shares of the power at full clock.
	busyShare, tensorShare, readingShare = 0.15, 0.50, 0.25
	clockPower                           = 2.5
	// leastClock is the least share of the clock that a limit leads to.
	leastClock = 0.1
	// memoryClock is the share of the clock below which reading becomes slower, too.
	memoryClock = 0.6
	// inletDegrees is the temperature of the air, fullDegrees by how much a GPU at full power
	// is warmer, and hotDegrees where it begins to slow down. hysteresis is below that.
	inletDegrees, fullDegrees, hotDegrees, hysteresis = 30, 42, 83, 1
	coolingSeconds                                    = 20
	// memoryAbove is by how much the memory is warmer than the rest.
	memoryAbove = 8
	// idleAfter is after how many seconds without work the clock falls.
	idleAfter = 1.0
	// Errors: corrected ones per second of reading with damaged memory, seconds of reading
	// until a row is replaced, and how many of these are needed for one that is
	// replaced because of an error that could not be corrected.
	correctedPerSecond, remapSeconds, perUncorrectable = 40, 15, 4
	// linkErrorsPerSecond and replaysPerSecond are of a damaged link while it is in use.
	linkErrorsPerSecond, replaysPerSecond, recoverySeconds = 500, 100, 20
	// hostLinkSeconds is what a step without other GPUs sends over the link to the host.
	hostLinkSeconds = 0.2e-3
	// linkBytesPerSecond is the rate of an exchange between GPUs.
	linkBytesPerSecond = 300e9
)

// Reasons for a clock below the greatest, as bits of NVIDIA's driver.
const (
	ReasonIdle          = 0x1
	ReasonClocksSetting = 0x2
	ReasonPowerCap      = 0x4
	ReasonThermal       = 0x20
)

// DeviceState is a GPU at one time, and what it has counted since the start. All counters
// are of the driver: they outlive processes and exporters.
type DeviceState struct {
	// Watts, Degrees (Celsius), MemoryDegrees, MHz and MemoryMHz are of this moment. Reasons are
	// the bits above.
	Watts, Degrees, MemoryDegrees, MHz, MemoryMHz float64
	Reasons                                       int
	// Limit is the power limit in force, in watts.
	Limit float64
	// Joules, and seconds: with a kernel running, computing, reading memory, and slowed down by
	// the limit of the power or by the temperature.
	Joules, Busy, Tensor, Reading, PowerSlowed, ThermalSlowed float64
	// Corrected and Uncorrected are errors of the memory; the others are rows that were
	// replaced because of such errors.
	Corrected, Uncorrected, CorrectableRows, UncorrectableRows float64
	// LinkBytes, LinkErrors, LinkReplays and LinkRecoveries are of the link between GPUs;
	// HostReplays of the one to the host.
	LinkBytes, LinkErrors, LinkReplays, LinkRecoveries, HostReplays float64
	// LastXID is the number of the last error that the driver has reported; 0 is none.
	LastXID int
	// XIDs is how many it has reported.
	XIDs float64
}

// device is one GPU.
type device struct {
	spec     *Device
	affected bool
	at       float64
	state    DeviceState
	// phase is what it does now, in rates per second, until the next step begins or ends.
	phase devicePhase
	// damage is how many seconds of reading with damaged memory there were, by share;
	// linkDamage the same of the link.
	damage, linkDamage float64
	idleSince          float64
}

type devicePhase struct {
	busy                  bool
	watts, clock          float64
	tensor, reading, link float64 // Shares of the time.
	powerSlow, hotSlow    bool
}

func newDevices(spec *Device, n int, now float64) []*device {
	var out []*device
	for i := range n {
		d := &device{spec: spec, at: now, idleSince: now, affected: spec.Affected == 0 || i < spec.Affected}
		d.phase = devicePhase{watts: spec.IdleWatts, clock: 1}
		d.state.Degrees = inletDegrees + fullDegrees*spec.IdleWatts/spec.Watts
		out = append(out, d)
	}
	return out
}

// value is that of a parameter for this GPU.
func (d *device) value(v *values, p Parameter) float64 {
	if d.affected {
		return v[p]
	}
	return p.Nominal()
}

// shape is how the parameters of GPUs change a step, before limits of power and
// temperature lower the clock to a share.
func (d *device) shape(v *values, clock, gpus float64) Shape {
	clock = min(clock, d.value(v, ParamClockLimit))
	s := v.shape()
	s.Clock *= clock
	s.Bandwidth *= min(1, clock/memoryClock) * (1 - d.value(v, ParamMemoryErrors))
	if repeated := d.value(v, ParamLinkErrors); repeated > 0 {
		longer := repeated / (1 - repeated)
		s.Exchange = longer
		if gpus <= 1 {
			s.Host += hostLinkSeconds * longer
		}
	}
	return s
}

// watts is the power of a step of so many seconds.
func (d *device) watts(w stepWork, clock, seconds float64) float64 {
	tensor := min(1, w.computing/clock/seconds)
	return d.spec.IdleWatts + d.spec.Watts*(math.Pow(clock, clockPower)*(busyShare+tensorShare*tensor)+readingShare*min(1, w.reading/seconds))
}

// stepWork is what a step does at full speed, in seconds.
type stepWork struct{ computing, reading, exchanging float64 }

// planDevices returns the length of a step. The slowest GPU decides about it.
func (c *core) planDevices(now float64) float64 {
	m := &c.cfg.Model
	work := m.work(&c.batch)
	longest := 0.0
	for _, d := range c.devices {
		d.advance(now, c.val)
		d.phase = devicePhase{busy: true, clock: 1}
		power, hot := d.limits(c.val)
		limit := min(power, hot)
		length := func(clock float64) float64 { return m.StepTime(c.batch, d.shape(c.val, clock, m.GPUs)) }
		effective := func(clock float64) float64 { return min(clock, d.value(c.val, ParamClockLimit)) * c.val[ParamClock] }
		clock := 1.0
		if d.watts(work, effective(1), length(1)) > limit {
			low, high := leastClock, 1.0
			for range 12 {
				clock = (low + high) / 2
				if d.watts(work, effective(clock), length(clock)) > limit {
					high = clock
				} else {
					low = clock
				}
			}
			clock = low
			d.phase.powerSlow, d.phase.hotSlow = power <= hot, hot < power
		}
		d.phase.clock = effective(clock)
		longest = max(longest, length(clock))
	}
	for _, d := range c.devices {
		p := &d.phase
		p.tensor = min(1, work.computing/p.clock/longest)
		p.reading = min(1, work.reading/longest)
		p.link = min(1, work.exchanging/longest)
		p.watts = d.watts(work, p.clock, longest)
	}
	return longest
}

// restDevices lets the GPUs of an engine wait from a time on.
func (c *core) restDevices(now float64) {
	for _, d := range c.devices {
		d.advance(now, c.val)
		d.rest(now, c.val)
	}
}

// rest lets a GPU wait.
func (d *device) rest(now float64, v *values) {
	d.phase = devicePhase{watts: d.spec.IdleWatts, clock: d.value(v, ParamClockLimit) * v[ParamClock]}
	d.idleSince = now
}

// limits are the greatest power by the power limit and by the temperature, in watts.
func (d *device) limits(v *values) (power, hot float64) {
	power, hot = d.spec.Watts*d.value(v, ParamPowerLimit), math.Inf(1)
	if d.state.Degrees >= hotDegrees-hysteresis {
		hot = (hotDegrees - inletDegrees) / fullDegrees * d.spec.Watts * d.value(v, ParamCooling)
	}
	return max(power, d.spec.IdleWatts), hot
}

// advance counts what happens up to a time.
func (d *device) advance(to float64, v *values) {
	dt := to - d.at
	if dt <= 0 {
		return
	}
	d.at = to
	p, s := &d.phase, &d.state
	goal := inletDegrees + fullDegrees*p.watts/d.spec.Watts/d.value(v, ParamCooling)
	s.Degrees = goal + (s.Degrees-goal)*math.Exp(-dt/coolingSeconds)
	s.Joules += p.watts * dt
	if !p.busy {
		return
	}
	s.Busy += dt
	s.Tensor += p.tensor * dt
	s.Reading += p.reading * dt
	s.LinkBytes += p.link * linkBytesPerSecond * dt
	if p.powerSlow {
		s.PowerSlowed += dt
	}
	if p.hotSlow {
		s.ThermalSlowed += dt
	}
	d.countDamage(dt, v)
}

// countDamage counts the errors of damaged parts.
func (d *device) countDamage(dt float64, v *values) {
	p, s := &d.phase, &d.state
	if share := d.value(v, ParamMemoryErrors); share > 0 {
		before := math.Floor(d.damage / remapSeconds)
		d.damage += dt * share
		s.Corrected += dt * share * p.reading * correctedPerSecond
		for row := before + 1; row <= math.Floor(d.damage/remapSeconds); row++ {
			if math.Mod(row, perUncorrectable) == 0 {
				s.Uncorrected++
				s.UncorrectableRows++
			} else {
				s.CorrectableRows++
			}
			s.LastXID = 63 // A row was replaced.
			s.XIDs++
		}
	}
	if share := d.value(v, ParamLinkErrors); share > 0 {
		if p.link == 0 {
			s.HostReplays += dt * share * replaysPerSecond / 10
			return
		}
		before := math.Floor(d.linkDamage / recoverySeconds)
		d.linkDamage += dt * share
		s.LinkErrors += dt * share * p.link * linkErrorsPerSecond
		s.LinkReplays += dt * share * p.link * replaysPerSecond
		s.LinkRecoveries += math.Floor(d.linkDamage/recoverySeconds) - before
	}
}

func (d *device) reasons(v *values) int {
	out := 0
	if !d.phase.busy && d.at-d.idleSince >= idleAfter {
		out |= ReasonIdle
	}
	if d.value(v, ParamClockLimit) < 1 && out == 0 {
		out |= ReasonClocksSetting
	}
	if d.phase.powerSlow {
		out |= ReasonPowerCap
	}
	if d.phase.hotSlow {
		out |= ReasonThermal
	}
	return out
}

// Devices returns the GPUs of each engine at this moment; none without Config.Device.
func (s *Server) Devices() [][]DeviceState { return s.DevicesAfter(0) }

// DevicesAfter returns the GPUs so many seconds after the process has ended; 0 is this moment,
// with what they do now.
func (s *Server) DevicesAfter(ended float64) [][]DeviceState {
	out := make([][]DeviceState, len(s.engines))
	for i, c := range s.engines {
		for _, one := range c.devices {
			// A copy, so that looking changes nothing.
			d := *one
			d.advance(s.now, c.val)
			if ended > 0 {
				d.rest(s.now, c.val)
				d.advance(s.now+ended, c.val)
			}
			state := d.state
			state.Watts, state.Reasons = d.phase.watts, d.reasons(c.val)
			state.MemoryDegrees = state.Degrees + memoryAbove
			state.MHz, state.MemoryMHz = math.Round(d.spec.MaxMHz*d.phase.clock), d.spec.MemoryMHz
			if state.Reasons&ReasonIdle != 0 {
				state.MHz = min(state.MHz, d.spec.IdleMHz)
			}
			state.Limit, _ = d.limits(c.val)
			out[i] = append(out[i], state)
		}
	}
	return out
}

// TakeDevices takes over the GPUs of a server whose process ended some seconds before this
// one began: their counters and temperatures go on.
func (s *Server) TakeDevices(from *Server, gap float64) {
	for i, c := range s.engines {
		if i >= len(from.engines) {
			return
		}
		for k, before := range from.engines[i].devices {
			d, v := *before, from.engines[i].val
			d.advance(from.now, v)
			d.rest(from.now, v)
			d.advance(from.now+gap, v)
			d.at, d.idleSince = 0, -gap
			c.devices[k] = &d
		}
	}
}
