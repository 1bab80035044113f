package judge

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/otelcol-vllm/otelcol-vllm/internal/vllmsim/engine"
	"github.com/otelcol-vllm/otelcol-vllm/internal/vllmsim/scenario"
)

const (
	// mostRuns is how many values are tried.
	mostRuns = 14
	// closeEnough ends the search: the ratio of the found effect to the wanted one, or its
	// inverse, is at most this.
	closeEnough = 1.03
	// mostTraffic is by how much arrivals are multiplied at most.
	mostTraffic = 20
	// sparse is how far the effect may be off without a note.
	sparse = 1.15
)

// path is the way from the nominal value of a parameter to ever more harm. What is at a
// distance of 0 is nominal.
type path struct {
	// first is the first distance that is tried, last where the limit of the parameter is.
	first, last float64
	value       func(distance float64) float64
}

// pathOf returns the way of a parameter; false where no value does more or less harm.
func pathOf(p engine.Parameter) (path, bool) {
	least, most := p.Limits()
	up := func(first float64) path {
		return path{first, math.Log(most), func(d float64) float64 { return math.Min(most, math.Exp(d)) }}
	}
	switch p {
	case engine.ParamClock, engine.ParamBandwidth, engine.ParamAcceptance, engine.ParamBlocks:
		// Blocks and acceptance can be 0: from a ten-thousandth on it makes no difference.
		last := -math.Log(max(least, 1e-4))
		return path{0.22, last, func(d float64) float64 { return math.Max(least, math.Exp(-d)) }}, true
	case engine.ParamArrivalRate:
		// No operator's traffic grows further, and the requests that wait would fill the memory.
		most = min(most, mostTraffic)
		return up(0.22), true
	case engine.ParamFrontEnd, engine.ParamPromptLength, engine.ParamOutputLength:
		return up(0.22), true
	case engine.ParamPrefixPool, engine.ParamAdapterPool:
		return up(0.7), true
	case engine.ParamHostDelay:
		// From half a millisecond on, in factors; more than a minute for each step is no host.
		const unit = 0.5e-3
		return path{1, math.Log2(60 / unit), func(d float64) float64 { return unit * (math.Exp2(d) - 1) }}, true
	case engine.ParamErrorRate, engine.ParamTransferFailure, engine.ParamCorruption, engine.ParamUnscheduled:
		return path{0.04, most, func(d float64) float64 { return d }}, true
	default:
		return path{}, false
	}
}

// found is the result of a search.
type found struct{ value, got float64 }

// searches are those of this process, so that equal stories search once. They are bounded.
var searches = struct {
	mu sync.Mutex
	by map[string]found
}{by: map[string]found{}}

const mostSearches = 4096

// seek finds the value of an injection whose harm is what it asks for, and sets it. The harm
// is what the injection does alone to the first server that it is about.
func seek(ctx context.Context, s *Story, i int, objectives []objective, out *Played) error {
	in := &s.Injections[i]
	way, can := pathOf(in.Parameter)
	if !can {
		return fmt.Errorf("injection of %s at %v s: no value of it does more or less harm; give its value", in.Parameter, in.At)
	}
	server := 0
	if len(in.Servers) > 0 {
		server = slices.Min(in.Servers)
	}
	name := searchName(s, server, in, objectives)
	searches.mu.Lock()
	result, known := searches.by[name]
	searches.mu.Unlock()
	if !known {
		var err error
		if result, err = newSearch(s, server, in, objectives).run(ctx, way); err != nil {
			return err
		}
		searches.mu.Lock()
		if len(searches.by) >= mostSearches {
			clear(searches.by)
		}
		searches.by[name] = result
		searches.mu.Unlock()
	}
	in.Value = result.value
	out.Sought = append(out.Sought, Sought{
		Parameter: in.Parameter.String(), Wanted: in.Effect, Got: round(result.got), Value: result.value,
	})
	if ratio := result.got / in.Effect; ratio < 1/sparse || ratio > sparse {
		out.Notes = append(out.Notes, fmt.Sprintf(
			"no value of %s was found whose harm is %g times the bar; the nearest is %.6g, whose harm is %.3g times the bar",
			in.Parameter, in.Effect, result.value, result.got))
	}
	return nil
}

// searchName is equal for searches with equal results.
func searchName(s *Story, server int, in *Injection, objectives []objective) string {
	cfg, bare := s.Servers[server], *in
	traffic := cfg.Workload.Traffic
	cfg.Workload.Traffic, cfg.Journal, cfg.Changes = nil, nil, nil
	bare.Servers, bare.Value = nil, 0
	return fmt.Sprintf("%+v %p %+v %v %v %v", cfg, traffic, bare, s.Faults, s.Length, objectives)
}

// search tries values of one injection.
type search struct {
	cfg        engine.Config
	in         Injection
	faults     []Fault
	objectives []objective
	// from and until bound the arrivals that count.
	from, until float64
	usual       []*seen
	tried       int
}

func newSearch(s *Story, server int, in *Injection, objectives []objective) *search {
	out := &search{
		cfg: s.Servers[server], in: *in, faults: s.Faults, objectives: objectives,
		from: in.At + in.Over, until: math.Min(in.End(), s.Length.Seconds()),
	}
	out.in.Servers = nil
	return out
}

// play runs the server until the search ends, and returns the requests.
func (f *search) play(ctx context.Context, changes []engine.Change, done func(*seen)) error {
	cfg := f.cfg
	cfg.Changes = changes
	w, err := newWorld(cfg, f.faults, f.objectives, done)
	if err != nil {
		return err
	}
	for at := minuteSeconds; ; at += minuteSeconds {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := w.advance(math.Min(at, f.until)); err != nil {
			return err
		}
		w.settle()
		if at >= f.until {
			break
		}
	}
	err = finish(ctx, []*world{w}, f.until, func(to float64) error {
		err := w.advance(to)
		w.settle()
		return err
	})
	w.close()
	return err
}

// try returns the effect of a value.
func (f *search) try(ctx context.Context, value float64) (float64, error) {
	f.tried++
	if f.usual == nil {
		if err := f.play(ctx, nil, func(s *seen) { f.usual = append(f.usual, s) }); err != nil {
			return 0, err
		}
	}
	m := minute{sums: newSums(2)}
	both := newJoin(2, nil)
	both.counted = func(in []*seen) {
		if at := in[actual].arrived; at >= f.from && at < f.until {
			m.add(in, nil)
		}
	}
	for _, s := range f.usual {
		both.add(nominal, s)
	}
	in := f.in
	in.Value, in.Effect = value, 0
	err := f.play(ctx, scenario.Changes([]Injection{in}, 0, f.cfg.Engines), func(s *seen) { both.add(actual, s) })
	return m.effect(f.objectives), err
}

// run goes away from the nominal value until there is more harm than wanted, and then
// between the last two values.
func (f *search) run(ctx context.Context, way path) (found, error) {
	wanted := f.in.Effect
	best := found{value: way.value(way.first), got: 0}
	off := math.Inf(1)
	try := func(distance float64) (float64, error) {
		value := way.value(distance)
		got, err := f.try(ctx, value)
		if d := math.Abs(math.Log(max(got, 1e-6) / wanted)); err == nil && d < off {
			best, off = found{value, got}, d
		}
		return got, err
	}
	low, high := 0.0, math.Min(way.first, way.last)
	lowGot, highGot := 0.0, 0.0
	for {
		got, err := try(high)
		if err != nil || off < math.Log(closeEnough) {
			return best, err
		}
		if got >= wanted {
			highGot = got
			break
		}
		if high >= way.last || f.tried >= mostRuns {
			return best, nil
		}
		low, lowGot = high, got
		high = math.Min(high*1.6, way.last)
	}
	for f.tried < mostRuns && off >= math.Log(closeEnough) {
		// Between the two by their effects, yet never at the edges: effects have jumps.
		share := 0.5
		if lowGot > 0 && f.tried%3 != 0 {
			share = math.Log(wanted/lowGot) / math.Log(highGot/lowGot)
		}
		at := low + (high-low)*min(0.9, max(0.1, share))
		got, err := try(at)
		if err != nil {
			return best, err
		}
		if got >= wanted {
			high, highGot = at, got
		} else {
			low, lowGot = at, got
		}
	}
	return best, nil
}
