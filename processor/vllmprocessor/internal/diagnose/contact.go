package diagnose

import (
	"slices"
	"time"
)

const (
	// leastScrapes is how many scrapes decide whether a server alternates between answering
	// and failing, where the last window has fewer: two of each kind.
	leastScrapes = 4
	// mostScrapes bounds what is kept of a server that is scraped more often than each
	// second.
	mostScrapes = 64
	// outage is the least time between the first and the last of some scrapes that failed
	// in a row: one request of the server's that takes long cannot be an outage. It is more
	// than a scrape's usual timeout of 10 s.
	outage = 20 * time.Second
)

// contact decides from the outcomes of scrapes whether a server that was read before is
// lost, that is: can no longer be read. One failed scrape decides nothing. Neither
// does the hold of the diagnosis apply: the rules below wait themselves.
type contact struct {
	// recent are the outcomes of the last window, oldest first, at least leastScrapes.
	recent []outcome
	lost   bool
	// ended is when the server was found again, in Unix nanoseconds; 0 for never. again is
	// true where it was lost once more soon after that.
	ended int64
	again bool
}

// outcome is that of one scrape at a time in Unix nanoseconds.
type outcome struct {
	at     int64
	failed bool
}

// observe takes the outcome of a scrape.
//
// The server is lost when scrapes have failed in a row for 20 s or half a window, whichever
// is shorter, or when half of the recent ones failed: these are those of the last window,
// and at least the last four. Both need two failed scrapes.
//
// It is found when two scrapes in a row have succeeded. Where it was lost again within
// hold windows after that, it alternates, and is found when none of the recent scrapes
// failed: a server that answers twice, fails twice and so on is lost all the time.
func (c *contact) observe(settings *Settings, failed bool, at int64) {
	if last := len(c.recent) - 1; last >= 0 && c.recent[last].at > at {
		// The clock was set back.
		c.recent, c.ended = c.recent[:0], 0
	}
	c.recent = append(c.recent, outcome{at, failed})
	for c.tooMany(int64(settings.Window)) {
		c.recent = slices.Delete(c.recent, 0, 1)
	}
	failures := 0
	for _, o := range c.recent {
		if o.failed {
			failures++
		}
	}
	n, since := c.run()
	switch {
	case failed && !c.lost:
		span := min(int64(outage), int64(settings.Window)/2)
		if failures < 2 || 2*failures < len(c.recent) && (n < 2 || at-since < span) {
			return
		}
		c.lost, c.again = true, c.ended > 0 && c.firstFailure()-c.ended < int64(settings.Hold)*int64(settings.Window)
	case !failed && c.lost && n >= 2 && (!c.again || failures == 0):
		c.lost, c.ended = false, at
	}
}

// tooMany reports whether the oldest outcome is not one of the recent ones any more. Two are
// kept however far apart they are.
func (c *contact) tooMany(window int64) bool {
	n := len(c.recent)
	age := c.recent[n-1].at - c.recent[0].at
	return n > mostScrapes || n > leastScrapes && age >= window || n > 2 && age >= leastScrapes*window
}

// run is the number of the newest scrapes with the same outcome, and the time of the first
// of them; both are 0 before the first scrape.
func (c *contact) run() (n int, since int64) {
	for i := len(c.recent) - 1; i >= 0 && c.recent[i].failed == c.recent[len(c.recent)-1].failed; i-- {
		n, since = n+1, c.recent[i].at
	}
	return n, since
}

// firstFailure is the time of the first recent failure since the server was found.
func (c *contact) firstFailure() int64 {
	for _, o := range c.recent {
		if o.failed && o.at > c.ended {
			return o.at
		}
	}
	return 0
}

// failingSince is the time of the first of the newest scrapes that all failed; 0 where the
// newest succeeded.
func (c *contact) failingSince() int64 {
	if n, since := c.run(); n > 0 && c.recent[len(c.recent)-1].failed {
		return since
	}
	return 0
}
