package judge

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// sentAt is a request that got its only token after so many seconds, with which it ended.
func sentAt(at, first float64) Sent {
	return Sent{At: at, Tokens: []float64{first}, End: first, How: Answered, Status: 200, Output: 1}
}

// endedAt is a request without a token.
func endedAt(at, end float64, how Ending) Sent { return Sent{At: at, End: end, How: how} }

// each returns the requests that a function makes, for each of the numbers up to n.
func each(n int, one func(i float64) Sent) []Sent {
	var out []Sent
	for i := range n {
		out = append(out, one(float64(i)))
	}
	return out
}

// felt is harm with its times in a form that is short to write.
func felt(level Level, what string, from, to, worst float64) Felt {
	return Felt{Level: level, What: what, From: from, To: to, Worst: worst}
}

func sameFelt(t *testing.T, want, got []Felt) {
	t.Helper()
	if !assert.Len(t, got, len(want), "%+v", got) {
		return
	}
	for i, w := range want {
		g := got[i]
		assert.Equal(t, []string{string(w.Level), w.What}, []string{string(g.Level), g.What}, "number %d", i)
		assert.InDeltaSlice(t, []float64{w.From, w.To, w.Worst}, []float64{g.From, g.To, g.Worst}, 1e-9, "from, to and worst of %s %s", w.Level, w.What)
	}
}

// Of three requests from 100 s on, one a second, each waits 8 s. At 107 s they wait 7, 6 and 5 s:
// the mean of 6 s is beyond 5 s. At 104 s they wait 4, 3 and 2 s, which is beyond 2 s. The last
// first token comes at 110 s.
func TestWaitsForAFirstTokenAreHarmFromTheSecondInWhichTheMeanIsBeyondTheLimit(t *testing.T) {
	all := each(3, func(i float64) Sent { return sentAt(100+i, 8) })
	sameFelt(t, []Felt{
		felt(Clear, "first token", 104, 110, 8),
		felt(Great, "first token", 107, 110, 8),
	}, FeltHarm(all, Usual{First: 0.4}, 300))
	// The order of the requests does not matter.
	sameFelt(t, FeltHarm(all, Usual{First: 0.4}, 300), FeltHarm([]Sent{all[2], all[0], all[1]}, Usual{First: 0.4}, 300))
	// Of two requests nothing is said.
	assert.Empty(t, FeltHarm(all[:2], Usual{First: 0.4}, 300))
	// The story ends before the mean is beyond 5 s.
	sameFelt(t, []Felt{felt(Clear, "first token", 104, 106, 5)}, FeltHarm(all, Usual{First: 0.4}, 106))
	// Ten times 1.5 s is more than all waits. Five times is less than the mean of 8, 8 and 7 s at
	// 109 s, and more than that of 8, 7 and 6 s before.
	sameFelt(t, []Felt{felt(Clear, "first token", 109, 110, 8)}, FeltHarm(all, Usual{First: 1.5}, 300))
}

// A third of the requests has to be beyond the limit, and the mean, too.
func TestOneLongWaitAmongShortOnesIsNoHarm(t *testing.T) {
	long := sentAt(100, 28)
	short := func(n int) []Sent {
		return append(each(n, func(i float64) Sent { return sentAt(127.5+i/10, 1) }), long)
	}
	usual := Usual{First: 0.25}
	// One of three is a third, and the mean of 28, 0.5 and 0.4 s at 128 s is beyond 5 s. In the end
	// it is that of 28, 1 and 1 s. The limit of clear harm is 1.25 s.
	sameFelt(t, []Felt{
		felt(Great, "first token", 128, 128, 10),
		felt(Clear, "first token", 128, 128, 10),
	}, FeltHarm(short(2), usual, 300))
	// One of four is less than a third.
	assert.Empty(t, FeltHarm(short(3), usual, 300))
	// A third is beyond 5 s, but the mean of 6, 1 and 1 s is not. That of 2, 1 and 1 s at 102 s is
	// beyond 1.25 s.
	sameFelt(t, []Felt{felt(Clear, "first token", 102, 106, 8.0/3)},
		FeltHarm([]Sent{sentAt(100, 6), sentAt(101, 1), sentAt(101, 1)}, usual, 300))
}

// Without a usual latency only the least limits count.
func TestHarmHasLeastLimits(t *testing.T) {
	three := func(first float64) []Sent { return each(3, func(float64) Sent { return sentAt(9.5, first) }) }
	assert.Empty(t, FeltHarm(three(0.5), Usual{}, 100), "0.5 s is not beyond 0.5 s")
	sameFelt(t, []Felt{felt(Clear, "first token", 11, 11, 0.51)}, FeltHarm(three(0.51), Usual{}, 100))
	sameFelt(t, []Felt{felt(Clear, "first token", 11, 14.5, 5)}, FeltHarm(three(5), Usual{First: 0.1}, 100))
	// After 4.5 s at 14 s it is 5.1 s.
	sameFelt(t, []Felt{
		felt(Clear, "first token", 11, 14.6, 5.1),
		felt(Great, "first token", 15, 15, 5.1),
	}, FeltHarm(three(5.1), Usual{First: 0.1}, 100))

	tokens := func(gap float64) []Sent {
		return each(3, func(float64) Sent {
			return Sent{At: 9.5, Tokens: []float64{0.1, 0.1 + gap, 0.1 + 2*gap}, End: 0.1 + 2*gap, How: Answered}
		})
	}
	assert.Empty(t, FeltHarm(tokens(0.049), Usual{}, 100))
	sameFelt(t, []Felt{felt(Clear, "token", 10, 10, 0.052)}, FeltHarm(tokens(0.052), Usual{}, 100))
	// Five times 20 ms are 100 ms.
	assert.Empty(t, FeltHarm(tokens(0.099), Usual{Token: 0.02}, 100))
	sameFelt(t, []Felt{felt(Clear, "token", 10, 10, 0.102)}, FeltHarm(tokens(0.102), Usual{Token: 0.02}, 100))
	sameFelt(t, []Felt{felt(Clear, "token", 10, 10.18, 0.29)}, FeltHarm(tokens(0.29), Usual{Token: 0.02}, 100))
	// At 10 s: the second token came after 0.31 s, the third one has been awaited for 0.09 s.
	sameFelt(t, []Felt{
		felt(Clear, "token", 10, 10.22, 0.31),
		felt(Great, "token", 11, 11, 0.31),
	}, FeltHarm(tokens(0.31), Usual{Token: 0.02}, 100))
}

// With an objective, great harm is three times its threshold, below as above the multiple of the usual.
func TestAnObjectiveSaysWhatGreatHarmIs(t *testing.T) {
	usual := Usual{First: 0.1, PromisedFirst: 1}
	three := func(first float64) []Sent { return each(3, func(float64) Sent { return sentAt(9.5, first) }) }
	sameFelt(t, []Felt{felt(Clear, "first token", 11, 12.5, 3)}, FeltHarm(three(3), usual, 100))
	sameFelt(t, []Felt{
		felt(Clear, "first token", 11, 12.6, 3.1),
		felt(Great, "first token", 13, 13, 3.1),
	}, FeltHarm(three(3.1), usual, 100))
	usual.PromisedFirst = 3
	sameFelt(t, []Felt{felt(Clear, "first token", 11, 18.5, 9)}, FeltHarm(three(9), usual, 100))

	// A gap of 0.31 s is beyond five times 20 ms and 0.3 s, and not beyond three times 0.2 s.
	tokens := each(3, func(float64) Sent {
		return Sent{At: 9.5, Tokens: []float64{0.1, 0.41, 0.72}, End: 0.72, How: Answered}
	})
	sameFelt(t, []Felt{felt(Clear, "token", 10, 10.22, 0.31)}, FeltHarm(tokens, Usual{Token: 0.02, PromisedToken: 0.2}, 100))
}

// Three answers get a token each 50 ms up to 20 s, and then none; their clients give up at 60 s.
// The mean over the last 30 s grows as tokens fall out of them: with the gap that lasts there are
// 121 gaps at 44 s, 101 at 45 s, and 81 at 46 s, in 30 s. The limits are 0.25 and 0.3 s. From
// 50 s on only the gap that began at 20 s is left; it is 40 s long when the clients give up.
// Nobody has got a token for 30 s at 50 s, and the last look at which somebody waits is at 59 s.
func TestRunningAnswersThatStandStillAreHarm(t *testing.T) {
	still := Sent{At: 0, End: 60, How: TimedOut}
	for i := range 381 {
		still.Tokens = append(still.Tokens, 1+float64(i)*0.05)
	}
	all := []Sent{still, still, still}
	usual := Usual{First: 1, Token: 0.05}
	want := []Felt{
		felt(Clear, "token", 45, 60, 40),
		felt(Great, "token", 46, 60, 40),
		felt(Outage, "any token", 50, 59, 39),
	}
	sameFelt(t, want, FeltHarm(all, usual, 300))
	// One that comes at 25 s waits like the others.
	sameFelt(t, want, FeltHarm(append(all, endedAt(25, 35, TimedOut)), usual, 300))
}

// Nobody new comes: two answers stand still from second 50 to second 120.
func TestAnswersThatStandStillAreAnOutage(t *testing.T) {
	answer := func(at float64) Sent {
		s := Sent{At: at, How: Answered, Tokens: Times{0.1}}
		for now := at + 0.1; now < 130; now += 0.1 {
			if now < 50 || now > 120 {
				s.Tokens = append(s.Tokens, now-at)
			}
		}
		s.End = s.Tokens[len(s.Tokens)-1]
		return s
	}
	felt := FeltHarm([]Sent{answer(20), answer(30)}, Usual{First: 0.1, Token: 0.1}, 150)
	assert.Len(t, felt, 1, "two requests are too few for the other kinds")
	assert.Equal(t, Outage, felt[0].Level)
	assert.InDelta(t, 80, felt[0].From, 1)
	assert.InDelta(t, 120, felt[0].To, 1)
}
