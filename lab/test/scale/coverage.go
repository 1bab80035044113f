package scale

import (
	"cmp"
	"slices"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/fleet"
)

// life is one process of a collector.
type life struct {
	number, member, shards int
	began, ready, ended    time.Time
	// scraped is when it was given its first answer.
	scraped time.Time
	// how is how it ended.
	how string
}

// handover is how long no process was there to read what the second has taken over from the
// first, and how long both were. A process is there from its first scrape on: then it has found
// its targets.
func handover(before, after *life) (away, both time.Duration) {
	d := after.scraped.Sub(before.ended)
	return max(0, d), max(0, -d)
}

// span is what one process has read of an engine, in ticks.
type span struct {
	life        int
	first, last int64
	// at is the time of its first points in unix nanoseconds.
	at uint64
}

// change is where one process takes an engine over from another.
type change struct {
	before, after span
	// gap is the time in ticks in which no process read the engine, overlap that in which two
	// did. Only what happens between two scrapes of one process is counted by it, so a process
	// that counts increments loses those of the gap, and two count those of the overlap.
	gap, overlap int64
	// from and to are the ticks of the gap or the overlap.
	from, to int64
}

// spans divides the arrivals of an engine by process, ordered by their first answer.
func spans(arrivals []arrival) []span {
	byLife := map[int]*span{}
	for _, a := range arrivals {
		s := byLife[a.life]
		if s == nil {
			byLife[a.life] = &span{a.life, a.tick, a.tick, a.at}
			continue
		}
		if a.tick < s.first {
			s.first, s.at = a.tick, a.at
		}
		s.last = max(s.last, a.tick)
	}
	out := make([]span, 0, len(byLife))
	for _, s := range byLife {
		out = append(out, *s)
	}
	slices.SortFunc(out, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(a.last, b.last), cmp.Compare(a.life, b.life))
	})
	return out
}

// changes follows an engine from process to process.
func changes(spans []span) []change {
	var out []change
	for i := 1; i < len(spans); i++ {
		// The process that has read the engine last so far.
		before := spans[i-1]
		for _, s := range spans[:i-1] {
			if s.last > before.last {
				before = s
			}
		}
		c := change{before: before, after: spans[i]}
		if c.after.first > before.last {
			c.gap, c.from, c.to = c.after.first-before.last, before.last, c.after.first
		} else {
			c.from, c.to = c.after.first, min(before.last, c.after.last)
			c.overlap = c.to - c.from
		}
		out = append(out, c)
	}
	return out
}

// counted is what a backend makes of a counter that several processes began at zero.
type counted struct {
	// byStart adds the last value of each start time, which is right for processes that do not
	// overlap. oneSeries follows the points in time as one series that was reset where it
	// falls, as Prometheus's increase does.
	byStart, oneSeries float64
}

func countUp(points []fleet.Sample) (out counted) {
	sorted := slices.SortedFunc(slices.Values(points), func(a, b fleet.Sample) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Start, b.Start))
	})
	most := map[uint64]float64{}
	for i, p := range sorted {
		most[p.Start] = max(most[p.Start], p.Value)
		switch {
		case i == 0:
			out.oneSeries += p.Value
		case p.Value >= sorted[i-1].Value:
			out.oneSeries += p.Value - sorted[i-1].Value
		default:
			out.oneSeries += p.Value
		}
	}
	for _, v := range most {
		out.byStart += v
	}
	return out
}
