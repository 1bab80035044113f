package judge

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// The oracle says the same as FeltHarm in the plainest way: it looks at all requests and all
// tokens at each second, and keeps nothing from one second to the next.

// moment is what is felt of one kind at one second.
type moment struct {
	is          bool
	over, worst float64
}

func slowFelt(all []Sent, usual Usual, until float64) []Felt {
	kinds := []struct {
		level Level
		what  string
		at    func(t float64) moment
	}{
		{Great, "first token", func(t float64) moment { return slowWaits(slowFirst(all, t), math.Max(10*usual.First, 5)) }},
		{Great, "token", func(t float64) moment { return slowWaits(slowTokens(all, t), math.Max(5*usual.Token, 0.3)) }},
		{Great, "answer", func(t float64) moment { return slowErrors(all, t) }},
		{Clear, "first token", func(t float64) moment { return slowWaits(slowFirst(all, t), math.Max(5*usual.First, 0.5)) }},
		{Clear, "token", func(t float64) moment { return slowWaits(slowTokens(all, t), math.Max(5*usual.Token, 0.05)) }},
		{Outage, "any token", func(t float64) moment { return slowOutage(all, t) }},
	}
	var out []Felt
	for _, k := range kinds {
		var harm *Felt
		last := 0.0
		for t := 1.0; t <= until; t++ {
			m := k.at(t)
			if !m.is {
				continue
			}
			// Fewer than 45 s without harm lie between two times of the same harm.
			if harm == nil || t-last-1 >= 45 {
				out = append(out, Felt{Level: k.level, What: k.what, From: t, To: t})
				harm = &out[len(out)-1]
			}
			last = t
			harm.To, harm.Worst = math.Max(harm.To, m.over), math.Max(harm.Worst, m.worst)
		}
	}
	return out
}

func lately(x, t float64) bool { return x > t-30 && x <= t }

// firstMoment is when the wait for the first token is over.
func firstMoment(s Sent) float64 {
	if len(s.Tokens) == 0 {
		return s.At + s.End
	}
	return s.At + s.Tokens[0]
}

func slowFirst(all []Sent, t float64) (out []wait) {
	for _, s := range all {
		over := firstMoment(s)
		switch {
		case s.How == Refused || s.At > t:
		case over > t:
			out = append(out, wait{t - s.At, t})
		case lately(over, t) && (len(s.Tokens) > 0 || s.How != Failed):
			out = append(out, wait{over - s.At, over})
		}
	}
	return out
}

// slowTokens has, for each request, the mean of the gaps that ended in the last 30 s, with the
// one that lasts if a token is still to come.
func slowTokens(all []Sent, t float64) (out []wait) {
	for _, s := range all {
		sum, n, over := 0.0, 0.0, 0.0
		for i, token := range s.Tokens {
			here := s.At + token
			if here > t {
				break
			}
			if i > 0 && lately(here, t) {
				sum += token - s.Tokens[i-1]
				n++
			}
			over = here
			comes := i+1 < len(s.Tokens) || s.How != Answered
			waits := i+1 == len(s.Tokens) || s.At+s.Tokens[i+1] > t
			if comes && waits && s.At+s.End > t {
				sum += t - here
				n++
				over = t
			}
		}
		// A client that gave up in its answer has waited for the token that did not come.
		if last := len(s.Tokens) - 1; last >= 0 && s.How == TimedOut && lately(s.At+s.End, t) {
			sum += s.End - s.Tokens[last]
			n++
			over = s.At + s.End
		}
		if n > 0 {
			out = append(out, wait{sum / n, over})
		}
	}
	return out
}

func slowWaits(all []wait, limit float64) moment {
	sum, beyond, over := 0.0, 0, 0.0
	for _, w := range all {
		sum += w.seconds
		if w.seconds > limit {
			beyond, over = beyond+1, math.Max(over, w.over)
		}
	}
	n := len(all)
	return moment{n >= 3 && sum/float64(n) > limit && 3*beyond >= n, over, sum / float64(n)}
}

func slowErrors(all []Sent, t float64) moment {
	n, failed, over := 0, 0, 0.0
	for _, s := range all {
		if s.How != Answered && s.How != Failed || !lately(s.At+s.End, t) {
			continue
		}
		n++
		if s.How == Failed {
			failed, over = failed+1, math.Max(over, s.At+s.End)
		}
	}
	return moment{n >= 5 && 2*failed >= n, over, float64(failed) / float64(n)}
}

// slowOutage goes back from a time as long as somebody waits at each second.
func slowOutage(all []Sent, t float64) moment {
	since := math.Inf(1)
	for back := t; back >= 1; back-- {
		waits := false
		for _, s := range all {
			if s.How != Refused && s.At <= back && s.At+s.End > back {
				waits, since = true, math.Min(since, s.At)
			}
		}
		if !waits {
			break
		}
	}
	for _, s := range all {
		for _, token := range s.Tokens {
			if s.At+token <= t && !math.IsInf(since, 1) {
				since = math.Max(since, s.At+token)
			}
		}
	}
	return moment{t-since >= 30, t, t - since}
}

// madeUp draws requests of a server that stands still now and then, is slow at times, and fails
// at times.
func madeUp(random *rand.Rand) []Sent {
	var all []Sent
	rate, slow := math.Exp(4*random.Float64()-3), math.Exp(3*random.Float64())
	stop, goes := 20+60*random.Float64(), 100+80*random.Float64()
	failing := random.Float64() * random.Float64()
	for at := random.ExpFloat64() / rate; at < 200; at += random.ExpFloat64() / rate {
		s := Sent{At: at, How: Answered}
		now, patience := at, 1e9
		if random.Float64() < 0.3 {
			patience = 60 * random.Float64()
		}
		for range random.IntN(30) {
			now += random.ExpFloat64() * 0.05 * slow
			if random.Float64() < 0.02 {
				now += 40 * random.Float64()
			}
			if now > stop && now < goes {
				now = goes + random.Float64()
			}
			s.Tokens = append(s.Tokens, now-at)
		}
		s.End = now - at + random.Float64()/10
		if s.End > patience {
			s.End, s.How = patience, []Ending{Left, TimedOut, Failed}[random.IntN(3)]
			s.Tokens = slices.DeleteFunc(s.Tokens, func(x float64) bool { return x > patience })
		}
		switch x := random.Float64(); {
		case x < failing:
			s.How = Failed
		case x < failing+0.05:
			s.How, s.Tokens = Refused, nil
		}
		all = append(all, s)
	}
	return all
}

func TestFeltHarmIsWhatAPlainScanOfAllRequestsFinds(t *testing.T) {
	found := map[string]int{}
	for seed := range uint64(150) {
		random := rand.New(rand.NewPCG(seed, 1))
		all := madeUp(random)
		usual := Usual{First: random.Float64(), Token: 0.1 * random.Float64()}
		want, got := slowFelt(all, usual, 240), FeltHarm(all, usual, 240)
		require.True(t, slices.IsSortedFunc(got, func(a, b Felt) int { return int(a.From - b.From) }))
		byKind := func(a, b Felt) int {
			if a.Level != b.Level || a.What != b.What {
				return slices.Compare([]string{string(a.Level), a.What}, []string{string(b.Level), b.What})
			}
			return int(a.From - b.From)
		}
		slices.SortFunc(want, byKind)
		slices.SortFunc(got, byKind)
		require.Len(t, got, len(want), "seed %d: %+v, want %+v", seed, got, want)
		for i, w := range want {
			g := got[i]
			require.Equal(t, []string{string(w.Level), w.What}, []string{string(g.Level), g.What}, "seed %d", seed)
			require.InDeltaSlice(t, []float64{w.From, w.To, w.Worst}, []float64{g.From, g.To, g.Worst}, 1e-6, "seed %d: %+v, want %+v", seed, g, w)
			found[fmt.Sprint(w.Level, w.What)]++
		}
	}
	require.Len(t, found, 6, "each kind of harm is found at least once: %v", found)
	for kind, n := range found {
		require.Greater(t, n, 10, kind)
	}
}
