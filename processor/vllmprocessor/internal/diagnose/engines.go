package diagnose

import (
	"math"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
)

// engine returns the engine of a group. One that is seen for the first time begins with what is
// known of it from before.
func (s *State) engine(settings *Settings, g *window.Group, at int64) *engine {
	if e := s.byNumber[g.Number]; e != nil {
		e.listed = true
		return e
	}
	e := &engine{number: g.Number, attributes: g.Attributes, first: s.server.first(g.Attributes, at), began: at, baseline: s.beginBaseline(g.Attributes, at), listed: true, follows: notReported}
	if server := s.byNumber[ServerOnly]; server != nil {
		e.follows = server.reported
	}
	if s.Keeper != nil {
		e.resume(settings, s.Keeper.BeginDiagnosis(g.Attributes), at)
	}
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

// ServerOnly is the group number of a server without a known engine.
const ServerOnly = math.MaxInt32
