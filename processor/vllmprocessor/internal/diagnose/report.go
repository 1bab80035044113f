package diagnose

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/internal/wording"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
)

// rows are the metrics of an engine, or of a pool, which has no wait and no signals.
type rows struct{ severity, condition, cause, share, wait, users, signal, ratio *derive.Row }

var (
	engineRows = &rows{
		row("vllm.diagnosis.severity"), row("vllm.diagnosis.condition", "condition"), row("vllm.diagnosis.cause", "cause", "role", "detail"),
		row("vllm.diagnosis.cause_share", "cause"), row("vllm.diagnosis.first_token_wait"), row("vllm.diagnosis.user_share"),
		row("vllm.diagnosis.signal", "signal"), row("vllm.diagnosis.signal_ratio", "signal"),
	}
	poolRows = &rows{
		severity: row("vllm.pool.diagnosis.severity"), condition: row("vllm.pool.diagnosis.condition", "condition"),
		cause: row("vllm.pool.diagnosis.cause", "cause", "role", "detail"), share: row("vllm.pool.diagnosis.cause_share", "cause"),
	}
)

func row(metric string, extra ...string) *derive.Row {
	return &derive.Row{Metric: metric, Extra: extra}
}

// Rows are all metrics of the diagnosis.
func Rows() (all []*derive.Row) {
	for _, of := range []*rows{engineRows, poolRows} {
		all = append(all, of.severity, of.condition, of.cause, of.share)
	}
	return append(all, engineRows.wait, engineRows.users, engineRows.signal, engineRows.ratio)
}

// reportedSeries are the series of an engine. Inactive series report 0 for some time, so that an alert ends by a
// number and not by a gap.
type reportedSeries struct {
	conditions []reportedCondition
	causes     []reportedCause
	// shares are the causes that have ever had a share of the harm worth a series.
	shares [NumCauses]bool
	// users is true once an engine of a pool had severity 3.
	users bool
}

// leastShare is the least share of the harm that gives a cause a series: less reads as 0 %.
const leastShare = 0.005

// inactiveFor is how long a condition or cause that has ended reports 0: longer than Prometheus looks back, and than
// the shipped alerts and monitors do.
const inactiveFor = 15 * time.Minute

// presence is whether something is reported now.
type presence struct {
	on bool
	// ended is when it was first not reported any more, in Unix nanoseconds.
	ended int64
}

func (p *presence) end(at int64) {
	if p.on {
		*p = presence{ended: at}
	}
}

// past reports whether it ended so long before a time that it has no series any more.
func (p *presence) past(at int64) bool { return !p.on && at-p.ended > int64(inactiveFor) }

type reportedCondition struct {
	condition Condition
	presence
}

type reportedCause struct {
	cause  Cause
	role   string
	detail string
	presence
}

func (t *reportedSeries) any() bool { return len(t.conditions) > 0 }

// add adds the series of the present verdict and marks the others as inactive.
func (t *reportedSeries) add(e *engine) {
	now := e.newest()
	for i := range t.conditions {
		t.conditions[i].end(now)
	}
	for i := range t.causes {
		t.causes[i].end(now)
	}
	at := slices.IndexFunc(t.conditions, func(c reportedCondition) bool { return c.condition == e.Reported.Condition })
	if at < 0 {
		at, t.conditions = len(t.conditions), append(t.conditions, reportedCondition{condition: e.Reported.Condition})
	}
	t.conditions[at].on = true
	for c := range NumCauses {
		switch {
		case e.Reported.Explained && e.Reported.Primary == c:
			t.cause(c, "primary", e.detail(c))
		case e.Reported.Contributing[c]:
			t.cause(c, "contributing", e.detail(c))
		case e.Reported.Notices[c]:
			t.cause(c, "notice", e.detail(c))
		}
	}
}

// share adds the causes that have a share of the reported harm. There are no more series
// than causes.
func (t *reportedSeries) share(of *Shares) {
	for c, share := range of {
		t.shares[c] = t.shares[c] || share >= leastShare
	}
}

func (t *reportedSeries) cause(c Cause, role, detail string) {
	for i := range t.causes {
		if one := &t.causes[i]; one.cause == c && one.role == role && one.detail == detail {
			one.on = true
			return
		}
	}
	t.causes = append(t.causes, reportedCause{c, role, detail, presence{on: true}})
}

// forget removes what ended long before a time.
func (t *reportedSeries) forget(at int64) {
	t.conditions = slices.DeleteFunc(t.conditions, func(c reportedCondition) bool { return c.past(at) })
	t.causes = slices.DeleteFunc(t.causes, func(c reportedCause) bool { return c.past(at) })
}

// newest is the time of the newest batch. A pool has only its last reading.
func (e *engine) newest() int64 { return max(e.at, e.last.At) }

// Values returns the values of all engines of a resource, for the enabled metrics.
func (s *State) Values(r *window.Resource, enabled map[*derive.Row]bool) (values []derive.Value) {
	for number := range r.PendingGroups() {
		values = append(values, derive.Value{Group: number, Pending: true})
	}
	for _, e := range s.engines {
		if e.waits {
			values = append(values, derive.Value{Group: e.number, Pending: true})
			continue
		}
		values = e.values(engineRows, enabled, values)
	}
	return values
}

func (e *engine) values(rows *rows, enabled map[*derive.Row]bool, values []derive.Value) []derive.Value {
	e.memory.forget(e.newest())
	values = slices.Grow(values, 1+len(e.memory.conditions)+len(e.memory.causes))
	add := func(row *derive.Row, extra derive.Extra, number float64) {
		if enabled[row] {
			values = append(values, derive.Value{Row: row, Group: e.number, Extra: extra, Attributes: e.attributes, Number: number})
		}
	}
	add(rows.severity, derive.Extra{}, float64(e.Reported.Severity))
	for _, c := range e.memory.conditions {
		add(rows.condition, derive.Extra{c.condition.String()}, truth(c.on))
	}
	for _, c := range e.memory.causes {
		add(rows.cause, derive.Extra{c.cause.String(), c.role, c.detail}, truth(c.on))
	}
	shares := e.Shares
	if !e.hasCauses() {
		shares = Shares{}
	}
	for c, ever := range e.memory.shares {
		if ever {
			add(rows.share, derive.Extra{Cause(c).String()}, shares[c])
		}
	}
	if wait, _ := e.Felt.wait(&e.last); signal.Known(wait) && e.Reported.Condition != Unreachable {
		add(rows.wait, derive.Extra{}, wait)
	}
	if e.memory.users = e.memory.users || e.beside != nil && e.Reported.Severity >= 3; e.memory.users {
		share, _ := e.userShare()
		add(rows.users, derive.Extra{}, share)
	}
	if !enabled[rows.signal] && !enabled[rows.ratio] {
		return values
	}
	for s := range signal.Count {
		if now := e.last.Signals[s]; signal.Known(now) {
			add(rows.signal, derive.Extra{s.String()}, now)
			if usual := e.baseline.Usual(s); signal.Known(usual) && usual > 0 {
				add(rows.ratio, derive.Extra{s.String()}, now/usual)
			}
		}
	}
	return values
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// Words are what an operator reads about a change: Next only steps that name enabled
// metrics. reason replaces the sentence; empty where the change has none of its own.
func (t *Transition) Words(reason string, enabled func(metric string) bool) wording.Words {
	d := t.diagnosis()
	if t.Pool {
		return wording.Of(d, enabled) // The reasons are those of an engine.
	}
	if d.Reason = cmp.Or(reason, t.To.Because.Sentence()); d.Reason == "" && t.To.Condition == Unreachable {
		d.Reason = blocking[t.Failure].Sentence()
	}
	return wording.Of(d, enabled)
}

// general are the signals that say how an engine or a pool does, whatever its diagnosis is.
var general = []string{signal.TimeToFirstToken.String(), signal.Waiting.String(), signal.Running.String(), signal.GenerationRate.String()}

// Evidence is what a change was judged by, the deciding signals first. Where fewer than two of them have a usual value, harm has
// the general ones as well.
func (t *Transition) Evidence() []wording.Signal {
	values := func(name string) (value, usual float64) {
		s, known := signal.Named(name)
		if !known {
			return math.NaN(), math.NaN()
		}
		return t.Signals[s], t.Usual[s]
	}
	evidence := wording.Evidence(t.diagnosis(), values)
	compared := 0
	for _, s := range evidence {
		if signal.Known(s.Usual) {
			compared++
		}
	}
	if compared >= 2 || max(t.From.Severity, t.To.Severity) < 2 {
		return evidence
	}
	return wording.Evidence(t.diagnosis(), values, general...)
}

func (t *Transition) diagnosis() *wording.Diagnosis {
	d := &wording.Diagnosis{Condition: t.To.Condition.String(), Size: t.Felt}
	if t.Pool {
		d.Pool = PoolName(t.Attributes)
	}
	primary := NumCauses
	if t.To.Explained {
		primary = t.To.Primary
		d.Cause, d.Detail = primary.String(), t.Details[primary]
		if primary == SlowSteps {
			d.More = t.GPU
		}
		if primary == SlowSteps && t.Earlier != "" {
			d.More = fmt.Sprintf("It is slower since version %s, by %.0f %% at equal work; before it was version %s.", t.Version, 100*t.Slower, t.Earlier)
		}
	}
	// A smaller share is not reported as a cause either.
	for _, c := range t.Shares.ranked(stillContributes, primary) {
		d.Also = append(d.Also, wording.Share{Cause: c.String(), Share: t.Shares[c]})
	}
	for c, is := range t.To.Notices {
		if is {
			d.Notices = append(d.Notices, Cause(c).String())
		}
	}
	return d
}

// PoolName is the value of the only attribute of a pool, else all of them with their names.
func PoolName(attributes []input.Attribute) string {
	const most = 200 // bytes
	if len(attributes) == 1 {
		return wording.Cut(attributes[0].Value, most)
	}
	var parts []string
	for _, a := range attributes {
		parts = append(parts, wording.Cut(a.Name+"="+a.Value, most))
	}
	return cmp.Or(strings.Join(parts, ", "), "without a name")
}

// Member is an engine as its pool sees it: its reported diagnosis and the signals of its
// newest reading.
type Member struct {
	Attributes []input.Attribute
	Verdict    Verdict
	Shares     Shares
	Signals    signal.Values
	// Asked is what is sent to it; 0 where it cannot be read.
	Asked Load
	// Details are those of the causes, where the engine is degraded or failing.
	Details [NumCauses]string
	// Model is the name of the served model, Blocks the number of KV blocks; 0 where it is not
	// known.
	Model  string
	Blocks float64

	// usual is copied, because a pool speaks of its members when their servers are not locked any more.
	usual  signal.Values
	engine *engine
}

// Harmed reports whether users of the engine are served worse than they should be, and not only because
// they ask for more.
func (m *Member) Harmed() bool { return m.Verdict.Harms() && m.Verdict.Severity != 1 }

// Usual is what is usual for a signal of the engine; NaN where it is not known.
func (m *Member) Usual(s signal.Signal) float64 {
	if m.engine == nil {
		return math.NaN()
	}
	return m.usual[s]
}

// Members goes through the engines of the resource.
func (s *State) Members() iter.Seq[Member] {
	return func(yield func(Member) bool) {
		for e := range s.known() {
			m := Member{Attributes: e.attributes, Verdict: e.Reported, Shares: e.Shares, Signals: e.last.Signals, Blocks: e.blocks, engine: e}
			m.Model = e.served()
			for s := range m.usual {
				m.usual[s] = e.baseline.Usual(signal.Signal(s))
			}
			if e.Reported.Condition != Unreachable {
				m.Asked = e.load()
			}
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

// Queue is what waits at a gateway on average over the window, by the gateway's
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
	// Explained is true where a server of the pool has a primary cause.
	Explained bool
}

// NewReport returns the report of a pool with a number and attributes.
func NewReport(number int, attributes []input.Attribute) *Report {
	r := &Report{engine: engine{number: number, attributes: attributes, baseline: signal.NewBaseline(), follows: notReported}}
	r.described = new([NumCauses]string)
	return r
}

// Observe takes a judgement and returns the changes that follow from it. There is no hold.
func (r *Report) Observe(settings *Settings, j Judgement) []Transition {
	r.Shares, r.Reported.Reference, r.explainsAny = j.Shares, j.Reference, j.Explained
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
