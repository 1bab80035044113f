package accuracy

import (
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Told is what the diagnosis says at one time.
type Told struct {
	// At is in seconds since the beginning of the story.
	At float64
	// Severity is -1 where nothing was said.
	Severity  int
	Condition string
	// Primary is the primary cause, empty without one.
	Primary string
	// Contributing and Notices are in the order of their names.
	Contributing, Notices []string
	// Detail is that of the primary cause.
	Detail string
	// Signals and Ratios are empty unless they are switched on.
	Signals, Ratios map[string]float64
}

const (
	metricSeverity    = "vllm.diagnosis.severity"
	metricCondition   = "vllm.diagnosis.condition"
	metricCause       = "vllm.diagnosis.cause"
	metricSignal      = "vllm.diagnosis.signal"
	metricSignalRatio = "vllm.diagnosis.signal_ratio"
)

// listen reads what is told about an engine out of what the processor passes on.
func listen(metrics pmetric.Metrics, engine string, at float64) Told {
	told := Told{At: at, Severity: -1}
	for _, rm := range metrics.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if strings.HasPrefix(m.Name(), "vllm.diagnosis.") && m.Type() == pmetric.MetricTypeGauge {
					told.metric(m, engine)
				}
			}
		}
	}
	slices.Sort(told.Contributing)
	slices.Sort(told.Notices)
	return told
}

func (t *Told) metric(m pmetric.Metric, engine string) {
	for _, p := range m.Gauge().DataPoints().All() {
		if e := text(p.Attributes(), "engine"); p.Flags().NoRecordedValue() || (e != "" && e != engine) {
			continue
		}
		v := p.DoubleValue()
		if p.ValueType() == pmetric.NumberDataPointValueTypeInt {
			v = float64(p.IntValue())
		}
		switch m.Name() {
		case metricSeverity:
			t.Severity = int(v)
		case metricCondition:
			if v == 1 {
				t.Condition = text(p.Attributes(), "condition")
			}
		case metricCause:
			if v == 1 {
				t.cause(p.Attributes())
			}
		case metricSignal:
			t.Signals = with(t.Signals, text(p.Attributes(), "signal"), v)
		case metricSignalRatio:
			t.Ratios = with(t.Ratios, text(p.Attributes(), "signal"), v)
		}
	}
}

func (t *Told) cause(attributes pcommon.Map) {
	name := text(attributes, "cause")
	switch text(attributes, "role") {
	case "primary":
		t.Primary, t.Detail = name, text(attributes, "detail")
	case "contributing":
		t.Contributing = append(t.Contributing, name)
	case "notice":
		t.Notices = append(t.Notices, name)
	}
}

// with adds to a map that is made only for what is there, since most runs have
// no signals and many scrapes.
func with(m map[string]float64, name string, v float64) map[string]float64 {
	if m == nil {
		m = map[string]float64{}
	}
	m[name] = v
	return m
}

func text(attributes pcommon.Map, name string) string {
	v, ok := attributes.Get(name)
	if !ok {
		return ""
	}
	return v.AsString()
}

// Alarms reports whether it says that something is wrong: degraded or worse.
func (t *Told) Alarms() bool {
	return t.Severity >= 2 || slices.Contains([]string{"degraded", "failing", stalled, "unreachable"}, t.Condition)
}

// Top are the primary and the contributing causes, two at most. The metrics do
// not rank the contributing ones, so where there are several none is second.
func (t *Told) Top() []string {
	if t.Primary == "" {
		return nil
	}
	if len(t.Contributing) == 1 {
		return []string{t.Primary, t.Contributing[0]}
	}
	return []string{t.Primary}
}
