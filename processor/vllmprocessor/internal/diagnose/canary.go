package diagnose

import (
	"fmt"
	"time"
)

// canary is what canary requests that are not answered show. An engine works as long as it has a
// request, and a canary is one: where nothing moves, it has stalled, also where its gauges have stayed at
// 0. Where something moves, the canary waits in the queue, and the gauges show it as any other request.
type canary struct {
	// Since is when the first of the canaries was sent that show a stall, in Unix nanoseconds; 0 where
	// they show none.
	Since int64 `json:",omitzero"`
}

// observe takes a reading, and returns whether canaries show a stall. It ends by progress, an answer, a
// restart or sleep, but not where the receiver does not know any more.
func (c *canary) observe(r *reading, p *progress) bool {
	sent := r.At - int64(r.unanswered*float64(time.Second))
	switch {
	case p.At == r.At, r.unanswered == 0, c.Since > 0 && r.restarted >= c.Since, r.awake == 0:
		c.Since = 0
	case c.Since == 0 && r.unanswered > 0 && p.was[generatedTokens].known() && (p.At <= sent || p.none(r.At)):
		// What moved between the last scrape before it was sent and the next one can have been before it, so
		// after that nothing may move for as long as with any other request.
		c.Since = max(sent, 1)
	}
	return c.Since > 0
}

// sentence says for how long no canary was answered; empty where they show no stall.
func (c *canary) sentence(at int64) string {
	if c.Since == 0 {
		return ""
	}
	return fmt.Sprintf("Canary requests have not been answered for %.0f s.", time.Duration(at-c.Since).Seconds())
}
