package accuracy

import (
	"fmt"
	"maps"
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/internal/vllmsim/engine"
)

// The bounds of attribution: the share of the harm that the removal of a true cause
// restores, and the largest difference from the best cause that counts as equal.
const (
	trueShare = 0.20
	asGood    = 0.10
)

// Bin is the truth about one minute.
type Bin struct {
	// Judged is false if too few requests arrived; Harm is true if there was harm.
	Judged, Harm bool
	// Latency and Lost are the kinds of harm.
	Latency, Lost bool
	// Restored is, for each injected cause, the share of the harm that is absent
	// without it.
	Restored map[string]float64
	// Primary are the causes that restore most, the best first. It is empty if no cause
	// alone restores enough, for example if each of two causes suffices for the harm.
	Primary []string
	// Also are other names that count as right, see the function also.
	Also []string
	// True has all causes that restore enough.
	True []string
	// Workload is true if the actual workload alone does the harm on a healthy engine,
	// within trueShare.
	Workload bool
}

// Class is the cause under which the bin is counted.
func (b *Bin) Class() string {
	if len(b.Primary) == 0 {
		return ""
	}
	return b.Primary[0]
}

// runs are the minutes of all runs of a story.
type runs struct {
	actual, nominal, workload []minute
	without                   map[string][]minute
}

// explore makes all runs of a story that its truth needs, except for the actual run.
// Runs with the same changes are made once.
func explore(s *Story, actual []minute) (*runs, error) {
	r := &runs{actual: actual, without: map[string][]minute{}}
	known := map[string][]minute{}
	get := func(keep func(*Injection) bool) ([]minute, error) {
		changes := s.changes(keep)
		var kept []int
		for i := range s.Injections {
			if keep(&s.Injections[i]) {
				kept = append(kept, i)
			}
		}
		key := fmt.Sprint(kept)
		if len(changes) == len(s.changes(everything)) {
			return actual, nil
		}
		if m, there := known[key]; there {
			return m, nil
		}
		// A restart is not a cause of harm here: it is in all runs.
		m, err := simulate(s.Config, changes, s.Faults, s.Length)
		known[key] = m
		return m, err
	}
	var err error
	if r.nominal, err = get(nothing); err != nil {
		return nil, err
	}
	if r.workload, err = get(workload); err != nil {
		return nil, err
	}
	for _, c := range s.Causes() {
		if r.without[c], err = get(without(c)); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// truth returns the truth of each minute that has ended.
func truth(s *Story, r *runs) []Bin {
	tokens := meanTokens(r.nominal)
	out := make([]Bin, int(s.Length/window))
	for i := range out {
		if float64(i+1)*window <= s.onset() {
			out[i].Judged = true
			continue // There were no changes yet, so all runs are equal.
		}
		out[i] = r.bin(s, i, tokens)
	}
	return out
}

// meanTokens is the mean number of tokens after the first.
func meanTokens(minutes []minute) float64 {
	n, tokens := 0.0, 0.0
	for i := range minutes {
		n += minutes[i].requests
		tokens += minutes[i].tokens
	}
	return quotient(tokens, n)
}

func at(minutes []minute, i int) *minute {
	if i < len(minutes) {
		return &minutes[i]
	}
	return &minute{}
}

func (r *runs) bin(s *Story, i int, tokens float64) Bin {
	actual, nominal := at(r.actual, i), at(r.nominal, i)
	h := judge(actual, nominal, s.Objectives)
	b := Bin{Judged: h.judged, Harm: h.any(), Latency: h.latency, Lost: h.lost}
	if !b.Harm {
		return b
	}
	b.Restored = map[string]float64{}
	for c, minutes := range r.without {
		b.Restored[c] = restored(h, actual, at(minutes, i), nominal, s.Objectives, tokens)
	}
	b.Workload = restored(h, actual, at(r.workload, i), nominal, s.Objectives, tokens) < trueShare
	b.attribute(s.Causes())
	b.Also = also(s, b.Primary, actual, nominal, tokens)
	return b
}

// restored is the share of the harm that is absent in another run: of the delay, of
// the lost answers, or their mean if both were harmful, so that seconds and answers
// have the same weight.
func restored(h harm, actual, other, nominal *minute, objectives []Objective, tokens float64) float64 {
	sum, kinds := 0.0, 0.0
	add := func(all, left float64) {
		kinds++
		if all > 0 {
			sum += min(1, max(0, (all-left)/all))
		}
	}
	if h.latency {
		add(delay(actual, nominal, tokens), delay(other, nominal, tokens))
	}
	if h.lost {
		whole := nominal.good(objectives)
		add(max(0, whole-actual.good(objectives)), max(0, whole-other.good(objectives)))
	}
	return quotient(sum, kinds)
}

// attribute sets True and Primary from Restored. Causes with equal shares are in the
// order of their onsets.
func (b *Bin) attribute(order []string) {
	best := 0.0
	if len(b.Restored) > 0 {
		best = slices.Max(slices.Collect(maps.Values(b.Restored)))
	}
	for _, c := range order {
		share := b.Restored[c]
		if share < trueShare {
			continue
		}
		b.True = append(b.True, c)
		if share >= best-asGood {
			b.Primary = append(b.Primary, c)
		}
	}
	byShare := func(x, y string) int {
		switch {
		case b.Restored[x] > b.Restored[y]:
			return -1
		case b.Restored[x] < b.Restored[y]:
			return 1
		}
		return 0
	}
	slices.SortStableFunc(b.True, byShare)
	slices.SortStableFunc(b.Primary, byShare)
}

// also returns other names for the primary causes.
//
//   - More different prompts are prefill_heavy (reuse fell) and, because the cache
//     does not hold them all, cache_thrash. The metrics cannot distinguish the two.
//   - A higher arrival rate is demand_exceeds_capacity if requests queue. If they
//     hardly queue, capacity was not exceeded: the batch has grown and tokens are
//     slower, which is decode_load (more sequences).
func also(s *Story, primary []string, actual, nominal *minute, tokens float64) []string {
	var out []string
	for i := range s.Injections {
		in := &s.Injections[i]
		if !slices.Contains(primary, in.Cause()) {
			continue
		}
		switch {
		case in.Parameter == engine.ParamPrefixPool:
			out = append(out, "cache_thrash")
		case in.Parameter == engine.ParamArrivalRate &&
			actual.meanQueue()-nominal.meanQueue() < 0.5*delay(actual, nominal, tokens):
			out = append(out, "decode_load")
		}
	}
	return out
}
