package scenario

import (
	"cmp"
	"math"
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// rampSteps is the number of steps of a ramp: each takes a hundredth of its time.
const rampSteps = 100

// End is when the value before returns: +Inf for never, also where Until is 0.
func (in *Injection) End() float64 {
	if in.Until == 0 {
		return math.Inf(1)
	}
	return in.Until
}

// Changes returns the changes that injections make to one server with so many engines, in
// the order of their times. Where several set the same parameter of an engine, the one that
// began last counts, while it lasts; after it, the one before.
func Changes(injections []Injection, server, engines int) []engine.Change {
	by := map[engine.Parameter][]Injection{}
	var out []engine.Change
	for _, in := range injections {
		switch {
		case len(in.Servers) > 0 && !slices.Contains(in.Servers, server):
		case in.Parameter.Moment():
			out = append(out, engine.Change{At: in.At, Parameter: in.Parameter, Value: in.Value})
		default:
			by[in.Parameter] = append(by[in.Parameter], in)
		}
	}
	for p := range engine.ParameterCount {
		all := by[p]
		slices.SortStableFunc(all, func(a, b Injection) int { return cmp.Compare(a.At, b.At) })
		if !slices.ContainsFunc(all, func(in Injection) bool { return len(in.Engines) > 0 }) {
			out = append(out, timeline(p, all, nil)...)
			continue
		}
		for e := range max(1, engines) {
			of := slices.DeleteFunc(slices.Clone(all), func(in Injection) bool {
				return len(in.Engines) > 0 && !slices.Contains(in.Engines, e)
			})
			out = append(out, timeline(p, of, []int{e})...)
		}
	}
	slices.SortStableFunc(out, func(a, b engine.Change) int { return cmp.Compare(a.At, b.At) })
	return out
}

// timeline returns the changes of one parameter by its injections in the order of their
// times.
func timeline(p engine.Parameter, all []Injection, engines []int) []engine.Change {
	var times []float64
	for i := range all {
		in := &all[i]
		for k := range rampSteps {
			if in.Over > 0 {
				times = append(times, in.At+in.Over*float64(k)/rampSteps)
			}
		}
		times = append(times, in.At+in.Over)
		if end := in.End(); !math.IsInf(end, 1) {
			times = append(times, end)
		}
	}
	slices.Sort(times)
	var out []engine.Change
	last := p.Nominal()
	for _, at := range slices.Compact(times) {
		// A first value that is the nominal one is written, too: it is in the file.
		if v := value(p, all, at); v != last || len(out) == 0 {
			out = append(out, engine.Change{At: at, Parameter: p, Value: v, Engines: engines})
			last = v
		}
	}
	return out
}

// value is that of a parameter from a time on.
func value(p engine.Parameter, all []Injection, at float64) float64 {
	for i, in := range slices.Backward(all) {
		if at < in.At || at >= in.End() {
			continue
		}
		if at >= in.At+in.Over {
			return in.Value
		}
		// The middle of the step, so that the mean of the steps is that of the ramp.
		done := (math.Floor((at-in.At)/in.Over*rampSteps+1e-6) + 0.5) / rampSteps
		from := value(p, all[:i], in.At)
		if p.Factor() && from > 0 && in.Value > 0 {
			return from * math.Pow(in.Value/from, done)
		}
		return from + (in.Value-from)*done
	}
	return p.Nominal()
}
