package track

import (
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/connector/vllmdiagnosisconnector/internal/collect"
)

// Settings are the choices for all engines.
type Settings struct {
	// Initial makes a transition of each first state.
	Initial bool
	// MaxStaleness is the time between two points after which the later one is the
	// first again.
	MaxStaleness time.Duration
	// Precedence is the place of a condition among the conditions, the more
	// pressing before the less.
	Precedence func(condition string) int
}

// Warning is the least severity of a first state that is always a transition: what is
// wrong already is news, what is right is not.
const Warning = 2

// Outcome is what became of a frame.
type Outcome uint8

// The outcomes.
const (
	// Taken means: the engine's diagnosis is that of the frame.
	Taken Outcome = iota
	// Waiting means: the frame is a part, and the rest is waited for.
	Waiting
	// Ended means: the engine has no diagnosis any more.
	Ended
	// OutOfOrder means: the frame is older than what is known.
	OutOfOrder
)

// Engine is the state of one engine, or one pool.
type Engine struct {
	settings *Settings
	// frame is the newest, and waiting is true where it has not been taken yet.
	frame   *collect.Frame
	waiting bool
	// ended is true where the newest frame ended the diagnosis.
	// Its time is still needed: older frames may be sent again.
	ended bool
	// current is the state of the last transition, or the first state where that was
	// none.
	current State
	// expected are the causes that the frame before had.
	expected map[collect.Cause]bool
}

// NewEngine returns an engine of which nothing is known.
func NewEngine(settings *Settings) *Engine { return &Engine{settings: settings} }

// Observe takes a frame and returns the transitions that follow from it, none
// mostly. Incomplete is the number of points of a frame that was given up, because
// it had no condition. The same frame again is not a transition.
func (e *Engine) Observe(f *collect.Frame) (outcome Outcome, transitions []Transition, incomplete int) {
	switch {
	case e.frame != nil && f.Time < e.frame.Time:
		return OutOfOrder, nil, 0
	case e.frame != nil && f.Time == e.frame.Time:
		e.frame.Merge(f)
	default:
		// The parts that are missing will not come any more.
		transitions, incomplete = e.TakeIncomplete()
		if e.ended || e.frame != nil && time.Duration(f.Time-e.frame.Time) > e.settings.MaxStaleness {
			e.forget()
		}
		e.frame, e.waiting = f, true
	}
	if e.ended = e.frame.Ended && e.frame.Severity == collect.NoSeverity; e.ended {
		e.waiting = false
		return Ended, transitions, incomplete
	}
	if !e.complete() {
		return Waiting, transitions, incomplete
	}
	if transition, changed := e.take(); changed {
		transitions = append(transitions, transition)
	}
	return Taken, transitions, incomplete
}

// TakeIncomplete takes a waiting frame without its missing parts.
func (e *Engine) TakeIncomplete() (transitions []Transition, incomplete int) {
	if !e.waiting {
		return nil, 0
	}
	e.waiting = false
	if _, says := stateOf(e.frame, e.settings.Precedence); !says {
		return nil, e.frame.Points
	}
	if transition, changed := e.take(); changed {
		transitions = append(transitions, transition)
	}
	return transitions, 0
}

// Ended reports whether the engine has no diagnosis any more.
func (e *Engine) Ended() bool { return e.ended }

// Time is that of the newest frame, 0 without one.
func (e *Engine) Time() int64 {
	if e.frame == nil {
		return 0
	}
	return e.frame.Time
}

// SetBack makes the engine take frames that are older than its newest one. What the
// diagnosis was stays known.
func (e *Engine) SetBack() { e.frame, e.waiting = nil, false }

func (e *Engine) forget() {
	e.current, e.expected, e.ended = State{}, nil, false
}

// complete reports whether the frame has all its parts: the severity, the present
// condition, and a point for each cause that the frame before had. A cause that was
// never seen may still be missing; it then makes a transition of its own.
func (e *Engine) complete() bool {
	if _, says := stateOf(e.frame, e.settings.Precedence); !says {
		return false
	}
	for cause := range e.expected {
		if _, there := e.frame.Causes[cause]; !there {
			return false
		}
	}
	return true
}

// take makes what the frame says the present state.
func (e *Engine) take() (Transition, bool) {
	e.waiting = false
	e.expected = e.frame.Causes
	state, _ := stateOf(e.frame, e.settings.Precedence)
	if state.Equal(&e.current) {
		return Transition{}, false
	}
	from := e.current
	e.current = state
	if !from.Known() && state.Severity < Warning && !e.settings.Initial {
		return Transition{}, false
	}
	return Transition{From: from, To: state, Time: e.frame.Time, Message: e.frame.Message}, true
}
