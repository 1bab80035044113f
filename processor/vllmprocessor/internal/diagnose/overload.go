package diagnose

// backlog follows the requests that wait for room, and whether arrivals exceed what the
// engine serves: for longer than two windows requests always wait, and at the end there are as many as
// ever in them, but for a tenth. A burst that queues and drains as it must is no overload.
type backlog struct {
	recent []waited
	over   bool
}

// waited is a sample of the queue, at in Unix nanoseconds.
type waited struct {
	at      int64
	waiting float64
}

// asLong is the share of its greatest length at which a queue is as long: lengths vary by
// chance. shorter is the share at which an overload has ended: the queue drains.
const asLong, shorter = 0.9, 0.5

// mostSamples bounds the samples: one each second of two windows of a minute.
const mostSamples = 120

// observe adds a sample.
func (b *backlog) observe(at int64, waiting float64, window int64) {
	if !(waiting >= 1) {
		b.recent, b.over = b.recent[:0], false
		return
	}
	if len(b.recent) == mostSamples {
		b.recent = append(b.recent[:1], b.recent[2:]...)
	}
	b.recent = append(b.recent, waited{at, waiting})
	for len(b.recent) > 2 && at-b.recent[1].at >= 2*window {
		b.recent = b.recent[1:]
	}
	longest := 0.0
	for _, s := range b.recent {
		longest = max(longest, s.waiting)
	}
	switch {
	case waiting < shorter*longest:
		b.over = false
	case at-b.recent[0].at >= 2*window && waiting >= asLong*longest:
		b.over = true
	}
}
