package judge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/observed"
)

// world is a server during a whole story, including its restarts.
type world struct {
	cfg    engine.Config
	faults []Fault // Present and future faults.
	server *engine.Server
	// born is when the present process was ready, in seconds of the story.
	born     float64
	restarts uint64
	away     bool
	missed   bool
	frozen   []float64 // The shown utilization of each engine's KV cache.
	requests requests
}

// mostUnderway is the greatest number of requests that may be under way in one run. One that
// waits takes some 850 bytes, so that a run takes some 425 MB then. A published story has
// 194,000 waiting at its end, of 12 hours with 25 requests per second.
const mostUnderway = 500_000

// restartSeed is the difference between the seeds of two processes. It is that of the
// stand-in server, so that a test can compare the two.
const restartSeed = 1_000_003 << 32

func newWorld(cfg engine.Config, faults []Fault, objectives []objective, done func(*seen)) (*world, error) {
	cfg.KeepOutcomes, cfg.MostUnderway = true, mostUnderway
	server, err := engine.New(cfg)
	w := &world{cfg: cfg, server: server, faults: faults}
	w.requests = requests{objectives: objectives, workload: &w.cfg.Workload, open: map[int]*attempts{}, done: done}
	return w, err
}

// advance simulates up to a time, in seconds after the beginning.
func (w *world) advance(to float64) error {
	for len(w.faults) > 0 {
		f := w.faults[0]
		if !w.down() && !w.missed && w.frozen == nil {
			if f.At > to {
				break
			}
			if err := w.work(f.At); err != nil {
				return err
			}
			w.begin(f)
			continue
		}
		if f.Until > to {
			break
		}
		if err := w.work(f.Until); err != nil {
			return err
		}
		if err := w.end(f); err != nil {
			return err
		}
		w.faults = w.faults[1:]
	}
	return w.work(to)
}

// down reports whether the server does not answer.
func (w *world) down() bool { return w.away }

// gone reports whether there is no process.
func (w *world) gone() bool { return w.away && w.faults[0].Kind == Restart }

func (w *world) work(to float64) error {
	if w.gone() {
		return nil
	}
	w.server.AdvanceTo(to - w.born)
	for _, o := range w.server.Outcomes() {
		w.requests.add(&o)
	}
	if w.server.Overfull() {
		return &tooMany{at: w.born + w.server.Now()}
	}
	return nil
}

// tooMany is an error: more requests are under way than can be simulated, at a time in
// seconds after the beginning.
type tooMany struct{ at float64 }

func (t *tooMany) Error() string {
	return fmt.Sprintf("%.0f s after the beginning more than %d requests are under way: more arrive than the server serves; "+
		"lower the rate, the speed, the number of clients or arrival_rate, or shorten the story", t.at, mostUnderway)
}

func (w *world) begin(f Fault) {
	switch f.Kind {
	case Missed:
		w.missed = true
	case Frozen:
		for _, st := range w.server.Stats() {
			w.frozen = append(w.frozen, st.KVUsage)
		}
	case Restart:
		w.lose()
		w.away = true
	case Unreachable:
		w.away = true
	}
}

func (w *world) end(f Fault) error {
	w.away, w.missed, w.frozen = false, false, nil
	if f.Kind != Restart {
		return nil
	}
	cfg := w.cfg
	cfg.Changes = engine.ChangesAfter(w.cfg.Changes, f.Until)
	if load := &cfg.Workload; load.Traffic != nil && load.Clients == 0 {
		// The traffic goes on, whoever serves it.
		load.From += f.Until * cmp.Or(load.Speed, 1)
	}
	w.restarts++
	cfg.Seed += w.restarts * restartSeed
	server, err := engine.New(cfg)
	w.server, w.born = server, f.Until
	w.requests.born = f.Until
	w.requests.epoch++
	return err
}

// lose counts unfinished requests as aborted.
func (w *world) lose() {
	for _, o := range w.server.Unfinished() {
		o.End = engine.EndAborted
		w.requests.add(&o)
	}
	w.requests.close()
}

// settle ends requests whose clients do not try again.
func (w *world) settle() {
	if len(w.requests.open) == 0 || w.gone() {
		return
	}
	w.requests.settle(w.firstAttempts(), w.server.Now())
}

// afterwards is how long a story goes on after its end, in seconds, for the requests that
// have not ended.
const afterwards = 600.0

// finish goes on after the end until what arrived before it has ended in all worlds, for
// ten minutes at most, or until too many have arrived since: how long a request takes is only
// known then.
func finish(ctx context.Context, worlds []*world, end float64, advance func(to float64) error) error {
	pending := func(w *world) bool { return w.pending(end) }
	for share := 1.0 / 128; share <= 1 && slices.ContainsFunc(worlds, pending); share *= 2 {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := advance(end + share*afterwards); errors.As(err, new(*tooMany)) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return nil
}

// pending reports whether a request that arrived before a time has not ended.
func (w *world) pending(before float64) bool {
	for _, a := range w.requests.open {
		if a.arrived+w.requests.born < before {
			return true
		}
	}
	if w.gone() {
		return false
	}
	pending := false
	w.server.Underway(func(_, _ int, arrived float64) { pending = pending || arrived+w.born < before })
	return pending
}

// close counts unfinished requests by their age.
func (w *world) close() {
	if !w.gone() {
		for _, o := range w.server.Unfinished() {
			w.requests.add(&o)
		}
	}
	w.requests.close()
}

// underway returns a function that reports whether a request is under way.
func (w *world) underway() func(key) bool {
	var first map[int]bool
	if w.cfg.Workload.Retries > 0 && !w.gone() {
		first = w.firstAttempts()
	}
	return func(k key) bool {
		if k.epoch != w.requests.epoch {
			return false
		}
		if w.requests.open[k.id] != nil || first[k.id] {
			return true
		}
		return w.cfg.Workload.Retries == 0 && !w.gone() && w.server.Has(k.id)
	}
}

// firstAttempts are those of the requests under way. With retries a request is known by its
// first attempt, which may have ended.
func (w *world) firstAttempts() map[int]bool {
	out := map[int]bool{}
	w.server.Underway(func(_, first int, _ float64) { out[first] = true })
	return out
}

// waiting is how many requests wait for room, by engine. There are none without a process.
func (w *world) waiting() []int {
	if w.gone() {
		return nil
	}
	var out []int
	for _, st := range w.server.States() {
		out = append(out, st.Waiting-st.Deferred)
	}
	return out
}

// stats returns the numbers that the server shows.
func (w *world) stats() []*observed.Stats {
	live := w.server.Stats()
	if w.frozen == nil {
		return live
	}
	out := make([]*observed.Stats, len(live))
	for i := range live {
		shown := *live[i]
		if i < len(w.frozen) {
			shown.KVUsage = w.frozen[i]
		}
		shown.ProcessUsage = nil
		out[i] = &shown
	}
	return out
}

// blockSize is the number of tokens of a KV block.
func (w *world) blockSize() int {
	if w.cfg.BlockSize > 0 {
		return w.cfg.BlockSize
	}
	return 16
}

// blocks is the number of KV blocks.
func (w *world) blocks() int {
	if w.cfg.Blocks > 0 {
		return w.cfg.Blocks
	}
	return w.cfg.Model.Blocks
}

// modelLength is max_model_len, with vLLM's default.
func (w *world) modelLength() int {
	if w.cfg.MaxModelLen > 0 {
		return w.cfg.MaxModelLen
	}
	return 16384
}
