package truth

import (
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// Window is what really happened between two scrapes, at one engine or at all.
type Window struct {
	Case     *Case
	From, To float64
	// Engine is the number of the engine, allEngines or frontEnd.
	Engine int

	// journal is in the order of time, and requests are its events of requests.
	journal, requests []engine.Event
	// happened are the events of the window that a scrape can show.
	happened []*engine.Event
	// other is the window in which requests that failed before their first token have one:
	// for some versions they do, as the metrics say. It is nil where there are none.
	other *Window
	// sorted has values of the requests by metric, once they are computed.
	sorted map[string][]float64
}

// newWindow returns the window of a length that ends at scrape n: it begins at the newest
// scrape that is at least as old, else at the first. ok is false at the first scrape, and for
// a long window that is not full.
func newWindow(o *Observed, n, of int, length float64, full bool) (w Window, ok bool) {
	to := o.Scrapes[n].At
	w = Window{Case: o.Case, To: to, Engine: of, journal: o.Journal, requests: o.requests, sorted: map[string][]float64{}}
	first := n
	for i := n - 1; i >= 0; i-- {
		first = i
		if to-o.Scrapes[i].At >= length {
			break
		}
	}
	from := o.Scrapes[first].At
	if first == n || (full && to-from < length) {
		return w, false
	}
	w.From = from
	recent := w.until(to)[len(w.until(from)):]
	for i := range recent {
		if e := &recent[i]; w.has(e) && !o.lost(e.At, of) {
			w.happened = append(w.happened, e)
		}
	}
	w.other = w.withFailed()
	return w, true
}

// withFailed returns the window with a first token at each end before it, if the version
// counts one.
func (w *Window) withFailed() *Window {
	if !w.Case.shows(catalog.DefectFirstTokenWithoutToken) {
		return nil
	}
	with := *w
	with.sorted = map[string][]float64{}
	for _, e := range w.happened {
		if e.Kind == engine.EventEnd && e.End == engine.EndError && e.Output == 0 {
			first := *e
			first.Kind = engine.EventFirst
			with.happened = append(with.happened[:len(with.happened):len(with.happened)], &first)
		}
	}
	if len(with.happened) == len(w.happened) {
		return nil
	}
	return &with
}

func (w *Window) has(e *engine.Event) bool { return w.Engine < 0 || e.Engine == w.Engine }

// lost reports whether the counters of an engine, or of the front end, began again after a
// time and before the next scrape: then no scrape has ever shown what happened at that time.
func (o *Observed) lost(at float64, of int) bool {
	for _, reset := range o.Case.resets(of) {
		next := slices.IndexFunc(o.Scrapes, func(s Scrape) bool { return s.At >= at && !o.Case.away(s.At) })
		if at < reset && next >= 0 && o.Scrapes[next].At >= reset {
			return true
		}
	}
	return false
}

// away reports whether there is no process at a time.
func (c *Case) away(at float64) bool {
	return slices.ContainsFunc(c.Config.Faults, func(f vllmsim.Fault) bool {
		return f.Kind == vllmsim.FaultRestart && at >= f.At && at < f.Until
	})
}

// restarted is the newest end of a process up to a time.
func (c *Case) restarted(by float64) (at float64) {
	for _, f := range c.Config.Faults {
		if f.Kind == vllmsim.FaultRestart && f.At <= by {
			at = max(at, f.At)
		}
	}
	return at
}

// resets are the times at which the counters of an engine, or of the front end, begin at 0
// again.
func (c *Case) resets(of int) (at []float64) {
	for _, f := range c.Config.Faults {
		if f.Kind == vllmsim.FaultRestart {
			at = append(at, f.Until)
		}
	}
	for _, ch := range c.Config.Changes {
		if ch.Parameter == engine.ParamScaleUp && of != frontEnd {
			at = append(at, ch.At)
		}
	}
	return at
}

// Elapsed is the length of the window in seconds.
func (w *Window) Elapsed() float64 { return w.To - w.From }

// sum adds up something over the events of a kind.
func (w *Window) sum(kind engine.EventKind, of func(*engine.Event) float64) (total float64) {
	for _, e := range w.happened {
		if e.Kind == kind {
			total += of(e)
		}
	}
	return total
}

// values are those of the events of a kind; ok is false for an event without one.
func (w *Window) values(kind engine.EventKind, of func(*engine.Event) (value float64, ok bool)) (all []float64) {
	for _, e := range w.happened {
		if e.Kind == kind {
			if v, ok := of(e); ok {
				all = append(all, v)
			}
		}
	}
	return all
}

func one(*engine.Event) float64 { return 1 }

// until is the part of the journal up to a time.
func (w *Window) until(at float64) []engine.Event {
	n, _ := slices.BinarySearchFunc(w.journal, at, func(e engine.Event, at float64) int {
		if e.At <= at {
			return -1
		}
		return 1
	})
	return w.journal[:n]
}

// lastStep returns the state at the end of the newest step of an engine that the front end
// had worked on by a time. There is none after its numbers began at 0 again.
func (w *Window) lastStep(of int, by float64) (step engine.Step) {
	since := 0.0
	for _, reset := range w.Case.resets(of) {
		if reset <= by {
			since = max(since, reset)
		}
	}
	for _, e := range slices.Backward(w.until(by)) {
		if e.At < since {
			break
		}
		if e.Kind == engine.EventStep && e.Engine == of {
			return *e.Step
		}
	}
	return step
}

// state adds up something over the last steps of the engines of the window.
func (w *Window) state(by float64, of func(engine.Step) float64) (total float64) {
	for i := range w.Case.engines() {
		if w.Engine < 0 || w.Engine == i {
			total += of(w.lastStep(i, by))
		}
	}
	return total
}

// begun are the requests whose first token the front end has worked on at any time.
func (w *Window) begun() map[int]bool {
	first := map[int]bool{}
	for i := range w.requests {
		if e := &w.requests[i]; e.Kind == engine.EventFirst {
			first[e.Request] = true
		}
	}
	return first
}

// between counts the requests that have reached one point and not the next at a time.
// Refused requests count in none.
func (w *Window) between(at float64, begun, ended engine.EventKind) (n float64) {
	under, since := map[int]bool{}, w.Case.restarted(at)
	for i := range w.requests {
		e := &w.requests[i]
		switch {
		case e.At > at:
			return float64(len(under))
		case !w.has(e) || e.At < since:
		case e.Kind == begun && e.End != engine.EndRefused:
			under[e.Request] = true
		case e.Kind == ended || e.Kind == engine.EventEnd:
			delete(under, e.Request)
		}
	}
	return float64(len(under))
}
