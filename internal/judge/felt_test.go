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

// Three answers get a token each 50 ms up to 20 s, and then none; their clients give up at 60 s.
// The mean over the last 30 s grows as tokens fall out of them: with the gap that lasts there are
// 121 gaps at 44 s, 101 at 45 s, and 81 at 46 s, in 30 s. The limits are 0.25 and 0.3 s. From
// 50 s on only the gap that began at 20 s is left. The last look before the end is at 59 s.
func TestRunningAnswersThatStandStillAreHarm(t *testing.T) {
	still := Sent{At: 0, End: 60, How: TimedOut}
	for i := range 381 {
		still.Tokens = append(still.Tokens, 1+float64(i)*0.05)
	}
	all := []Sent{still, still, still}
	usual := Usual{First: 1, Token: 0.05}
	sameFelt(t, []Felt{
		felt(Clear, "token", 45, 59, 39),
		felt(Great, "token", 46, 59, 39),
	}, FeltHarm(all, usual, 300))
	// One that comes at 25 s waits for its first token, so that nobody is served from then on.
	sameFelt(t, []Felt{
		felt(Clear, "token", 45, 59, 39),
		felt(Great, "token", 46, 59, 39),
		felt(Outage, "any token", 55, 59, 34),
	}, FeltHarm(append(all, endedAt(25, 35, TimedOut)), usual, 300))
}

// An answer that is complete waits for no further token, although its client has not ended.
func TestACompleteAnswerWaitsForNothing(t *testing.T) {
	whole := Sent{At: 1, Tokens: []float64{0.1, 0.11}, End: 50, How: Answered}
	assert.Empty(t, FeltHarm([]Sent{whole, whole, whole}, Usual{First: 0.1, Token: 0.01}, 100))
}

func TestErrorsAreHarmWhereTheyAreHalfOfTheAnswers(t *testing.T) {
	// Requests come one a second from 10 s on, and end 10 ms later.
	at := func(failed, of int, rest Ending) []Sent {
		return each(of, func(i float64) Sent {
			if int(i) < failed {
				return endedAt(10+i, 0.01, Failed)
			}
			return Sent{At: 10 + i, End: 0.01, How: rest, Tokens: map[Ending][]float64{Answered: {0.01}}[rest]}
		})
	}
	for name, c := range map[string]struct {
		all  []Sent
		want []Felt
	}{
		// The fifth has ended at 15 s; later the share is smaller.
		"three of five":         {at(3, 5, Answered), []Felt{felt(Great, "answer", 15, 15, 0.6)}},
		"half of six":           {at(3, 6, Answered), []Felt{felt(Great, "answer", 15, 15, 0.6)}},
		"two of five":           {at(2, 5, Answered), nil},
		"four are too few":      {at(4, 4, Answered), nil},
		"wrong requests":        {at(0, 20, Refused), nil},
		"400 is an answer":      {at(3, 5, Refused), []Felt{felt(Great, "answer", 15, 15, 0.6)}},
		"who leaves counts not": {at(4, 8, Left), nil},
		"all, for 30 s":         {at(30, 30, Answered), []Felt{felt(Great, "answer", 15, 39.01, 1)}},
	} {
		t.Run(name, func(t *testing.T) { sameFelt(t, c.want, FeltHarm(c.all, Usual{First: 0.1}, 200)) })
	}
}

// Five errors end at 10.5 s and count up to 40 s. The next five count from the first whole
// second after their end.
func TestTimesOfHarmJoinOverAShortGap(t *testing.T) {
	five := func(at float64) []Sent { return each(5, func(float64) Sent { return endedAt(at, 0.5, Failed) }) }
	sameFelt(t, []Felt{felt(Great, "answer", 11, 84.5, 1)}, FeltHarm(append(five(10), five(84)...), Usual{}, 200))
	sameFelt(t, []Felt{
		felt(Great, "answer", 11, 11, 1), felt(Great, "answer", 86, 86, 1),
	}, FeltHarm(append(five(10), five(85)...), Usual{}, 200))
}

func TestAnOutageIsThatNobodyGetsATokenWhileSomebodyWaits(t *testing.T) {
	alone := endedAt(100.5, 50, TimedOut)
	// The first whole second at which it has waited 30 s is 131 s, the last before its end 150 s.
	sameFelt(t, []Felt{felt(Outage, "any token", 131, 150, 49.5)}, FeltHarm([]Sent{alone}, Usual{}, 300))
	// Somebody else got a token at 110.2 s: 30 s later is 140.2 s.
	other := Sent{At: 95, Tokens: []float64{1, 15.2}, End: 15.2, How: Answered}
	sameFelt(t, []Felt{felt(Outage, "any token", 141, 150, 150-110.2)}, FeltHarm([]Sent{alone, other}, Usual{}, 300))
	// Its own token ends it.
	sameFelt(t, []Felt{felt(Outage, "any token", 131, 132, 31.5)}, FeltHarm([]Sent{sentAt(100.5, 32)}, Usual{}, 300))
	assert.Empty(t, FeltHarm([]Sent{sentAt(100.5, 30.2)}, Usual{}, 300))
	// Nobody asks, so nobody waits.
	assert.Empty(t, FeltHarm([]Sent{sentAt(10, 0.1), sentAt(200, 0.1)}, Usual{}, 300))
	// A wrong request waits for no token.
	assert.Empty(t, FeltHarm([]Sent{endedAt(100, 60, Refused)}, Usual{}, 300))
}

// Clients give up after 8 s and try again at once: somebody waits all the time, though nobody for
// 30 s.
func TestAnOutageIsFeltByClientsThatTryAgain(t *testing.T) {
	again := each(6, func(i float64) Sent { return endedAt(100+8*i, 8, TimedOut) })
	// They wait from 100 s up to 148 s, where the last one gives up.
	sameFelt(t, []Felt{felt(Outage, "any token", 130, 147, 47)}, FeltHarm(again, Usual{First: 2}, 300))
	// Two seconds without a client end the wait.
	assert.Empty(t, FeltHarm(append(again[:3:3], endedAt(126, 8, TimedOut), endedAt(134, 8, TimedOut)), Usual{First: 2}, 300))
}

// Clients that go away because they want to have waited, and are no errors.
func TestWhoLeavesHasWaited(t *testing.T) {
	leave := func(after float64) []Sent {
		return each(10, func(i float64) Sent { return endedAt(100+i, after, Left) })
	}
	assert.Empty(t, FeltHarm(leave(1.5), Usual{First: 0.3}, 300), "not beyond five times")
	// At 101 s they wait 1 and 0 s, at 102 s three wait 2, 1 and 0 s, at 103 s 2, 2, 1 and 0 s,
	// and so on: at 106 s 2 s five times, 1 and 0 s, whose mean of 11/7 is beyond 1.5 s.
	got := FeltHarm(leave(2), Usual{First: 0.3}, 300)
	sameFelt(t, []Felt{felt(Clear, "first token", 106, 111, 2)}, got)
}

// A request got its first token late, and then its connection broke. It has waited all the same.
func TestALateFirstTokenCountsAlsoWhereTheAnswerBroke(t *testing.T) {
	broken := each(3, func(i float64) Sent {
		return Sent{At: 100 + i, Tokens: []float64{8, 8.1}, End: 9, How: Failed}
	})
	sameFelt(t, []Felt{
		felt(Clear, "first token", 104, 110, 8),
		felt(Great, "first token", 107, 110, 8),
	}, first(FeltHarm(broken, Usual{First: 0.4, Token: 1}, 300)))
}

// first are the waits for a first token.
func first(all []Felt) (out []Felt) {
	for _, f := range all {
		if f.What == "first token" {
			out = append(out, f)
		}
	}
	return out
}

func TestUsualIsTheMeanOfTheAnsweredRequestsOfAPhase(t *testing.T) {
	all := []Sent{
		{Tokens: []float64{0.1, 0.2, 0.4}, End: 0.5, How: Answered},         // 150 ms a token
		{Tokens: []float64{0.3, 0.35}, End: 0.35, How: Answered},            // 50 ms
		{Tokens: []float64{0.2}, End: 0.2, How: Answered},                   // No further token.
		{Tokens: []float64{9, 10}, End: 10, How: Answered, Phase: 1},        // Later.
		{Tokens: []float64{5, 9}, End: 10, How: TimedOut},                   // Not answered.
		{End: 0.1, How: Answered}, {End: 0.01, How: Refused}, {How: Failed}, // Without tokens.
	}
	got := UsualOf(all, 0)
	assert.InDelta(t, 0.2, got.First, 1e-12)
	assert.InDelta(t, 0.1, got.Token, 1e-12)
	assert.Equal(t, Usual{First: 9, Token: 1}, UsualOf(all, 1))
	assert.Equal(t, Usual{}, UsualOf(nil, 0))
}
