package scenario

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// mostEffect is the greatest effect that can be sought.
const mostEffect = 100

// noRamp are parameters that do not change gradually, and noEffect those that have no value
// to be sought: mistakes of clients are no harm that the server does.
var (
	noRamp   = []engine.Parameter{engine.ParamStall, engine.ParamSleep, engine.ParamClientsLeave, engine.ParamScaleUp}
	noEffect = append(slices.Clone(noRamp), engine.ParamClientErrors, engine.ParamClientsCancel)
)

// readChanges reads the injections, and derives from them what a server is given.
func (s *Scenario) readChanges(n *node) error {
	if err := n.each(s.readChange); err != nil {
		return err
	}
	slices.SortStableFunc(s.Injections, func(a, b Injection) int { return cmp.Compare(a.At, b.At) })
	c := &s.Config
	given := slices.DeleteFunc(slices.Clone(s.Injections), func(in Injection) bool { return in.Effect > 0 })
	if !slices.ContainsFunc(given, func(in Injection) bool { return len(in.Servers) > 0 }) {
		c.Changes = Changes(given, 0, c.Engines)
		return nil
	}
	for i := range max(1, c.Targets) {
		c.TargetChanges = append(c.TargetChanges, Changes(given, i, c.Engines))
	}
	return nil
}

// readChange reads one entry.
func (s *Scenario) readChange(n *node) error {
	in := Injection{At: -1, Until: math.Inf(1)}
	var set []Injection
	parameters := func(read func(p engine.Parameter, n *node) error) (out []field) {
		for p := range engine.ParameterCount {
			out = append(out, field{p.String(), func(n *node) error { return read(p, n) }})
		}
		return out
	}
	err := n.mapping(
		span("at", &in.At, 0, s.horizon()),
		span("over", &in.Over, 0, week),
		span("until", &in.Until, 0, week),
		numbers("engines", &in.Engines, max(1, s.Config.Engines), "engines"),
		numbers("servers", &in.Servers, max(1, s.Config.Targets), "servers"),
		field{"set", func(n *node) error {
			return n.mapping(parameters(func(p engine.Parameter, n *node) error {
				least, most := p.Limits()
				v, err := n.float(least, most)
				set = append(set, Injection{Parameter: p, Value: v})
				return err
			})...)
		}},
		field{"effect", func(n *node) error {
			return n.mapping(parameters(func(p engine.Parameter, n *node) error {
				if slices.Contains(noEffect, p) {
					return n.errorf("no value of it does more or less harm; write it under set")
				}
				v, err := n.float(0.1, mostEffect)
				set = append(set, Injection{Parameter: p, Effect: v})
				return err
			})...)
		}},
	)
	switch {
	case err != nil:
		return err
	case in.At < 0:
		return n.errorf("at: missing; give the time")
	case len(set) == 0:
		return n.errorf("set: missing; give the parameters that change, or under effect what their harm is to be")
	case in.At+in.Over > in.Until || in.Until <= in.At:
		return n.errorf("until: it must not be before the end of the ramp, at plus over, nor at the time of the change")
	}
	for i, one := range set {
		key := "set." + one.Parameter.String()
		if one.Effect > 0 {
			key = "effect." + one.Parameter.String()
		}
		switch {
		case slices.ContainsFunc(set[:i], func(other Injection) bool { return other.Parameter == one.Parameter }):
			return n.errorf("%s: it has a value under set as well; want one of them", key)
		case one.Effect > 0 && in.At+in.Over >= s.horizon().Seconds():
			return n.errorf("%s: the story ends before the ramp does, at plus over, so that no harm can be measured; give the value under set", key)
		case len(in.Engines) > 0 && !one.Parameter.PerEngine():
			return n.errorf("%s: it belongs to the whole server, so that engines cannot be named", key)
		case in.Over > 0 && slices.Contains(noRamp, one.Parameter):
			return n.errorf("%s: it does not change gradually; leave out over", key)
		case one.Parameter.OfDevice() && s.Config.GPUs == nil:
			return n.errorf("%s: it acts on GPUs, which this file has none of; add gpus, which can be {}", key)
		case one.Parameter.Moment() && !math.IsInf(in.Until, 1):
			return n.errorf("%s: it acts at one moment and does not return; leave out until", key)
		case one.Effect > 0 && !s.canHarm(one.Parameter):
			return n.errorf("%s: this server does without, so that no value does harm", key)
		}
		one.At, one.Over, one.Until, one.Engines, one.Servers = in.At, in.Over, in.Until, in.Engines, in.Servers
		s.Injections = append(s.Injections, one)
	}
	return nil
}

// canHarm reports whether the server has what the parameter is about.
func (s *Scenario) canHarm(p engine.Parameter) bool {
	switch p {
	case engine.ParamPowerLimit, engine.ParamCooling, engine.ParamClockLimit, engine.ParamMemoryErrors, engine.ParamLinkErrors:
		return s.Config.GPUs != nil
	case engine.ParamAcceptance:
		return s.Config.SpecDecode
	case engine.ParamAdapterPool:
		return s.Config.MaxLoRAs > 0
	case engine.ParamTransferFailure:
		return s.Config.Transfer.Share > 0
	default:
		return true
	}
}

// Sought are the parameters whose value is sought, as they stand in the file.
func (s *Scenario) Sought() string {
	var out []string
	for i := range s.Injections {
		if in := &s.Injections[i]; in.Effect > 0 {
			out = append(out, fmt.Sprintf("%s at %s", in.Parameter, clock(in.At)))
		}
	}
	return strings.Join(out, ", ")
}

// numbers are a list of numbers of things, of which there are so many.
func numbers(name string, into *[]int, of int, things string) field {
	return field{name, func(n *node) error {
		return n.each(func(n *node) error {
			v, err := n.float(0, float64(of-1))
			switch {
			case err != nil:
				return err
			case v != math.Trunc(v):
				return n.errorf("want whole numbers of %s, not %v", things, v)
			case slices.Contains(*into, int(v)):
				return n.errorf("%v is there twice", v)
			}
			*into = append(*into, int(v))
			return nil
		})
	}}
}

// settings are what a key has, whatever it is.
func settings(name string, set func(*node, map[string]any)) field {
	return field{name, func(n *node) error {
		var all map[string]any
		if err := n.yaml.Decode(&all); err != nil {
			return n.errorf("want keys and values")
		}
		set(n, all)
		return nil
	}}
}
