package diagnose

import (
	"iter"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
)

// Member is an engine as its pool sees it: its reported diagnosis and the signals of its
// newest reading.
type Member struct {
	Attributes []input.Attribute
	Verdict    Verdict
	Shares     Shares
	Signals    signal.Values
	// Details are those of the causes, where the engine is degraded or failing.
	Details [NumCauses]string
	// Model is the name of the served model, Blocks the number of KV blocks; 0 where it is not
	// known.
	Model  string
	Blocks float64

	engine *engine
}

// Harmed reports whether users of the engine are served worse than they should be, and not only because
// they ask for more.
func (m *Member) Harmed() bool { return m.Verdict.Harms() && m.Verdict.Severity != 1 }

// Members goes through the engines of the resource.
func (s *State) Members() iter.Seq[Member] {
	return func(yield func(Member) bool) {
		for e := range s.known() {
			m := Member{Attributes: e.attributes, Verdict: e.Reported, Shares: e.Shares, Signals: e.last.Signals, Blocks: e.blocks, engine: e}
			m.Model = (&input.Group{Attributes: e.attributes}).Value("model_name")
			if m.Harmed() {
				for c := range NumCauses {
					m.Details[c] = e.detail(c)
				}
			}
			if !yield(m) {
				return
			}
		}
	}
}

// Queue is what waits at a gateway in the mean over the window, by the gateway's
// attributes.
type Queue struct {
	Attributes []input.Attribute
	Requests   float64
}

// Queues are the requests that wait at a gateway, where the resource is one.
func (s *State) Queues() []Queue { return s.queues }

// Report holds and reports the diagnosis of something that was judged elsewhere: of a
// pool.
type Report struct {
	engine
	// judged are the details of all causes. They have a hold of their own: of two engines
	// with different details, each may have the larger share at times.
	judged details
}

// Judgement is what one evaluation alone shows.
type Judgement struct {
	// At is its time in Unix nanoseconds.
	At        int64
	Condition Condition
	Shares    Shares
	Details   [NumCauses]string
	Reference Reference
	Signals   signal.Values
}

// NewReport returns the report of a pool with a number and attributes.
func NewReport(number int, attributes []input.Attribute) *Report {
	r := &Report{engine: engine{number: number, attributes: attributes, baseline: signal.NewBaseline(), follows: notReported}}
	r.described = new([NumCauses]string)
	return r
}

// Observe takes a judgement and returns the changes that follow from it. There is no hold.
func (r *Report) Observe(settings *Settings, j Judgement) []Transition {
	r.Shares, r.Reported.Reference = j.Shares, j.Reference
	for c := range NumCauses {
		r.judged.follow(c, j.Details[c], j.At, settings.HoldTime())
	}
	*r.described = r.judged.Reported
	r.last.At, r.last.Signals = j.At, j.Signals
	var s State
	r.report(&Settings{Window: settings.Window, Hold: 1}, &s, j.Condition, j.At, &symptoms{})
	return s.transitions
}

// Values appends the values to report.
func (r *Report) Values(enabled map[*derive.Row]bool, values []derive.Value) []derive.Value {
	return r.values(poolRows, enabled, values)
}

// Save returns the stored form of the diagnosis; nil where there is nothing to keep.
func (r *Report) Save() []byte { return r.save() }

// Resume continues a stored diagnosis of the pool at a time, and returns it as a transition; false
// where it cannot be used.
func (r *Report) Resume(settings *Settings, saved []byte, at int64) (continues []Transition, resumed bool) {
	if !r.resume(settings, saved, at) {
		return nil, false
	}
	r.judged.Reported, r.judged.Shown = r.Details.Reported, r.Details.Shown
	*r.described = r.judged.Reported
	var s State
	r.continues(&s)
	r.resumption = nil
	return s.transitions, true
}
