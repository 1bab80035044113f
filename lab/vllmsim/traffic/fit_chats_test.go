package traffic

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// fitSessions finds which request goes on with which, by their blocks.
func fitSessions(tb testing.TB, t *engine.Traffic) *sessions {
	tb.Helper()
	type request struct {
		engine.Arrival
		blocks, found int
		parent, depth int
		goesOn        bool
	}
	var all []request
	last := map[int32]int{} // the last request with a block
	for i, a := range t.Arrivals {
		r := request{Arrival: a, parent: -1}
		missing := false
		parent := -1
		for _, run := range a.Prefix {
			for block := run.First; block <= run.Last; block++ {
				who, known := last[block]
				if missing = missing || !known; !missing {
					r.found++
					parent = who
				}
				last[block] = i
				r.blocks++
			}
		}
		if r.found > 1 { // the first block is common to all
			r.parent, r.depth = parent, all[parent].depth+1
			all[parent].goesOn = true
		}
		all = append(all, r)
	}
	s := &sessions{rate: float64(len(all)) / t.Span, blockTokens: t.BlockTokens}
	var once, begun, gaps, growth, kept, outputs []float64
	edited, total := 0.0, 0.0
	const depths = 8
	var turns, on [depths]float64
	for _, r := range all {
		s.most = max(s.most, int(r.Prompt))
		outputs = append(outputs, float64(r.Output))
		// In the first part the beginnings of chats, in the last part the ends are not seen.
		if r.At > 0.2*t.Span && r.At < 0.75*t.Span {
			d := min(depths-1, r.depth)
			turns[d]++
			if r.goesOn {
				on[d]++
			}
			if r.depth == 0 && r.goesOn {
				begun = append(begun, float64(r.Prompt))
			}
			if r.depth == 0 && !r.goesOn {
				once = append(once, float64(r.Prompt))
			}
		}
		if r.parent < 0 {
			continue
		}
		p := all[r.parent]
		total++
		gaps = append(gaps, r.At-p.At)
		growth = append(growth, float64(r.Prompt-p.Prompt))
		if whole := int(p.Prompt) / t.BlockTokens; r.found < whole {
			edited++
			kept = append(kept, float64(r.found)/float64(whole))
		}
	}
	for d := range turns {
		s.keep = append(s.keep, on[d]/turns[d])
	}
	s.edited = edited / total
	s.once, s.begun, s.output = lawOf(fineShares, once), lawOf(fineShares, begun), lawOf(fineShares, outputs)
	s.gap, s.growth, s.kept = lawOf(coarseShares, gaps), lawOf(fineShares, growth), lawOf(coarseShares, kept)
	want := Measure(t)
	s.drift = drift{math.Sqrt(want.IDC60-1) / math.Sqrt(60*s.rate), 600}
	// Chats go on a little more often than is seen, because their ends are cut off.
	raw := slices.Clone(s.keep)
	more := 0.0
	for range 6 {
		for d := range s.keep {
			s.keep[d] = min(0.95, 1-(1-raw[d])*math.Exp(-more))
		}
		s.drift.fitOnce(want, func(seed uint64) *engine.Traffic { return s.generate(seed, s.rate, t.Span) })
		var got [5]float64
		for seed := range got {
			got[seed] = reuse(s.generate(uint64(seed)+1000, s.rate, t.Span))
		}
		more += 1.5 * (want.Reuse - middle(got[:]))
	}
	require.Less(tb, math.Abs(more), 0.5, "the fit has not found a solution")
	return s
}

func fitAssistant(t *engine.Traffic) *assistant {
	s := &assistant{blockTokens: t.BlockTokens}
	var shared, first, turns, kept []float64
	var opening []float64
	var extra, outputs, think [][]float64 // of each conversation
	edited, total, seconds := 0.0, 0.0, 0.0
	for _, c := range t.Conversations {
		shared = append(shared, float64(c.Shared))
		first = append(first, float64(c.Turns[0].Prompt-c.Shared))
		turns = append(turns, float64(len(c.Turns)))
		var e, o, th []float64
		for i, turn := range c.Turns {
			s.most = max(s.most, int(turn.Prompt))
			o = append(o, float64(turn.Output))
			seconds += turn.Think
			if i == 0 {
				continue
			}
			before := c.Turns[i-1]
			th = append(th, turn.Think)
			if more := float64(turn.Prompt - before.Prompt - before.Output); i <= openingTurns {
				opening = append(opening, more)
			} else {
				e = append(e, more)
			}
			total++
			had, has := blocksOf(before.Prefix), blocksOf(turn.Prefix)
			same := 0
			for same < len(had) && same < len(has) && had[same] == has[same] {
				same++
			}
			// One block fewer is the one that was filled up.
			if same < len(had)-1 {
				edited++
				kept = append(kept, float64(same)/float64(len(had)))
			}
		}
		extra, outputs, think = append(extra, e), append(outputs, o), append(think, th)
	}
	flat := func(all [][]float64) law { return lawOf(fineShares, slices.Concat(all...)) }
	s.rate = total / 86400
	s.shared, s.first, s.turns, s.kept = lawOf(coarseShares, shared), lawOf(coarseShares, first), lawOf(coarseShares, turns), lawOf(coarseShares, kept)
	s.opening = lawOf(fineShares, opening)
	s.extra, s.output, s.think = flat(extra), flat(outputs), flat(think)
	s.extraAlike, s.outputAlike, s.thinkAlike = alike(extra), alike(outputs), alike(think)
	s.edited = edited / total
	growth := make([]float64, 0, len(extra))
	for _, e := range extra {
		growth = append(growth, meanOf(e))
	}
	s.turnsWithExtra = correlation(ranks(turns), ranks(growth))
	return s
}

func blocksOf(runs []engine.BlockRun) []int32 {
	var all []int32
	for _, r := range runs {
		for b := r.First; b <= r.Last; b++ {
			all = append(all, b)
		}
	}
	return all
}

// alike is the share of the variance between groups, of values that were made normal by their
// ranks (analysis of variance of one factor).
func alike(groups [][]float64) float64 {
	all := slices.Concat(groups...)
	rank := ranks(all)
	n, k := float64(len(all)), 0.0
	var between, inside, squares float64
	at := 0
	for _, g := range groups {
		if len(g) == 0 {
			continue
		}
		k++
		z := make([]float64, len(g))
		for i := range g {
			z[i] = math.Sqrt2 * math.Erfinv(2*(rank[at+i]+0.5)/n-1)
		}
		at += len(g)
		mean := meanOf(z)
		between += float64(len(g)) * mean * mean
		squares += float64(len(g) * len(g))
		for _, v := range z {
			inside += (v - mean) * (v - mean)
		}
	}
	within, among := inside/(n-k), between/(k-1)
	size := (n - squares/n) / (k - 1)
	return max(0, (among-within)/size/((among-within)/size+within))
}
