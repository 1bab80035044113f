package accuracy

import (
	"github.com/otelcol-vllm/otelcol-vllm/internal/vllmsim/engine"
	"github.com/otelcol-vllm/otelcol-vllm/internal/vllmsim/observed"
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
	minute   []minute
}

// restartSeed is the difference between the seeds of two processes. It is that of the
// stand-in server, so that a test can compare the two.
const restartSeed = 1_000_003 << 32

func newWorld(cfg engine.Config, faults []Fault) (*world, error) {
	cfg.KeepOutcomes = true
	server, err := engine.New(cfg)
	return &world{cfg: cfg, server: server, faults: faults}, err
}

// advance simulates up to a time, in seconds after the beginning.
func (w *world) advance(to float64) error {
	for len(w.faults) > 0 {
		f := w.faults[0]
		if !w.down() && !w.missed && w.frozen == nil {
			if f.At > to {
				break
			}
			w.work(f.At)
			w.begin(f)
			continue
		}
		if f.Until > to {
			break
		}
		w.work(f.Until)
		if err := w.end(f); err != nil {
			return err
		}
		w.faults = w.faults[1:]
	}
	w.work(to)
	return nil
}

// down reports whether the server does not answer.
func (w *world) down() bool { return w.away }

// gone reports whether there is no process.
func (w *world) gone() bool { return w.away && w.faults[0].Kind == Restart }

func (w *world) work(to float64) {
	if w.gone() {
		return
	}
	w.server.AdvanceTo(to - w.born)
	for _, o := range w.server.Outcomes() {
		w.add(o)
	}
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
	cfg.Changes = nil
	for _, ch := range w.cfg.Changes {
		ch.At = max(0, ch.At-f.Until)
		cfg.Changes = append(cfg.Changes, ch)
	}
	w.restarts++
	cfg.Seed += w.restarts * restartSeed
	server, err := engine.New(cfg)
	w.server, w.born = server, f.Until
	return err
}

// lose counts unfinished requests as aborted.
func (w *world) lose() {
	for _, o := range w.server.Unfinished() {
		o.End = engine.EndAborted
		w.add(o)
	}
}

// close counts unfinished requests by their age, and returns the minutes by arrival.
func (w *world) close() []minute {
	for _, o := range w.server.Unfinished() {
		w.add(o)
	}
	return w.minute
}

func (w *world) add(o engine.Outcome) {
	o.Arrived += w.born
	o.Ended += w.born
	n := int(o.Arrived / window)
	for len(w.minute) <= n {
		w.minute = append(w.minute, minute{})
	}
	w.minute[n].add(&o)
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
		shown.KVUsage = w.frozen[i]
		out[i] = &shown
	}
	return out
}

// simulate runs a server without a diagnosis.
func simulate(cfg engine.Config, changes []engine.Change, faults []Fault, length float64) ([]minute, error) {
	cfg.Changes = changes
	w, err := newWorld(cfg, faults)
	if err != nil {
		return nil, err
	}
	// In parts, so that the outcomes of a day are not all in memory at once.
	for at := 0.0; at < length; at += window {
		if err := w.advance(min(at+window, length)); err != nil {
			return nil, err
		}
	}
	return w.close(), nil
}

// blockSize is the number of tokens of a KV block.
const blockSize = 16

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
