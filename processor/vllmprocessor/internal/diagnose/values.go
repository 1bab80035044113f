package diagnose

import (
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
)

// rows are the metrics of an engine, or of a pool, which has no wait and no signals.
type rows struct{ severity, condition, cause, share, wait, signal, ratio *derive.Row }

var engineRows = &rows{
	severity:  &derive.Row{Metric: "vllm.diagnosis.severity"},
	condition: &derive.Row{Metric: "vllm.diagnosis.condition", Extra: []string{"condition"}},
	cause:     &derive.Row{Metric: "vllm.diagnosis.cause", Extra: []string{"cause", "role", "detail"}},
	share:     &derive.Row{Metric: "vllm.diagnosis.cause_share", Extra: []string{"cause"}},
	wait:      &derive.Row{Metric: "vllm.diagnosis.first_token_wait"},
	signal:    &derive.Row{Metric: "vllm.diagnosis.signal", Extra: []string{"signal"}},
	ratio:     &derive.Row{Metric: "vllm.diagnosis.signal_ratio", Extra: []string{"signal"}},
}

var poolRows = &rows{
	severity:  &derive.Row{Metric: "vllm.pool.diagnosis.severity"},
	condition: &derive.Row{Metric: "vllm.pool.diagnosis.condition", Extra: []string{"condition"}},
	cause:     &derive.Row{Metric: "vllm.pool.diagnosis.cause", Extra: []string{"cause", "role", "detail"}},
	share:     &derive.Row{Metric: "vllm.pool.diagnosis.cause_share", Extra: []string{"cause"}},
}

// Rows are all metrics of the diagnosis.
func Rows() []*derive.Row {
	return []*derive.Row{
		engineRows.severity, engineRows.condition, engineRows.cause, engineRows.share, engineRows.wait, engineRows.signal, engineRows.ratio,
		poolRows.severity, poolRows.condition, poolRows.cause, poolRows.share,
	}
}

// Role is the role of a cause.
type Role uint8

// The roles.
const (
	Primary Role = iota
	Contributing
	Notice
)

// String is the value of the attribute role.
func (r Role) String() string { return [...]string{"primary", "contributing", "notice"}[r] }

// reportedSeries are the series that an engine has ever had. Inactive series keep
// reporting 0, so that an alert ends by a number and not by a gap.
type reportedSeries struct {
	conditions []Condition
	causes     []reportedCause
	// shares are the causes that have ever had a share of the harm worth a series.
	shares [NumCauses]bool
}

// leastShare is the least share of the harm that gives a cause a series: less reads as 0 %.
const leastShare = 0.005

type reportedCause struct {
	cause  Cause
	role   Role
	detail string
	on     bool
}

func (t *reportedSeries) any() bool { return len(t.conditions) > 0 }

// add adds the series of the present verdict and marks the others as inactive.
func (t *reportedSeries) add(e *engine) {
	if !slices.Contains(t.conditions, e.Reported.Condition) {
		t.conditions = append(t.conditions, e.Reported.Condition)
	}
	for i := range t.causes {
		t.causes[i].on = false
	}
	for c := range NumCauses {
		switch {
		case e.Reported.Explained && e.Reported.Primary == c:
			t.cause(c, Primary, e.detail(c))
		case e.Reported.Contributing[c]:
			t.cause(c, Contributing, e.detail(c))
		case e.Reported.Notices[c]:
			t.cause(c, Notice, e.detail(c))
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

func (t *reportedSeries) cause(c Cause, role Role, detail string) {
	for i := range t.causes {
		if one := &t.causes[i]; one.cause == c && one.role == role && one.detail == detail {
			one.on = true
			return
		}
	}
	t.causes = append(t.causes, reportedCause{c, role, detail, true})
}

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
	values = slices.Grow(values, 1+len(e.memory.conditions)+len(e.memory.causes))
	add := func(row *derive.Row, extra derive.Extra, number float64) {
		if enabled[row] {
			values = append(values, derive.Value{Row: row, Group: e.number, Extra: extra, Attributes: e.attributes, Number: number})
		}
	}
	add(rows.severity, derive.Extra{}, float64(e.Reported.Severity))
	for _, c := range e.memory.conditions {
		add(rows.condition, derive.Extra{c.String()}, truth(c == e.Reported.Condition))
	}
	for _, c := range e.memory.causes {
		add(rows.cause, derive.Extra{c.cause.String(), c.role.String(), c.detail}, truth(c.on))
	}
	harmed := e.Reported.Harms()
	for c, ever := range e.memory.shares {
		if share := e.Shares[c]; ever && harmed {
			add(rows.share, derive.Extra{Cause(c).String()}, share)
		} else if ever {
			add(rows.share, derive.Extra{Cause(c).String()}, 0)
		}
	}
	if wait, _ := e.Felt.wait(&e.last); signal.Known(wait) && e.Reported.Condition != Unreachable {
		add(rows.wait, derive.Extra{}, wait)
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

// Verdict returns the reported diagnosis of the engine of a group.
func (s *State) Verdict(group int) (verdict *Verdict, judged bool) {
	if e := s.byNumber[group]; e != nil {
		return &e.Reported, true
	}
	return nil, false
}
