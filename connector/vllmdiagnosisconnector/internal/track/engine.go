package track

import (
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/connector/vllmdiagnosisconnector/internal/collect"
)

// Settings are the choices for all engines.
type Settings struct {
	// Initial tells each first state.
	Initial bool
	// MaxStaleness is the time between two points after which the later one is the
	// first again.
	MaxStaleness time.Duration
	// Precedence is the place of a condition among the conditions, the more
	// pressing before the less.
	Precedence func(condition string) int
}

// warning is the least severity of a first state that is always told: what is
// wrong already is news, what is right is not.
const warning = 2

// Outcome is what became of a frame.
type Outcome uint8

// The outcomes.
const (
	// Taken means: the engine's diagnosis is that of the frame.
	Taken Outcome = iota
	// Waiting means: the frame is a part, and the rest is waited for.
	Waiting
	// Ended means: the engine has no diagnosis any more and is to be forgotten.
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
	// told is the state that was told last, or that was the first and not told.
	told State
	// expected are the causes that the frame before had.
	expected map[collect.Cause]bool
	// number is that of the last transition.
	number int
}

// NewEngine returns an engine of which nothing is known.
func NewEngine(settings *Settings) *Engine { return &Engine{settings: settings} }

// Observe takes a frame and returns the transitions that follow from it, none
// mostly. Incomplete is the number of points of a frame that was given up, because
// it said no condition.
func (e *Engine) Observe(f *collect.Frame) (outcome Outcome, transitions []Transition, incomplete int) {
	switch {
	case e.frame != nil && f.Time < e.frame.Time:
		return OutOfOrder, nil, 0
	case e.frame != nil && f.Time == e.frame.Time:
		e.frame.Merge(f)
	default:
		// The parts that are missing will not come any more.
		transitions, incomplete = e.Settle()
		if e.frame != nil && time.Duration(f.Time-e.frame.Time) > e.settings.MaxStaleness {
			e.forget()
		}
		e.frame, e.waiting = f, true
	}
	if e.frame.Ended && e.frame.Severity == collect.NoSeverity {
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

// Settle takes a frame that still waits as it is.
func (e *Engine) Settle() (transitions []Transition, incomplete int) {
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

// Untell takes back the newest transition, which could not be delivered. The
// engine's next points tell it anew, if it is still the case by then.
func (e *Engine) Untell(t *Transition) {
	if t.number == e.number {
		e.told = t.From
		e.number--
	}
}

func (e *Engine) forget() {
	e.told, e.expected = State{}, nil
}

// complete tells whether the frame has all its parts: the severity, the present
// condition, and a point for each cause that the frame before had. A cause that was
// never seen may still be missing; it then makes a transition of its own.
func (e *Engine) complete() bool {
	if _, says := stateOf(e.frame, e.settings.Precedence); !says {
		return false
	}
	for cause := range e.expected {
		if _, told := e.frame.Causes[cause]; !told {
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
	if state.Equal(&e.told) {
		return Transition{}, false
	}
	from := e.told
	if !from.Known() && state.Severity < warning && !e.settings.Initial {
		e.told = state
		return Transition{}, false
	}
	e.told = state
	e.number++
	return Transition{
		From: from, To: state, Time: e.frame.Time, Signals: e.frame.Signals, Ratios: e.frame.Ratios, number: e.number,
	}, true
}
