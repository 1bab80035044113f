package judge

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/scenario"
)

const (
	// mostRuns is how many values are tried.
	mostRuns = 14
	// closeEnough ends the search: the ratio of the found effect to the wanted one, or its
	// inverse, is at most this.
	closeEnough = 1.05
	// narrow ends the search too: between two distances whose ratio is at most this, the effect
	// has a jump.
	narrow = 1.005
	// furthest is the greatest ratio of a distance to the one before on the way to more harm.
	// Much too great a value is costly: where requests pile up, simulation is slow.
	furthest = 2.5
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
type found struct {
	value, got float64
	// few is whether the requests that count are too few to search.
	few      bool
	requests int
}

// searches are those of this process, so that equal stories search once. They are bounded:
// each takes less than 100 bytes.
var searches = struct {
	mu sync.Mutex
	by map[[sha256.Size]byte]found
}{by: map[[sha256.Size]byte]found{}}

const mostSearches = 4096

// seek finds the value of an injection whose harm is what it asks for, and sets it. The harm
// is what the injection does alone to the first server that it is about.
func seek(ctx context.Context, s *Story, i int, objectives []objective, out *Played) error {
	in := &s.Injections[i]
	way, can := pathOf(in.Parameter)
	if !can {
		return fmt.Errorf("injection of %s at %v s: no value of it does more or less harm; give its value", in.Parameter, in.At)
	}
	server := soughtOn(in)
	name := searchName(s, server, in, objectives)
	searches.mu.Lock()
	result, known := searches.by[name]
	searches.mu.Unlock()
	if !known {
		var err error
		if result, err = newSearch(s, server, in, objectives).find(ctx, way); err != nil {
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
	if note := result.note(in); note != "" {
		out.Notes = append(out.Notes, note)
	}
	return nil
}

// soughtOn returns the first server that an injection is about.
func soughtOn(in *Injection) int {
	if len(in.Servers) == 0 {
		return 0
	}
	return slices.Min(in.Servers)
}

// searchName is equal for searches with equal results. It is of what the story has and not of
// where that is in memory: an address can be that of another traffic later.
func searchName(s *Story, server int, in *Injection, objectives []objective) [sha256.Size]byte {
	cfg, bare := s.Servers[server], *in
	traffic, tables := cfg.Workload.Traffic, cfg.Model.Tables
	cfg.Workload.Traffic, cfg.Model.Tables, cfg.Journal, cfg.Changes = nil, nil, nil, nil
	bare.Servers, bare.Value = nil, 0
	h := sha256.New()
	// A hash takes all that is written to it.
	_, _ = fmt.Fprintf(h, "%+v %+v %v %v %v", cfg, bare, s.Faults, s.Length, objectives)
	if tables != nil {
		_, _ = fmt.Fprintf(h, " tables %+v", *tables)
	}
	if traffic != nil {
		_, _ = fmt.Fprintf(h, " traffic %q %v %v", traffic.Name, traffic.Span, traffic.BlockTokens)
		for i := range traffic.Arrivals {
			_, _ = fmt.Fprint(h, traffic.Arrivals[i])
		}
		for i := range traffic.Conversations {
			_, _ = fmt.Fprint(h, traffic.Conversations[i])
		}
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// search tries values of one injection.
type search struct {
	cfg        engine.Config
	in         Injection
	faults     []Fault
	objectives []objective
	// from and until bound the arrivals that count.
	from, until float64
	usual       *usual
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

// try returns the effect of a value; +Inf where it lets more requests pile up than can be
// simulated.
func (f *search) try(ctx context.Context, value float64) (float64, error) {
	f.usual.begin()
	m := minute{sums: newSums(2)}
	in := f.in
	in.Value, in.Effect = value, 0
	err := f.play(ctx, scenario.Changes([]Injection{in}, 0, f.cfg.Engines), func(s *seen) {
		if s.arrived < f.from || s.arrived >= f.until {
			return
		}
		if other := f.usual.take(s); other != nil {
			m.add([]*seen{actual: s, nominal: other}, nil)
		}
	})
	if errors.As(err, new(*tooMany)) {
		return math.Inf(1), nil
	}
	return m.effect(f.objectives), err
}

// learn runs the server without the injection.
func (f *search) learn(ctx context.Context) error {
	f.usual = &usual{at: map[key]int{}}
	least := f.from
	if f.cfg.Workload.Clients > 0 {
		// A client of a slower server asks later than it would have. What it asked for before
		// the injection is the same in all tries.
		least = f.in.At
	}
	return f.play(ctx, nil, func(s *seen) {
		if s.arrived >= least {
			f.usual.add(s)
		}
	})
}

// usual has the requests of the nominal run that can count.
type usual struct {
	at    map[key]int
	all   []*seen
	taken []bool
}

func (u *usual) add(s *seen) {
	if _, there := u.at[s.key]; s.refused || there {
		return
	}
	u.at[s.key] = len(u.all)
	u.all = append(u.all, s)
}

// begin forgets what was taken.
func (u *usual) begin() { u.taken = make([]bool, len(u.all)) }

// take returns the same request of the nominal run; nil where that does not have it, or where
// it was taken already.
func (u *usual) take(s *seen) *seen {
	n, there := u.at[s.key]
	if s.refused || !there || u.taken[n] {
		return nil
	}
	u.taken[n] = true
	return u.all[n]
}

// counting returns how many of its requests arrived within a time.
func (u *usual) counting(from, until float64) int {
	n := 0
	for _, s := range u.all {
		if s.arrived >= from && s.arrived < until {
			n++
		}
	}
	return n
}

// find finds the value on a way, unless too few requests count.
func (f *search) find(ctx context.Context, way path) (found, error) {
	if err := f.learn(ctx); err != nil {
		return found{}, err
	}
	if n := f.usual.counting(f.from, f.until); n < leastInAMean {
		return found{value: way.value(way.first), few: true, requests: n}, nil
	}
	result, err := nearest(way, f.in.Effect, func(value float64) (float64, error) { return f.try(ctx, value) })
	if err == nil && math.IsInf(result.got, 1) {
		err = fmt.Errorf("effect of %s at %v s: with every value that was tried more than %d requests are under way",
			f.in.Parameter, f.in.At, mostUnderway)
	}
	return result, err
}

// nearest goes away from the nominal value until there is more harm than wanted, and then
// between the last two values. Effects grow like a power of the distance, mostly with an
// exponent of at least 1, so that tries are placed by the logarithms of both. It returns the
// value with the nearest effect; where none does harm the last that was tried. The effect is
// +Inf where it is so for all of them.
func nearest(way path, wanted float64, try func(value float64) (float64, error)) (found, error) {
	best, off := found{got: math.Inf(1)}, math.Inf(1)
	var low, high side
	at := math.Min(way.first, way.last)
	for range mostRuns {
		value := way.value(at)
		got, err := try(value)
		if err != nil {
			return best, err
		}
		y := math.Log(got / wanted)
		if math.Abs(y) < off || (math.IsInf(off, 1) && got == 0) {
			best, off = found{value: value, got: got}, math.Abs(y)
		}
		if y >= 0 {
			high.move(&low, at, y)
		} else {
			low.move(&high, at, y)
		}
		if off <= math.Log(closeEnough) || low.at >= way.last || (low.at > 0 && high.at > 0 && high.at/low.at <= narrow) {
			break
		}
		at = math.Min(nextDistance(&low, &high), way.last)
	}
	return best, nil
}

// side is what is known on one side of the wanted effect.
type side struct {
	// at is the distance nearest to the wanted effect, 0 where none was tried; y is the
	// logarithm of its effect as a ratio to the wanted one.
	at, y float64
	// beforeAt and beforeY are those of the try before it on this side.
	beforeAt, beforeY float64
	// weight is by how much y counts; times is how often this side has moved in a row.
	weight float64
	times  int
	// flat is whether the last move has hardly changed the effect.
	flat bool
}

// move takes a nearer distance. The other side counts half as much each time that it stays
// (the Illinois rule), or tries would come near the wanted effect from one side only.
func (s *side) move(other *side, at, y float64) {
	s.beforeAt, s.beforeY = s.at, s.y
	s.flat = s.at > 0 && math.Abs(y) > 0.8*math.Abs(s.y)
	s.at, s.y, s.weight = at, y, 1
	s.times++
	other.times = 0
	if s.times > 1 {
		other.weight /= 2
	}
}

// nextDistance returns the distance to try between what is known of the two sides, or beyond
// the one of them that is known.
func nextDistance(low, high *side) float64 {
	switch {
	case high.at == 0:
		return low.at * min(furthest, max(1.2, low.ratio()))
	case low.at == 0:
		return high.at * min(0.9, max(0.1, high.ratio()))
	case math.IsInf(low.y, 0) || math.IsInf(high.y, 0) || low.times > 3 || high.times > 3 || (low.flat && high.flat):
		// Nothing to go by, or a jump.
		return (low.at + high.at) / 2
	}
	a, b := low.y*low.weight, high.y*high.weight
	share := min(0.95, max(0.05, -a/(b-a)))
	return low.at * math.Pow(high.at/low.at, share)
}

// ratio returns by what its distance is to be multiplied for the wanted effect: by the last
// two tries, and as if the effect grew with the distance where there is only one.
func (s *side) ratio() float64 {
	power := 1.0
	if s.beforeAt > 0 {
		if p := (s.y - s.beforeY) / math.Log(s.at/s.beforeAt); p > 0.5 && !math.IsInf(p, 0) {
			power = p
		}
	}
	return math.Exp(-s.y / power)
}
