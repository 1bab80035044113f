package soak

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// served is an answer with two engines; arrived is what must arrive of it.
func served(id uint64, seconds int) answer {
	return answer{id: id, target: "a", at: noon.Add(time.Duration(seconds) * time.Second), life: 1, shape: "s", engines: 2, tokens: 100, settled: true}
}

func arrived(id uint64) part {
	return part{
		at: moment{"a", id}, points: 10, ids: []uint64{id},
		last:   map[int]float64{0: float64(id), 1: float64(id)},
		tokens: map[int]float64{0: 100, 1: 100},
		first:  map[int]float64{0: 1, 1: 1},
	}
}

func balanced(answers []answer, parts []part, more ...func(*ledger)) balance {
	l := newLedger()
	for _, p := range parts[:len(parts)/2] {
		l.receive(p) // Some arrive before the server has noted them.
	}
	for _, a := range answers {
		l.serve(a)
	}
	for _, p := range parts[len(parts)/2:] {
		l.receive(p)
	}
	for _, f := range more {
		f(l)
	}
	return l.balance()
}

func TestWhatArrivesAsAWholeIsReceived(t *testing.T) {
	b := balanced([]answer{served(1, 0), served(2, 5)}, []part{arrived(1), arrived(2)})
	assert.Equal(t, balance{Served: 2, Received: 2, Points: 20, Compared: 2, Excused: map[string]int{}}, b)
}

func TestAnAnswerThatDoesNotArriveIsLost(t *testing.T) {
	b := balanced([]answer{served(1, 0), served(2, 5), served(3, 10)}, []part{arrived(1), arrived(3)})
	assert.Equal(t, 1, b.Lost)
	assert.Equal(t, 2, b.Received)
	assert.Equal(t, []string{"answer 2 of a at 12:00:05 has not arrived"}, b.Examples)
}

func TestPartsOfOneScrapeAreJoined(t *testing.T) {
	one, two := arrived(1), arrived(1)
	one.points, one.last, one.tokens = 4, nil, map[int]float64{0: 100}
	two.points, two.ids, two.tokens, two.first = 6, nil, map[int]float64{1: 100}, nil
	for _, parts := range [][]part{{one, two}, {two, one}} {
		b := balanced([]answer{served(1, 0)}, parts)
		assert.Equal(t, balance{Served: 1, Received: 1, Points: 10, Compared: 1, Excused: map[string]int{}}, b)
	}
}

func TestAMissingEngineOrAWrongNumberIsIncomplete(t *testing.T) {
	for name, change := range map[string]func(*part){
		"tokens of an engine":      func(p *part) { delete(p.tokens, 1) },
		"a histogram of an engine": func(p *part) { delete(p.first, 0) },
		"the end of the body":      func(p *part) { delete(p.last, 1) },
		"other tokens":             func(p *part) { p.tokens[0] = 99 },
		"tokens of another answer": func(p *part) { p.tokens = map[int]float64{0: 99, 1: 99} },
		"the end of another body":  func(p *part) { p.last[1] = 7 },
		"two numbers in one":       func(p *part) { p.ids = append(p.ids, 3) },
	} {
		broken := arrived(2)
		change(&broken)
		b := balanced([]answer{served(1, 0), served(2, 5)}, []part{arrived(1), broken})
		assert.Equal(t, 1, b.Incomplete, name)
		assert.Len(t, b.Examples, 1, name)
	}
}

func TestFewerPointsThanUsualAreNoticed(t *testing.T) {
	few := arrived(3)
	few.points = 9
	answers := []answer{served(1, 0), served(2, 5), served(3, 10)}
	b := balanced(answers, []part{arrived(1), arrived(2), few})
	assert.Equal(t, 1, b.Short)
	// After a change the number may differ.
	answers[2].settled = false
	b = balanced(answers, []part{arrived(1), arrived(2), few})
	assert.Equal(t, 0, b.Short)
	assert.Equal(t, 2, b.Compared)
}

func TestWhatIsSentAgainIsCountedOnce(t *testing.T) {
	again := arrived(1)
	again.repeated = true
	b := balanced([]answer{served(1, 0), served(2, 5)}, []part{arrived(1), arrived(2), again})
	assert.Equal(t, 1, b.Duplicates)
	assert.Equal(t, 20, b.Points)
	assert.Zero(t, b.Incomplete+b.Short+b.Lost)
}

func TestANumberThatNoServerGaveIsUnknown(t *testing.T) {
	b := balanced([]answer{served(1, 0)}, []part{arrived(1), arrived(2)})
	assert.Equal(t, 1, b.Unknown)
}

func TestOnlyAnswersThatCouldNotBeReadAreExcused(t *testing.T) {
	answers := []answer{served(1, 0), served(2, 5), served(3, 10)}
	all := window{from: noon.Add(4 * time.Second), to: noon.Add(6 * time.Second), why: "w"}
	excuse := func(w window) func(*ledger) { return func(l *ledger) { l.excuse(w) } }
	b := balanced(answers, []part{arrived(1), arrived(3)}, excuse(all))
	assert.Equal(t, map[string]int{"w": 1}, b.Excused)
	assert.Zero(t, b.Lost)

	b = balanced(answers, []part{arrived(2), arrived(3)}, excuse(all))
	assert.Equal(t, 1, b.Lost, "another time")
	other := all
	other.target = "b"
	b = balanced(answers, []part{arrived(1), arrived(3)}, excuse(other))
	assert.Equal(t, 1, b.Lost, "another target")
	// What arrived in a window needs no excuse.
	b = balanced(answers, []part{arrived(1), arrived(2), arrived(3)}, excuse(all))
	assert.Empty(t, b.Excused)
}

func TestTheLastAnswerOfARemovedTargetIsExcused(t *testing.T) {
	second := served(4, 40)
	second.life = 2
	answers := []answer{served(1, 0), served(2, 5), second}
	end := func(l *ledger) { l.end("a", 1) }
	b := balanced(answers, []part{arrived(1), arrived(4)}, end)
	assert.Equal(t, map[string]int{"the last answer of a target that was removed": 1}, b.Excused)
	b = balanced(answers, []part{arrived(2), arrived(4)}, end)
	assert.Equal(t, 1, b.Lost, "an answer before the last one")
	b = balanced(answers, []part{arrived(1), arrived(2)}, end)
	assert.Equal(t, 1, b.Lost, "the last answer of a life that has not ended")
}

func TestMissingAnswersAreWaitedFor(t *testing.T) {
	l := newLedger()
	l.serve(served(1, 0))
	l.serve(served(2, 5))
	assert.Equal(t, 1, l.missing(noon.Add(3*time.Second)))
	assert.Equal(t, 2, l.missing(noon.Add(time.Minute)))
	l.receive(arrived(1))
	assert.Equal(t, 0, l.missing(noon.Add(3*time.Second)))
}
