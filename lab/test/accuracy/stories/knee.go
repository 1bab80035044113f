package stories

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/traffic"
)

const (
	// kneeSeed makes the traffic of the search, and no story.
	kneeSeed = 19_000_000
	// kneeSeconds is how long each run takes.
	kneeSeconds = 3600.0
	// growing is the share of the arrivals of a quarter by which the mean number of waiting
	// requests may differ between the last two quarters.
	growing = 0.02
	// nearly is the share of the greatest throughput of a closed loop at its knee.
	nearly = 0.9
)

// Pairs are the models with their traffic.
func Pairs() [][2]string {
	var out [][2]string
	for _, p := range pairs {
		out = append(out, [2]string{p.model, p.traffic})
	}
	return out
}

// FindKnee simulates a model with a kind of traffic at different rates. For an open loop
// the generator's requests come evenly, so that the knee is that of the work and not of
// one burst.
func FindKnee(ctx context.Context, name, kind string) (Knee, error) {
	model, there := engine.Models()[name]
	if !there {
		return Knee{}, fmt.Errorf("the engine has no preset %q", name)
	}
	k := Knee{Model: name, Traffic: kind}
	search := openKnee
	if Closed(kind) {
		search = closedKnee
	}
	var err error
	if k.Rate, err = search(ctx, model, kind); err != nil {
		return k, err
	}
	mix, err := mixOf(kind)
	if err != nil {
		return k, err
	}
	k.Work = work(mix)
	b := background{model: name, traffic: kind, rate: k.Rate / 2, work: k.Work, rises: -1}
	c, err := b.config(kneeSeed+1, 2*hour)
	if err != nil {
		return k, err
	}
	if k.FirstToken, k.Gap, err = latencies(ctx, c, 2*hour); err != nil || Closed(kind) {
		return k, err
	}
	// Where the traffic has hours of overload at half of the knee, no operator would promise what
	// it then gets.
	even, _, err := latencies(ctx, serve(kneeSeed, model, evenly(mix, k.Rate/2), 0, 0, 1), kneeSeconds)
	k.FirstToken = min(k.FirstToken, 5*even)
	return k, err
}

// mixOf is requests of a kind of traffic, of a day and of many tenants, shuffled; those with
// prefixes in the order in which they came.
func mixOf(kind string) (*engine.Traffic, error) {
	if Closed(kind) {
		return traffic.Generate(kind, kneeSeed, 0, 4*hour)
	}
	if trafficOf(kind).Blocks {
		return traffic.Generate(kind, kneeSeed, 2, 2*hour)
	}
	all, err := traffic.Generate(kind, kneeSeed, 4, 24*hour)
	if err != nil {
		return nil, err
	}
	out := &engine.Traffic{Name: all.Name, Span: all.Span}
	const every = 29
	for i := 0; i < len(all.Arrivals); i += every {
		out.Arrivals = append(out.Arrivals, all.Arrivals[i])
	}
	// In the order of the day the long answers of one hour overload a server whose queue then
	// shrinks in another, so that it would not seem to grow.
	rand.New(rand.NewPCG(kneeSeed, 11)).Shuffle(len(out.Arrivals), func(i, j int) {
		out.Arrivals[i], out.Arrivals[j] = out.Arrivals[j], out.Arrivals[i]
	})
	return out, nil
}

// work is the mean work of a request in tokens: those of the prompt, and four times those
// of the answer, since a decoded token takes about as long as four of a prompt in steps
// with many sequences. Tenants differ much; with it the load of a story is that of its own
// tenants. It is 1 for a closed loop.
func work(t *engine.Traffic) float64 {
	if len(t.Arrivals) == 0 {
		return 1
	}
	sum := 0.0
	for i := range t.Arrivals {
		sum += float64(t.Arrivals[i].Prompt) + 4*float64(t.Arrivals[i].Output)
	}
	return sum / float64(len(t.Arrivals))
}

// openKnee is the highest rate without a growing queue, within 3 %.
func openKnee(ctx context.Context, model engine.Model, kind string) (float64, error) {
	mix, err := mixOf(kind)
	if err != nil {
		return 0, err
	}
	if len(mix.Arrivals) < 1000 {
		return 0, fmt.Errorf("traffic %q has %d requests, too few", kind, len(mix.Arrivals))
	}
	holds := func(rate float64) (bool, error) {
		third, last := 0.0, 0.0
		err := simulate(ctx, serve(kneeSeed, model, evenly(mix, rate), 0, 0, 1), kneeSeconds, func(at float64, waits int) {
			switch {
			case at > 0.75*kneeSeconds:
				last += float64(waits)
			case at > 0.5*kneeSeconds:
				third += float64(waits)
			}
		}, func(engine.Outcome) {})
		const samples = kneeSeconds / 4 / minute
		return (last-third)/samples < growing*rate*kneeSeconds/4, err
	}
	low, high := 0.0, 0.125
	for high < 1000 {
		ok, err := holds(high)
		if err != nil {
			return 0, err
		}
		if !ok {
			break
		}
		low, high = high, 2*high
	}
	if low == 0 {
		return 0, fmt.Errorf("the knee is below %g/s", high)
	}
	for high/low > 1.03 {
		mid := math.Sqrt(low * high)
		ok, err := holds(mid)
		if err != nil {
			return 0, err
		}
		if ok {
			low = mid
		} else {
			high = mid
		}
	}
	return low, nil
}

// evenly is the same requests, again and again, one at a random time in each 1/rate
// seconds.
func evenly(mix *engine.Traffic, rate float64) *engine.Traffic {
	random := rand.New(rand.NewPCG(kneeSeed, 7))
	out := &engine.Traffic{Name: mix.Name, BlockTokens: mix.BlockTokens, Span: kneeSeconds}
	for i := range int(rate * kneeSeconds) {
		a := mix.Arrivals[i%len(mix.Arrivals)]
		a.At = (float64(i) + random.Float64()) / rate
		out.Arrivals = append(out.Arrivals, a)
	}
	return out
}

// closedKnee is the smallest number of clients with nine tenths of the greatest
// throughput.
func closedKnee(ctx context.Context, model engine.Model, kind string) (float64, error) {
	t, err := mixOf(kind)
	if err != nil {
		return 0, err
	}
	known := map[int]float64{}
	throughput := func(clients int) (float64, error) {
		if n, there := known[clients]; there {
			return n, nil
		}
		n := 0.0
		err := simulate(ctx, serve(kneeSeed, model, t, clients, 0, 1), kneeSeconds, nil, func(o engine.Outcome) {
			if o.Ended > kneeSeconds/2 {
				n++
			}
		})
		known[clients] = n
		return n, err
	}
	greatest, most := 0.0, 4
	for n := 4; n <= 2048; n *= 2 {
		got, err := throughput(n)
		if err != nil {
			return 0, err
		}
		if got > greatest {
			greatest, most = got, n
		} else if got < 0.97*greatest || n > 4*most {
			break
		}
	}
	low, high := 1, most
	for low < high {
		mid := (low + high) / 2
		got, err := throughput(mid)
		if err != nil {
			return 0, err
		}
		if got >= nearly*greatest {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return float64(low), nil
}

// simulate runs a server, and passes on how many requests wait at the end of each minute,
// and what has ended.
func simulate(ctx context.Context, c engine.Config, length float64, waiting func(float64, int), ended func(engine.Outcome)) error {
	c.KeepOutcomes = true
	server, err := engine.New(c)
	if err != nil {
		return err
	}
	for at := minute; at <= length; at += minute {
		if err := ctx.Err(); err != nil {
			return err
		}
		server.AdvanceTo(at)
		if waiting != nil {
			n := 0
			for _, stats := range server.Stats() {
				n += stats.Waiting()
			}
			waiting(at, n)
		}
		for _, o := range server.Outcomes() {
			ended(o)
		}
	}
	return nil
}

// latencies are the 95th percentile of the time to the first token, and the upper bound of
// the bucket of the 90th of the gaps between tokens.
func latencies(ctx context.Context, c engine.Config, length float64) (first, gap float64, err error) {
	var firsts []float64
	var gaps [len(engine.GapBounds) + 1]float64
	all := 0.0
	err = simulate(ctx, c, length, nil, func(o engine.Outcome) {
		if o.FirstToken > 0 {
			firsts = append(firsts, o.FirstToken)
		}
		for i, n := range o.Gaps {
			gaps[i] += float64(n)
			all += float64(n)
		}
	})
	if err != nil || len(firsts) == 0 {
		return 0, 0, err
	}
	slices.Sort(firsts)
	below := 0.0
	for i, bound := range engine.GapBounds {
		if below += gaps[i]; below >= 0.9*all {
			gap = bound
			break
		}
	}
	return firsts[len(firsts)*95/100], gap, nil
}
