package diagnose

import (
	"bytes"
	"encoding/json"
	"iter"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/collect"
)

// Keeper keeps what was learned of engines that are not there, for the case that
// they come back. Both may be called while a State observes.
type Keeper interface {
	// Begin returns what encode gave of an engine with these attributes when it was
	// seen last; nil where there is nothing of it.
	Begin(attributes []collect.Attribute) []byte
	// End takes what encode gives of an engine that is there no more; nil where
	// nothing was learned of it.
	End(attributes []collect.Attribute, baseline []byte)
	// BeginServer returns what Server gave of the server of these engines; nil where
	// there is nothing of it.
	BeginServer() []byte
	// EndServer takes what Server gives of a server that is there no more; nil where
	// there is nothing to keep.
	EndServer(server []byte)
}

// baselineVersion goes up when the meaning or the order of the signals or the shape of a
// baseline change: what another version has learned is not comparable. Signals that
// were added at the end, of which there were leastSignals at first, are learned anew.
const (
	baselineVersion = 1
	leastSignals    = int(MissedRatio) + 1
)

// savedBaseline is the form of a baseline that is kept.
type savedBaseline struct {
	Version int `json:"version"`
	// Signals is the number of levels.
	Signals  int       `json:"signals"`
	Baseline *baseline `json:"baseline"`
}

// encode returns the baseline for Keeper; nil where there is nothing in it, or
// nothing that could be used again.
func (b *baseline) encode() []byte {
	if b.Windows == 0 || !b.sound() {
		return nil
	}
	data, err := json.Marshal(savedBaseline{baselineVersion, int(NumSignals), b})
	if err != nil {
		return nil
	}
	return data
}

// decode returns the baseline that encode gave; false where it is not one.
func decode(data []byte) (*baseline, bool) {
	saved := savedBaseline{Baseline: newBaseline()}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if decoder.Decode(&saved) != nil || saved.Version != baselineVersion || saved.Signals < leastSignals || saved.Signals > int(NumSignals) {
		return nil, false
	}
	if b := saved.Baseline; b != nil && b.sound() && b.Windows > 0 && b.Learned > 0 {
		return b, true
	}
	return nil, false
}

// Age returns the time up to which a kept state knows, in nanoseconds, and whether it
// can be used: a baseline the end of the newest window that it has learned.
func Age(data []byte) (at int64, sound bool) {
	if saved, sound := decodeServer(data); sound {
		return saved.At, true
	}
	b, sound := decode(data)
	if !sound {
		return 0, false
	}
	return b.Learned, true
}

// begin returns what is known of an engine that is seen for the first time: what
// was kept of it, else nothing. What was learned after now, by a clock that was set
// back since, counts as learned now, or nothing would be learned until then.
func (s *State) begin(attributes []collect.Attribute, now int64) *baseline {
	if s.Keeper != nil {
		if b, sound := decode(s.Keeper.Begin(attributes)); sound {
			b.Learned = min(b.Learned, now)
			return b
		}
	}
	return newBaseline()
}

// end keeps what is known of an engine that is there no more.
func (s *State) end(e *engine) {
	if s.Keeper == nil || e.number == serverOnly {
		return
	}
	s.Keeper.End(e.attributes, e.baseline.encode())
}

// End keeps what is known of all engines, of which no more will be seen.
func (s *State) End() {
	if s.server.begun && s.Keeper != nil {
		s.Keeper.EndServer(s.Server())
	}
	for _, e := range s.engines {
		s.end(e)
	}
	s.engines, s.byNumber = nil, nil
}

// Baselines goes through what is known of the engines, in the form that a Keeper
// takes.
func (s *State) Baselines() iter.Seq2[[]collect.Attribute, []byte] {
	return func(yield func([]collect.Attribute, []byte) bool) {
		for _, e := range s.engines {
			if e.number == serverOnly {
				continue
			}
			if data := e.baseline.encode(); data != nil && !yield(e.attributes, data) {
				return
			}
		}
	}
}

// BaselineMemory is for how long a baseline is kept of an engine that is not
// there. Traffic and versions change within weeks; a wrong reference is worse than
// some windows of learning.
const BaselineMemory = 7 * 24 * time.Hour
