package diagnose

import (
	"iter"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
)

// Keeper keeps what was learned of engines that have gone, for when they come back. Its
// methods are called while a State observes or ends.
type Keeper interface {
	// Begin returns the baseline of an engine with these attributes, as End got it last;
	// nil without one.
	Begin(attributes []input.Attribute) []byte
	// End gets the baseline of an engine that has gone; nil where nothing was learned.
	End(attributes []input.Attribute, baseline []byte)
	// BeginDiagnosis returns the diagnosis of an engine with these attributes from before the
	// collector restarted; nil without one. EndDiagnosis is for an engine that has gone.
	BeginDiagnosis(attributes []input.Attribute) []byte
	EndDiagnosis(attributes []input.Attribute)
	// BeginServer returns the server of these engines, as EndServer got it last; nil
	// without one.
	BeginServer() []byte
	// EndServer gets a server that has gone; nil where there is nothing to keep.
	EndServer(server []byte)
}

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

// beginBaseline returns the baseline of an engine that is seen for the first time: the
// stored one, else a new one. Where the clock was set back since it was stored, it counts
// as learned now, or nothing would be learned until the old time comes again.
func (s *State) beginBaseline(attributes []input.Attribute, now int64) *signal.Baseline {
	if s.Keeper != nil {
		if b, sound := signal.DecodeBaseline(s.Keeper.Begin(attributes)); sound {
			b.Learned, b.SlowLearned = min(b.Learned, now), min(b.SlowLearned, now)
			return b
		}
	}
	return signal.NewBaseline()
}

// endEngine hands the baseline of an engine that has gone to the keeper, and ends its diagnosis.
func (s *State) endEngine(e *engine) {
	if s.Keeper == nil || e.number == ServerOnly {
		return
	}
	s.Keeper.End(e.attributes, e.baseline.Encode())
	s.Keeper.EndDiagnosis(e.attributes)
}

// End hands over everything that is to be kept. No more will be observed.
func (s *State) End() {
	if s.server.begun && s.Keeper != nil {
		s.Keeper.EndServer(s.Server())
	}
	for _, e := range s.engines {
		s.endEngine(e)
	}
	s.engines, s.byNumber = nil, nil
}

// Baselines goes through the baselines of the engines, in the form that Keeper takes.
func (s *State) Baselines() iter.Seq2[[]input.Attribute, []byte] {
	return func(yield func([]input.Attribute, []byte) bool) {
		for _, e := range s.engines {
			if e.number == ServerOnly {
				continue
			}
			if data := e.baseline.Encode(); data != nil && !yield(e.attributes, data) {
				return
			}
		}
	}
}
