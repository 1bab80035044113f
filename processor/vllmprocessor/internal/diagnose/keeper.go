package diagnose

import (
	"iter"
	"math"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
)

// Kept is a kind of what outlives an engine, a server or a pool.
type Kept string

// The kinds: what was learned of an engine and in a pool, the engines that a server has, and what
// was reported of an engine and of a pool, with the evidence for it.
const (
	Baseline      Kept = "baseline"
	References    Kept = "pool"
	Server        Kept = "server"
	Diagnosis     Kept = "diagnosis"
	PoolDiagnosis Kept = "pool diagnosis"
)

// Keeper keeps what has gone, for when it comes back. Its methods are called while a State or pools
// observe or end. The attributes are those of an engine or a pool; a server has none.
type Keeper interface {
	// Begin returns what was kept last; nil without anything.
	Begin(kind Kept, attributes []input.Attribute) []byte
	// End gets what is to be kept of something that has gone; nil where that is nothing, as of
	// diagnoses, which are kept for restarts of the collector only.
	End(kind Kept, attributes []input.Attribute, data []byte)
}

// Put takes what is to be kept if the collector restarts.
type Put func(kind Kept, attributes []input.Attribute, data []byte)

// BaselineMemory is how long a baseline of an engine that has gone is kept. Traffic and
// versions change within weeks; a wrong reference is worse than some windows of learning.
const BaselineMemory = 7 * 24 * time.Hour

// Age returns the time of a stored state, in Unix nanoseconds, and whether the state can
// be used: of a baseline the end of the newest window that it has learned.
func Age(data []byte) (at int64, sound bool) {
	if saved, sound := decodeServer(data); sound {
		return saved.At, true
	}
	if _, newest, sound := signal.DecodeReferences(data); sound {
		return newest, true
	}
	b, sound := signal.DecodeBaseline(data)
	if !sound {
		return 0, false
	}
	return b.Learned, true
}

// ServerOnly is the group number of a server without a known engine.
const ServerOnly = math.MaxInt32

func (s *State) known() iter.Seq[*engine] {
	return func(yield func(*engine) bool) {
		for _, e := range s.engines {
			if e.number != ServerOnly && !yield(e) {
				return
			}
		}
	}
}

// engine returns the engine of a group. One that is seen for the first time begins with what is
// known of it from before.
func (s *State) engine(settings *Settings, g *window.Group, at int64) *engine {
	if e := s.byNumber[g.Number]; e != nil {
		e.listed = true
		return e
	}
	e := &engine{
		saved:  saved{First: s.server.first(g.Attributes, at)},
		number: g.Number, attributes: g.Attributes, began: at, baseline: s.beginBaseline(g.Attributes, at), listed: true, follows: notReported,
	}
	if server := s.byNumber[ServerOnly]; server != nil {
		e.follows = server.Reported
	}
	e.resume(settings, s.begin(Diagnosis, g.Attributes), at)
	s.include(e)
	return e
}

func (s *State) include(e *engine) {
	if s.byNumber == nil {
		s.byNumber = map[int]*engine{}
	}
	s.byNumber[e.number] = e
	s.engines = append(s.engines, e)
}

// begin returns what was kept last; nil without anything.
func (s *State) begin(kind Kept, attributes []input.Attribute) []byte {
	if s.Keeper == nil {
		return nil
	}
	return s.Keeper.Begin(kind, attributes)
}

// beginBaseline returns the baseline of an engine that is seen for the first time: the
// stored one, else a new one. Where the clock was set back since it was stored, it counts
// as learned now, or nothing would be learned until the old time comes again.
func (s *State) beginBaseline(attributes []input.Attribute, now int64) *signal.Baseline {
	b, sound := signal.DecodeBaseline(s.begin(Baseline, attributes))
	if !sound {
		return signal.NewBaseline()
	}
	b.Learned, b.SlowLearned = min(b.Learned, now), min(b.SlowLearned, now)
	return b
}

// endEngine hands the baseline of an engine that has gone to the keeper, and ends its diagnosis.
func (s *State) endEngine(e *engine) {
	if s.Keeper == nil || e.number == ServerOnly {
		return
	}
	s.Keeper.End(Baseline, e.attributes, e.baseline.Encode())
	s.Keeper.End(Diagnosis, e.attributes, nil)
}

// End hands over everything that is to be kept. No more will be observed.
func (s *State) End() {
	if s.server.begun && s.Keeper != nil {
		s.Keeper.End(Server, nil, s.encodeServer())
	}
	for _, e := range s.engines {
		s.endEngine(e)
	}
	s.engines, s.byNumber = nil, nil
}

// Learned passes the baselines of the engines and their server to put.
func (s *State) Learned(put Put) {
	for e := range s.known() {
		if data := e.baseline.Encode(); data != nil {
			put(Baseline, e.attributes, data)
		}
	}
	if data := s.encodeServer(); data != nil {
		put(Server, nil, data)
	}
}

// Diagnoses passes the diagnoses of the engines to put.
func (s *State) Diagnoses(put Put) {
	for e := range s.known() {
		if data := e.save(); data != nil {
			put(Diagnosis, e.attributes, data)
		}
	}
}
