package sim

import (
	"container/heap"
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/run"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// world is a server with its clients. All times count from when the server was ready.
type world struct {
	ctx    context.Context //nolint:containedctx // It lives as long as one call of Play.
	server *vllmsim.Server
	target *vllmsim.Target
	// began is the beginning of the story, held until when the API server stands still.
	now, began, held time.Duration
	due              dues
	count            int
	news             []news
	underway         map[int]*attempt
	sent             []judge.Sent
	// prompts is the number of the next prompt.
	prompts int
	run     *run.Run // Who looks at the server; nil for nobody.
}

// news is what the server says of a request: that it got tokens, or what became of it.
type news struct {
	id      int
	at      float64
	outcome *engine.Outcome
}

// step is how long a client takes at most to react to an answer. The times of tokens and
// answers are exact, whatever it is: the server says them.
const step = 5 * time.Millisecond

// until lets all happen up to a time.
func (w *world) until(to time.Duration) error {
	for {
		for len(w.due) > 0 && w.due[0].at <= w.now {
			heap.Pop(&w.due).(due).do()
		}
		if w.now >= to {
			return w.ctx.Err()
		}
		next := min(to, w.now+step)
		if len(w.due) > 0 {
			next = min(next, w.due[0].at)
		}
		if next.Truncate(time.Second) > w.now && w.ctx.Err() != nil {
			return w.ctx.Err()
		}
		w.server.Advance(next - w.now)
		w.now = next
		if err := w.target.CatchUp(); err != nil {
			return err
		}
		w.hear()
	}
}

// hear lets clients see what the server has sent.
func (w *world) hear() {
	for len(w.news) > 0 {
		all := w.news
		w.news = nil
		for _, n := range all {
			a := w.underway[n.id]
			switch {
			case a == nil: // Its client has gone.
			case n.outcome != nil:
				delete(w.underway, n.id)
				a.ended(n.outcome)
			default:
				a.seen.Tokens = append(a.seen.Tokens, rounded(n.at-a.at.Seconds()))
			}
		}
	}
}

// at lets something happen at a time; of equal times in the order of the calls.
func (w *world) at(at time.Duration, do func()) {
	w.count++
	heap.Push(&w.due, due{at, w.count, do})
}

type due struct {
	at    time.Duration
	order int
	do    func()
}

type dues []due

func (q dues) Len() int { return len(q) }
func (q dues) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].order < q[j].order
}
func (q dues) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *dues) Push(x any)   { *q = append(*q, x.(due)) }
func (q *dues) Pop() any {
	old := *q
	last := old[len(old)-1]
	old[len(old)-1] = due{}
	*q = old[:len(old)-1]
	return last
}

// look scrapes the server, as run.Watch does.
func (w *world) look() { w.lookFrom(w.now) }

func (w *world) lookFrom(asked time.Duration) {
	if w.run == nil {
		return
	}
	one := run.Scrape{At: (asked - w.began).Seconds()}
	switch {
	case w.held > asked+run.Every:
		// It waits as long as its patience lasts, and the look that is due in that time is left out.
		one.Failure = "timeout"
		w.at(asked+2*run.Every, w.look)
	case w.held > w.now:
		w.at(w.held, func() { w.lookFrom(asked) }) // It is answered late.
		return
	default:
		// Before the next look is due: it can be that this one was answered late.
		w.at(w.began+(w.now-w.began)/run.Every*run.Every+run.Every, w.look)
		body, _, err := w.target.Body()
		if err != nil {
			one.Failure = "refused"
			break
		}
		one.Status, one.Body, one.Health = http.StatusOK, body, http.StatusOK
		one.Load = fmt.Sprintf(`{"server_load":%d}`, len(w.underway))
	}
	w.run.Scrapes = append(w.run.Scrapes, one)
}
