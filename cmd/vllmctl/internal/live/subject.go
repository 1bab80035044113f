package live

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/verdict"
	"github.com/otelcol-vllm/otelcol-vllm/internal/wording"
)

// maxHistory is how many changes of an engine or a pool are kept, the newest ones.
const maxHistory = 50

// subject is an engine or a pool.
type subject struct {
	// name is that of a pool, engine that of an engine, and model that of either.
	name, model, engine string
	// others are the values of the attributes of a pool besides the model.
	others    string
	replicas  int
	condition string
	severity  int
	// began is when the first condition was reported, since when the present one was, and at
	// the time of the newest report.
	began, since, at time.Time
	// causes are the active ones.
	causes          map[cause]struct{}
	shares          map[string]float64
	signals, ratios map[string]float64
	values          [numFields]float64
	quantiles       [numLatencies]map[string]float64
	history         []Transition
}

// cause is an active cause with its role.
type cause struct{ role, name, detail string }

// Transition is a change of the condition or the primary cause of an engine or a pool.
type Transition struct {
	At                       time.Time
	Condition, Cause, Detail string
}

func newSubject() *subject {
	s := &subject{causes: map[cause]struct{}{}, shares: map[string]float64{}, signals: map[string]float64{}, ratios: map[string]float64{}}
	for i := range s.values {
		s.values[i] = math.NaN()
	}
	for i := range s.quantiles {
		s.quantiles[i] = map[string]float64{}
	}
	return s
}

// take takes a point about the subject. The names of conditions, causes and signals are those
// of our processor, so their number is limited.
func (s *subject) take(need *need, p pmetric.NumberDataPoint) {
	text := func(attribute string) string { return textOf(p.Attributes(), attribute) }
	keep := func(in map[string]float64, name string) {
		if isEnd(p) {
			delete(in, name)
		} else {
			in[name] = number(p)
		}
	}
	switch need.into {
	case intoField:
		s.values[need.field] = number(p)
	case intoQuantile:
		keep(s.quantiles[need.latency], text("quantile"))
	case intoCondition:
		s.judged(text("condition"), p)
	case intoSeverity:
		if !isEnd(p) {
			s.severity = int(number(p))
		}
	case intoCause:
		c := cause{text("role"), text("cause"), text("detail")}
		if holds(p) {
			s.causes[c] = struct{}{}
		} else {
			delete(s.causes, c)
		}
	case intoShare:
		keep(s.shares, text("cause"))
	case intoSignal:
		keep(s.signals, text("signal"))
	case intoRatio:
		keep(s.ratios, text("signal"))
	case intoReplicas:
		if !isEnd(p) {
			s.replicas = int(number(p))
		}
	}
}

// judged takes a point of the condition.
func (s *subject) judged(condition string, p pmetric.NumberDataPoint) {
	switch {
	case holds(p):
		s.at = p.Timestamp().AsTime()
		if s.began.IsZero() {
			s.began = s.at
		}
		if condition != s.condition {
			s.condition, s.since = condition, s.at
		}
	case condition == s.condition:
		s.condition = ""
	}
}

// remember adds the present verdict to the history if it differs from the last one.
func (s *subject) remember() {
	primary := s.primary()
	last := Transition{}
	if n := len(s.history); n > 0 {
		last = s.history[n-1]
	}
	if last.Condition == s.condition && last.Cause == primary.name && last.Detail == primary.detail {
		return
	}
	if len(s.history) == maxHistory {
		s.history = slices.Delete(s.history, 0, 1)
	}
	s.history = append(s.history, Transition{s.at, s.condition, primary.name, primary.detail})
}

func (s *subject) primary() (primary cause) {
	for c := range s.causes {
		if c.role == "primary" {
			primary = c
		}
	}
	return primary
}

// verdict returns what the processor reports. Without details it has no signals.
func (s *subject) verdict(details bool) verdict.Verdict {
	primary := s.primary()
	v := verdict.Verdict{Diagnosis: wording.Diagnosis{Condition: s.condition, Cause: primary.name, Detail: primary.detail}}
	for c := range s.causes {
		switch c.role {
		case "contributing":
			v.Also = append(v.Also, wording.Share{Cause: c.name, Share: s.shares[c.name]})
		case "notice":
			v.Notices = append(v.Notices, c.name)
		}
	}
	slices.Sort(v.Notices)
	slices.SortFunc(v.Also, func(a, b wording.Share) int {
		if a.Share != b.Share {
			return cmp.Compare(b.Share, a.Share)
		}
		return cmp.Compare(a.Cause, b.Cause)
	})
	if details {
		v.Signals = make(map[string]verdict.Measure, len(s.signals))
		for name, value := range s.signals {
			v.Signals[name] = verdict.Against(value, s.ratios[name])
		}
	}
	return v
}

// Quantile is a quantile of a latency, in seconds.
type Quantile struct {
	// Quantile is from 0 to 1.
	Quantile float64
	Seconds  float64
}

// sorted returns the quantiles of a latency, the lowest first.
func (s *subject) sorted(latency Latency) (all []Quantile) {
	for text, seconds := range s.quantiles[latency] {
		if q, err := strconv.ParseFloat(text, 64); err == nil && !math.IsNaN(seconds) {
			all = append(all, Quantile{q, seconds})
		}
	}
	slices.SortFunc(all, func(a, b Quantile) int { return cmp.Compare(a.Quantile, b.Quantile) })
	return all
}
