package engine

import (
	"fmt"
	"slices"
)

// Parameter is a piece of physics or of the workload that can change while
// the model runs. None of them is a metric.
type Parameter int

// The parameters. Factors are 1 in the nominal state, everything else is 0.
const (
	// ParamClock is a factor of the compute rate.
	ParamClock Parameter = iota
	// ParamBandwidth is a factor of the memory bandwidth.
	ParamBandwidth
	// ParamHostDelay is added to each step, in seconds.
	ParamHostDelay
	// ParamAcceptance is a factor of the chance that a drafted token is accepted.
	ParamAcceptance
	// ParamBlocks is a factor of the number of KV blocks; at least one longest
	// request always fits.
	ParamBlocks
	// ParamStall above 0 stops an engine in the middle of whatever it does.
	ParamStall
	// ParamSleep is the sleep level, 0 to 2. Falling asleep aborts all requests and
	// forgets the prefix cache; new requests wait.
	ParamSleep
	// ParamFrontEnd is a factor of the time that the front end takes for anything.
	ParamFrontEnd
	// ParamArrivalRate is a factor of the arrival rate.
	ParamArrivalRate
	// ParamPromptLength and ParamOutputLength are factors of lengths.
	ParamPromptLength
	ParamOutputLength
	// ParamPrefixPool is a factor of the number of different shared beginnings.
	ParamPrefixPool
	// ParamAdapterPool is a factor of the number of LoRA adapters asked for.
	ParamAdapterPool
	// ParamErrorRate is the share of requests that fail within the engine after some
	// of their tokens.
	ParamErrorRate
	// ParamTransferFailure is the share of KV transfers that fail.
	ParamTransferFailure
	// ParamCorruption is the share of requests with logits that are not numbers.
	ParamCorruption
	// ParamUnscheduled is the share of requests that the engine ends with an error before
	// it schedules them.
	ParamUnscheduled
	// ParamClientErrors is the share of requests that are wrong in a way that the front end
	// finds out by an exception, such as a parameter of the wrong type.
	ParamClientErrors
	// ParamClientsLeave is the share of the requests under way whose clients leave at this
	// moment, all at once. It has no duration.
	ParamClientsLeave
	// ParamScaleUp is a number of engines that are added at this moment, as elastic expert
	// parallelism does. It cannot be undone.
	ParamScaleUp
	// The parameters below act on GPUs, with Config.Device only. ParamPowerLimit and
	// ParamClockLimit are factors of the power limit and of the greatest clock, ParamCooling is
	// one of how much heat is taken away.
	ParamPowerLimit
	ParamCooling
	ParamClockLimit
	// ParamMemoryErrors and ParamLinkErrors are the shares of what the memory, and the link
	// between GPUs, have to transfer again. With one GPU it is the link to the host.
	ParamMemoryErrors
	ParamLinkErrors
	// ParamClientsCancel is a further share of clients that stop reading at a random token.
	ParamClientsCancel

	// ParameterCount is how many there are.
	ParameterCount
)

var parameterNames = [ParameterCount]string{
	"clock", "bandwidth", "host_delay", "acceptance", "blocks", "stall", "sleep", "front_end", "arrival_rate",
	"prompt_length", "output_length", "prefix_pool", "adapter_pool", "error_rate", "transfer_failure", "corruption",
	"unscheduled_errors", "client_errors", "clients_leave", "scale_up",
	"power_limit", "cooling", "clock_limit", "memory_errors", "link_errors", "clients_cancel",
}

// String returns the parameter's name as scenario files write it.
func (p Parameter) String() string {
	if p < 0 || p >= ParameterCount {
		return fmt.Sprintf("parameter %d", int(p))
	}
	return parameterNames[p]
}

// ParseParameter returns the parameter of that name.
func ParseParameter(name string) (Parameter, error) {
	if i := slices.Index(parameterNames[:], name); i >= 0 {
		return Parameter(i), nil
	}
	return 0, fmt.Errorf("unknown parameter %q: want one of %v", name, parameterNames)
}

// PerEngine reports whether engines can differ in the parameter.
func (p Parameter) PerEngine() bool { return p <= ParamSleep || p.OfDevice() }

// OfDevice reports whether the parameter acts on GPUs.
func (p Parameter) OfDevice() bool { return p >= ParamPowerLimit && p <= ParamLinkErrors }

// Workload reports whether the parameter is what clients ask for; all others
// are what the server is.
func (p Parameter) Workload() bool {
	return (p >= ParamArrivalRate && p <= ParamAdapterPool) || p == ParamClientErrors || p == ParamClientsLeave || p == ParamClientsCancel
}

// Limits returns the least and the greatest value.
func (p Parameter) Limits() (least, most float64) {
	switch p {
	case ParamClock, ParamBandwidth:
		return 0.01, 10
	case ParamPowerLimit, ParamCooling, ParamClockLimit:
		return 0.1, 1
	case ParamMemoryErrors, ParamLinkErrors:
		return 0, 0.99
	case ParamBlocks:
		return 0, 1
	case ParamErrorRate, ParamTransferFailure, ParamCorruption, ParamStall, ParamUnscheduled, ParamClientErrors, ParamClientsLeave, ParamClientsCancel:
		return 0, 1
	case ParamScaleUp:
		return 0, maxEngines
	case ParamSleep:
		return 0, 2
	case ParamPrefixPool, ParamAdapterPool:
		return 0.001, 1e6
	default:
		return 0, 1e4
	}
}

// Change sets a parameter at a time.
type Change struct {
	// At is in seconds since the start.
	At        float64
	Parameter Parameter
	Value     float64
	// Engines are the numbers of the engines concerned; none means all. Only
	// what belongs to single engines can differ between them.
	Engines []int
}

func (c Change) check(engines int) error {
	if c.Parameter < 0 || c.Parameter >= ParameterCount {
		return fmt.Errorf("change at %v s: unknown parameter %d", c.At, int(c.Parameter))
	}
	if least, most := c.Parameter.Limits(); !(c.Value >= least && c.Value <= most) {
		return fmt.Errorf("change of %s at %v s: %v is not between %v and %v", c.Parameter, c.At, c.Value, least, most)
	}
	if len(c.Engines) > 0 && !c.Parameter.PerEngine() {
		return fmt.Errorf("change of %s at %v s: it belongs to the whole server, not to single engines", c.Parameter, c.At)
	}
	for _, e := range c.Engines {
		if e < 0 || e >= engines {
			return fmt.Errorf("change of %s at %v s: there is no engine %d", c.Parameter, c.At, e)
		}
	}
	return nil
}

// ChangesAfter returns the changes for a process that is ready at a time, in seconds of that
// process. What was set before is so from its start on. A stall, sleep, engines that were
// added and clients that left are past: they were those of the process before.
func ChangesAfter(changes []Change, ready float64) []Change {
	var out []Change
	for _, ch := range changes {
		ends := ch.Parameter == ParamStall || ch.Parameter == ParamSleep || ch.Parameter.Moment()
		if ends && ch.At < ready {
			continue
		}
		ch.At = max(0, ch.At-ready)
		out = append(out, ch)
	}
	return out
}

// values are the parameters' present values.
type values [ParameterCount]float64

func nominalValues() values {
	var v values
	for _, factor := range []Parameter{
		ParamClock, ParamBandwidth, ParamAcceptance, ParamBlocks, ParamFrontEnd, ParamArrivalRate, ParamPromptLength, ParamOutputLength, ParamPrefixPool, ParamAdapterPool,
		ParamPowerLimit, ParamCooling, ParamClockLimit,
	} {
		v[factor] = 1
	}
	return v
}

func (v *values) shape() Shape {
	return Shape{Clock: v[ParamClock], Bandwidth: v[ParamBandwidth], Host: v[ParamHostDelay]}
}

// Factor reports whether the parameter multiplies something.
func (p Parameter) Factor() bool { return p.Nominal() == 1 }

// Nominal returns the value when nothing is injected.
func (p Parameter) Nominal() float64 {
	v := nominalValues()
	return v[p]
}

// Moment reports whether the parameter acts at one moment and keeps no value.
func (p Parameter) Moment() bool { return p == ParamClientsLeave || p == ParamScaleUp }
