package replay

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/verdict"
	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/internal/wording"
)

// Subject is what a verdict is about: an engine of a server, or a pool.
type Subject struct {
	// Target is the name of the target; empty for a pool.
	Target string `json:"target,omitempty"`
	// Engine is the engine of the server; empty where it has only one, and for a pool.
	Engine string `json:"engine,omitempty"`
	// Pool is true for a pool.
	Pool bool `json:"pool,omitempty"`
}

// String returns the subject as the report names it.
func (s Subject) String() string {
	switch {
	case s.Pool && s.Engine == "":
		return "pool"
	case s.Pool:
		return "pool " + s.Engine
	case s.Engine == "":
		return s.Target
	}
	return s.Target + " engine " + s.Engine
}

// Verdict is what the processor says about a subject at one time.
type Verdict struct {
	verdict.Verdict
	Severity int

	// ratios are those of the signals to what is usual.
	ratios map[string]float64
	ended  bool
}

// same reports whether two verdicts say the same. A notice raises the severity to 1, and is
// no other verdict.
func (v *Verdict) same(o *Verdict) bool {
	return v.Is(&o.Verdict) && v.Detail == o.Detail && max(v.Severity, 1) == max(o.Severity, 1)
}

// mostEvidence is how many signals are reported as evidence.
const mostEvidence = 4

// evidence are the deciding signals.
func (v *Verdict) evidence() []string {
	for name, ratio := range v.ratios {
		if s, known := v.Signals[name]; known {
			v.Signals[name] = verdict.Against(s.Value, ratio)
		}
	}
	all := v.Evidence()
	return all[:min(mostEvidence, len(all))]
}

const (
	enginePrefix   = "vllm.diagnosis."
	poolPrefix     = "vllm.pool.diagnosis."
	processorScope = "/processor/vllmprocessor"
)

// reading is the verdicts of one batch.
type reading struct {
	subject Subject
	at      time.Time
	verdict Verdict
}

// read returns the verdicts in what the processor emitted. name returns the target of a
// resource.
func read(metrics pmetric.Metrics, name func(pcommon.Map) string) []reading {
	type key struct {
		subject Subject
		at      pcommon.Timestamp
	}
	index := map[key]*reading{}
	for _, rm := range metrics.ResourceMetrics().All() {
		target, named := "", false
		for _, sm := range rm.ScopeMetrics().All() {
			if !strings.HasSuffix(sm.Scope().Name(), processorScope) {
				continue
			}
			for _, m := range sm.Metrics().All() {
				which, pool := strings.CutPrefix(m.Name(), poolPrefix)
				is := pool
				if !pool {
					which, is = strings.CutPrefix(m.Name(), enginePrefix)
				}
				if !is || m.Type() != pmetric.MetricTypeGauge {
					continue
				}
				if !named {
					target, named = name(rm.Resource().Attributes()), true
				}
				for _, p := range m.Gauge().DataPoints().All() {
					k := key{Subject{Target: target, Engine: text(p, "engine"), Pool: pool}, p.Timestamp()}
					if pool {
						k.subject.Target, k.subject.Engine = "", text(p, "model_name")
					}
					r := index[k]
					if r == nil {
						r = &reading{subject: k.subject, at: p.Timestamp().AsTime(), verdict: Verdict{Severity: -1, ratios: map[string]float64{}}}
						r.verdict.Signals = map[string]verdict.Measure{}
						index[k] = r
					}
					r.verdict.take(which, p)
				}
			}
		}
	}
	out := make([]reading, 0, len(index))
	for _, r := range index {
		// An end and a value of one time are of a resource that has moved.
		r.verdict.ended = r.verdict.ended && r.verdict.Severity < 0
		slices.SortFunc(r.verdict.Also, func(a, b wording.Share) int {
			return cmp.Or(cmp.Compare(b.Share, a.Share), strings.Compare(a.Cause, b.Cause))
		})
		r.verdict.Also = slices.DeleteFunc(r.verdict.Also, func(s wording.Share) bool { return s.Cause == r.verdict.Cause || s.Share < leastShare })
		slices.Sort(r.verdict.Notices)
		out = append(out, *r)
	}
	slices.SortFunc(out, func(a, b reading) int {
		return cmp.Or(a.at.Compare(b.at), strings.Compare(a.subject.String(), b.subject.String()))
	})
	return out
}

// leastShare is the share of the harm from which on a further cause is named, as in the log
// of the processor.
const leastShare = 0.2

func (v *Verdict) take(which string, p pmetric.NumberDataPoint) {
	value := p.DoubleValue()
	if p.ValueType() == pmetric.NumberDataPointValueTypeInt {
		value = float64(p.IntValue())
	}
	if p.Flags().NoRecordedValue() {
		v.ended = v.ended || which == "severity"
		return
	}
	switch which {
	case "severity":
		v.Severity = int(value)
	case "condition":
		if value == 1 {
			v.Condition = text(p, "condition")
		}
	case "cause":
		switch role := text(p, "role"); {
		case value != 1:
		case role == "primary":
			v.Cause, v.Detail = text(p, "cause"), text(p, "detail")
		case role == "notice":
			v.Notices = append(v.Notices, text(p, "cause"))
		}
	case "cause_share":
		v.Also = append(v.Also, wording.Share{Cause: text(p, "cause"), Share: value})
	case "signal":
		v.Signals[text(p, "signal")] = verdict.Against(value, 0)
	case "signal_ratio":
		v.ratios[text(p, "signal")] = value
	}
}

func text(p pmetric.NumberDataPoint, name string) string {
	v, there := p.Attributes().Get(name)
	if !there {
		return ""
	}
	return v.AsString()
}

// severityOf is the severity of a condition by the catalogue.
func severityOf(condition string) int {
	if c, known := catalog.ConditionByName(condition); known {
		return c.Severity
	}
	return 0
}
