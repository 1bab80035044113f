package diagnose

import (
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
)

// rows are what is told of an engine, or of a pool, which has no signals.
type rows struct{ severity, condition, cause, signal, ratio *derive.Row }

func newRows(prefix string) *rows {
	return &rows{
		severity:  &derive.Row{Metric: prefix + "severity"},
		condition: &derive.Row{Metric: prefix + "condition", Extra: []string{"condition"}},
		cause:     &derive.Row{Metric: prefix + "cause", Extra: []string{"cause", "role", "detail"}},
		signal:    &derive.Row{Metric: prefix + "signal", Extra: []string{"signal"}},
		ratio:     &derive.Row{Metric: prefix + "signal_ratio", Extra: []string{"signal"}},
	}
}

var engineRows, poolRows = newRows("vllm.diagnosis."), newRows("vllm.pool.diagnosis.")

// Rows are all that can be told.
func Rows() []*derive.Row {
	return []*derive.Row{
		engineRows.severity, engineRows.condition, engineRows.cause, engineRows.signal, engineRows.ratio,
		poolRows.severity, poolRows.condition, poolRows.cause,
	}
}

// Role is the part that a cause has.
type Role uint8

// The roles.
const (
	Primary Role = iota
	Contributing
	Notice
)

// String is the role as the attribute spells it.
func (r Role) String() string { return [...]string{"primary", "contributing", "notice"}[r] }

// toldSeries are the series that an engine has ever had: each goes on as 0, so that
// its end is a number and not a gap.
type toldSeries struct {
	conditions []Condition
	causes     []toldCause
}

type toldCause struct {
	cause  Cause
	role   Role
	detail string
	on     bool
}

func (t *toldSeries) any() bool { return len(t.conditions) > 0 }

// see takes what is told now.
func (t *toldSeries) see(e *engine) {
	if !slices.Contains(t.conditions, e.told.Condition) {
		t.conditions = append(t.conditions, e.told.Condition)
	}
	for i := range t.causes {
		t.causes[i].on = false
	}
	for c := range NumCauses {
		switch {
		case e.told.Explained && e.told.Primary == c:
			t.cause(c, Primary, e.detail(c))
		case e.told.Contributing[c]:
			t.cause(c, Contributing, e.detail(c))
		case e.told.Notices[c]:
			t.cause(c, Notice, e.detail(c))
		}
	}
}

func (t *toldSeries) cause(c Cause, role Role, detail string) {
	for i := range t.causes {
		if one := &t.causes[i]; one.cause == c && one.role == role && one.detail == detail {
			one.on = true
			return
		}
	}
	t.causes = append(t.causes, toldCause{c, role, detail, true})
}

// Values returns what is told about each engine of a resource. Signals are told
// where they are wanted. The result is valid until the next call.
func (s *State) Values(r *window.Resource, enabled map[*derive.Row]bool, values []derive.Value) []derive.Value {
	values = values[:0]
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
	add := func(row *derive.Row, extra derive.Extra, number float64) {
		if enabled[row] {
			values = append(values, derive.Value{Row: row, Group: e.number, Extra: extra, Attributes: e.attributes, Number: number})
		}
	}
	add(rows.severity, derive.Extra{}, float64(e.told.Severity))
	for _, c := range e.memory.conditions {
		add(rows.condition, derive.Extra{c.String()}, truth(c == e.told.Condition))
	}
	for _, c := range e.memory.causes {
		add(rows.cause, derive.Extra{c.cause.String(), c.role.String(), c.detail}, truth(c.on))
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

// Told returns what is told about the engine of a group.
func (s *State) Told(group int) (verdict *Verdict, judged bool) {
	if e := s.byNumber[group]; e != nil {
		return &e.told, true
	}
	return nil, false
}

// Worst returns what is told about the engine that is off worst: by the severity,
// then by the precedence of the conditions. Of several that are equal it is the
// first.
func (s *State) Worst() (verdict *Verdict, judged bool) {
	for _, e := range s.engines {
		told := &e.told
		if verdict == nil || told.Severity > verdict.Severity || told.Severity == verdict.Severity && told.Condition > verdict.Condition {
			verdict = told
		}
	}
	return verdict, verdict != nil
}
